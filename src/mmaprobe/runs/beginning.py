"""How a run begins: on which device, in which folder, anew or where an earlier one ended."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import mmaprobe
from mmaprobe.devices.base import Device, ReadsGpuMemory, open_device, schemes
from mmaprobe.errors import NotHereError, UsageError
from mmaprobe.evidence.files import Lock, sweep
from mmaprobe.evidence.store import Header, Store, execution
from mmaprobe.generators.seeds import fixed, seed_of
from mmaprobe.options import ANY_WHOLE, FLAG, FUNCTION, NAMES, NUMBER, TEXT, Rule, checked, of_type, or_none
from mmaprobe.validation import check_vectors
from mmaprobe.vendors import every

A_YEAR = 525_600
"""Minutes."""
OPTIONS: dict[str, Rule] = {
    "device": or_none(of_type("a device or its name", str, Device)), "instruction": TEXT, "budget": or_none(NUMBER),
    "out": or_none(of_type("a path", str, Path)), "resume": FLAG, "check": FLAG, "least": ANY_WHOLE,
    "steps": NAMES, "clock": FUNCTION,
}  # fmt: skip
"""Options of ``run`` and ``bring_up``; how far numbers go is ``check_options``'."""
OF_THE_MOMENT = "clock_"
"""Readings in an identity, which another run may find otherwise, begin so."""


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
    return isinstance(device, ReadsGpuMemory)


def begun(device: Device, out: str | Path | None, seed: int | None, settings: Mapping[str, Any], resume: bool) -> Store:
    """The evidence folder of a run: a new one, or with ``resume`` one begun by the same device, options and package.

    Without a seed the run takes that of the folder it goes on in, else ``seeds.seed_of``.

    It is this process' alone until ``Store.close``.  UsageError where another process writes there, where it was begun
    with another device, driver, toolchain or option, naming both, and where it has no digests.
    """
    folder = Path("mmaprobe-evidence") / f"{_file_name(device.name)}-{_stamp()}" if out is None else Path(out)
    header = Header(
        device=device.name,
        identity=device.info(),
        version=mmaprobe.__version__,
        seed=seed_of(seed),
        toolchain=getattr(device, "toolchain", dict)(),
        settings=settings,
        execution=execution(),
    )
    lock = Lock(folder)
    try:
        store = _opened(folder, header, seed) if resume else Store.create(folder, header)
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
                f"{folder} was begun with another {name}: {_difference(before, now)}; "
                "start anew with another --out, or give the same options"
            )
    return store


def check_options(
    vectors: int | None, seed: int | None, budget: float | None, least: int, out: str | Path | None, resume: bool
) -> None:
    """UsageError where a run cannot begin like this, whatever the device."""
    given = {"budget": budget, "least": least, "out": out, "resume": resume}
    checked("run", given, OPTIONS)
    if vectors is not None:
        check_vectors(vectors)
    fixed(seed)
    if budget is not None and not 0 <= budget <= A_YEAR:  # nor nan
        raise UsageError(f"--budget is {budget:g}; it must be 0 to {A_YEAR:,} minutes")
    if least < 0:
        raise UsageError(f"--least is {least}; it must not be negative")
    if out is not None and not str(out):
        raise UsageError("--out is empty; name a folder")
    if resume and out is None:
        raise UsageError("--resume needs the folder to go on in: --out FOLDER")
    if resume and not (Path(str(out)) / "manifest.json").exists():
        raise UsageError(f"{out} holds no evidence to go on with; begin there without --resume")


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


def _file_name(device: str) -> str:
    """A device's name with everything that does not belong in a file name as a hyphen."""
    return re.sub(r"[^A-Za-z0-9_+]+", "-", device)


def _stamp() -> str:
    return datetime.now().strftime("%Y%m%d-%H%M%S")
