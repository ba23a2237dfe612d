"""``derive --from replay:PATH``: what recordings say, and the vectors that they lack."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mmaprobe.cli.parameter_changes import changes_of, check_target
from mmaprobe.cli.terminal import emit, out
from mmaprobe.errors import UsageError

if TYPE_CHECKING:
    from mmaprobe.catalog.instruction import Instruction
    from mmaprobe.derivation.recording import Reading
    from mmaprobe.devices.replay import Replay
    from mmaprobe.operands.batch import Batch, Bits


def derive_recorded(
    what: str, names: list[str], seed: int, check: bool, write: Path | None, ask: Path | None, as_json: bool
) -> int:
    """Read every instruction meant out of the recordings; write the vectors that they lack."""
    from mmaprobe.derivation.recording import read
    from mmaprobe.report.tables import recordings

    devices = [_opened(name) for name in names]
    architectures = dict.fromkeys(device.info()["architecture"] for device in devices)
    if len(architectures) > 1:
        raise UsageError(f"recordings of {' and '.join(architectures)}; those of one architecture go together")
    [architecture] = architectures
    if write is not None:
        check_target(write, architecture)
    readings = []
    for instruction in _meant(what, devices, architecture):
        vectors, answers = _together(devices, instruction)
        readings.append(read(architecture, instruction, vectors, answers, seed))
    lines = _changes(devices[0], readings, seed, write, check)
    if ask is not None:
        _write_missing(ask, devices[0].info(), readings, seed)
    if as_json:
        emit({"kind": "mmaprobe reading", "instructions": [recordings.reading_json(each) for each in readings],
              "changes": lines})  # fmt: skip
    else:
        for each in readings:
            recordings.print_reading(out(), each)
        out().print("\n".join(lines) or "no change") if write else None
    if check and lines:
        return 1
    return 4 if any(each.derivation.datapath is None for each in readings) else 0


def _opened(name: str) -> Replay:
    from mmaprobe.devices.base import open_device
    from mmaprobe.devices.replay import Replay

    found = open_device(name)
    if not isinstance(found, Replay):
        raise UsageError(f"--from {name}: only recordings can be read so; --device {name} derives from its answers")
    return found


def _meant(what: str, devices: list[Replay], architecture: str) -> list[Instruction]:
    """The recorded instructions with this id, that match this glob, or all for the architecture's name."""
    from mmaprobe.catalog.lookup import matches
    from mmaprobe.errors import near

    every = list(dict.fromkeys(made for device in devices for made in device.instructions()))
    chosen = every if what == architecture else [made for made in every if what == made.id or matches(made, what)]
    if not chosen:
        known = [made.id for made in every]
        raise UsageError(f"{devices[0].name} records no {what!r}{near(what, known)}; see: mmaprobe corpus list")
    return chosen


def _together(devices: list[Replay], instruction: Instruction) -> tuple[Batch, Bits]:
    from mmaprobe.operands.batch import join

    parts = [device.recorded(instruction) for device in devices if device.supports(instruction)]
    return join([vectors for vectors, _ in parts]), np.concatenate([answers for _, answers in parts])


def _write_missing(path: Path, identity: dict[str, str], readings: list[Reading], seed: int) -> None:
    from mmaprobe.derivation.missing_vectors import missing_vectors
    from mmaprobe.evidence.missing_vectors_file import write_missing_vectors

    missing = [found for each in readings if (found := missing_vectors(each, seed)) is not None]
    write_missing_vectors(path, identity["gpu"], identity["architecture"], missing)


def _changes(device: Replay, readings: list[Reading], seed: int, write: Path | None, check: bool) -> list[str]:
    from mmaprobe.survey.survey_rows import alone, together

    found = together([alone(device, each.instruction, each.derivation, seed) for each in readings])
    return changes_of(found, write, check)
