"""Which roundings take which random bits: found last, of a datapath that holds where there are none.

With r = 0 a stochastic rounding is the rounding beneath, so that all else is derived without it.  What is left to say
is which Encodes take bits of r, how many, and from which end: few enough hypotheses to hold all of them to vectors that
tell them apart.  The one that stays is settled as any other datapath is, but that nothing else of it changes any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace
from itertools import chain, combinations, count, product

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.certificate import Certificate
from mmaprobe.derivation.certify import Settlement
from mmaprobe.derivation.discriminate import eliminate
from mmaprobe.derivation.search.stages import Search
from mmaprobe.derivation.session import Ended, State
from mmaprobe.derivation.survivors import several
from mmaprobe.derivation.vectors.mixtures import hard_vectors
from mmaprobe.derivation.vectors.near_carries import near_carries
from mmaprobe.derivation.vectors.pairs import EveryPair
from mmaprobe.generators.families import MIX
from mmaprobe.operands.batch import Batch, join
from mmaprobe.parameters.datapath import Datapath, Encode
from mmaprobe.parameters.described import choices
from mmaprobe.parameters.neighbours import Neighbour
from mmaprobe.parameters.rewrite import encodes, map_encodes

STAGE = "random bits"
"""What pays for it, as the allowance names it."""
DRY = 3
"""Pools, each twice as large as the one before, that tell no two hypotheses apart before the search for one ends."""
FEW = 4
"""Encodes of which every choice is a hypothesis; of more all, each, and all but each."""
CARRIES = "near carries"
"""What vectors are called among generators whose roundings few bits decide."""
WHOLE = "no rounding by some of its random bits does what the unit does with them"


def hypotheses(path: Datapath, random: str) -> Iterator[Datapath]:
    """The datapath with an operand of random bits that nothing takes; then with each number of them, from either end,
    taken by some of its Encodes, the fewest first."""
    path, held = replace(path, random=random), formats.get(random).bits
    yield path
    for chosen, bits in product(_choices(len(encodes(path))), range(1, held + 1)):
        for end in choices(Encode, "random_from")[: 1 if bits == held else 2]:
            yield taking(path, chosen, bits, end)


def taking(path: Datapath, chosen: Set[int], bits: int, end: str) -> Datapath:
    """The datapath whose Encodes of these numbers, as ``map_encodes`` comes to them, take so many random bits."""
    numbers = count()

    def at(to: Encode) -> Encode:
        return replace(to, random_bits=bits, random_from=end) if next(numbers) in chosen else to  # type: ignore[arg-type]

    return map_encodes(path, at)


def _choices(places: int) -> list[frozenset[int]]:
    """Which of so many Encodes: the fewest first."""
    sizes: Iterable[int] = range(1, places + 1) if places <= FEW else (1, places - 1, places)
    return list(map(frozenset, chain.from_iterable(combinations(range(places), size) for size in sizes)))


def settled(state: State, bases: Sequence[Datapath], fresh: int) -> Certificate | Ended:
    """The certificate of what agrees with everything asked, of the hypotheses about the first of these datapaths that
    leaves any; the nearest of those about the very first where none does."""
    session, instruction = state.session, state.instruction
    assert instruction.random is not None
    for base in bases:
        session.begin(STAGE)
        every = list(hypotheses(base, instruction.random))
        pool = _Pool(instruction, base)
        alive = eliminate(session.all, several(every, session.allowance), pool, seed=state.seed, patience=DRY)
        if len(alive):
            found = RandomBitsSettlement(Search(state), every).run(state.choose(alive), fresh)
            if not isinstance(found, Ended):
                return found
    return Ended(WHOLE, min(hypotheses(bases[0], instruction.random), key=session.all.mismatches))


class _Pool:
    """Vectors whose roundings a few bits decide, with random bits: half of them of the families, half near carries."""

    def __init__(self, instruction: Instruction, base: Datapath) -> None:
        self.instruction = instruction
        self.precisions = sorted({formats.get(to.format).fraction_bits for to in encodes(base)})

    def __call__(self, seed: int, size: int) -> Batch:
        made = hard_vectors(self.instruction, tuple(MIX), seed, size)
        if not formats.get(self.instruction.d).is_float:
            return made
        assert self.instruction.random is not None
        depth = formats.get(self.instruction.random).bits + 1
        return join([made, near_carries(self.instruction, self.precisions, depth, seed, size)])


class RandomBitsSettlement(Settlement):
    """The settlement of a datapath that holds without random bits; where the device is otherwise with them, another of
    the hypotheses takes its place, or a neighbour that nothing refuted, and else it ends."""

    def __init__(self, search: Search, every: Sequence[Datapath]) -> None:
        super().__init__(search)
        self.every, self.decided = every, _Pool(self.instruction, every[0])

    def _simplify(self) -> None:
        """Nothing: what says less was told apart without random bits."""

    def _plainer(self) -> bool:
        return False

    def _pool(self, left: list[Neighbour], seed: int, attempt: int) -> tuple[Batch, tuple[str, ...]]:
        made, names = super()._pool(left, seed, attempt)
        return join([made, self.decided(seed, made.size // 4)]), (*names, CARRIES)

    def _fresh(self, fresh: int, turn: int) -> Batch:
        made = super()._fresh(fresh, turn)
        return join([made, self.decided(self.state.seed ^ 0x5EED0000 + turn, fresh // 8)]) if fresh else made

    def _repair(self, more: Sequence[Datapath] = (), pairs: EveryPair | None = None) -> Ended | None:
        self.state.proofs.clear()
        current = self.state.current
        return None if self.state.move([*self.every, *more]) else Ended(WHOLE, current)
