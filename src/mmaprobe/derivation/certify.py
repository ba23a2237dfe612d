"""Settle a datapath: refute its neighbours, validate it afresh, repair it when the device disagrees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress

import numpy as np

from mmaprobe import formats
from mmaprobe.derivation.budget import ARGUMENT, NEIGHBOUR, STRIP, Allowance, price
from mmaprobe.derivation.certificate import (
    OTHERWISE,
    Certificate,
    Coverage,
    Key,
    SearchedVectors,
    witnesses_against,
)
from mmaprobe.derivation.discriminate import eliminate, telling
from mmaprobe.derivation.hypotheses import grammar as grammar
from mmaprobe.derivation.search.stages import Search
from mmaprobe.derivation.session import Ended
from mmaprobe.derivation.survivors import Indices, Living, several
from mmaprobe.derivation.vectors.changes import CHANGED, changed_vectors
from mmaprobe.derivation.vectors.mixtures import (
    OWN_KINDS,
    cancelled_vectors,
    hard_vectors,
    mixed_vectors,
    rule_families,
)
from mmaprobe.derivation.vectors.pairs import EveryPair, every_pair, in_blocks
from mmaprobe.derivation.vectors.rivals import SHAPES, attack_vectors, can_attack
from mmaprobe.devices.base import run_tiles, run_vectors
from mmaprobe.equivalence.arguments import argument
from mmaprobe.equivalence.checker import Argument
from mmaprobe.equivalence.record_rules import changed_fields
from mmaprobe.equivalence.same_function import same_function
from mmaprobe.errors import UsageError
from mmaprobe.generators import families_for
from mmaprobe.generators.tiles import vector_at
from mmaprobe.models import engine
from mmaprobe.models.model import evaluate_tiles
from mmaprobe.models.program import program
from mmaprobe.operands.batch import Batch, Bits, join, take
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.diff import datapath_changes
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.neighbours import Neighbour, every_number, neighbourhood, neighbours, numbers, with_numbers
from mmaprobe.parameters.rewrite import simpler
from mmaprobe.parameters.table import fields_said, rules_said, to_table
from mmaprobe.showing import counted

STAGE = "neighbours and fresh vectors"
"""What pays for a settlement, as the allowance names it."""
POOL = 1500
"""Vectors of the first pool against neighbours; those of later ones are multiples.  Tuned by ``tests/recovery``, as are
the sizes below."""
ROUNDS = 6
"""How often fresh vectors may disagree."""
MOVES = 48
"""How often another datapath may take the place of what is believed: a number walks step by step."""
AIMED = 8
"""Vectors aimed at datapaths that all agree, for each of a usual pool."""
DRY = 2
"""Such pools that may tell none of them apart."""
STARTS = 1
"""Neighbours that agree with what refuted a datapath from which the search begins again, at most."""
STRUCTURES = 4
"""Other structures, at most, in which a repair tries every number."""
FAR = 48
"""Distance, in bits or binades, of a number from its true value over which it is repaired at once."""
ATTEMPTS = 5
"""Pools a neighbour must survive to be called open: the first and the last of every family, the others aimed at it."""
FIRST = 1
"""Pools before it is asked whether neighbours are the same function: most are soon told apart."""
EARLY = 2
"""Pools before the fresh vectors; the others come after them."""
LAST_POOL = 40_000
"""Size of the last pool: rare differences need many vectors."""
ATTACK = 20_000_000
"""Units of work that neighbours may take on one pool, about: half a second of a core.  Each has an equal share of
it, and what those leave that are soon told apart is for the others of its price."""
POOLS = 8
"""One in so many of the units of work that are left are for one pool, at most."""
OTHERS = 16
"""Datapaths that agreed as well and are no neighbours, at most, that are held to what refutes neighbours; of others
that still agree in the end it is only said that they do."""
MOST_STEPS = 6
"""Fields in which one of them may differ where it is asked whether it is the same function."""
PROOF = 1 / 16
"""The part of the units of work that are left that may go to such a proof."""
LEAST = 256
"""Vectors of a pool that every neighbour meets, whatever it costs; the first part of a pool."""
PAIRS = 4.5
"""Vectors that make all pairs of codes or significands, at most, for each fresh one: a tile has M N of them where it
has the smaller of M and N fresh ones; 2**21 at 480,000."""
CANCELLED = 600
"""Vectors whose products cancel, however few fresh ones there are."""
WRONG = 40
"""Fresh vectors with a wrong answer that the search goes on with."""
CODES = 1 << 16
"""All pairs of codes of 8 bits: so many are asked wherever a fresh vector is wrong."""
FEW = 8
"""Vectors of all pairs that are wrong, at most, where that is a fault of a circuit and no rule."""


def parts(size: int, first: int = LEAST) -> Iterator[Indices]:
    """``first`` numbers, then twice as many, and so on, up to ``size``."""
    start, length = 0, first
    while start < size:
        yield np.arange(start, min(start + length, size))
        start, length = start + length, 2 * length


def _changed(path: Datapath, near: Neighbour) -> Datapath | None:
    """A datapath with what a neighbour of another one changes; None where it has no such."""
    try:
        return mutate(path, near.field, near.value)
    except UsageError:
        return None


@dataclass(frozen=True)
class Wrong:
    """Fresh vectors on which device and datapath differ, with the device's answers; ``few`` says how few there are of
    pairs that were all asked."""

    vectors: Batch
    answers: Bits
    few: str = ""


class Settlement:
    """What happens to the datapath that a search came up with: its neighbours, those ``left`` that nothing refutes, why
    others are the same function (``reasons``), and the pools that were tried; ``more`` is what agreed as well, beyond
    the first ``others`` that are held to what refutes neighbours."""

    def __init__(self, search: Search, others: int = OTHERS) -> None:
        self.search, self.others = search, others
        self.state = search.state
        self.instruction = search.instruction
        self.near: list[Neighbour] = []
        self.left: list[Neighbour] = []
        self.more: list[Neighbour] = []
        self.reasons: dict[Key, Argument | None] = {}
        self.pools: list[SearchedVectors] = []
        self.met: Counter[Key] = Counter()
        """Vectors of pools that told a neighbour of the current datapath from nothing."""
        self.corrections = 0
        self.pairs: EveryPair | None = None
        """All pairs that are asked of the current datapath, where they can be."""

    def run(self, datapath: Datapath, fresh: int) -> Certificate | Ended:
        """Refute every neighbour or give up on it; validate with fresh vectors; move when the device says so."""
        self.state.believed = datapath
        self.state.session.begin(STAGE)
        for turn in range(MOVES):
            found = self._settled(turn, fresh)
            if found is not None:
                return found
        return Ended("neighbours kept replacing each other", self.state.current)

    def _settled(self, turn: int, fresh: int) -> Certificate | Ended | None:
        """The certificate of the current datapath; None where another one is believed now.  Fresh vectors come before
        the large pools, which a datapath that is wrong elsewhere does not deserve: but where a fault of one pair, which
        many of them may meet, takes many vectors to be known for one.  A plainer neighbour takes its place as soon as
        the small pools leave one: what comes after them is then asked once."""
        pairs = self.pairs = self._pairs(fresh)
        early = EARLY if pairs is None or pairs.of_operands().vectors <= CODES else ATTEMPTS
        self._simplify()
        self._look()
        steps: tuple[Callable[[], bool | Ended], ...] = (
            lambda: self._refuted(turn, range(FIRST)),
            self._argued,
            lambda: self._refuted(turn, range(FIRST, EARLY)),
            self._plainer,
            lambda: self._refuted(turn, range(EARLY, early)),
            lambda: self._corrected(self._validate(fresh, turn), pairs, early < ATTEMPTS),
            lambda: self._refuted(turn, range(early, ATTEMPTS)),
            lambda: self._corrected(self._wrong_pairs(pairs), pairs),
            self._plainer,
        )
        for step in steps:
            moved = step()
            if moved:
                return moved if isinstance(moved, Ended) else None
        self.state.session.check_stable()
        return replace(self._certificate(), coverage=self._coverage(fresh, pairs))

    def _look(self) -> None:
        """At the neighbours of the current datapath: those left are not refuted by what was asked so far."""
        self.near, self.left, self.reasons, self.pools = [], [], {}, []
        self.met.clear()
        if self.state.relative_of is None:
            self.near = neighbourhood(self.state.current)
            self.state.allowance.spend_on(self.state.current, len(self.near), NEIGHBOUR)
            others = self._others()
            self.near, self.more = [*self.near, *others[: self.others]], others[self.others :]
            self.left = self._unseen(self.near)

    def _others(self) -> list[Neighbour]:
        """What agreed as well when it was last looked at, still does, and is no neighbour, the latest first; of those
        said alike the first."""
        current = self.state.current
        near = {current, *(n.datapath for n in self.near)}
        alive = self.state.session.all.alive([path for path in dict.fromkeys(self.state.others) if path not in near])
        found: dict[str, Datapath] = {}
        for path in alive:
            said = " and ".join(f"{field} {new}" for field, _, new in datapath_changes(current, path))
            found.setdefault(said, path)
        return [Neighbour(OTHERWISE, said, path) for said, path in found.items()]

    def _argued(self) -> bool:
        """Of the neighbours left those go that are argued to be the same function, and other ways to write it; no
        datapath is moved from."""
        self.state.allowance.spend_on(self.state.current, len(self.left), ARGUMENT)
        proven = [n for n in self.left if n.field == OTHERWISE and self._same(n.datapath)]
        self.near = [n for n in self.near if n not in proven]
        self.left = [n for n in self.left if n not in proven]
        self.reasons = {n[:2]: argument(self.state.current, n) for n in self.left}
        self.left = [n for n in self.left if self.reasons[n[:2]] is None]
        return False

    def _same(self, path: Datapath) -> bool:
        """Whether another datapath is shown to be the same function: where few fields differ, since a proof may take a
        step for each, and for a part of what is left."""
        if len(changed_fields(self.state.current, path)) > MOST_STEPS:
            return False
        with self.state.allowance.part(PROOF):
            return same_function(self.state.current, path, self._argue) is not None
        return False

    def _argue(self, path: Datapath) -> None:
        self.state.allowance.spend_on(path, 1, ARGUMENT)

    def _refuted(self, turn: int, attempts: range) -> bool | Ended:
        """Try pools on the neighbours left, until another one is believed: whether it is."""
        for attempt in attempts:
            if not self.left:
                break
            seed = self.state.seed + 7919 * (turn + 1) + attempt
            pool, names = self._pool(self.left, seed, attempt)
            self.pools.append(SearchedVectors(names, seed, pool.size))
            self.left, moved = self._attack(self.left, pool)
            if moved:
                return moved
        return False

    def _corrected(self, wrong: Wrong | None, pairs: EveryPair | None, early: bool = False) -> bool | Ended:
        """Move away from a datapath that fresh vectors, or pairs, show to be wrong: whether one had to.  ``early``: not
        where hardly one of the pairs is wrong, since all neighbours come before that."""
        some = pairs and pairs.of_operands()
        if wrong is None or (early and (fault := self._wrong_pairs(some)) is not None and fault.few):
            return False
        self.corrections += 1
        if self.corrections == ROUNDS:
            return Ended("fresh vectors kept disagreeing", self.state.current)
        self.state.session.say("a fresh vector disagrees: searching on")
        self.state.session.confirm(wrong.vectors, wrong.answers)
        if self.state.relative_of is not None and self.state.move(self.state.others):
            return True
        self.state.relative_of = None
        return self._repair(pairs=pairs) or True

    def _certificate(self) -> Certificate:
        """What was found about every neighbour."""
        if self.state.relative_of is not None:
            return self._refute_relatives(self.state.relative_of)
        near = [n for n in self.near if n.field != OTHERWISE]
        grounds = {n[:2]: self.state.proofs.get(n[:2]) or self.reasons.get(n[:2]) for n in near}
        asked = self.state.session.all.count
        agree = set(self.state.session.all.alive([n.datapath for n in self.more]))
        others = [
            n for n in (*self.left, *self.more) if n.field == OTHERWISE and (n in self.left or n.datapath in agree)
        ]
        otherwise = tuple((n.value, to_table(n.datapath)) for n in others)
        found = Certificate.of(grounds, {key: asked + self.met[key] for key in grounds}, self.pools)
        return replace(found, otherwise=otherwise)

    def _unseen(self, near: list[Neighbour]) -> list[Neighbour]:
        """Those that nothing the device has answered so far refutes; the others get that answer as their witness."""
        left = [n for n in near if n[:2] not in self.state.proofs]
        if not self.state.session.all.count or not left:
            return left
        vectors, answers = self.state.session.all.seen()
        mixed = np.random.default_rng(vectors.size).permutation(vectors.size)  # what was asked for alike is alike
        for part in (mixed[each] for each in parts(vectors.size, STRIP)):
            if not left:
                break
            some = take(vectors, part)
            table = self.state.allowance.evaluate([n.datapath for n in left], some)
            found = witnesses_against((n[:2] for n in left), table, answers[part], some)
            self.state.proofs |= found
            left = [n for n in left if n[:2] not in found]
        return left

    def _pool(self, left: list[Neighbour], seed: int, attempt: int) -> tuple[Batch, tuple[str, ...]]:
        """Vectors of every kind, at last very many; for floats, in between, vectors aimed at the neighbours left; of
        floats half of them are a few changes away from the others, or from what was asked."""
        every, last = (*rule_families(self.instruction), *OWN_KINDS), attempt == ATTEMPTS - 1
        if not can_attack(self.instruction):
            return mixed_vectors(self.instruction, seed, LAST_POOL if last else POOL << attempt), every
        if last or not attempt:
            count = max(min(LAST_POOL, self._share(left)), POOL) if last else POOL
            made = mixed_vectors(self.instruction, seed, count // 2)
            return join([made, self._changed([made], seed, made.size)]), (*every, CHANGED)
        rivals = [n.datapath for n in left]
        count = max(min(POOL << (2 * attempt - 1), self._share(left)), POOL)
        made = attack_vectors(self.instruction, self.state.current, rivals, seed, count // 2)
        return join([made, self._changed([made], seed, made.size)]), (*SHAPES, CHANGED)

    def _changed(self, sources: Sequence[Batch], seed: int, count: int) -> Batch:
        """About so many that are a few changes away from these, or from what was asked so far."""
        asked = [self.state.session.all.seen()[0]] if self.state.session.all.count else []
        return changed_vectors(self.instruction, [*sources, *asked], seed, count)

    def _share(self, left: list[Neighbour]) -> int:
        """Vectors that the cheapest of so many neighbours may meet."""
        cheapest = min(price(program(n.datapath)) for n in left)
        return int(self._attack_units / (len(left) * self.instruction.k * cheapest))

    @property
    def _attack_units(self) -> float:
        """Units of work that neighbours may take on one pool."""
        return min(ATTACK, self.state.allowance.left / POOLS)

    def _refute_relatives(self, start: Datapath) -> Certificate:
        """What the control register could have changed instead: every other variant of the relative, by observation."""
        others = [path for path in dict.fromkeys(grammar.control_variants(start)) if path != self.state.current]
        vectors, answers = self.state.session.all.seen()
        keys = [("control state", grammar.control_words(path)) for path in others]
        found = witnesses_against(keys, self.state.allowance.evaluate(others, vectors), answers, vectors)
        self.state.proofs |= found
        return Certificate.of({key: found.get(key) for key in keys}, dict.fromkeys(keys, vectors.size))

    def _attack(self, left: list[Neighbour], pool: Batch) -> tuple[list[Neighbour], bool | Ended]:
        """Ask the device about the vectors that tell neighbours from the current datapath: those left, and whether
        another one is believed now."""
        pool = take(pool, np.random.default_rng(pool.size).permutation(pool.size))  # every family in every part
        prices: dict[float, list[Neighbour]] = {}
        for n in left:
            prices.setdefault(price(program(n.datapath)), []).append(n)
        found = [each for units, some in prices.items() for each in self._told(some, units, pool, len(left))]
        if not found:
            return left, False
        told = [n for some, _ in found for n in some]
        asked = take(pool, np.concatenate([columns for _, columns in found]))
        table = self.state.allowance.evaluate([self.state.current, *(n.datapath for n in told)], asked)
        chosen = telling(table, from_first=True)
        asked, table = take(asked, chosen), table[:, chosen]
        answers = self.state.session.ask(asked)
        if (answers != table[0]).any():
            return left, self._repair([n.datapath for n in left], self.pairs) or True
        self.state.proofs |= witnesses_against((n[:2] for n in told), table[1:], answers, asked)
        return [n for n in left if n[:2] not in self.state.proofs], False

    def _told(
        self, left: list[Neighbour], units: float, pool: Batch, among: int
    ) -> Iterator[tuple[list[Neighbour], Indices]]:
        """Part by part of a pool those neighbours that it tells from the current datapath, which meet no more of it,
        and the columns that do; all cost so many units a lane, and ``among`` so many share what may be taken."""
        allowed = self._attack_units * len(left) / among
        for part in parts(pool.size):
            taken = units * self.instruction.k * len(left) * len(part)
            if not left or (part[0] and taken > allowed):
                break
            allowed -= taken
            base, *table = self.state.allowance.evaluate(
                [self.state.current, *(n.datapath for n in left)], take(pool, part)
            )
            self.met.update({n[:2]: len(part) for n in left})
            differs = [bool((row != base).any()) for row in table]
            if any(differs):
                rows = np.stack(list(compress(table, differs)))
                columns = telling(np.concatenate([base[None], rows]), from_first=True)
                yield list(compress(left, differs)), part[columns]
                left = [n for n, differ in zip(left, differs, strict=True) if not differ]

    def _repair(self, more: Sequence[Datapath] = (), pairs: EveryPair | None = None) -> Ended | None:
        """The current datapath is wrong somewhere: move to one near it that agrees with everything; another structure
        comes last, since one can imitate a wrong number for long, and not at all where hardly one of the ``pairs`` of
        operands is wrong: no structure explains that."""
        self.state.proofs.clear()
        closest = self.state.current
        is_float = formats.get(self.instruction.d).is_float
        tried = [closest, *self.state.session.all.alive(list(more))[:STARTS]]
        if self._moved_near(more, rules_said(closest)) or (is_float and self._restructured()):
            self.state.session.begin(STAGE)
            return None
        if self._moved_near(more) or (is_float and any(self.search.mended(path) is not None for path in tried)):
            self.state.session.begin(STAGE)
            return None
        wrong = self._wrong_pairs(pairs)
        if wrong is not None and wrong.few:
            self.state.session.confirm(wrong.vectors, wrong.answers)
            near = dict.fromkeys([closest, *self.search.met, *self.search.structured(closest)])
            return Ended(wrong.few, min(near, key=self.state.session.all.mismatches), fault=True)
        if is_float and self.search.mended_rarely(closest) is not None:
            self.state.session.begin(STAGE)
            return None
        if is_float and not isinstance(self.search.next_structure(), Ended):
            self.state.session.begin(STAGE)
            return None
        self.state.believed = closest
        for candidates in (self._with_numbers(closest), list(more), self._two_away()):
            if self.state.move(candidates):
                return None
        return Ended("the last datapath standing was refuted", closest)

    def _restructured(self) -> bool:
        """Move to the same numbers, or all but one, in another structure that a probe left, where those agree with
        everything; whether there is one.  Details added to a wrong structure imitate a right one for long."""
        view, current = self.state.session.all, self.state.current
        wrong = view.mismatches(current)
        others = [path for path in self.search.structured(current) if path != current and self._as_fast(path)]
        near = {path: count for path in others if (count := view.mismatches(path)) <= wrong}
        for path in sorted(near, key=near.__getitem__)[:STRUCTURES]:
            alive = [path] if near[path] == 0 else view.alive(self._with_numbers(path))
            if alive:
                self.state.believed = alive[0]
                return True
        return False

    def _with_numbers(self, path: Datapath, among: Set[str] | None = None) -> list[Datapath]:
        """Other numbers in one of these fields, or in any, for what it costs to make them."""
        held = every_number(path).keys() if among is None else every_number(path).keys() & among
        self.state.allowance.spend_on(path, 2 * (FAR - 1) * len(held), NEIGHBOUR)
        return with_numbers(path, FAR, among)

    def _moved_near(self, more: Sequence[Datapath], most: int | None = None) -> bool:
        """Move to a datapath near the current one that agrees with everything, also with what tells all of these apart,
        and says ``most`` rules at most; False where there is none."""
        current, view = self.state.current, self.state.session.all
        near = [n.datapath for n in neighbours(current)]
        self.state.allowance.spend_on(current, len(near), NEIGHBOUR)
        first = [path for path in more if path in set(near)]
        alive = view.alive(list(dict.fromkeys([*first, *self.state.others, *near])))
        alive = [path for path in alive if self._as_fast(path)] or alive
        alive = [path for path in alive if most is None or rules_said(path) <= most]
        if not alive:
            return False
        before = numbers(current)
        fields = {name for name, value in numbers(alive[0]).items() if value != before.get(name)}
        if fields:
            alive = list(dict.fromkeys([*alive, *view.alive(self._with_numbers(alive[0], fields))]))
        left = self._told_apart(alive)
        if len(left):
            self.state.choose(left)
        return len(left) > 0

    def _told_apart(self, datapaths: list[Datapath]) -> Living:
        """Those of datapaths that agree with everything that vectors leave which are aimed at the differences."""
        view, current = self.state.session.all, self.state.current

        def pool(seed: int, count: int) -> Batch:
            if not can_attack(self.instruction):
                return mixed_vectors(self.instruction, seed, max(count, POOL))
            return attack_vectors(self.instruction, current, datapaths, seed, max(AIMED * count, POOL))

        every = several(datapaths, self.state.allowance)
        return eliminate(view, every, pool, seed=self.state.seed + view.count, patience=DRY)

    def _simplify(self) -> None:
        """The current datapath with less and less said, as long as nothing asked so far speaks against it."""
        current = self.state.current
        if self.state.relative_of is None and formats.get(self.instruction.d).is_float:
            said = fields_said(current)  # what is simpler in itself may say more: ``_plainer`` would take it back
            plain = [path for path in simpler(current) if fields_said(path) <= said and self._as_fast(path)]
            less = self.state.session.all.alive(plain)
            if less:
                self.state.believed, self.state.others = less[0], [current, *self.state.others]
                self._simplify()

    def _plainer(self) -> bool:
        """Believe what says less where nothing told it from the current datapath: a neighbour left, and with it all
        others of which everything asked speaks for all together; whether there is one."""
        found = self.state.current
        for near in self.left:
            if near.field.endswith("fraction_bits"):
                continue  # a sum that keeps every bit says less, and has more neighbours that nothing tells apart
            changed = near.datapath if found is self.state.current else _changed(found, near)
            if changed is None or fields_said(changed) >= fields_said(found) or not self._as_fast(changed):
                continue
            if found is self.state.current or self.state.session.all.alive([changed]):
                found = changed
        if found is self.state.current:
            return False
        self.state.believed, self.state.others = found, [self.state.current, *self.state.others]
        self.state.proofs.clear()
        return True

    def _as_fast(self, path: Datapath) -> bool:
        return engine.as_fast(path, self.state.current)

    def _two_away(self) -> list[Datapath]:
        """Two changes away, from the ten neighbours that get the least wrong."""
        near = sorted((n.datapath for n in neighbours(self.state.current)), key=self.state.session.all.mismatches)[:10]
        return list(dict.fromkeys(n[2] for datapath in near for n in neighbours(datapath)))

    def _pairs(self, fresh: int) -> EveryPair | None:
        """All pairs of codes or significands, where so many may be asked; not where the engine cannot hold the sum."""
        found = every_pair(self.instruction) if PAIRS * fresh and not self.instruction.random else None
        if found is None or found.vectors > PAIRS * fresh or engine.refusal(self.state.current) is not None:
            return None
        return found

    def _wrong_pairs(self, pairs: EveryPair | None) -> Wrong | None:
        """The first pairs on which device and datapath differ, if any."""
        if pairs is None:
            return None
        session, total = self.state.session, 0
        found: list[tuple[Batch, Bits]] = []
        session.say(f"every pair of {pairs.what} in every lane: {counted(pairs.vectors, 'vector')}")
        for tiles in pairs.tiles():
            answers = run_tiles(session.device, self.instruction, in_blocks(self.instruction, tiles))
            answers = answers.reshape(-1, *answers.shape[-2:])
            places = np.argwhere(evaluate_tiles(partial(engine.evaluate, self.state.current), tiles) != answers)
            total += len(places)
            for place in places[: WRONG - len(found)].tolist():
                found.append((vector_at(tiles, *place), answers[tuple(place)]))
        if not found:
            return None
        vectors, given = zip(*found, strict=True)
        said = f"wrong in {total} of {pairs.vectors:,} vectors in which every pair of {pairs.what} meets in every lane"
        return Wrong(join(list(vectors)), np.array(given), said if total <= FEW else "")

    def _coverage(self, fresh: int, pairs: EveryPair | None) -> Coverage:
        answers = self.state.session.run + fresh + self._cancelled(fresh)
        if pairs is None:
            return Coverage(fresh, answers=answers)
        return Coverage(fresh, pairs.what, pairs.vectors, answers + pairs.vectors)

    def _cancelled(self, fresh: int) -> int:
        """How many vectors whose products cancel are asked beside the fresh ones."""
        return CANCELLED if fresh and formats.get(self.instruction.d).is_float else 0

    def _fresh(self, fresh: int, turn: int) -> Batch:
        """Vectors that were not asked before: of every family, a quarter of the search's own kinds; of floats a twelfth
        of these and a twelfth aimed at the datapath's numbers and those of the neighbours left, and a third a few
        changes away from all those, or from what was asked; and beside them products that cancel over a subnormal c,
        of which other families have hardly any."""
        seed, aims = self.state.seed ^ 0x5EED0000 + turn, can_attack(self.instruction)
        own = fresh // (12 if aims else 4)
        aimed, changed = (own, fresh // 3) if aims else (0, 0)
        mixed = mixed_vectors(self.instruction, seed, own)
        parts = [
            hard_vectors(self.instruction, families_for(self.instruction), seed, fresh - own - aimed - changed),
            mixed.slice(mixed.size - own, mixed.size),
        ]
        if aimed:
            rivals = [n.datapath for n in self.left]
            parts.append(attack_vectors(self.instruction, self.state.current, rivals, seed, aimed).slice(0, aimed))
            parts.append(self._changed([join(parts[:2]), parts[2]], seed, changed))
        if count := self._cancelled(fresh):
            parts.append(cancelled_vectors(self.instruction, seed, count))
        return join(parts)

    def _validate(self, fresh: int, turn: int) -> Wrong | None:
        """Some fresh vectors on which device and datapath differ, with the device's answers, if any."""
        vectors = self._fresh(fresh, turn)
        answers = run_vectors(self.state.session.device, self.instruction, vectors)
        whole = engine.refusal(self.state.current) is None
        paying = Allowance(None) if whole else self.state.allowance  # how many there are is the caller's to say
        wrong = np.flatnonzero(paying.evaluate([self.state.current], vectors)[0] != answers)
        some = wrong[np.linspace(0, wrong.size - 1, min(wrong.size, WRONG)).astype(int)]
        return Wrong(take(vectors, some), answers[some]) if wrong.size else None
