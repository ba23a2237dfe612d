"""The main job: probe, derive, compare with the shipped file, validate, record, for every instruction of a device.

``run`` goes instruction by instruction, ``bring_up`` step by step over all of them within a budget.
"""

from mmaprobe.runs.campaign import run
from mmaprobe.runs.result import Report, Result
from mmaprobe.runs.stepwise import bring_up

__all__ = ["Report", "Result", "bring_up", "run"]
