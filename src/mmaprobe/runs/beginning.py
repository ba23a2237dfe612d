"""How a run begins: with what options, on which device, in which folder, anew or where an earlier one ended."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import mmaprobe
from mmaprobe.devices.base import Device, is_device, open_device, reads_gpu_memory, schemes
from mmaprobe.errors import NotHereError, UsageError
from mmaprobe.evidence.files import Lock, sweep
from mmaprobe.evidence.store import Header, Store, execution
from mmaprobe.generators.seeds import fixed, seed_of
from mmaprobe.options import (
    ANY_WHOLE,
    FLAG,
    FUNCTION,
    NAMES,
    NUMBER,
    PATH,
    TEXT,
    Rule,
    checked,
    or_none,
    with_methods,
)
from mmaprobe.runs.planned import PlannedValidation
from mmaprobe.runs.run_state import Clock, RunListener
from mmaprobe.showing import another
from mmaprobe.validation import check_vectors
from mmaprobe.vendors import every

A_YEAR = 525_600
"""The minutes of a year: no budget is larger."""
_DEVICE = Rule("a device or its name", lambda value: isinstance(value, str) or is_device(value))
OPTIONS: dict[str, Rule] = {
    "device": or_none(_DEVICE), "instruction": TEXT, "budget": or_none(NUMBER),
    "out": or_none(PATH), "resume": FLAG, "check": FLAG, "least": ANY_WHOLE,
    "steps": NAMES, "clock": FUNCTION,
    "listener": or_none(with_methods("begin", "step", "at", "derived", "compared")),
}  # fmt: skip
"""Options of ``run`` and ``bring_up``; how far numbers go is said by ``Options``."""
OF_THE_MOMENT = "clock_"
"""Readings in an identity, which another run may find otherwise, begin so."""


@dataclass(frozen=True)
class Options:
    """What a run is told, on whatever device; UsageError where none can begin like this.

    ``vectors`` bound what is compared of each instruction, None: each step knows how many, or a plan (``planned``)
    says it; ``budget`` is in minutes.  ``schedule``: a product is held against it, and nothing else is done.
    """

    instruction: str = "*"
    vectors: int | None = None
    seed: int | None = None
    out: str | Path | None = None
    budget: float | None = None
    resume: bool = False
    check: bool = False
    least: int = 0
    listener: RunListener | None = None
    clock: Clock = time.monotonic
    planned: PlannedValidation | None = None
    schedule: str = ""

    def __post_init__(self) -> None:
        checked("run", {name: value for name, value in vars(self).items() if name in OPTIONS}, OPTIONS)
        if self.vectors is not None:
            check_vectors(self.vectors)
        fixed(self.seed)
        if self.budget is not None and not 0 <= self.budget <= A_YEAR:  # nor nan
            raise UsageError(f"--budget is {self.budget:g}; it must be 0 to {A_YEAR:,} minutes")
        if self.least < 0:
            raise UsageError(f"--least is {self.least}; it must not be negative")
        if self.out is not None and not str(self.out):
            raise UsageError("--out is empty; name a folder")
        if self.resume and self.out is None:
            raise UsageError("--resume needs the folder to go on in: --out FOLDER")
        if self.resume and not (Path(str(self.out)) / "manifest.json").exists():
            raise UsageError(f"{self.out} holds no evidence to go on with; begin there without --resume")


def best_device() -> Device:
    """The best device here: a GPU where there is one, else the CPU."""
    for name in (*(vendor.first() for vendor in every()), "cpu"):
        if name.partition(":")[0] in schemes():
            try:
                return open_device(name)
            except NotHereError:
                continue
    raise NotHereError("no device is here, not even the CPU; see: mmaprobe doctor")


def goes_by_steps(device: Device) -> bool:
    """Whether a device is brought up step by step: a GPU, whose minutes are few and whose instructions are many."""
    return reads_gpu_memory(device)


def begun(device: Device, options: Options, settings: Mapping[str, Any]) -> Store:
    """The evidence folder of a run: a new one, or with ``resume`` one begun by the same device, settings and package.

    Without a seed the run takes that of the folder it goes on in, else ``seeds.seed_of``.

    It is this process' alone until ``Store.close``.  UsageError where another process writes there, where it was begun
    with another device, driver, toolchain or option, naming both, and where it has no digests.
    """
    anew = Path("mmaprobe-evidence") / f"{file_name(device.name)}-{_stamp()}"
    folder = anew if options.out is None else Path(options.out)
    header = Header(
        device=device.name,
        identity=device.info(),
        version=mmaprobe.__version__,
        seed=seed_of(options.seed),
        toolchain=getattr(device, "toolchain", dict)(),
        settings=settings,
        execution=execution(),
    )
    lock = Lock(folder)
    try:
        store = _opened(folder, header, options.seed) if options.resume else Store.create(folder, header)
    except BaseException:
        lock.release()
        raise
    store.lock = lock
    return store


def _opened(folder: Path, header: Header, seed: int | None) -> Store:
    """The evidence in a folder, which must be that of the run that goes on."""
    store = Store.open(folder)
    if not store.sealed:
        raise UsageError(f"{folder} was written without digests, by an older mmaprobe; start anew with another --out")
    sweep(folder, folder / "instructions", folder / "steps")
    header = replace(header, seed=store.header.seed) if seed is None else header
    for name in ("device", "identity", "version", "seed", "toolchain", "settings"):
        before, now = (_lasting(getattr(of, name)) for of in (store.header, header))
        if before != now:
            raise UsageError(
                f"{folder} was begun with {another(name)}: {_difference(before, now)}; "
                "start anew with another --out, or give the same options"
            )
    return store


def _lasting(value: Any) -> Any:
    """What must be the same when a run goes on: an identity without its readings of the moment."""
    if not isinstance(value, Mapping):
        return value
    return {key: item for key, item in value.items() if not key.startswith(OF_THE_MOMENT)}


def _difference(before: Any, now: Any) -> str:
    """What differs, of tables key by key."""
    if not isinstance(before, Mapping):
        return f"{before!r}, now {now!r}"
    keys = [key for key in sorted({*before, *now}) if before.get(key) != now.get(key)]
    return "; ".join(f"{key} was {before.get(key, 'none')}, is now {now.get(key, 'none')}" for key in keys)


def file_name(device: str) -> str:
    """A device's name with everything that does not belong in a file name as a hyphen."""
    return re.sub(r"[^A-Za-z0-9_+]+", "-", device)


def _stamp() -> str:
    return datetime.now().strftime("%Y%m%d-%H%M%S")
