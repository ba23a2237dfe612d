"""mmaprobe: find out, bit for bit, what a matrix unit computes, and prove it.

The verbs: ``devices`` and ``device``, ``architectures``, ``instructions`` and ``instruction``; ``model`` and ``gemm``
compute; ``probe``, ``derive`` and ``read_tree`` find out; ``validate`` and what is named like it compare, and
``replay`` asks again; ``run`` and ``bring_up`` do all of it.  Each has an example: ``help(mmaprobe.model)``.
"""

from __future__ import annotations

import importlib as _importlib
import typing as _typing

from mmaprobe.errors import CannotWriteError, DeviceError, InternalError, MmaprobeError, NotHereError, UsageError

if _typing.TYPE_CHECKING:
    from mmaprobe.api import (
        add_catalog,
        architectures,
        derive,
        device,
        instruction,
        instructions,
        model,
        probe,
        read_tree,
        replay,
        replicate,
        validate,
        validate_witnesses,
    )
    from mmaprobe.campaigns import merge, validate_plan
    from mmaprobe.devices.listed import listed as devices
    from mmaprobe.models.gemm import gemm
    from mmaprobe.runs import bring_up, run

    __version__: str

__all__ = [
    "CannotWriteError",
    "DeviceError",
    "InternalError",
    "MmaprobeError",
    "NotHereError",
    "UsageError",
    "__version__",
    "add_catalog",
    "architectures",
    "bring_up",
    "derive",
    "device",
    "devices",
    "gemm",
    "instruction",
    "instructions",
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
    "add_catalog", "architectures", "derive", "device", "instruction", "instructions", "model", "probe",
    "read_tree", "replay", "replicate", "validate", "validate_witnesses",
)  # fmt: skip
_HOMES = dict.fromkeys(_VERBS, "mmaprobe.api")
_HOMES |= dict.fromkeys(("bring_up", "run"), "mmaprobe.runs")
_HOMES["gemm"] = "mmaprobe.models.gemm"
_HOMES |= dict.fromkeys(("merge", "validate_plan"), "mmaprobe.campaigns")


if not _typing.TYPE_CHECKING:  # a checker knows the names above and no others

    def __getattr__(name: str) -> _typing.Any:
        """A public name, loaded when it is first asked for: a probe that is imported alone never loads a model."""
        if name == "__version__":
            return _importlib.import_module("importlib.metadata").version("mmaprobe")
        if name == "devices":  # a verb, and the room that it lists
            return _importlib.import_module("mmaprobe.devices")
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'mmaprobe' has no attribute {name!r}")
        return getattr(_importlib.import_module(home), name)


def __dir__() -> list[str]:
    """The public names, loaded or not, and nothing else."""
    return sorted(__all__)
