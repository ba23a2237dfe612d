"""A datapath whose fields are each told from all their other values, as far as vectors can."""

from __future__ import annotations

from functools import partial

from mmaprobe.derivation.observations import Pool, eliminate
from mmaprobe.derivation.search.descent import descend, grids
from mmaprobe.derivation.search.lane_orders import normal
from mmaprobe.derivation.search.loss import Budget, Graded, grid_of
from mmaprobe.derivation.search.numbers import Precisions, groups, singles
from mmaprobe.derivation.search.single_terms import descend as descend_numbers
from mmaprobe.derivation.session import OutsideError, State
from mmaprobe.derivation.survivors import Living
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.rewrite import simpler

TURNS = 12


def polish(state: State, datapath: Datapath, pool: Pool, plain: bool) -> Datapath:
    """Downhill until no answer is wrong, then vectors that tell every group of fields from its other values; again
    from the best of those where the device sides with one.

    OutsideError with the datapath reached where some answers stay wrong.
    """
    for turn in range(TURNS):
        found, misses = descend(datapath, *state.observations.everything(), plain, state.allowance)
        if misses:
            raise OutsideError("fields on their own", found)
        found = _simplest(state, found)
        rivals = Living.of(list(grids(found, plain)), state.allowance)
        state.begin("fields on their own", f"{len(rivals)} hypotheses")
        alive = eliminate(state.observations, rivals, pool, seed=state.seed + 31 * turn)
        if state.observations.mismatches(found) == 0:
            return found
        datapath = next(iter(alive), found)
    raise OutsideError("neighbours kept replacing each other", datapath)


def polish_numbers(state: State, datapath: Datapath, pool: Pool, precisions: Precisions, budget: Budget) -> Datapath:
    """``polish`` of precisions and roundings alone, each part on its own, by graded answers."""
    for turn in range(TURNS):
        seen = Graded.of(state.instruction, [state.observations.everything()], budget)
        found, loss = descend_numbers(datapath, seen, lambda path: groups(path, precisions))
        if loss:
            raise OutsideError("precisions and roundings", found)
        found = _simplest(state, found)
        near = [grid for base, group in singles(found, precisions) if (grid := grid_of(base, group))]
        rivals = Living.of(near, state.allowance)
        state.begin("precisions and roundings, each part on its own", f"{len(rivals)} hypotheses")
        which = partial(normal, state.instruction)
        alive = eliminate(state.observations, rivals, pool, seed=state.seed + 31 * turn, which=which)
        if state.observations.mismatches(found) == 0:
            return found
        datapath = next(iter(alive), found)
    raise OutsideError("neighbours kept replacing each other", datapath)


def _simplest(state: State, datapath: Datapath) -> Datapath:
    """The datapath with less and less said, as long as that agrees with every answer."""
    for less in simpler(datapath):
        if state.observations.mismatches(less) == 0:
            return _simplest(state, less)
    return datapath
