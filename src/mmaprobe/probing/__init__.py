"""Black-box probes, one file a question; they know devices and formats, never models."""

from mmaprobe.probing.suite import QUESTIONS, probe

__all__ = ["QUESTIONS", "probe"]
