"""Devices that add along a given tree, and trees of every kind to give them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Support
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.probing.long_sums.tree_arrays import Builder, TreeArrays

TYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}


class TreeDevice:
    """A dot product that rounds every product and every node of ``tree`` to ``within``; fused nodes cut below their
    largest term.  ``asked`` counts vectors."""

    name = "tree"

    def __init__(self, tree: TreeArrays, fmt: str = "f32", within: str = "f32", c: bool = False) -> None:
        self.tree, self.within, self.asked = tree, TYPES[within], 0
        k = tree.leaves - c
        self.instruction = Instruction(
            f"test.tree{{k={k}}}", "test.tree", "test", 1, 1, k, fmt, fmt, fmt if c else None, fmt
        )

    def info(self) -> dict[str, str]:
        return {"architecture": "test"}

    def instructions(self) -> Sequence[Instruction]:
        return (self.instruction,)

    def supports(self, instruction: Instruction) -> Support:
        return Support(True)

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        """The bits of D."""
        self.asked += batch.size
        dtype = TYPES[instruction.a]
        wide = np.float64 if self.within is np.float64 else np.float32
        a, b = (np.ascontiguousarray(x).view(dtype).astype(wide) for x in (batch.a[:, 0], batch.b[:, :, 0]))
        leaves = self._round(a * b)
        if batch.c is not None:
            leaves = np.column_stack([leaves, np.ascontiguousarray(batch.c[:, 0, 0]).view(dtype).astype(wide)])
        live = (leaves != 0).any(0)  # a sum of one term and zeros is that term: most vectors are mostly zeros
        columns = np.ascontiguousarray(leaves.T)
        values: list[Any] = [columns[leaf] if live[leaf] else None for leaf in range(self.tree.leaves)]
        with np.errstate(all="ignore"):
            for children in self.tree.nodes:
                terms = [term for child in children if (term := values[child]) is not None]
                values.append(self._round(_add(terms)) if len(terms) > 1 else terms[0] if terms else None)
        d = np.zeros(batch.size, wide) if values[-1] is None else values[-1]
        return d.astype(dtype).view(batch.a.dtype).reshape(-1, 1, 1)

    def _round(self, values: Any) -> Any:
        return values if values.dtype == self.within else values.astype(self.within).astype(values.dtype)


def _add(terms: list[Any]) -> Any:
    if len(terms) == 2:
        return terms[0] + terms[1]
    stack = np.array(terms)
    largest = np.abs(stack).max(0)
    kept = np.where(np.abs(stack) < largest * np.float32(2.0**-24), 0, stack)
    return kept.astype(np.float64).sum(0).astype(stack.dtype)


def chain(terms: Sequence[Any]) -> Any:
    """((t0 + t1) + t2) + ... as nested tuples."""
    out = terms[0]
    for term in terms[1:]:
        out = (out, term)
    return out


def pairwise(terms: Sequence[Any]) -> Any:
    """Halves, and halves of them."""
    if len(terms) == 1:
        return terms[0]
    half = (len(terms) + 1) // 2
    return (pairwise(terms[:half]), pairwise(terms[half:]))


def shuffled(terms: Sequence[Any], seed: int, width: int = 2) -> Any:
    """A random tree: any ``width`` or fewer of what is there are added, again and again."""
    draw, left = random.Random(seed), list(terms)
    while len(left) > 1:
        taken = [left.pop(draw.randrange(len(left))) for _ in range(min(draw.randint(2, width), len(left)))]
        left.append(tuple(taken))
    return left[0]


def tree_of(nested: Any) -> TreeArrays:
    """Nested tuples of leaves as a tree."""
    built = Builder()
    done: list[int] = []
    todo: list[tuple[Any, bool]] = [(nested, False)]
    while todo:  # chains are deeper than Python recurses
        item, ready = todo.pop()
        if isinstance(item, int):
            done.append(built.leaf(item))
        elif ready:
            children = [done.pop() for _ in item]
            done.append(built.node(children))
        else:
            todo.append((item, True))
            todo.extend((child, False) for child in item)
    return built.tree(done[0])
