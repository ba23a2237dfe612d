"""mmaprobe: find out, bit for bit, what a matrix unit computes, and prove it."""

from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

from mmaprobe.errors import CannotWriteError, DeviceError, InternalError, MmaprobeError, NotHereError, UsageError

if TYPE_CHECKING:
    from mmaprobe.api import (
        add_catalog,
        derive,
        device,
        instruction,
        model,
        probe,
        read_tree,
        replay,
        replicate,
        validate,
        validate_witnesses,
    )
    from mmaprobe.campaigns import merge, validate_plan
    from mmaprobe.models.gemm import gemm
    from mmaprobe.runs import bring_up, run

__version__ = metadata.version("mmaprobe")

__all__ = [
    "CannotWriteError",
    "DeviceError",
    "InternalError",
    "MmaprobeError",
    "NotHereError",
    "UsageError",
    "__version__",
    "add_catalog",
    "bring_up",
    "derive",
    "device",
    "gemm",
    "instruction",
    "merge",
    "model",
    "probe",
    "read_tree",
    "replay",
    "replicate",
    "run",
    "validate",
    "validate_plan",
    "validate_witnesses",
]

_VERBS = (
    "add_catalog", "derive", "device", "instruction", "model", "probe", "read_tree", "replay", "replicate", "validate",
    "validate_witnesses",
)  # fmt: skip
_HOMES = dict.fromkeys(_VERBS, "mmaprobe.api")
_HOMES |= dict.fromkeys(("bring_up", "run"), "mmaprobe.runs")
_HOMES["gemm"] = "mmaprobe.models.gemm"
_HOMES |= dict.fromkeys(("merge", "validate_plan"), "mmaprobe.campaigns")


def __getattr__(name: str) -> Any:
    """A public verb, loaded when it is first asked for: a probe that is imported alone never loads a model."""
    if name not in _HOMES:
        raise AttributeError(f"module 'mmaprobe' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
