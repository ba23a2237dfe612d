"""One run of a device: probe, derive, compare with the shipped file, validate, record, for every instruction.

A run takes steps of one list (``verbs``), by one engine: all of them on a GPU, within a budget and over all of its
instructions (``bring_up``); one, which takes the instructions in turn, on any other device (``run``).
"""

from mmaprobe.runs.result import Report, Result
from mmaprobe.runs.verbs import bring_up, run

__all__ = ["Report", "Result", "bring_up", "run"]
