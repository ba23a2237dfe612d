"""Findings to a datapath: elimination, discriminating search, certificate."""

from mmaprobe.derivation.certificate import Certificate
from mmaprobe.derivation.deriving import Derivation, derive

__all__ = ["Certificate", "Derivation", "derive"]
