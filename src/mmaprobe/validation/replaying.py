"""Ask again what was once answered wrongly, on the same devices or on others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device, Support, open_device, pad_lanes, serial
from mmaprobe.devices.misbehaving import OPTIONS
from mmaprobe.devices.model import DatapathDevice
from mmaprobe.devices.options import split_options
from mmaprobe.errors import NotHereError, UsageError, brief
from mmaprobe.evidence.records import Mismatch, Witness
from mmaprobe.exit_codes import DEVICE_FAILED, EQUAL, INCONCLUSIVE, MISMATCH, worst
from mmaprobe.generators.recipe import Recipe, regenerate
from mmaprobe.operands.batch import Batch, Bits, take
from mmaprobe.operands.witness_batches import as_vectors
from mmaprobe.parameters.table import from_table
from mmaprobe.showing import Row, Showing
from mmaprobe.validation.examine import Example, examine, look_again
from mmaprobe.validation.mismatch_file import Saved, tile_of
from mmaprobe.validation.pair import Pair
from mmaprobe.validation.places import slots
from mmaprobe.vendors import vendor_called

RECORDED = "the recorded answer"
"""The reference where the one that was compared with cannot be asked."""
PLAIN = ("cpu", "model", "mutant", "replay")
"""Devices that read files at most."""
MOST_WITNESSES = 2
"""Witnesses of a finding that are shown where two devices differ in it."""
CODES = {"wrong again": MISMATCH, "wrong otherwise": MISMATCH, "right now": EQUAL, "unstable": DEVICE_FAILED}
"""What each outcome of a mismatch makes the command return."""


@dataclass(frozen=True, repr=False)
class Replayed(Showing):
    """A vector asked again: what was known of it (``before``), what was found ``now``, and the devices; ``smallest``:
    it is the smallest form of the one before."""

    before: Mismatch | None
    now: Mismatch
    instruction: str
    dut: str
    ref: str
    nan: str = "bits"
    smallest: bool = False

    def in_a_line(self) -> str:
        """What became of it."""
        return f"replayed {self.instruction}: {self.dut} against {self.ref}: {self.outcome}: {self.now.recipe}"

    def as_row(self) -> Row:
        """What became of it, and the vector with both answers."""
        devices = {"outcome": self.outcome, "instruction": self.instruction, "dut": self.dut, "ref": self.ref}
        return {**devices, **self.now.as_row()}

    @property
    def outcome(self) -> str:
        """``wrong again``: the same wrong answer each time; ``wrong otherwise``: another one each time; ``right now``;
        ``unstable``: now so, now so."""
        if self.now.retests[0].outcome == "gone":
            return "right now"
        if not self.now.stable:
            return "unstable"
        known = self.before
        same = known is None or (known.vector.d, known.expected) == (self.now.vector.d, self.now.expected)
        return "wrong again" if same else "wrong otherwise"

    @property
    def exit_code(self) -> int:
        """1 still wrong, 0 right now, 5 unstable."""
        return CODES[self.outcome]


@dataclass(frozen=True)
class RecordedAnswer:
    """A reference that answers everything with one code: what was expected of the one vector that is asked."""

    expected: int
    name: str = RECORDED
    concurrent: bool = True

    def info(self) -> dict[str, str]:
        """Nothing: it is no device of any architecture."""
        return {}

    def instructions(self) -> Sequence[Instruction]:
        """None of its own."""
        return ()

    def supports(self, instruction: Instruction) -> Support:
        """Whatever is asked."""
        return Support(True)

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        """The code in every place."""
        return np.full((*batch.a.shape[:-1], instruction.n), self.expected, instruction.formats()["d"].dtype)

    def run_vectors(self, instruction: Instruction, vectors: Batch) -> Bits:
        """The code for every vector."""
        return np.full(vectors.size, self.expected, instruction.formats()["d"].dtype)


def runs_no_program(name: str) -> bool:
    """Whether a device that a file names runs nothing that the file chooses: no command, no function, no pack."""
    scheme, _, rest = name.partition(":")
    if scheme == "misbehaving":
        return runs_no_program(split_options(rest, OPTIONS)[1].get("of", "cpu"))
    return scheme in PLAIN or (vendor_called(scheme) is not None and "?" not in rest)


def device_of(saved: Saved) -> Device:
    """The device under test of a file; UsageError where a stranger's file would choose what is run."""
    if not runs_no_program(saved.dut):
        raise UsageError(f"the file names the device {brief(saved.dut)}, which may run anything: name it with --device")
    return open_device(saved.dut)


def replay_saved(saved: Saved, dut: Device, ref: Device | None, made: Instruction) -> list[Replayed]:
    """Every mismatch of a file, asked again; without a ``ref`` beside the one that was compared with, if it opens."""
    examples = [saved.example(number, made) for number in range(len(saved.mismatches))]
    ref = ref or _reference(saved, made)
    runs_on(made, dut, *([ref] if ref is not None else []))
    found: list[Replayed] = []
    for before, example in zip(saved.mismatches, examples, strict=True):
        pair = Pair(serial(dut), serial(ref or RecordedAnswer(before.expected)), made, saved.nan)
        found += replay_mismatch(before, example, pair)
    return found


def replay_recipe(recipe: Recipe, dut: Device, ref: Device, made: Instruction) -> Replayed:
    """The vector of a recipe, asked of two devices: in its tile, where it is an output of one; else in the place among
    separate vectors in which they differ, if any, since the recipe does not say it."""
    runs_on(made, dut, ref)
    pair, vector = Pair(serial(dut), serial(ref), made), regenerate(recipe, made)
    tile, place = tile_of(recipe, made)
    everywhere = take(vector, np.zeros(slots(pair.dut, made), np.int64))
    differ = np.flatnonzero(pair.unequal(pair.answer(pair.dut, everywhere), pair.answer(pair.ref, everywhere)))
    slot = int(differ[0]) if differ.size else 0
    return replay_vector(Example(str(recipe), vector, tile, place, slot), pair)


def runs_on(made: Instruction, *devices: Device) -> None:
    """NotHereError naming the device that does not run an instruction, and why."""
    for device in devices:
        if not (support := device.supports(made)):
            raise NotHereError(f"{made.id} does not run on {device.name}: {support.reason}")


def _reference(saved: Saved, made: Instruction) -> Device | None:
    """The device that was compared with; None where it is no more."""
    if saved.ref == DatapathDevice.name and saved.datapath is not None and saved.datapath.get("datapath"):
        return DatapathDevice(made, from_table(saved.datapath["datapath"]))
    with suppress(NotHereError, UsageError):
        found = open_device(saved.ref) if runs_no_program(saved.ref) else None
        return found if found is not None and found.supports(made) else None
    return None


def replay_mismatch(before: Mismatch, example: Example, pair: Pair) -> Iterator[Replayed]:
    """A mismatch asked again, and its smallest form."""
    yield replay_vector(example, pair, before)
    if before.shrunk is not None and before.shrunk_expected is not None:
        small = replace(before, vector=before.shrunk, expected=before.shrunk_expected, shrunk=None)
        vector = as_vectors(pair.instruction, [before.shrunk])
        if isinstance(pair.ref, RecordedAnswer):
            pair = replace(pair, ref=RecordedAnswer(before.shrunk_expected))
        again = replay_vector(replace(example, vector=vector, first=before.shrunk.d), pair, small)
        yield replace(again, smallest=True)


def replay_vector(example: Example, pair: Pair, before: Mismatch | None = None) -> Replayed:
    """A vector asked again; ``before`` is what was known of it."""
    now = look_again(example, pair)
    if now.retests[0].same == now.retests[0].right == 0:  # all wrong, and none as before: one other answer, or several
        now = look_again(replace(example, first=None), pair)
    return Replayed(before, now, pair.instruction.id, pair.dut.name, pair.ref.name, pair.nan)


def differing_witnesses(witnesses: Sequence[Witness], pair: Pair, named: str) -> Iterator[Mismatch]:
    """The first ``MOST_WITNESSES`` vectors of a finding on which two devices differ, examined as mismatches; none where
    they are no separate vectors."""
    found = 0
    for number, witness in enumerate(witnesses):
        with suppress(UsageError):
            vector = pad_lanes(pair.instruction, as_vectors(pair.instruction, [witness]))
            given = pair.answer(pair.dut, vector)
            if found < MOST_WITNESSES and pair.unequal(given, pair.answer(pair.ref, vector)).any():
                found += 1
                yield examine(Example(f"witness {number} of {named}", vector, first=int(given[0])), pair)


def replayed_code(found: Sequence[Replayed]) -> int:
    """Of several the worst; 4 where nothing was asked."""
    return worst([each.exit_code for each in found]) if found else INCONCLUSIVE
