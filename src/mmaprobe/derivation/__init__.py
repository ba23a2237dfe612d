"""Findings to a datapath: elimination, discriminating search, certificate."""

from mmaprobe.derivation.certificate import Certificate
from mmaprobe.derivation.loop import Derivation, derive

__all__ = ["Certificate", "Derivation", "derive"]
