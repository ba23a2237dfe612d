"""Experiments that no probe makes and no datapath says: sparse metadata, blocks of A that feed others, a limit."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.sparsity import kept_positions, legal_items
from mmaprobe.devices.base import Device, run_tiles
from mmaprobe.errors import UsageError
from mmaprobe.formats import Format
from mmaprobe.formats.codes import is_nan
from mmaprobe.operands.batch import Batch, Bits, Witness, take
from mmaprobe.probing.session.exact_values import code_of, values_of
from mmaprobe.runs.open_questions.answers import Shown
from mmaprobe.runs.open_questions.contest import asked_twice


@dataclass(frozen=True)
class ExperimentOutcome:
    """What an experiment found (None: the device does not take the vectors), in words, with vectors."""

    outcome: str | None
    text: str
    shown: tuple[Shown, ...] = ()
    vectors: int = 0


def metadata_order(device: Device, instruction: Instruction, seed: int) -> ExperimentOutcome:
    """Items that name the later lane first: does each stored element meet the lane that its own place names?

    Stored element j of one chunk is 1, the others 0, the lanes of B are 1, 2, 3, 4 in each chunk; so d is the number
    of the lane that met the element.  ``named``: the lane that its place names; ``sorted``: the lane as if the
    item's two places were in ascending order; ``other``: anything else.
    """
    turned = [i for i in legal_items(instruction.chunk, unordered=True) if i not in legal_items(instruction.chunk)]
    vectors = _one_hot(instruction, turned)
    try:
        answers = asked_twice(device, instruction, vectors)
    except UsageError as error:
        return ExperimentOutcome(None, f"{device.name} refuses such metadata: {error}")
    assert vectors.metadata is not None
    ascending: Bits = ((vectors.metadata & 3) << 2 | vectors.metadata >> 2).astype(np.uint8)
    words = {"named": _met(instruction, vectors, vectors.metadata), "sorted": _met(instruction, vectors, ascending)}
    held = [name for name, codes in words.items() if (codes == answers).all()]
    wrong = np.flatnonzero(answers != words["named"])
    at = int(wrong[0]) if wrong.size else 0
    shown = Shown(
        Witness.of(take(vectors, [at]), int(answers[at]), "d is the value of the lane that met the element"),
        tuple((name, int(codes[at])) for name, codes in words.items()),
    )
    outcome = held[0] if held else "other"
    text = f"{outcome}, by {len(turned)} items that name the later place first and {vectors.size} vectors"
    return ExperimentOutcome(outcome, text, (shown,), vectors.size)


def _one_hot(instruction: Instruction, items: list[int]) -> Batch:
    """Every item, in all chunks alike, with each stored element in turn 1 and all others 0; B counts the lanes."""
    chunk, k = instruction.chunk, instruction.k
    a_fmt, b_fmt = (formats.get(name) for name in (instruction.a, instruction.b))
    cases = [(item, place) for item in items for place in range(instruction.selected)]
    a = np.zeros((len(cases), instruction.selected), a_fmt.dtype)
    a[np.arange(len(cases)), [place for _, place in cases]] = a_fmt.one
    b = np.tile(_marks(b_fmt, chunk), (len(cases), k // chunk))
    metadata = np.repeat(np.array([[item] for item, _ in cases], np.uint8), k // chunk, axis=1)
    c = np.zeros(len(cases), formats.get(instruction.c).dtype) if instruction.c else None
    return Batch(a=a, b=b, c=c, metadata=metadata)


def _marks(fmt: Format, chunk: int) -> Bits:
    """1, 2, ... one for each lane of a chunk."""
    codes = [code_of(fmt, Fraction(lane)) for lane in range(1, chunk + 1)]
    if None in codes:
        raise UsageError(f"{fmt.name} cannot count the {chunk} lanes of a chunk")
    return np.array(codes, fmt.dtype)


def _met(instruction: Instruction, vectors: Batch, metadata: Bits) -> Bits:
    """d where the one element that is 1 meets the lane that this metadata names."""
    d = formats.get(instruction.d)
    lanes = kept_positions(instruction, metadata) % instruction.chunk
    met = lanes[np.arange(vectors.size), (vectors.a != 0).argmax(axis=1)]
    found: Bits = _marks(d, instruction.chunk)[met]
    return found


def blocks_of_a(device: Device, instruction: Instruction, seed: int) -> ExperimentOutcome:
    """Which block of A each block of D is made of: A is the number of its block, B is 1, C is 0.

    ``of each group``: ``(b >> cbsz << cbsz) + abid``.  ``of the whole wave``: lane l has A of lane
    ``l % S + S abid``, S = 64 >> cbsz; so block b that of ``b % (S / M) + S / M abid``.  ``other``: anything else.
    A known answer goes by the first, so none is asked for.
    """
    numbers = {key: int(instruction.modifier.get(key, "0")) for key in ("cbsz", "abid")}
    block = np.arange(instruction.blocks)
    few = (64 >> numbers["cbsz"]) // instruction.m
    named = {
        "of each group": (block >> numbers["cbsz"] << numbers["cbsz"]) + numbers["abid"],
        "of the whole wave": block % few + few * numbers["abid"],
    }
    fmt = instruction.formats()
    codes = np.array([code_of(fmt["a"], Fraction(int(number))) for number in block], fmt["a"].dtype)
    shapes = instruction.shapes(1)
    a = np.broadcast_to(codes[:, None, None], shapes["a"]).copy()
    b = np.full(shapes["b"], fmt["b"].one, fmt["b"].dtype)
    unproven = getattr(device, "unproven", nullcontext)
    with unproven():
        d = run_tiles(device, instruction, Batch(a, b, np.zeros(shapes["c"], fmt["c"].dtype)))
    seen = [values_of(fmt["d"], np.unique(each)) for each in d[0]]
    found = [int(one[0]) if len(one) == 1 and one[0] is not None else -1 for one in seen]
    outcome = next((name for name, blocks in named.items() if blocks.tolist() == found), "other")
    return ExperimentOutcome(outcome, f"{outcome}: blocks of D are made of {' '.join(map(str, found))}", vectors=d.size)


def limited_result(device: Device, instruction: Instruction, seed: int) -> ExperimentOutcome:
    """Whether ``clamp`` limits a float to [0, 1]: A and B are 0, C is 2, -2, infinity, 1/2 and a NaN in turn.

    ``limited``: 1, +0, 1, 1/2 come out; ``not limited``: C itself.  Of a NaN ``0`` comes out, or ``NaN``.
    ``other``: anything else.  Zeros have C's sign: to gfx11 those of the other one are a unit below it.
    """
    fmt, d = instruction.formats()["c"], instruction.formats()["d"]
    two, less, half = (code_of(fmt, value) for value in (Fraction(2), Fraction(-2), Fraction(1, 2)))
    c = np.array([two, less, fmt.infinity_code, half, fmt.nan_code], fmt.dtype)
    zeros = {name: np.zeros((c.size, instruction.k), instruction.formats()[name].dtype) for name in "ab"}
    zeros["a"][1] = instruction.formats()["a"].sign_mask
    vectors = Batch(**zeros, c=c)
    with getattr(device, "unproven", nullcontext)():
        answers = asked_twice(device, instruction, vectors)
    words = {"limited": [d.one, 0, d.one, int(c[3])], "not limited": [int(code) for code in c[:4]]}
    nan = "NaN" if is_nan(d, answers[4:])[0] else "0" if not answers[4] else ""
    held = next((name for name, codes in words.items() if nan and answers[:4].tolist() == codes), "")
    outcome = f"{held}, of a NaN {nan}" if held else "other"
    shown = tuple(
        Shown(Witness.of(take(vectors, [n]), int(answers[n])), tuple((name, codes[n]) for name, codes in words.items()))
        for n in range(4)
    )
    text = f"{outcome}: of 2, -2, infinity, 1/2 and a NaN {' '.join(f'{int(code):x}' for code in answers)}"
    return ExperimentOutcome(outcome, text, shown, vectors.size)


EXPERIMENTS: dict[str, Callable[[Device, Instruction, int], ExperimentOutcome]] = {
    "metadata order": metadata_order,
    "blocks of A": blocks_of_a,
    "limited result": limited_result,
}
