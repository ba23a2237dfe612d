"""The search: stage after stage, each with the vectors that it asks, what it sees of answers, and what it varies.

Numbers of single terms come first, without any structure.  Every structure then gets these numbers and is ranked by
how far it is from the answers; the nearest go downhill, and nothing is dropped for a wrong answer.  Then the ends of
the range, then what only the sign of a zero shows; fresh vectors send a datapath through these again.  The rule of NaNs
is told apart last.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, pairwise, product

import numpy as np

from mmaprobe import formats
from mmaprobe.derivation.budget import Allowance
from mmaprobe.derivation.discriminate import Pool, eliminate, telling
from mmaprobe.derivation.hypotheses import field_choices, roles
from mmaprobe.derivation.hypotheses import grammar as grammar
from mmaprobe.derivation.hypotheses.nan_rules import preferred, rules_of_order
from mmaprobe.derivation.hypotheses.read_trees import read
from mmaprobe.derivation.hypotheses.structures import Structure
from mmaprobe.derivation.search import fields, skeletons
from mmaprobe.derivation.search.descent import Ways, descend, descent, race
from mmaprobe.derivation.search.integer_order import order_told, order_vectors
from mmaprobe.derivation.search.lane_orders import Places, Shape, alike, ordered, shapes
from mmaprobe.derivation.search.loss import Found, Graded
from mmaprobe.derivation.search.nan_order import NanOrder, nan_codes
from mmaprobe.derivation.search.single_terms import Alone, fit_alone
from mmaprobe.derivation.session import ContradictedError, Ended, Mask, State, View, blind, one_nan
from mmaprobe.derivation.survivors import Living, several
from mmaprobe.derivation.vectors.below_range import faint_vectors, reaches_lower
from mmaprobe.derivation.vectors.few import few_vectors
from mmaprobe.derivation.vectors.large_products import adds_up, heavy_vectors
from mmaprobe.derivation.vectors.mixtures import nan_operands, plain
from mmaprobe.derivation.vectors.narrow_edges import hides_sums, narrow_edges
from mmaprobe.derivation.vectors.plain import opposite_vectors, single_vectors, uniform_vectors
from mmaprobe.derivation.vectors.range_ends import near_vectors
from mmaprobe.derivation.vectors.rivals import attack_vectors, can_attack
from mmaprobe.derivation.vectors.specials import nans_beside_c
from mmaprobe.derivation.vectors.stages import Pools
from mmaprobe.models.program import program
from mmaprobe.operands.batch import Batch, Bits, join, take
from mmaprobe.parameters.datapath import Datapath, Special, walk
from mmaprobe.parameters.rewrite import simpler, spellings

# Every number below is tuned by ``tests/recovery``: what ships and random architectures, by answers, tiles and seconds.
SINGLE = 96
"""Vectors of one term in the first launch."""
UNIFORM = 64
"""Vectors of equal lanes in the first launch."""
SAFE = 96
"""Vectors whose every term is a normal result, in the first launch."""
FEW = 128
"""Vectors of few terms in the first launch."""
HEAVY = 64
"""Vectors of large products in the first launch, where narrow ones hide roundings."""
EDGES = 192
"""Vectors at edges of a narrow result in the first launch, where it may hide what a sum inside does."""
SPECIAL = 32
"""Vectors with NaNs, infinities and zeros in the first launch."""
MORE = (2, 3)
"""So many times as many plain vectors are asked where those before do not lead to the end."""
RANGE = 12
"""Vectors of extremes, in the launch at the ends of the range."""
LOW = 4
"""Vectors of zeros and tiny terms among others, in that launch."""
NEAR_ENDS = 8
"""Vectors near one end of the range of one format, in that launch."""
FAINT = 16
"""Vectors of terms below the result's range, in that launch."""
FRESH = 40
"""Fresh vectors that a datapath meets before it is answered, half of them chosen to tell datapaths apart."""
LOOKED = 200
"""Vectors of each kind among which those are chosen."""
AIMED = 600
"""Vectors at the numbers of the datapaths at hand among those."""
BEST = 4
"""Datapaths that go on to the moves that add and remove, and to the ends of the range."""
KEPT = 12
"""Datapaths that are kept after each sweep."""
RANKED = 40
"""Datapaths, the nearest of all structures, that go downhill a sweep, at most."""
LOWERED = tuple(pairwise((0, BEST, KEPT, RANKED)))
"""The nearest ``BEST`` first, and those up to the next of these numbers as long as none of them agrees."""
WIDE = ("f32", "f64")
"""Formats that other structures may hold a sum in until the last conversion."""
ELSEWHERE = 24
"""Other structures, without their lanes, whose lanes are tried in every usual order with the numbers of the nearest."""
PLAINER = 4
"""So many times fewer nodes make a structure worth another spelling: neighbours are counted by nodes."""
ODD_TURNS = 4
"""Turns through the moves that add and remove, at most."""
FINISHING = 8
"""Turns of one datapath through the stages after the structure, at most."""
RARE_PART = 1 / 16
"""Of the units of work that are left the part that a look at what few units have may take."""
RARELY = 2
"""Datapaths, the nearest of a structure that is known, that get what few units have, where no other fits."""
HOPELESS = 40.0
"""Loss of plain answers from which a structure is not taken to the ends of the range."""
ALIKE = 6.0
"""Loss of plain answers that a structure may have more than the nearest and still be taken on."""
CONTRADICTED = 200_000_000
"""Units of work for a device whose plainest sums contradict each other, at most: six seconds."""
WITHIN = 20.0
"""Loss that a datapath may have more than the nearest and still be taken on."""


@dataclass(frozen=True)
class Near:
    """A datapath, how far it is from the answers, and what its structure is called."""

    path: Datapath
    loss: float
    name: str = ""


@dataclass(frozen=True)
class Stage:
    """What is varied, and how answers are seen."""

    name: str
    ways: Ways
    shown: Callable[[str, Bits], Bits]


class Search:
    """What a device's answers leave, the nearest first."""

    def __init__(self, state: State) -> None:
        self.state, self.session, self.instruction = state, state.session, state.instruction
        self.pools = Pools(state.instruction)
        self.plain = View(self.session, partial(plain, self.instruction))
        self.finite = View(self.session, self._is_finite)
        self.alone: Alone | None = None
        self.known: list[Structure] = []
        """Structures that a probe of the summation tree leaves."""
        self.equal: Graded | None = None
        """The answers to equal lanes."""
        self.paths: Iterator[Datapath] = iter(())
        self.nearest: list[Near] = []
        """Those nearest to all answers."""
        self.ranked: list[Near] = []
        """Those nearest to plain answers."""
        self.codes: list[int] = []
        self.complements = False
        """Whether a term and its opposite did not cancel."""
        self.places: dict[str, int] | None = None
        self.ends_asked = False
        self.contradiction = ""
        """What the plainest sums contradict each other in."""
        self.freshened = 0
        """How often fresh vectors were asked."""
        self.moved: dict[tuple[Datapath, int], Near] = {}
        """Where moves that add and remove led from a datapath, with so many answers."""
        self.tried: dict[Datapath, int] = {}
        """Datapaths that plain answers bear out, or nearly, and others do not, and how many answers were seen there."""
        self.bottoms: dict[Datapath, int] = {}
        """Datapaths from which no way leads further down, and how many answers were seen there."""

    # --- the way through

    def run(self, start: Datapath | None) -> Datapath | Ended:
        """Through the stages to the simplest datapath that agrees with everything asked."""
        if not formats.get(self.instruction.d).is_float:
            pool = self.pools.hard("uniform", "extremes", "specials")
            hypotheses = self._several(grammar.integer_hypotheses(self.instruction, self._integer_order()))
            alive = self._told_apart("integer sums", hypotheses, pool)
            return self.state.choose(alive) if len(alive) else Ended("integer sums", self._least(hypotheses))
        if start is not None:
            every = self._several(grammar.control_variants(start))
            alive = self._told_apart("a known relative", every, self.pools.whole, 2)
            if len(alive):
                self.state.relative_of = start
                return self.state.choose(alive)
        self.paths = self._structures()
        return self.next_structure()

    def _integer_order(self) -> tuple[int, ...] | None:
        """The order of the lanes that a sum shows where it saturates."""
        vectors = order_vectors(self.instruction)
        return None if vectors is None else order_told(self.session.ask(vectors))

    def next_structure(self) -> Datapath | Ended:
        """The next datapath that agrees with everything asked."""
        ended = Ended("structures", None)
        for path in self.paths:
            alive = self._nans(path)
            if len(alive):
                return self.state.choose(alive)
            ended = Ended("special values", path)
        return ended if ended.closest else Ended("structures", self.closest)

    def mended(self, path: Datapath) -> Datapath | None:
        """The datapath brought back to all answers; None where no way downhill leads there, by moves of one sort first
        or by those of the other."""
        return self._chosen(found for odd_first in (False, True) for found in self.finished(path, odd_first))

    def mended_rarely(self, path: Datapath) -> Datapath | None:
        """The same by what few units have."""
        return self._chosen(self.rarer(path))

    def _chosen(self, paths: Iterable[Datapath]) -> Datapath | None:
        """The first of these that agrees with all answers, its rule of NaNs told apart."""
        alive = next((each for each in map(self._nans, paths) if len(each)), None)
        return None if alive is None else self.state.choose(alive)

    @property
    def closest(self) -> Datapath | None:
        """The datapath believed; where there is none, the one that came nearest to the answers."""
        if self.state.believed is not None:
            return self.state.believed
        return min(self.nearest or self.ranked, key=_loss).path if self.nearest or self.ranked else None

    @property
    def met(self) -> Iterator[Datapath]:
        """Those that came near, and those from which no way led further down."""
        yield from (each.path for each in self.nearest)
        yield from self.bottoms

    def structured(self, path: Datapath) -> Iterator[Datapath]:
        """The numbers of a datapath in every structure that a probe read."""
        for each in self.known:
            if (moved := alike(self.instruction, each, path)) is not None:
                yield moved

    def left(self, most: int) -> tuple[Datapath, ...]:
        """The first of the datapaths at hand that agree with every plain vector asked; none before any was."""
        if not len(self.session):
            return ()
        vectors, answers = self.session.all.seen()
        mask = np.flatnonzero(plain(self.instruction, vectors, answers))
        every = several(
            list(dict.fromkeys([*self.state.others, *(each.path for each in self.nearest)])), Allowance(None)
        )
        return tuple(every.agreeing(take(vectors, mask), answers[mask]).first(most))

    # --- structure and numbers

    def _structures(self) -> Iterator[Datapath]:
        """Of the structures that a probe of the summation tree leaves, again with more vectors, then of all; what few
        units have is looked for in a structure that was read whole at once, in what a window leaves after all others.
        """
        alone, seen, equal = self._ask_plain(1)
        finding = read(self.state)
        if finding.status == "contradictory":  # a broken layout, or a unit that loses 1
            self.contradiction = f"{finding.question}: {finding.text}"
            self.session.allowance.left = min(self.session.allowance.left, CONTRADICTED)
        near: list[Near] = []
        exact = finding.status == "exact"
        if not self.contradiction:
            self.known = skeletons.read_structures(self.instruction, finding.answer, exact)
        if self.known:
            self.session.begin("structures that a probe reads")
            starts = skeletons.starts(self.instruction, self.known, alone, self.codes[0])
            near = self._ranked(starts, seen, BEST if exact else KEPT)
            near = yield from self._agreeing(near, seen, 1 if exact else 0)
            near = (yield from self._rarely(near, seen)) if exact else near
        self.session.check_stable()  # no structure fits answers that change
        for times in MORE:
            alone, seen, equal = self._ask_plain(times)
            if self.known:
                self.session.begin("structures that a probe reads")
                starts = skeletons.starts(self.instruction, self.known, alone, self.codes[0])
                near = unlike([*self._lowered(near, seen), *self._ranked(starts, seen, KEPT)])[:KEPT]
                near = yield from self._agreeing(near, seen, ODD_TURNS if exact else 0, ALIKE)
                if exact and near and near[0].path in self.tried:  # one that imitates the device
                    near = yield from self._agreeing(near, seen, 1, ALIKE)
            self.session.begin("all structures")
            near = yield from self._of_all(self._lowered(near, seen), seen, equal)
            if self.known and not exact and times == MORE[0]:
                near = yield from self._rarely(near, seen)
            yield from self._taken_on(self._further(near, seen))
        if self.contradiction:
            raise ContradictedError(self.contradiction)
        for path in dict.fromkeys(each.path for each in (*self.nearest[:BEST], *self.ranked)):
            yield from self.rarer(path)

    def _of_all(self, near: list[Near], seen: Graded, equal: Graded) -> Generator[Datapath, None, list[Near]]:
        """Of all structures the nearest few, and what is elsewhere with their numbers, then more of them, until one
        agrees with the plain answers; the nearest of these and of those known."""
        every = self._shapes(skeletons.all_structures(self.instruction), equal)
        found = _unequal(unlike(each for shape, path in every for each in self._laned(shape, path, seen)))
        for some in (found[:KEPT], found[KEPT:RANKED]):
            if near and not near[0].loss:
                break
            near = yield from self._agreeing(unlike([*self._lowered(some, seen), *near])[:KEPT], seen, 0)
            if near and near[0].loss:
                others = self._lowered(self._elsewhere(near[0], seen), seen)
                near = yield from self._agreeing(unlike([*others, *near])[:KEPT], seen, 0)
        return near

    def _rarely(self, near: list[Near], seen: Graded) -> Generator[Datapath, None, list[Near]]:
        """The nearest with what few units have, where the structure is known and no numbers make it agree: by plain
        answers, and at the ends of the range."""
        if near and near[0].loss:
            self.session.begin(RARE.name)
            some = [self._with_rare(each.path, seen) for each in _unequal(near)[:RARELY]]
            near = self._lowered([*(Near(*found, near[0].name) for found in some), *near], seen)
            near = yield from self._agreeing(near, seen, 1)
        for path in dict.fromkeys(each.path for each in (*self.nearest[:1], *self.ranked[:1])):
            yield from self.rarer(path)
        return near

    def rarer(self, path: Datapath) -> Iterator[Datapath]:
        """The datapath with what few units have, where that brings it near all answers, taken on."""
        self.session.begin(RARE.name)
        found, loss = self._with_rare(path, self._seen(RARE))
        if found != path:
            self.nearest = unlike([Near(found, loss), *self.nearest])
            yield from self.finished(found)

    def _with_rare(self, path: Datapath, seen: Graded) -> Found:
        """The best of what few units have, for a part of what is left."""
        found = path, seen.total(path)
        with self.session.allowance.part(RARE_PART):
            for found in descent(path, seen, fields.rare, 2):  # noqa: B007
                pass
        return found

    def _agreeing(
        self, near: list[Near], seen: Graded, turns: int, most: float = 0.0
    ) -> Generator[Datapath, None, list[Near]]:
        """Those that agree with the plain answers, or have lost no more than ``most``, taken on, so many ``turns`` of
        moves that add and remove further; the nearest."""
        near = self._further(near, seen, turns)
        if near and near[0].loss <= most:
            yield from self._taken_on(near)
        return near

    def _ask_plain(self, times: int) -> tuple[Alone, Graded, Graded]:
        """One launch: single terms, equal lanes, few terms, all; what single terms are, and all plain answers; of equal
        lanes alone."""
        made, seed = self.instruction, self.session.seed + 8191 * times
        single, equal = single_vectors(made, seed, times * SINGLE), uniform_vectors(made, seed, times * UNIFORM)
        rest = [self.pools.safe(seed + 1, times * SAFE), few_vectors(made, seed, times * FEW)]
        if adds_up(made):
            rest.append(heavy_vectors(made, seed, times * HEAVY))
        if hides_sums(made):
            rest.append(narrow_edges(made, seed, times * EDGES))
        opposite, special = opposite_vectors(made), self.pools.special(seed + 5, SPECIAL)
        last = [] if self.codes else [opposite, special]
        answers = self.session.ask(join([single, equal, *rest, *last]))
        if last:
            self.codes = nan_codes(made, special, answers[-special.size :])
            left = answers[-special.size - opposite.size : -special.size]
            self.complements = not formats.is_zero(formats.get(made.d), left).all()
        allowance = self.session.allowance
        alone = fit_alone(
            made, single, answers[: single.size], Graded.of(made, [(single, answers[: single.size])], allowance)
        )
        seen = self._plain_seen()
        alone = replace(alone, complements=self.complements)
        self.alone = alone = alone.with_precision(seen.fmt.fraction_bits + seen.fmt.padding - seen.unit)
        both = join([single, equal]), answers[: single.size + equal.size]
        self.equal = Graded.of(made, [both], allowance)
        return alone, seen, self.equal

    def _plain_seen(self) -> Graded:
        return Graded.of(self.instruction, [self.plain.seen()], self.session.allowance)

    def _ranked(self, starts: skeletons.Named, seen: Graded, least: int) -> list[Near]:
        """The nearest of these, ``least`` of them or more, a sweep downhill."""
        return self._foremost_lowered((self._rough(path, name, seen) for path, name in starts.items()), seen, least)

    def _foremost_lowered(self, some: Iterable[Near], seen: Graded, least: int) -> list[Near]:
        """The nearest of these, ``least`` of them or more, a sweep downhill."""
        rough, near = sorted(some, key=_loss), list[Near]()
        for low, high in LOWERED:
            near = unlike([*near, *self._lowered(rough[low:high], seen)])[:KEPT]
            if len(rough) <= high or (high >= least and near and not near[0].loss):
                break
        return near

    def _lowered(self, near: Iterable[Near], seen: Graded) -> list[Near]:
        return unlike(self._simple(each, seen, 1) if each.loss else each for each in near)[:KEPT]

    def _rough(self, path: Datapath, name: str, seen: Graded) -> Near:
        """One width of all terms, and then one rounding of every sum or of the last result, alone."""
        ways = [[fields.rounding("sums" if path.result is None else "result")]]
        if fields.complemented(path):
            offsets = [roles.label_offsets(role) for role in roles.term_roles(path) if role[0] == "acc"]
            ways.insert(0, [fields.tied_widths(False), *offsets])
        elif roles.term_roles(path):
            ways.insert(0, [fields.tied_widths(field_choices.may_be_uncut(path))])
        return Near(*descend(path, seen, lambda at: [(at, way) for way in ways], 1), name)

    def _simple(self, near: Near, seen: Graded, sweeps: int) -> Near:
        return Near(*descend(near.path, seen, fields.simple, sweeps), near.name)

    def _shapes(self, every: Sequence[Structure], equal: Graded) -> list[tuple[Shape, Near]]:
        """The structures nearest to the answers to equal lanes, which show no order of the lanes.

        The nearest go downhill first, and every other gets the numbers of the best of these.
        """
        assert self.alone is not None
        shaped = shapes(every)
        begin = {shape: self._begun(shape) for shape in shaped}
        first = sorted(((shape, self._rough(*ways[0], equal)) for shape, ways in begin.items()), key=_second)
        more = ((shape, self._rough(*way, equal)) for shape, _ in first[:KEPT] for way in begin[shape][1:])
        rough = sorted([*first, *more], key=_second)
        close: list[tuple[Shape, Near]] = []
        for count in (high - low for low, high in LOWERED):
            close += [(shape, self._simple(each, equal, 1)) for shape, each in rough[:count]]
            close.sort(key=_second)
            rough = _best_of_each([*rough[count:], *self._given(shaped, [each.path for _, each in close[:1]], equal)])
            if not rough or close[0][1].loss == 0:
                break
        close += [each for each in rough if each[1].loss == 0]
        found = _best_of_each(close)
        if found and found[0][1].loss:
            moved = ((shape, self._simple(self._odd(each, equal), equal, 2)) for shape, each in found[: BEST + 2])
            found = sorted(moved, key=_second)
        return found[: max(KEPT, sum(each.loss == 0 for _, each in found))]

    def _begun(self, shape: Shape) -> list[tuple[Datapath, str]]:
        """The datapaths of a shape to begin with, and their names."""
        assert self.alone is not None
        return [*skeletons.starts(self.instruction, shape.members[:1], self.alone, self.codes[0]).items()]

    def _given(self, some: Sequence[Shape], numbers: Sequence[Datapath], equal: Graded) -> Iterator[tuple[Shape, Near]]:
        """Structures with each of these datapaths' numbers, where they have terms and sums of these kinds."""
        for shape, path in product(some, numbers):
            changed = alike(self.instruction, shape.members[0], path)
            if changed is not None:
                yield shape, Near(changed, equal.total(changed), shape.name)

    def _laned(self, shape: Shape, near: Near, seen: Graded) -> list[Near]:
        """The lanes in the order nearest to all plain answers: a usual one, or the one that single lanes tell."""
        ways = unlike(Near(path, seen.total(path), near.name) for path in ordered(self.instruction, shape, near.path))
        if not ways or ways[0].loss:
            places = Places(self.instruction, near.path, self.session.seed, self.session.allowance)
            if places.vectors is not None:
                order = places.order(self.plain.answers(places.vectors, lambda answers: np.zeros(len(answers), bool)))
                if order is not None:
                    path = replace(near.path, order=order)
                    ways.append(Near(path, seen.total(path), near.name))
        return sorted(ways, key=_loss)[:2]

    def _further(self, near: list[Near], seen: Graded, turns: int = ODD_TURNS) -> list[Near]:
        """The nearest by moves that add and remove: the best of all that did not fail so far, and then down again."""
        self.ranked = near[:BEST]
        for _ in range(turns):
            left = self._untried(near)
            if not left or left[0].loss == 0:
                break
            before = left[0].loss
            moved = [self._moved(each, seen) for each in _unequal(left)[:BEST]]
            near = unlike([*moved, *near])[:KEPT]
            if not (left := self._untried(near)) or left[0].loss >= before:
                break
        return near

    def _untried(self, near: list[Near]) -> list[Near]:
        """Those that were not taken on in vain."""
        return [each for each in near if each.path not in self.tried]

    def _odd(self, near: Near, seen: Graded) -> Near:
        assert self.alone is not None
        ways = partial(fields.odd, precisions=self.alone.precisions)
        return Near(*descend(near.path, seen, ways, 1, best=True), near.name)

    def _moved(self, near: Near, seen: Graded) -> Near:
        """The best of the fields' moves and of the structure's, and down from there; looked for once with the same
        answers."""
        key = near.path, len(seen.answers)
        if key not in self.moved:
            best = self._odd(near, seen)
            for path, name in skeletons.variants(near.path, near.name).items():
                tried = self._rough(path, name, seen)
                tried = self._simple(tried, seen, 1) if tried.loss < 1.5 * best.loss else tried
                best = min(best, tried, key=_loss)
            self.moved[key] = self._simple(best, seen, 2)
        return self.moved[key]

    # --- the ends of the range, and signs

    def _taken_on(self, near: list[Near]) -> Iterator[Datapath]:
        """Of these datapaths, alike by plain answers or nearly, those that the ends of the range bear out."""
        near = [each for each in near if each.loss <= min(HOPELESS, near[0].loss + ALIKE)]
        near = [each for each in near if self.tried.get(each.path) != self.session.all.count]
        if not near:
            return
        self._ask_ends(near[0].path)
        seen = self._seen(ENDS)
        near = sorted((Near(each.path, seen.total(each.path), each.name) for each in near), key=_loss)
        by_ends = unlike(self._by_ends(near[:BEST], seen))
        if by_ends[0].loss:
            by_ends = unlike([*by_ends, *self._by_ends(near[BEST:], seen)])
        if by_ends[0].loss:
            others = [
                Near(path, 0.0, f"{each.name}, spelled otherwise")
                for each in by_ends[:BEST]
                for path in spellings(each.path)
            ]
            by_ends = unlike([*by_ends, *self._by_ends(others, seen)])
        self.nearest = [*by_ends[: 2 * BEST], *self.nearest]
        yield from self._raced(_unequal(by_ends)[:KEPT])
        self.tried.update((each.path, self.session.all.count) for each in near)

    def _raced(self, near: list[Near]) -> Iterator[Datapath]:
        """These downhill side by side: the first to get everything right is taken on alone, then the others again in
        the light of what it was asked; where none does, the nearest."""
        while near:
            seen = self._seen(ENDS)
            runs = [self._downhill(each.path, seen) for each in near]
            for i, found in race(runs, self.session.allowance):
                near[i] = Near(*found, near[i].name)
                if found[1] == 0:
                    near = [self._plainest(near[i], seen), *near[:i], *near[i + 1 :]]
                    break
            else:
                near = _unequal(sorted(near, key=_loss))[:BEST]
            self.nearest = [*near, *self.nearest]
            others = self._elsewhere(near[0], seen)
            if others:
                near = others
                continue
            some, near = (near[:1], near[1:]) if near[0].loss == 0 else (near, [])
            for each in some:
                if each.loss <= some[0].loss + WITHIN:
                    yield from self.finished(each.path)

    def _plainest(self, near: Near, seen: Graded) -> Near:
        """Of the structures that a probe read, and that agree with all answers by the same numbers, the one of the
        fewest nodes, where that is far fewer."""
        paths = [path for each in self.known if (path := alike(self.instruction, each, near.path)) is not None]
        fewer = sorted((path for path in paths if PLAINER * _nodes(path) <= _nodes(near.path)), key=_nodes)
        return next((Near(path, 0.0, near.name) for path in fewer if seen.total(path) == 0), near)

    def _elsewhere(self, near: Near, seen: Graded) -> list[Near]:
        """Other structures with the numbers of a datapath that are nearer to the answers: of those nearest to equal
        lanes, the lanes in every usual order."""
        if not near.loss or self.equal is None:
            return []
        numbers = [near.path, *(fields.carried(near.path, name) for name in WIDE if near.path.result is None)]
        begin = self._given(shapes(skeletons.all_structures(self.instruction)), numbers, self.equal)
        names = {
            path: shape.name
            for shape, each in _best_of_each(begin)[:ELSEWHERE]
            for path in ordered(self.instruction, shape, each.path)
            if path != near.path
        }
        found = self._foremost(names, seen.wrong_first(near.path))
        return [Near(path, loss, names[path]) for path, loss in found if loss < near.loss][:BEST]

    def _foremost(self, paths: Iterable[Datapath], seen: Graded) -> list[Found]:
        """Of the datapaths that the engine holds those nearest to the answers, the nearest first."""
        held = [path for path in paths if program(path) is not None]
        return seen.foremost(several(held, self.session.allowance))

    def _by_ends(self, near: Iterable[Near], seen: Graded) -> Iterator[Near]:
        yield from (Near(*descend(each.path, seen, ENDS.ways, 1), each.name) for each in near)

    def _ask_ends(self, path: Datapath) -> None:
        """Once: the ends of the range of every format that a datapath has."""
        if self.ends_asked:
            return
        self.ends_asked = True
        self.session.begin("the ends of the range")
        made, seed = self.instruction, self.session.seed
        encodes = (roles.encode_of(path, part) for part in roles.PARTS)
        names = dict.fromkeys([made.d, *(to.format for to in encodes if to is not None)])
        near = [
            near_vectors(made, formats.get(name), seed + 13 + i, NEAR_ENDS, top)
            for i, name in enumerate(names) for top in (True, False)
        ]  # fmt: skip
        if reaches_lower(made):
            near.append(faint_vectors(made, seed + 10, FAINT))
        self._ask_finite(join([self.pools.range(seed + 11, RANGE), self.pools.low(seed + 12, LOW), *near]))

    def finished(self, path: Datapath, odd_first: bool = False, otherwise: bool = True) -> Iterator[Datapath]:
        """The datapath through the ends of the range and the signs of zeros, again with fresh vectors until these
        find nothing; where they do and no way leads further, ``otherwise``; none where it does not come near."""
        self._ask_ends(path)
        last = 0.0
        for turn in range(FINISHING):
            self.session.begin(ENDS.name)
            seen = self._seen(ENDS)
            path, loss = self._down(path, seen, odd_first)
            if loss > WITHIN:
                return
            path, loss = self._signed(path, seen)
            if loss and turn and loss >= last:
                yield from self._otherwise(path, seen) if otherwise else ()
                return
            last = loss
            if not loss:
                path = self._simplest(path, self._seen(SIGNS))
            if self._fresh([path, *(each.path for each in self.nearest[:BEST])]) == 0:
                if not loss:
                    yield path
                return

    def _otherwise(self, path: Datapath, seen: Graded) -> Iterator[Datapath]:
        """The numbers of a datapath that imitated the device in the other structures that a probe read, the nearest
        with what few units have, taken on."""
        others = (Near(other, seen.total(other)) for other in self.structured(path) if other != path)
        for each in unlike(others)[:RARELY]:
            self.session.begin(RARE.name)
            found, loss = self._with_rare(each.path, seen)
            if loss <= WITHIN:
                yield from self.finished(found, otherwise=False)

    def _downhill(self, path: Datapath, seen: Graded, odd_first: bool = False) -> Iterator[Found]:
        """The way down at the ends of the range, then by moves that add and remove as well, or by these first; none
        where it ended before with the same answers."""
        found = path, seen.total(path)
        yield found
        if self.bottoms.get(path) == len(seen.answers):
            return
        odd = partial(fields.odd_ends, precisions=self.alone.precisions if self.alone else ())
        for ways, sweeps in ((ENDS.ways, 3), (odd, 2), (ENDS.ways, 3))[odd_first:]:
            before = found[1]
            for step in descent(found[0], seen, ways, sweeps):
                found = step
                yield found
            if not found[1] or (ways is odd and found[1] == before):
                break
        self.bottoms[found[0]] = len(seen.answers)

    def _down(self, path: Datapath, seen: Graded, odd_first: bool) -> Found:
        """The end of that way."""
        *_, found = self._downhill(path, seen, odd_first)
        return found

    def _signed(self, path: Datapath, magnitudes: Graded) -> Found:
        """All that signs show at once; where some stay wrong, of the ways to spell the datapath that are no further by
        magnitudes as well, of which the nearest is the answer."""
        bound, seen = magnitudes.total(path), self._seen(SIGNS)
        if seen.total(path) == 0:
            return path, 0.0

        def alike(other: Datapath) -> bool:
            return magnitudes.total(other) <= bound

        best, others = self._by_signs(path, alike, seen), []
        if best[1] > bound:
            bases = dict.fromkeys([path, fields.without_zeros(path)])
            rounded = (other for base in bases for other in self._rounded(base, magnitudes))
            spelled = dict.fromkeys([*spellings(path), *bases, *rounded])
            others = [other for other in spelled if other != path and alike(other)]
        for hidden, some in ((False, others), (True, [path, *others])):
            for other in some:
                if best[1] <= bound:
                    return best
                best = min(best, self._by_signs(other, alike, seen, hidden), key=_distance)
        if best[1] > bound:
            best = self._all_signs(best[0], alike, seen)
        return best if best[1] <= bound else descend(best[0], seen, SIGNS.ways, 2)

    def _by_signs(self, path: Datapath, alike: Callable[[Datapath], bool], seen: Graded, hidden: bool = False) -> Found:
        """What signs show of every two parts together; with ``hidden`` also what magnitudes show of no two changes."""
        axes = fields.signs(path, alike, hidden)
        return descend(path, seen, lambda at: [(at, list(pair)) for pair in combinations(axes, 2)], 2)

    def _all_signs(self, path: Datapath, alike: Callable[[Datapath], bool], seen: Graded) -> Found:
        """What signs show of all parts at once."""
        axes = fields.fewer(fields.signs(path, alike))
        return descend(path, seen, lambda at: [(at, axes)], 1)

    def _rounded(self, path: Datapath, seen: Graded) -> Iterator[Datapath]:
        """Exact products rounded to a format instead, in each the nearest way."""
        if path.product.to is None:
            for base, axes in fields.rounded_products(path):
                found = seen.nearest(base, axes)
                if found is not None:
                    yield found[0]

    def _fresh(self, paths: Sequence[Datapath]) -> int:
        """How many vectors that were never asked the first datapath gets wrong: those that tell most datapaths apart,
        and others."""
        self.freshened += 1
        seed = self.session.seed + 1000 + 17 * self.freshened
        pool = self.pools.finite(seed, LOOKED)
        if can_attack(self.instruction):
            pool = join([pool, attack_vectors(self.instruction, paths[0], paths[1:], seed, AIMED)])
        pool = self._without_nans(pool)
        table = self.session.allowance.evaluate(list(dict.fromkeys(paths)), pool)
        chosen = telling(table, FRESH // 2)
        rest = np.setdiff1d(np.random.default_rng(seed).permutation(pool.size)[:FRESH], chosen)
        chosen = np.concatenate([chosen, rest])
        answers = self._ask_finite(take(pool, chosen))
        d = self.instruction.d
        return int((one_nan(d, table[0, chosen]) != one_nan(d, answers)).sum())

    def _simplest(self, path: Datapath, seen: Graded) -> Datapath:
        """The datapath with less and less said, as long as that costs nothing."""
        for less in simpler(path):
            if seen.total(less) == 0:
                return self._simplest(less, seen)
        return path

    def _seen(self, stage: Stage) -> Graded:
        """All answers without NaN operands, as a stage sees them."""
        made = self.instruction
        vectors, answers = self.finite.seen()
        shown = partial(stage.shown, made.d)
        return Graded.of(made, [(vectors, shown(answers))], self.session.allowance, True, shown)

    def _ask_finite(self, pool: Batch) -> Bits:
        return self.finite.answers(self._without_nans(pool))

    def _without_nans(self, pool: Batch) -> Batch:
        return take(pool, np.flatnonzero(~nan_operands(self.instruction, pool)))

    def _is_finite(self, vectors: Batch, answers: Bits) -> Mask:
        found: Mask = formats.decode(formats.get(self.instruction.d), answers).kind != formats.NAN
        return found & ~nan_operands(self.instruction, vectors)

    # --- NaNs

    def _nans(self, path: Datapath) -> Living:
        """The rules of NaNs: one code; codes by cause; a simple order, which is confirmed; any order, which is read
        off.  None is left where no rule agrees."""
        found = self._nan_rules(path)
        return found if len(found) else self._nan_rules(path)  # a NaN may only have been seen on the way

    def _nan_rules(self, path: Datapath) -> Living:
        codes = nan_codes(self.instruction, *self.session.all.seen())
        one = [replace(path, special=Special("canonical", code)) for code in codes]
        found = self._told_apart("special values", self._several(one), self.pools.special)
        if len(found):
            return found
        caused = self._told_apart("causes of NaNs", self._several(grammar.cause_rules(path, codes)), self.pools.special)
        caused = self._beside_c(caused)
        if len(caused):
            return caused
        if self.places is None:
            vectors, answers = self.session.all.seen()
            nans = np.flatnonzero(formats.is_nan(formats.get(self.instruction.d), answers))
            simple = self._several(grammar.simple_rules(path, codes)).agreeing(take(vectors, nans), answers[nans])
            self.places = NanOrder(self.session, path).places(next(map(preferred, simple), None))
        ordered = [] if self.places is None else rules_of_order(path, self.places, codes)
        return self._told_apart("the order of NaNs", self._several(dict.fromkeys(ordered)), self.pools.special)

    def _beside_c(self, caused: Living) -> Living:
        """The rules that give what NaNs of factors beside one of c come to: codes by cause all say that those of
        factors win, so that no vector by which they are told from each other asks it."""
        vectors = nans_beside_c(self.instruction)
        if not len(caused) or not vectors.size:
            return caused
        return caused.agreeing(vectors, self.session.ask(vectors))

    # --- told apart

    def _told_apart(self, stage: str, hypotheses: Living, pool: Pool, patience: int = 1) -> Living:
        self.session.begin(stage, f"{len(hypotheses)} hypotheses")
        return eliminate(self.session.all, hypotheses, pool, seed=self.session.seed, patience=patience)

    def _least(self, hypotheses: Living) -> Datapath | None:
        """The hypothesis nearest to all answers."""
        found = Graded.of(self.instruction, [self.session.all.seen()], self.state.allowance, every=True).least(
            hypotheses
        )
        return found and found[0]

    def _several(self, datapaths: Iterable[Datapath]) -> Living:
        return several(list(datapaths), self.state.allowance)


ENDS = Stage("the ends of the range", fields.ends, blind)
SIGNS = Stage("signs of zeros", fields.ends, one_nan)
RARE = Stage("what few units have", fields.rare, blind)


def _nodes(path: Datapath) -> int:
    return sum(1 for _ in walk(path.tree))


def _loss(near: Near) -> float:
    return near.loss


def _distance(found: Found) -> float:
    return found[1]


def _second(each: tuple[Shape, Near]) -> float:
    return each[1].loss


def _best_of_each(near: Iterable[tuple[Shape, Near]]) -> list[tuple[Shape, Near]]:
    """The nearest of every shape, the nearest first."""
    found: dict[int, tuple[Shape, Near]] = {}
    for each in sorted(near, key=_second):
        found.setdefault(id(each[0]), each)
    return list(found.values())


def unlike(near: Iterable[Near]) -> list[Near]:
    """Each datapath once, the nearest first."""
    found: dict[Datapath, Near] = {}
    for each in sorted(near, key=_loss):
        found.setdefault(each.path, each)
    return list(found.values())


def _unequal(near: Iterable[Near]) -> list[Near]:
    """Of those that get answers wrong and are equally far from them, which are taken for one function, the first."""
    found: dict[float, list[Near]] = {}
    for each in near:
        found.setdefault(each.loss, []).append(each)
    return [each for loss, some in found.items() for each in (some[:1] if loss else some)]
