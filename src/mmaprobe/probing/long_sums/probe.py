"""How a dot product of thousands of lanes is added: its tree, what each step does, and the proof on random vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device
from mmaprobe.errors import NotHereError
from mmaprobe.evidence.records import Finding, FindingStatus
from mmaprobe.options import ANY, Rule, checked, whole
from mmaprobe.probing.long_sums.masked_calls import MaskedCalls, NoTreeError, OverBudgetError
from mmaprobe.probing.long_sums.proof import confirm
from mmaprobe.probing.long_sums.reader import read_tree
from mmaprobe.probing.long_sums.steps import arithmetic_json, measure_steps
from mmaprobe.probing.long_sums.tree_arrays import TreeArrays, to_json
from mmaprobe.probing.session.exact_values import UnrepresentableError
from mmaprobe.showing import counted

QUESTION = "long_sum"
BUDGET = 200_000
"""Calls, where nobody says how many."""
VECTORS = 1000
"""Random vectors on which what was read is held against the library."""


def _is_place(value: object) -> bool:
    return isinstance(value, Sequence) and len(value) == 2 and all(map(whole(0).holds, value))


OPTIONS: dict[str, Rule] = {
    "budget": whole(0), "seed": ANY, "at": Rule("a row and a column, such as (0, 0)", _is_place), "vectors": whole(1),
}  # fmt: skip
"""Options of ``probe_long_sum``; a seed is whatever ``seeds.fixed`` takes."""


def probe_long_sum(
    device: Device,
    instruction: Instruction,
    budget: int = BUDGET,
    seed: int = 0,
    at: tuple[int, int] = (0, 0),
    vectors: int = VECTORS,
) -> Finding:
    """The order of the sum at row and column ``at`` of the result; ``tiles`` are the calls it took.

    The answer: ``tree`` (``tree_arrays.to_json``), ``steps``
    (``steps.arithmetic_json``, None where the calls ran out) and ``program``: of
    ``vectors`` random ones, on how many the tree as a program gives the
    device's bits (None where a step is not known, or not computed).

    Exact: the whole tree, and no vector differs.  Bounded: the budget left
    sets of leaves ``unknown`` or the steps unasked, or a vector differs.
    Inconclusive: nothing is lost, or the answers fit no tree of rounded
    additions.  UsageError for integer, sparse and block-scaled sums,
    NotHereError where the device does not run the instruction.
    """
    checked("read_tree", {"budget": budget, "at": at, "vectors": vectors}, OPTIONS)
    support = device.supports(instruction)
    if not support:
        raise NotHereError(f"{instruction.id} on {device.name}: {support.reason}")
    calls = MaskedCalls(device, instruction, budget, seed, at)
    try:
        calls.prepare()
        tree = read_tree(calls)
    except OverBudgetError:
        return Finding(
            QUESTION,
            "inconclusive",
            None,
            f"a budget of {counted(budget, 'call')} is too small to begin",
            tiles=calls.calls,
        )
    except (NoTreeError, UnrepresentableError) as error:
        return Finding(QUESTION, "inconclusive", None, str(error), tiles=calls.calls)
    text = f"{calls.leaves} leaves, read with 2^{calls.high} beside 2^{calls.low}"
    answer: dict[str, Any] = {"tree": to_json(tree, instruction.k), "steps": None, "program": None}
    status: FindingStatus = "exact"
    if tree.unknown:
        text += _left_open(tree, budget)
        status = "bounded"
    else:
        more, status = _steps(calls, tree, vectors, answer)
        text += more
    return Finding(QUESTION, status, answer, text, tiles=calls.calls)


def _left_open(tree: TreeArrays, budget: int) -> str:
    leaves = sum(len(tree.children(node)) for node in tree.unknown)
    return f"; {counted(budget, 'call')} left the order of {leaves} leaves open, in {counted(len(tree.unknown), 'set')}"


def _steps(calls: MaskedCalls, tree: TreeArrays, vectors: int, answer: dict[str, Any]) -> tuple[str, FindingStatus]:
    """What each step does and the proof, put into the answer; words about them and the status."""
    try:
        steps = measure_steps(calls, tree)
        answer["steps"] = arithmetic_json(tree, calls.instruction.k, steps)
        equal = confirm(calls, tree, steps, vectors)
    except OverBudgetError:
        return f"; {counted(calls.budget, 'call')} left open what the steps do", "bounded"
    if equal is None:
        return "; not run as a program (a step is not known, fused, or wider than f64)", "exact"
    answer["program"] = {"vectors": vectors, "equal": equal}
    if equal < vectors:
        return f"; as a program it differs on {vectors - equal} of {vectors} random vectors", "bounded"
    return f"; as a program it gives the same bits on {counted(vectors, 'random vector')}", "exact"
