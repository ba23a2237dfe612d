"""Stream vectors through two devices, compare bits, retest, shrink, classify."""

from mmaprobe.validation.stream import validate
from mmaprobe.validation.summary import FamilyCount, Summary

__all__ = ["FamilyCount", "Summary", "validate"]
