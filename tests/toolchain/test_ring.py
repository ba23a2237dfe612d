"""The protocol of the ring between a producer and consumers: every state of it, and the faults that are found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mmaprobe.toolchain.nvidia.products.ring import CONSUMERS, WARPS, Do, SlotRing, explore, functions, ring


@pytest.mark.parametrize("pingpong", [False, True])
@pytest.mark.parametrize("stages", range(2, 8))
def test_every_state_of_the_ring_keeps_the_rules(stages: int, pingpong: bool) -> None:
    """No deadlock, no slot read before it is full, none written before it was read."""
    for steps in (1, 2, 3) if stages < 6 else (2,):
        found = explore(ring(stages, pingpong), steps)
        assert found.fault is None, str(found.fault)
        assert found.states > 100


@pytest.mark.long
@pytest.mark.parametrize("stages", range(2, 6))
def test_turns_keep_the_rules_in_tiles_of_all_lengths_up_to_two_rounds(stages: int) -> None:
    for steps in range(1, 2 * stages + 2):
        assert explore(ring(stages, pingpong=True), steps).fault is None


PLAIN, TURNS = ring(3), ring(3, pingpong=True)
AWAIT, EXPECT, COPY = PLAIN.producer
BROKEN: dict[str, tuple[SlotRing, str]] = {
    "the producer awaits the parity of its round": (
        replace(PLAIN, producer=(Do("await", "empty"), EXPECT, COPY)), "deadlock: producer: await empty of slot 0",
    ),
    "a consumer awaits parity 0 in every round": (
        replace(PLAIN, each=(Do("await", "full", parity="zero"), *PLAIN.each[1:])), "is read before it is full",
    ),
    "a consumer does not wait": (replace(PLAIN, each=PLAIN.each[1:]), "slot 0 is read before it is full"),
    "the producer does not wait": (replace(PLAIN, producer=(EXPECT, COPY)), "more arrive at full of slot 0"),
    "no bytes are expected": (replace(PLAIN, producer=(AWAIT, COPY)), "deadlock"),
    "the last slot of a tile is kept": (replace(PLAIN, last=PLAIN.last[:1]), "deadlock"),
    "reads are not waited for": (
        replace(PLAIN, each=tuple(do for do in PLAIN.each if do.verb != "finish")), "is written while it is read",
    ),
    "one consumer's arrivals are enough": (replace(PLAIN, empty=WARPS), "slot 0 is written before it was read"),
    "an arrival too few is made for": (replace(PLAIN, empty=CONSUMERS * WARPS - 1), "more arrive at empty of slot"),
    "an arrival too many is waited for": (replace(PLAIN, empty=CONSUMERS * WARPS + 1), "empty of slot"),
    "turns are not kept": (replace(TURNS, first=(), last=TURNS.last[1:]), "is read before it is full"),
    "a turn is not given away": (replace(TURNS, last=TURNS.last[1:]), "await turn of consumer 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_ring_is_found_with_the_way_there(name: str) -> None:
    of, said = BROKEN[name]
    fault = explore(of).fault
    assert fault is not None
    assert said in fault.what
    assert all(": " in line or line.startswith("the copy into slot") for line in fault.trace)
    assert str(fault).splitlines()[-1] == fault.what


def test_a_fault_is_shown_by_a_shortest_way() -> None:
    fault = explore(replace(PLAIN, each=PLAIN.each[1:])).fault
    assert str(fault) == "consumer 0: begin of slot 0\nslot 0 is read before it is full"


def test_the_kernel_is_written_from_the_same_record() -> None:
    """What is left out of the protocol is left out of the source."""
    whole = functions(PLAIN)
    assert "await(memory + EMPTY + 8 * at.slot, at.phase ^ 1, done);" in whole
    assert "EMPTY_ARRIVALS = 8" in whole
    assert "if (step > unit.first) finish<1>(sums);" in whole
    assert "if (step > unit.first) { if (threadIdx.x % 32 == 0) arrive(memory + EMPTY + 8 * before.slot); }" in whole
    assert "await(memory + TURN + 8 * consumer, (turns & 1) ^ (consumer == 0), done);" in functions(TURNS)
    for of, _ in BROKEN.values():
        assert functions(of) not in (whole, functions(TURNS))
