"""Look at a mismatch again: does it stay, does it need its place, is it seen elsewhere, what is its simplest form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.devices.base import Device, vectors_per_tile
from mmaprobe.devices.replay import Replay
from mmaprobe.errors import DeviceError, NotHereError
from mmaprobe.evidence.records import Mismatch, Retest, Witness
from mmaprobe.generators.tiles import with_vectors
from mmaprobe.operands.batch import Batch, Bits, take
from mmaprobe.validation.classify import kinds
from mmaprobe.validation.elsewhere import Elsewhere, others
from mmaprobe.validation.pair import Pair
from mmaprobe.validation.places import slots
from mmaprobe.validation.shrink import shrink

COPIES = 32
"""How often a vector that differs is asked again, in one batch; and as often, one at a time.

A fault may show only within a batch, or only alone.  One that shows once in 16 times is missed by either in 1 of 8
cases, and by both, where it shows in both, in 1 of 62."""


@dataclass(frozen=True)
class Example:
    """A vector on which the devices differed.

    ``tile`` and ``place`` where it was the output of a whole tile; ``slot`` where it was among separate vectors,
    counted as their places in tiles or lanes come again.  ``first``: what the device under test answered, if known;
    ``seen``: the core or multiprocessor that did.
    """

    recipe: str
    vector: Batch
    tile: Batch | None = None
    place: tuple[int, int] = (0, 0)
    slot: int = 0
    first: int | None = None
    seen: str = ""


@dataclass(frozen=True)
class _Setting:
    """A way to ask vectors: one answer of a device each; ``note`` says what is needed to see the mismatch, ``each`` how
    many vectors a tile takes."""

    note: str
    answers: Callable[[Device, Batch], Bits]
    each: int = 1


@dataclass(frozen=True)
class _Looked:
    """A retest in a setting, with the first answer and the expected one beside which it was wrong."""

    setting: _Setting
    retest: Retest
    answer: int
    expected: int


def examine(example: Example, pair: Pair) -> Mismatch:
    """The mismatch as it is found again (``look_again``); one that stays is shrunk, but for recordings, which answer
    no other vectors."""
    found, setting = _found_again(example, pair)
    if not found.stable or any(type(each) is Replay for each in (pair.dut, pair.ref)):
        return found
    return _shrunk(found, setting, example.vector, pair)


def look_again(example: Example, pair: Pair) -> Mismatch:
    """Ask ``COPIES`` times again in one batch, and as often one at a time.

    A vector is asked alone; where it is not always wrong alone, in its place among separate vectors, then in its place
    in its tile, whose other outputs stay as they were.  The first of these that shows it each time is believed, else
    the first that shows it at all.  The same is then asked elsewhere (``elsewhere.others``).
    """
    return _found_again(example, pair)[0]


def _found_again(example: Example, pair: Pair) -> tuple[Mismatch, _Setting]:
    looked: list[_Looked] = []
    for setting in _settings(example, pair):
        looked.append(_look(setting, example, pair, Elsewhere("", pair.dut)))
        if looked[-1].retest.outcome == "stable":
            break
    best = looked[-1] if looked[-1].retest.outcome == "stable" else next(filter(_shows, looked), looked[0])
    known = replace(example, first=best.answer)
    again = [_look_there(best.setting, known, pair, place) for place in others(pair.dut)]
    found = Mismatch(
        vector=Witness.of(example.vector, best.answer, best.setting.note),
        expected=best.expected,
        recipe=example.recipe,
        stable=best.retest.outcome == "stable",
        retests=(best.retest, *filter(None, again)),
        format=pair.instruction.d,
        kinds=kinds(formats.get(pair.instruction.d), best.answer, best.expected),
        seen=example.seen,
        slot=example.slot,
    )
    return found, best.setting


def _shows(looked: _Looked) -> bool:
    return looked.retest.outcome != "gone"


def _settings(example: Example, pair: Pair) -> Iterator[_Setting]:
    """Alone; in the place among separate vectors; in the place in the tile."""
    yield _Setting("", pair.answer, vectors_per_tile(pair.instruction))
    if example.tile is not None:
        row, column = example.place
        yield _Setting(
            f"only in row {row}, column {column} of its tile", partial(_in_tile, pair, example.tile, row, column)
        )
    elif 0 < example.slot < slots(pair.dut, pair.instruction):
        yield _Setting(_slot_note(example.slot, pair), partial(_in_slot, pair, example.slot))


def _slot_note(slot: int, pair: Pair) -> str:
    if pair.instruction.lane_wise:
        return f"only as number {slot} of a batch"
    return f"only as number {slot} on the diagonal of a tile"


def _in_tile(pair: Pair, tile: Batch, row: int, column: int, device: Device, vectors: Batch) -> Bits:
    return pair.answer_tiles(device, with_vectors(tile, row, column, vectors))[:, row, column]


def _in_slot(pair: Pair, slot: int, device: Device, vectors: Batch) -> Bits:
    """Each vector beside copies of itself, as many as there are places."""
    each = slots(pair.dut, pair.instruction)
    return pair.answer(device, take(vectors, np.repeat(np.arange(vectors.size), each)))[slot::each]


def _look(setting: _Setting, example: Example, pair: Pair, place: Elsewhere) -> _Looked:
    """Both devices asked again; a wrong answer is the same where neither of the two codes is another."""
    copies = (place.tiles * setting.each, 0) if place.tiles else (COPIES, COPIES)
    given, right = (_asked(setting, device, example.vector, *copies) for device in (place.device, pair.ref))
    wrong = pair.unequal(given, right)
    first = example.first
    if first is None:
        first = int(given[np.flatnonzero(wrong)[0] if wrong.any() else 0])
    matters = np.flatnonzero(pair.unequal(np.full_like(right, first), right))
    expected = int(right[matters[0] if matters.size else 0])
    same = int((wrong & (given == first) & (right == expected)).sum())
    asked = Retest(given.size, same, int(wrong.sum()) - same, place.where)
    return _Looked(setting, asked, first, expected)


def _asked(setting: _Setting, device: Device, vector: Batch, together: int, alone: int) -> Bits:
    """Answers to copies in one batch, then to one at a time."""
    batch = setting.answers(device, take(vector, np.zeros(together, np.int64)))
    return np.concatenate([batch, *(setting.answers(device, vector) for _ in range(alone))])


def _look_there(setting: _Setting, example: Example, pair: Pair, place: Elsewhere) -> Retest | None:
    """A retest elsewhere; None where another device fails, which is no finding about this one."""
    passed = (NotHereError, DeviceError) if place.device is not pair.dut else ()
    with suppress(*passed), place.going:
        return _look(setting, example, pair, place).retest
    return None


def _shrunk(found: Mismatch, setting: _Setting, vector: Batch, pair: Pair) -> Mismatch:
    """The mismatch with its simplest form."""

    def differ(vectors: Batch) -> NDArray[np.bool_]:
        return pair.unequal(setting.answers(pair.dut, vectors), setting.answers(pair.ref, vectors))

    small = shrink(pair.instruction, vector, differ)
    answer, expected = (int(setting.answers(device, small)[0]) for device in (pair.dut, pair.ref))
    return replace(found, shrunk=Witness.of(small, answer, setting.note), shrunk_expected=expected)
