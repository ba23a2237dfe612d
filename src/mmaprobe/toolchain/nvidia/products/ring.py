"""The protocol of a ring of slots between a producer and consumers: one record, written as C and explored.

Each slot has two barriers.  The producer awaits ``empty``, says how many bytes come, and copies; a consumer awaits
``full``, begins to read, and, when the reads of the step before have ended, lets that slot go.  A barrier's phase is
over when so many have arrived as it was made for and all bytes have come; ``await`` of a parity passes where the phase
of that parity is over, so that a fresh barrier passes parity 1 and not 0 (PTX ISA, mbarrier).

In pingpong consumers take tiles by turns.  A parity tells a round of the ring from the next one alone: a consumer that
waits for a slot two rounds ahead would pass at once.  So each has a barrier ``turn``, at which the other one arrives
when it has begun with all of its tile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

WARPS = 4
"""Warps of a warpgroup, each of which arrives: what one has read another may still be reading."""
CONSUMERS = 2
"""Warpgroups that multiply."""
Verb = Literal["await", "expect", "copy", "begin", "finish", "arrive"]
Barrier = Literal["full", "empty", "turn", ""]


@dataclass(frozen=True)
class Do:
    """One thing that a role does at a step of K: on the step's slot, or that of the step ``back`` before, if there is
    one.  ``parity`` of an await: that of the slot's round (``round``), the other one, or always 0."""

    verb: Verb
    barrier: Barrier = ""
    back: int = 0
    parity: Literal["round", "other", "zero"] = "round"


@dataclass(frozen=True)
class SlotRing:
    """Who does what: the producer and every consumer at ``each`` step, a consumer ``first`` and ``last`` of its tile.

    ``full``, ``empty`` and ``turn`` are how many arrivals end a phase of these barriers; a consumer's is ``weight``.
    """

    stages: int
    full: int = 1
    empty: int = CONSUMERS * WARPS
    turn: int = WARPS
    weight: int = WARPS
    pingpong: bool = False
    producer: tuple[Do, ...] = (Do("await", "empty", parity="other"), Do("expect", "full"), Do("copy"))
    first: tuple[Do, ...] = ()
    each: tuple[Do, ...] = (Do("await", "full"), Do("begin"), Do("finish", back=1), Do("arrive", "empty", back=1))
    last: tuple[Do, ...] = (Do("finish"), Do("arrive", "empty"))


def ring(stages: int, pingpong: bool = False) -> SlotRing:
    """The ring of our kernels: in pingpong one consumer reads a slot, else both do."""
    if not pingpong:
        return SlotRing(stages)
    first, last = (Do("await", "turn"),), (Do("arrive", "turn"), *SlotRing.last)
    return SlotRing(stages, empty=WARPS, pingpong=True, first=first, last=last)


# Written as C


def functions(of: SlotRing) -> str:
    """``produce`` and ``consume``, and the arrivals that barriers are made for."""
    steps = "for (int step = unit.first; step < unit.last; ++step) {"
    return "\n".join(
        [
            f"constexpr int FULL_ARRIVALS = {of.full}, EMPTY_ARRIVALS = {of.empty}, TURN_ARRIVALS = {of.turn};",
            "",
            "MMAPROBE_DEVICE void produce(const Product& of, Word32 memory, Place& at, int m, int n, const Unit& unit,",
            "                             Word64* done) {",
            f"    {steps}",
            *(f"        {line}" for each in of.producer for line in _written(each)),
            "        at.skip(1);",
            "    }",
            "}",
            "",
            "MMAPROBE_DEVICE void consume(Sums& sums, Word32 memory, Place& at, int consumer, int turns,",
            "                             const Unit& unit, Word64* done) {",
            "    Place before = at;",
            *(f"    {line}" for each in of.first for line in _written(each)),
            f"    {steps}",
            *(f"        {line}" for each in of.each for line in _written(each)),
            "        before = at;",
            "        at.skip(1);",
            "    }",
            *(f"    {line}" for each in of.last for line in _written(replace(each, back=each.back + 1), ended=True)),
            "}",
        ]
    )


def _written(do: Do, ended: bool = False) -> Iterator[str]:
    """One thing as a statement; after the loop the last step is the one before."""
    place = "before" if do.back else "at"
    barrier = f"memory + {do.barrier.upper()} + 8 * {place}.slot"
    parity = {"round": f"{place}.phase", "other": f"{place}.phase ^ 1", "zero": "0"}[do.parity]
    if do.barrier == "turn":
        barrier = f"memory + TURN + 8 * {'consumer' if do.verb == 'await' else '(1 - consumer)'}"
        parity = "(turns & 1) ^ (consumer == 0)"
    texts = {
        "await": f"await({barrier}, {parity}, done);",
        "expect": f"expect({barrier}, SLOT);",
        "copy": f"copy(of, memory, {place}.slot, m, n, step * TILE_K);",
        "begin": f"begin(sums, memory, {place}.slot, consumer, step == STEPS - 1);",
        "finish": f"finish<{0 if ended else do.back}>(sums);",
        "arrive": f"if (threadIdx.x % 32 == 0) arrive({barrier});",
    }
    guard = "if (step > unit.first) " if do.back and not ended else ""
    text = texts[do.verb]
    yield f"{guard}{{ {text} }}" if guard and text.startswith("if") else f"{guard}{text}"


# Explored


class RingState(NamedTuple):
    """Where every role is, as (tile, place in its program), and what it has begun to read; of every slot the phases of
    ``full`` and ``empty`` that are over, the arrivals and copies that are out, and the step whose tile it holds; the
    steps whose copies are under way."""

    roles: tuple[tuple[int, int], ...]
    reading: tuple[tuple[int, ...], ...]
    full: tuple[tuple[int, int, int], ...]
    empty: tuple[tuple[int, int], ...]
    turn: tuple[tuple[int, int], ...]
    held: tuple[int | None, ...]
    flying: tuple[int, ...]


@dataclass(frozen=True)
class Fault:
    """What went wrong, and the shortest way there, a line each."""

    what: str
    trace: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([*self.trace, self.what])


@dataclass(frozen=True)
class Explored:
    """How many states a ring has, and the first fault among them, if there is one."""

    states: int
    fault: Fault | None


class BrokenError(Exception):
    """A rule of the ring is broken by what a role does."""


class Explorer:
    """All states of a ring whose tiles have ``steps`` steps, one behind the other for ever.

    Roles move in any order, and copies end in any order.  States that differ by whole tiles are one: slots are
    counted from the first tile that a role is in, rounds from the first one of a slot.
    """

    def __init__(self, of: SlotRing, steps: int) -> None:
        self.of, self.steps = of, steps
        self.produced = [(step, each) for step in range(steps) for each in of.producer]
        consumed = [(step, each) for step in range(steps) for each in of.each if step >= each.back]
        self.consumed = [*((0, each) for each in of.first), *consumed, *((steps - 1, each) for each in of.last)]
        alike = all(each.parity != "zero" for each in (*of.producer, *of.each, *of.last))
        self.turns = any(each.barrier == "turn" for each in (*of.first, *of.last))
        self.period = CONSUMERS if of.pingpong else 1
        while not alike and self.period * steps % (2 * of.stages):
            self.period += CONSUMERS if of.pingpong else 1

    def explore(self) -> Explored:
        """Breadth first, so that a fault is reached by a shortest way."""
        start = self._start()
        seen: dict[RingState, tuple[RingState, str] | None] = {start: None}
        waiting = deque([start])
        while waiting:
            state = waiting.popleft()
            moved = False
            for role in range(1 + CONSUMERS):
                said = self._said(state, role)
                try:
                    after = self._moved(state, role)
                except BrokenError as error:
                    return Explored(len(seen), Fault(str(error), (*self._trace(seen, state), said)))
                if after is None:
                    continue
                moved = True
                if after not in seen:
                    seen[after] = state, said
                    waiting.append(after)
            for step in state.flying:
                moved = True
                after = self._landed(state, step)
                if after not in seen:
                    seen[after] = state, f"the copy into slot {step % self.of.stages} ends"
                    waiting.append(after)
            if not moved:
                stuck = "; ".join(self._said(state, role) for role in range(1 + CONSUMERS))
                return Explored(len(seen), Fault(f"deadlock: {stuck}", self._trace(seen, state)))
        return Explored(len(seen), None)

    def _start(self) -> RingState:
        of = self.of
        first = [(0, 0), *((consumer if of.pingpong else 0, 0) for consumer in range(CONSUMERS))]
        full, empty = (0, of.full, 0), (0, of.empty)
        return RingState(tuple(first), ((),) * CONSUMERS, (full,) * of.stages, (empty,) * of.stages,
                     ((0, of.turn),) * CONSUMERS, (None,) * of.stages, ())  # fmt: skip

    def _next(self, state: RingState, role: int) -> tuple[int, Do]:
        """The step, counted over all tiles, and what the role does next."""
        tile, place = state.roles[role]
        step, do = (self.consumed if role else self.produced)[place]
        return tile * self.steps + step - do.back, do

    def _said(self, state: RingState, role: int) -> str:
        step, do = self._next(state, role)
        who = f"consumer {role - 1}" if role else "producer"
        what = f"{do.verb} {do.barrier}".rstrip()
        if do.barrier == "turn":
            return f"{who}: {what} of consumer {self._turn(role, do)}"
        return f"{who}: {what} of slot {step % self.of.stages}"

    @staticmethod
    def _turn(role: int, do: Do) -> int:
        """Whose turn a consumer awaits, its own, or gives away to."""
        return role - 1 if do.verb == "await" else CONSUMERS - role

    def _moved(self, state: RingState, role: int) -> RingState | None:
        """The state after a role's next move; None while it waits; BrokenError where that breaks a rule."""
        step, do = self._next(state, role)
        of, slot = self.of, step % self.of.stages
        full, empty, reading, flying, held = (
            list(state.full), list(state.empty), list(state.reading), state.flying, list(state.held)
        )  # fmt: skip
        turn, whose = list(state.turn), self._turn(role, do)
        match do.verb:
            case "await" if do.barrier == "turn":
                asked = state.roles[role][0] // CONSUMERS + (whose == 0)
                if (turn[whose][0] - asked) % 2 == 0:
                    return None
            case "arrive" if do.barrier == "turn":
                phases, pending, _ = self._over(*turn[whose], 0, of.turn, f"turn of consumer {whose}", of.weight)
                turn[whose] = phases, pending
            case "await":
                over = (full if do.barrier == "full" else empty)[slot][0]
                asked = {"round": step // of.stages, "other": step // of.stages + 1, "zero": 0}[do.parity]
                if (over - asked) % 2 == 0:
                    return None
            case "expect":
                phases, pending, out = full[slot]
                full[slot] = self._over(phases, pending, out + 1, of.full, f"full of slot {slot}", 1)
            case "copy":
                if any(each % of.stages == slot for begun in reading for each in begun):
                    raise BrokenError(f"slot {slot} is written while it is read")
                if held[slot] is not None and self._wanted(state, held[slot] or 0):
                    raise BrokenError(f"slot {slot} is written before it was read")
                held[slot] = None
                flying = tuple(sorted((*flying, step)))
            case "begin":
                if held[slot] != step:
                    raise BrokenError(f"slot {slot} is read before it is full")
                reading[role - 1] = (*reading[role - 1], step)
            case "finish":
                reading[role - 1] = tuple(each for each in reading[role - 1] if each > step)
            case "arrive":
                phases, pending, _ = self._over(*empty[slot], 0, of.empty, f"empty of slot {slot}", of.weight)
                empty[slot] = phases, pending
        roles = list(state.roles)
        roles[role] = self._after(role, *state.roles[role])
        return self._plain(
            RingState(tuple(roles), tuple(reading), tuple(full), tuple(empty), tuple(turn), tuple(held), flying)
        )

    def _after(self, role: int, tile: int, place: int) -> tuple[int, int]:
        """The place after one; behind a tile's last its next tile."""
        if place + 1 < len(self.consumed if role else self.produced):
            return tile, place + 1
        return tile + (CONSUMERS if role and self.of.pingpong else 1), 0

    def _wanted(self, state: RingState, step: int) -> bool:
        """Whether a consumer is still to begin with a step that is its own."""
        tile = step // self.steps
        for role in range(1, 1 + CONSUMERS):
            at, place = state.roles[role]
            own = not self.of.pingpong or tile % CONSUMERS == (at % CONSUMERS)
            behind = (at, place) <= (tile, self._begins(step % self.steps))
            if own and behind:
                return True
        return False

    def _begins(self, step: int) -> int:
        """Where in a consumer's program it begins to read a step."""
        return self.consumed.index((step, next(each for each in self.of.each if each.verb == "begin")))

    @staticmethod
    def _over(phases: int, pending: int, out: int, fresh: int, what: str, arriving: int = 0) -> tuple[int, int, int]:
        """A barrier after arrivals or the end of a copy: its next phase where nothing is out any more."""
        pending -= arriving
        if pending < 0:
            raise BrokenError(f"more arrive at {what} than it was made for")
        return (phases + 1, fresh, 0) if pending == 0 and out == 0 else (phases, pending, out)

    def _landed(self, state: RingState, step: int) -> RingState:
        """The state after a copy has ended."""
        slot = step % self.of.stages
        full, held = list(state.full), list(state.held)
        phases, pending, out = full[slot]
        full[slot] = self._over(phases, pending, out - 1, self.of.full, "")
        held[slot] = step
        flying = tuple(each for each in state.flying if each != step)
        return self._plain(state._replace(full=tuple(full), held=tuple(held), flying=flying))

    def _plain(self, state: RingState) -> RingState:
        """The same state counted from the first tile, in whole periods, that a role is in or a slot holds."""
        tiles = min(tile for tile, _ in state.roles) // self.period * self.period
        if not tiles:
            return state
        shift, stages = tiles * self.steps, self.of.stages
        old = [(slot + shift) % stages for slot in range(stages)]
        rounds = [(slot + shift) // stages for slot in range(stages)]
        held = (state.held[slot] for slot in old)
        return RingState(
            tuple((tile - tiles, place) for tile, place in state.roles),
            tuple(tuple(step - shift for step in begun) for begun in state.reading),
            tuple((state.full[slot][0] - past, *state.full[slot][1:]) for slot, past in zip(old, rounds, strict=True)),
            tuple((state.empty[slot][0] - past, state.empty[slot][1]) for slot, past in zip(old, rounds, strict=True)),
            tuple((over - tiles // CONSUMERS * self.turns, pending) for over, pending in state.turn),
            tuple(None if step is None else step - shift for step in held),
            tuple(step - shift for step in state.flying),
        )

    def _trace(self, seen: dict[RingState, tuple[RingState, str] | None], state: RingState) -> tuple[str, ...]:
        lines: list[str] = []
        before = seen[state]
        while before is not None:
            state, said = before
            lines.append(said)
            before = seen[state]
        return tuple(reversed(lines))


def explore(of: SlotRing, steps: int = 2) -> Explored:
    """Every state of a ring (``Explorer``): no deadlock, no slot read before it is full, none written before it was
    read and while it is, no barrier at which more arrive than it was made for; or the first fault."""
    return Explorer(of, steps).explore()
