"""Which lane each metadata item picks, on directed vectors: the catalog's rule proven, or a counterexample.

For stored element j of A and a legal item of its chunk: element j is 1, the
lane of B that the item names for it is 1, all else is zero, and every other
chunk has another item.  Whatever the datapath, the answer must be the one where
all lanes of the chunk are 1, and that must differ from the one where none is: a
unit that picks another lane, or reads another chunk's item, shows at once.  The
same again with hostile values in the lanes that no item names.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.sparsity import kept_positions, legal_items
from mmaprobe.derivation.dense_view import KeptLanes, hostile
from mmaprobe.derivation.session import Session
from mmaprobe.devices.base import run_vectors, vectors_per_tile
from mmaprobe.operands.batch import Batch, Bits, Witness, join, take

Ints = NDArray[np.intp]


@dataclass(frozen=True)
class SelectionProof:
    """What directed vectors say: nothing (``reason`` is empty), or the smallest vector that contradicts the rule."""

    tiles: int
    launches: int
    vectors: int
    reason: str = ""
    counterexample: Witness | None = None


def prove_selection(view: KeptLanes) -> SelectionProof:
    """Hold the catalog's rule against the device: one launch, a second one before it is contradicted.

    UnstableError where that gets other answers.
    """
    made = view.sparse
    element, item = _cases(made, view.unordered)
    named, some = _directed(made, element, item, view.unordered), _one_each(element)
    directed = join([named, _spoiled(made, take(named, some))])
    whole, none = (_filled(made, filled) for filled in (True, False))
    vectors = join([directed, whole, none])
    given = run_vectors(view.device, made, vectors)
    answers, full, empty = np.split(given, [directed.size, directed.size + made.selected])
    cost = -(-vectors.size // vectors_per_tile(made)), 1, vectors.size
    meant = np.concatenate([element, element[some]])
    blind, wrong = np.flatnonzero(full == empty), np.flatnonzero(answers != full[meant])
    if blind.size or wrong.size:
        Session(view.device, made).check_repeated(vectors, given)
        cost = 2 * cost[0], 2, cost[2]
    if blind.size:
        shown = Witness.of(take(whole, blind[:1]), int(full[blind[0]]), "the same answer with zeros in this chunk of B")
        why = f"stored element {blind[0]} of A shows in no answer, so that nothing tells which lane of B it meets"
        return SelectionProof(*cost, why, shown)
    if wrong.size:
        at = wrong[0]
        return SelectionProof(*cost, *_contradiction(made, take(directed, [at]), meant[at], int(answers[at]), full))
    return SelectionProof(*cost)


def _contradiction(made: Instruction, vector: Batch, element: int, answer: int, whole: Bits) -> tuple[str, Witness]:
    assert vector.metadata is not None
    lane, expected = int(kept_positions(made, vector.metadata)[0, element]), int(whole[element])
    item = int(vector.metadata[0, lane // made.chunk])
    reason = (
        f"metadata is read otherwise than the catalog says: item {item:#x} of chunk {lane // made.chunk} names lane "
        f"{lane} for stored element {element}, but the device answers {answer:#x} and not {expected:#x}"
    )
    return reason, Witness.of(vector, answer, f"lane {lane} of B was to be taken: {expected:#x}")


def _cases(made: Instruction, unordered: bool) -> tuple[Ints, Ints]:
    """Every stored element with every legal item: (elements, numbers of items)."""
    count = len(legal_items(made.chunk, unordered))
    return np.repeat(np.arange(made.selected), count), np.tile(np.arange(count), made.selected)


def _one_each(element: Ints) -> Ints:
    """One case of every element, with another item from one element to the next."""
    count = len(element) // (int(element[-1]) + 1)
    each = np.arange(0, len(element), count)
    return each + np.arange(len(each)) // 2 % count


def _directed(made: Instruction, element: Ints, item: Ints, unordered: bool) -> Batch:
    """Element and named lane 1, all else zero; in every other chunk another item."""
    items = np.array(legal_items(made.chunk, unordered), np.uint8)
    chunks = np.arange(made.k // made.chunk)
    own = element[:, None] // (made.chunk // 2) == chunks
    others = item[:, None] + 1 + chunks % max(len(items) - 1, 1)
    metadata = items[np.where(own, item[:, None], others) % len(items)]
    vectors = _ones(made, element)
    rows = np.arange(len(element))
    vectors.b[rows, kept_positions(made, metadata)[rows, element]] = formats.get(made.b).one
    return replace(vectors, metadata=metadata)


def _filled(made: Instruction, filled: bool) -> Batch:
    """For every element the vector whose chunk of B is 1 in all lanes, or 0."""
    element = np.arange(made.selected)
    vectors = _ones(made, element)
    metadata = np.full((made.selected, made.k // made.chunk), legal_items(made.chunk)[0], np.uint8)
    own = element[:, None] // (made.chunk // 2) == np.arange(made.k) // made.chunk
    vectors.b[own & filled] = formats.get(made.b).one
    return replace(vectors, metadata=metadata)


def _ones(made: Instruction, element: Ints) -> Batch:
    """Vectors whose only operands that are not zero are the stored elements (1) and the scales (1)."""
    types = made.formats()
    count = len(element)
    a = np.zeros((count, made.selected), types["a"].dtype)
    a[np.arange(count), element] = types["a"].one
    operands: dict[str, Bits] = {"a": a, "b": np.zeros((count, made.k), types["b"].dtype)}
    if made.c is not None:
        operands["c"] = np.zeros(count, types["c"].dtype)
    if made.scale is not None:
        one = np.full((count, made.k // made.scale_size), types["scale_a"].one, types["scale_a"].dtype)
        operands |= {"scale_a": one, "scale_b": one}
    return Batch(**operands)


def _spoiled(made: Instruction, vectors: Batch) -> Batch:
    """The vectors with hostile values in every lane of B that no item names."""
    assert vectors.metadata is not None
    kept = np.zeros(vectors.b.shape, bool)
    np.put_along_axis(kept, kept_positions(made, vectors.metadata), True, axis=1)
    codes = np.resize(hostile(made.b), vectors.b.shape)
    return replace(vectors, b=np.where(kept, vectors.b, codes))
