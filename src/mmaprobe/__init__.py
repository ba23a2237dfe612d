"""mmaprobe: find out, bit for bit, what a matrix unit computes, and prove it."""

from importlib import metadata

__version__ = metadata.version("mmaprobe")

from mmaprobe.api import derive, device, instruction, model, probe, validate
from mmaprobe.bringup import run
from mmaprobe.errors import CannotWriteError, DeviceError, MmaprobeError, NotHereError, UsageError

__all__ = [
    "CannotWriteError",
    "DeviceError",
    "MmaprobeError",
    "NotHereError",
    "UsageError",
    "__version__",
    "derive",
    "device",
    "instruction",
    "model",
    "probe",
    "run",
    "validate",
]
