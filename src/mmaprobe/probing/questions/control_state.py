"""What of the control register an instruction obeys: rounding mode, flushing, subnormals read as zero.

Vectors whose results lie between two numbers, whose results are subnormal, and
whose operands are, in the default state and with one control changed at a time.

Answer: ``{control: "obeyed" | "ignored"}`` for the controls that the catalog names; ``{}`` where it
names none: no register reaches the unit.
"""

from __future__ import annotations

from fractions import Fraction

from mmaprobe.catalog.states import CONTROL_VALUES, default_state, in_state
from mmaprobe.evidence.records import Finding
from mmaprobe.probing.session.bench import Bench
from mmaprobe.probing.session.exact_values import power
from mmaprobe.probing.session.probe import Probe
from mmaprobe.probing.session.rounds import Asking
from mmaprobe.probing.session.session import ProbeSession, Terms
from mmaprobe.probing.session.vectors import Vector


async def probe_control_state(session: ProbeSession) -> Finding:
    """Dependence on the control register (see the module)."""
    instruction = session.instruction
    vectors = [v for terms in _telling(session) if (v := session.try_vector(terms)) is not None]
    answers: dict[tuple[str, str], list[int]] = {}
    plain = await _in_state(session, {}, vectors)
    for control in instruction.controls:
        for value in CONTROL_VALUES[control][1:]:
            answers[control, value] = await _in_state(session, {control: value}, vectors)
    found = dict.fromkeys(instruction.controls, "ignored")
    for (control, value), codes in answers.items():
        for vector, code, before in zip(vectors, codes, plain, strict=True):
            if code != before and found[control] == "ignored":
                found[control] = "obeyed"
                session.note(vector, code, f"{control} {value or 'on'}; {before:#x} in the default state")
    text = ", ".join(f"{control} {how}" for control, how in found.items())
    return session.finding("exact" if "ignored" not in found.values() else "bounded", found, text)


async def _in_state(session: ProbeSession, state: dict[str, str], vectors: list[Vector]) -> list[int]:
    """The answers in one control state, on a bench of its own; its costs are this question's."""
    instruction = in_state(default_state(session.instruction), state)
    bench = session.bench
    if not bench.device.supports(instruction):
        return await session.ask(vectors)
    if instruction == bench.instruction:
        return await session.ask(vectors)
    other = Bench(bench.device, instruction, bench.seed)
    asked: Asking[list[int]] = ProbeSession(other, session.question).ask(vectors)
    codes = other.run(asked)
    bench.tiles.update(other.tiles)
    bench.launches.update(other.launches)
    return codes


def _telling(session: ProbeSession) -> list[Terms]:
    """Sums between two numbers of both signs, subnormal results, subnormal operands."""
    d, leaves = session.d, session.leaves
    x, y = leaves[0], leaves[-1]
    low, place = power(d.min_exponent), power(-d.fraction_bits)
    cases: list[Terms] = []
    for sign in (1, -1):
        for part in (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)):
            cases += [{x: sign, y: sign * part * place}, {x: sign * part * place, y: sign}]
        cases += [{x: sign * low * 3 / 2, y: -sign * low}, {y: sign * low * 3 / 2, x: -sign * low}]
        cases += [{leaf: sign * low / 2} for leaf in (x, y)]
        cases += [{x: sign * low / 2, y: sign * low}, {y: sign * low / 2, x: sign * low}]
    return cases


PROBE = Probe(
    order=260,
    asks="which controls reach the unit: rounding mode, FTZ, DAZ",
    rivals="obeyed, ignored",
    experiment=probe_control_state,
    applies=lambda made: bool(made.controls),
    otherwise=({}, "no control register reaches the unit"),
    sound=lambda answer: set(answer.values()) <= {"obeyed", "ignored"},
)
