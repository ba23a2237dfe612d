"""Stream vectors through two devices, compare bits, retest, shrink, classify."""

from mmaprobe.validation.stream import check_vectors, validate
from mmaprobe.validation.summary import FamilyCount, Summary

__all__ = ["FamilyCount", "Summary", "check_vectors", "validate"]
