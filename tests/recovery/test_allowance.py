"""What a derivation costs and answers: the same whatever the process did before."""

from __future__ import annotations

import sys
from itertools import permutations

import pytest
from outcomes import BlackBox, compared
from random_architectures import case

from mmaprobe.derivation import Derivation, budget, derive
from mmaprobe.derivation.budget import Allowance, SpentError, making
from mmaprobe.derivation.deriving import KEPT
from mmaprobe.derivation.search.stages import Search
from mmaprobe.derivation.session import Ended
from mmaprobe.derivation.vectors.mixtures import mixed_vectors
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.mutate import mutate

ANSWERED, ENDED = 24, 3
"""A seed whose architecture is found within the allowance, and one that ends without an answer."""
MOST = 15_000_000


def derived(seed: int) -> Derivation:
    drawn = case(seed)
    return derive(BlackBox(drawn.instruction, drawn.datapath), drawn.instruction, seed=seed, fresh=500, allowance=MOST)


def forget() -> None:
    """Empty every cache of programs and hypotheses."""
    for name in [name for name in sys.modules if name.startswith(("mmaprobe.models.", "mmaprobe.derivation."))]:
        for value in vars(sys.modules[name]).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


@pytest.mark.long
def test_two_derivations_cost_and_answer_the_same_in_either_order() -> None:
    """Answer, certificate, tiles, launches and units of work, with caches full of the other's programs and empty."""
    seen: dict[int, list[tuple[object, ...]]] = {ANSWERED: [], ENDED: []}
    for order in (*permutations(seen), *((seed,) for seed in seen)):
        forget()
        for seed in order:
            found = derived(seed)
            seen[seed].append((found.form(), found.left, found.tiles, found.launches, found.vectors, found.spent))
    for each in seen.values():
        assert len(each) == 3
        assert each[0] == each[1] == each[2]
    answered, ended = (found[0][-1] for found in seen.values())
    assert answered.total <= MOST
    assert ended.total > MOST * (1 - KEPT)  # the rest is kept for a closest, and there is none yet
    assert (answered.ended, ended.ended) == (False, True)
    assert {"structures that a probe reads", "neighbours and fresh vectors"} <= dict(answered.stages).keys()


def test_an_allowance_ends_with_what_each_stage_took() -> None:
    allowance = Allowance(10)
    allowance.spend(4)
    allowance.stage = "structures"
    allowance.spend(6)
    assert not allowance.spent.ended
    with pytest.raises(SpentError, match="no answer within the allowance of 10 units of work") as ended:
        allowance.spend(1)
    assert ended.value.spent.stages == (("the first vectors", 4), ("structures", 7))
    assert str(ended.value.spent) == "11 units of work, most of them (7) for structures"


def test_a_program_is_paid_for_when_it_is_made_and_when_it_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever other derivations have made: these programs are known before the first is paid for."""
    drawn, allowance = case(ANSWERED), Allowance(None)
    vectors = mixed_vectors(drawn.instruction, 1, 8)
    paths = [drawn.datapath, mutate(drawn.datapath, "operand_a.subnormals", "zero")]
    assert paths[0] != paths[1]

    def units(*some: Datapath) -> int:
        before = allowance.spent.total
        allowance.evaluate(some, vectors)
        return allowance.spent.total - before

    first = units(paths[0])
    again = units(paths[0])
    assert first - again == making(paths[:1]) > 0
    assert units(*paths, *paths) == units(*paths, *paths) + making(paths[1:])
    monkeypatch.setattr(budget, "REMEMBERED", 1)
    units(paths[1])
    assert units(paths[0]) == first


def test_a_part_that_is_kept_is_for_what_comes_after() -> None:
    allowance = Allowance(10, kept=4)
    with pytest.raises(SpentError, match="of 10 units"):
        allowance.spend(7)
    assert allowance.spent.ended
    allowance.release()
    allowance.spend(4)
    allowance.release()
    with pytest.raises(SpentError):
        allowance.spend(1)


def test_a_part_ends_what_is_inside_and_nothing_else() -> None:
    allowance = Allowance(100)
    with allowance.part(0.25):
        allowance.spend(20)
        allowance.spend(20)
        pytest.fail("more than the part was taken")
    assert (allowance.left, allowance.spent.ended) == (75, False)
    with allowance.part(0.2):
        allowance.spend(5)
    assert allowance.left == 70
    with pytest.raises(SpentError):
        allowance.spend(71)


def test_a_part_of_an_allowance_without_end_has_none() -> None:
    allowance = Allowance(None)
    with allowance.part(0.25):
        allowance.spend(10**12)
    assert allowance.left == float("inf")


def test_where_the_search_ends_the_closest_is_mended_and_settled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The allowance ends in the middle of the search, with a datapath at hand that is wrong in two fields."""
    drawn, run = case(ANSWERED), Search.run

    def ends(search: Search, start: Datapath | None) -> Datapath | Ended:
        path = run(search, start)
        assert isinstance(path, Datapath)
        search.state.believed = mutate(mutate(path, "operand_a.subnormals", "zero"), "tree.to.rounding", "RZ")
        search.session.allowance.spend(10**12)
        raise AssertionError

    monkeypatch.setattr(Search, "run", ends)
    box = BlackBox(drawn.instruction, drawn.datapath)
    found = derive(box, drawn.instruction, seed=ANSWERED, fresh=500)
    assert found.datapath is not None
    assert not compared(drawn.instruction, drawn.datapath, found.datapath)[1]
    assert dict(found.spent.stages)["the closest, mended"] > 0
