"""The stages of a derivation after structure and numbers, on random architectures handed over without their ends."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from outcomes import BlackBox, compared
from random_architectures import case
from stages import handed_over, reordered

from mmaprobe.derivation import derive
from mmaprobe.derivation.budget import Allowance, SpentError
from mmaprobe.derivation.deriving import LEFT
from mmaprobe.derivation.hypotheses.nan_rules import local_order, preferred
from mmaprobe.derivation.search.nan_order import NanOrder
from mmaprobe.derivation.search.stages import FRESH, Search
from mmaprobe.derivation.session import Session, State, View
from mmaprobe.derivation.vectors.mixtures import plain
from mmaprobe.derivation.vectors.stages import Pools
from mmaprobe.models.engine import evaluate_many
from mmaprobe.parameters.datapath import Special
from mmaprobe.parameters.table import to_table

FULL = os.environ.get("MMAPROBE_DEPTH", "quick") != "quick"
SEEDS = [seed for seed in range(200 if FULL else 24) if case(seed).kind != "integer"]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_rule_of_nans_is_read_off(seed: int) -> None:
    """All but the rule of NaNs and the order of operands in sums is known; no judged vector tells what is found from
    the truth."""
    drawn = case(seed)
    truth, instruction = drawn.datapath, drawn.instruction
    state = State(Session(BlackBox(instruction, truth), instruction, seed))
    search = Search(state)
    start = replace(reordered(truth, seed), special=Special())
    state.session.ask(search.pools.special(seed, 64))
    found = next(iter(search._nans(start)))
    assert compared(instruction, truth, found)[1] == 0
    assert state.session.tiles < 2000
    assert state.session.launches < 20


@pytest.mark.parametrize("seed", [seed for seed in SEEDS if case(seed).datapath.special.nan != "canonical"][:12])
def test_the_order_of_operands_is_measured(seed: int) -> None:
    """Without a guess the order is the true one, of those names that a result can tell apart."""
    drawn = case(seed)
    session = Session(BlackBox(drawn.instruction, drawn.datapath), drawn.instruction)
    places = NanOrder(session, drawn.datapath).places(None)
    assert places is not None
    mine = [places[name] for name in preferred(drawn.datapath) if name in places]
    assert mine == sorted(mine)
    if session.all.count:
        assert session.all.mismatches(drawn.datapath) == 0


ENDS = (1, 6, 8, 14, 18, 20, 46, 54) if not FULL else tuple(range(60))
"""Seeds with rules of their own for parts of the range, or for C's zero."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", [seed for seed in ENDS if case(seed).kind != "integer"])
def test_the_ends_of_the_range_are_found_part_by_part(seed: int) -> None:
    """Structure, numbers and the rule of NaNs are known, and plain answers that show the numbers; before it is settled
    no more judged vectors tell what is found from the truth than the fresh vectors of the search can miss."""
    drawn = case(seed)
    truth, instruction = drawn.datapath, drawn.instruction
    session = Session(BlackBox(instruction, truth), instruction, seed, allowance=Allowance(600_000_000))
    search = Search(State(session))
    search._ask_plain(1)
    start = replace(handed_over(truth, seed), special=truth.special)
    found = next(search.finished(start))
    size, differing = compared(instruction, *(replace(path, special=Special()) for path in (truth, found)))
    assert differing < size / FRESH


def test_a_view_asks_on_behalf_of_what_it_is_a_view_of() -> None:
    drawn = case(20)
    instruction = drawn.instruction
    session = Session(BlackBox(instruction, drawn.datapath), instruction)
    view = View(session, lambda vectors, _: vectors.a[:, 0] % 2 == 0)
    others, vectors = (Pools(instruction).range(seed, 400) for seed in (1, 2))
    session.ask(others)
    taken = view.count
    assert 0 < taken < others.size
    _, shown = view.ask(vectors)
    assert session.launches == 2
    assert (session.all.seen()[1][others.size :] == shown).all()
    assert view.count == len(view.seen()[1]) == taken + vectors.size
    assert view.mismatches(drawn.datapath) == session.all.mismatches(drawn.datapath) == 0


def test_a_search_without_allowance_stops() -> None:
    drawn = case(8)
    box = BlackBox(drawn.instruction, drawn.datapath)
    search = Search(State(Session(box, drawn.instruction, 8, allowance=Allowance(1000))))
    with pytest.raises(SpentError, match="allowance of 1,000"):
        next(search.finished(handed_over(drawn.datapath, 8)))


@pytest.mark.long
def test_without_an_answer_the_hypotheses_that_are_left_are_given() -> None:
    """What a derivation says whose allowance runs out: the tree, and datapaths that agree with every plain vector."""
    drawn = case(2)
    found = derive(BlackBox(drawn.instruction, drawn.datapath), drawn.instruction, seed=2, allowance=20_000_000)
    assert found.status == "inconclusive"
    assert "no answer within the allowance" in found.reason
    assert "no datapath of the grammar" not in found.reason
    assert found.findings["summation_tree"].status == "exact"
    assert 0 < len(found.left) <= LEFT
    assert found.form()["left"] == [to_table(path) for path in found.left]
    vectors = Pools(drawn.instruction).finite(5, 2000)
    answers = evaluate_many([drawn.datapath, *found.left], vectors)
    usual = plain(drawn.instruction, vectors, answers[0])
    assert usual.sum() > 100
    assert (answers[1:, usual] == answers[0, usual]).mean() > 0.9


def test_a_local_rule_orders_the_operands_as_they_stand_in_the_tree() -> None:
    drawn = next(case(seed) for seed in range(500) if case(seed).kind == "chain" and case(seed).datapath.k == 2)
    names = local_order(drawn.datapath, ("b", "a", "acc"))
    assert sorted(names) == sorted(["a0", "b0", "a1", "b1", *(["c"] if drawn.datapath.c else [])])
    assert names.index("b0") < names.index("a0")
