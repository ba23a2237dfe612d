"""Findings to a datapath: a search from coarse to fine, the neighbours refuted, a certificate."""

from mmaprobe.derivation.certificate import Certificate
from mmaprobe.derivation.deriving import Derivation, derive

__all__ = ["Certificate", "Derivation", "derive"]
