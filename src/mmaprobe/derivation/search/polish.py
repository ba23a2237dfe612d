"""A datapath whose fields are each told from all their other values, as far as vectors can."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from mmaprobe.derivation.discriminate import Pool, eliminate
from mmaprobe.derivation.search import every_field, numbers
from mmaprobe.derivation.search.descent import Ways, descend, grids
from mmaprobe.derivation.search.lane_orders import normal
from mmaprobe.derivation.search.loss import Budget, Graded
from mmaprobe.derivation.session import OutsideError, View
from mmaprobe.derivation.survivors import Living
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.rewrite import simpler

TURNS = 12


@dataclass(frozen=True)
class Fields:
    """What is varied: the groups that lead downhill (by the ``best`` step of all, or each at once), and those that a
    datapath is told from then.  ``normal``: only normal answers count."""

    name: str
    ways: Ways
    near: Ways
    best: bool
    normal: bool


def all_fields(plain: bool) -> Fields:
    """Every field; ``plain``: precisions and roundings alone."""
    ways = partial(every_field.groups, plain=plain)
    return Fields("fields on their own", ways, ways, best=False, normal=False)


def own_numbers(precisions: numbers.Precisions) -> Fields:
    """Precisions and roundings of each part, by normal answers."""
    ways, near = (partial(each, precisions=precisions) for each in (numbers.groups, numbers.singles))
    return Fields("precisions and roundings", ways, near, best=True, normal=True)


def polish(view: View, datapath: Datapath, pool: Pool, fields: Fields, budget: Budget) -> Datapath:
    """Downhill until no answer is wrong, then vectors that tell every group of fields from its other values; again
    from the best of those where the device sides with one.

    OutsideError with the datapath reached where some answers stay wrong.
    """
    session = view.session
    holds = partial(normal, session.instruction) if fields.normal else None
    for turn in range(TURNS):
        seen = Graded.of(session.instruction, [view.seen()], budget, every=not fields.normal)
        found, loss = descend(datapath, seen, fields.ways, best=fields.best)
        if loss:
            raise OutsideError(fields.name, found)
        found = _simplest(view, found)
        rivals = Living.of(list(grids(found, fields.near)), session.allowance)
        session.begin(fields.name, f"{len(rivals)} hypotheses")
        alive = eliminate(view, rivals, pool, seed=session.seed + 31 * turn, holds=holds)
        if view.mismatches(found) == 0:
            return found
        datapath = next(iter(alive), found)
    raise OutsideError("neighbours kept replacing each other", datapath)


def _simplest(view: View, datapath: Datapath) -> Datapath:
    """The datapath with less and less said, as long as that agrees with every answer."""
    for less in simpler(datapath):
        if view.mismatches(less) == 0:
            return _simplest(view, less)
    return datapath
