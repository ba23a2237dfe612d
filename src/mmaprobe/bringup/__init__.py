"""The main job: probe, derive, compare with the shipped file, validate, record, for every instruction of a device."""

from mmaprobe.bringup.campaign import run
from mmaprobe.bringup.result import Report, Result

__all__ = ["Report", "Result", "run"]
