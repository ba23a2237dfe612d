"""All questions to one device about one instruction, asked side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device
from mmaprobe.devices.no_random_bits import NoRandomBits
from mmaprobe.devices.plain_signs import PlainSigns
from mmaprobe.errors import NotHereError, UsageError, near
from mmaprobe.evidence.records import Finding, Witness
from mmaprobe.options import NAMES, or_none
from mmaprobe.options import checked as check
from mmaprobe.probing.experiments.one_hot import follow_one_hot
from mmaprobe.probing.experiments.window import (
    anchor_exponent,
    complement,
    complement_low,
    fault,
    lost_below,
    lower_anchor,
    unit_exponent,
)
from mmaprobe.probing.questions import PROBES
from mmaprobe.probing.session.bench import Bench
from mmaprobe.probing.session.exact_values import ContradictionError, UnrepresentableError
from mmaprobe.probing.session.probe import Experiment, Probe
from mmaprobe.probing.session.rounds import together
from mmaprobe.probing.session.session import ProbeSession

QUESTIONS = tuple(PROBES)


def probe(
    device: Device, instruction: Instruction, questions: Sequence[str] | None = None, seed: int = 0
) -> dict[str, Finding]:
    """The finding of each question (all of ``QUESTIONS`` where None), by name.

    The questions are asked side by side: what they ask in one round is one
    launch.  ``tiles`` and ``launches`` of a finding count what the question cost
    beyond the ones before it, so that their sums are what was run (``bench``).
    A device that gives two answers to one vector, or a wrong one to a sum that
    every dot product gets right, is ``contradictory`` in every question.  Where only a term and its opposite do not
    cancel, as by ones' complement, the summation tree alone is read.  An instruction whose modifiers negate
    operands is asked with their signs flipped (``PlainSigns``), one that takes random bits with none of them set
    (``NoRandomBits``), and answers as the one that does not.
    UsageError for an unknown question, NotHereError where the device does not
    run the instruction.
    """
    names = checked(questions)
    support = device.supports(instruction)
    if not support:
        raise NotHereError(f"{instruction.id} on {device.name}: {support.reason}")
    view = PlainSigns.of(device, instruction) or NoRandomBits.of(device, instruction)
    if view is None:
        return probe_on(Bench(device, instruction, seed), names)
    return with_witnesses(probe(view, view.plain, names, seed), view.witness)


def with_witnesses(findings: Mapping[str, Finding], change: Callable[[Witness], Witness]) -> dict[str, Finding]:
    """The findings with each witness as another instruction has it."""
    return {name: replace(each, witnesses=tuple(map(change, each.witnesses))) for name, each in findings.items()}


def checked(questions: Sequence[str] | None) -> tuple[str, ...]:
    """The questions' names, each once, all where None; UsageError for an unknown one."""
    check("probe", {"questions": questions}, {"questions": or_none(NAMES)})
    names = QUESTIONS if questions is None else tuple(dict.fromkeys(questions))
    for name in names:
        if name not in PROBES:
            raise UsageError(f"unknown question {name!r}{near(name, QUESTIONS)}")
    return names


def probe_on(bench: Bench, names: Sequence[str]) -> dict[str, Finding]:
    """``probe`` on a bench, which keeps the answers and what they cost."""
    found = bench.run(_suite(bench, names))
    costs = {name: replace(f, tiles=bench.tiles[name], launches=bench.launches[name]) for name, f in found.items()}
    return costs if bench.unstable is None else {n: _unstable(f, bench.unstable) for n, f in costs.items()}


def probe_layout_alone(device: Device, instruction: Instruction, seed: int = 0) -> Finding:
    """The layout question by itself: its whole tiles need no range found out first, so that where all is in place
    it is one launch."""
    return _alone(device, instruction, PROBES["layout"].experiment, seed)


def probe_one_hot_alone(device: Device, instruction: Instruction, seed: int = 0) -> Finding:
    """Where each value of A goes, one at a time (``experiments.one_hot``)."""
    return _alone(device, instruction, follow_one_hot, seed)


def _alone(device: Device, instruction: Instruction, experiment: Experiment, seed: int) -> Finding:
    bench = Bench(device, instruction, seed)
    found = bench.run(_carried_out(ProbeSession(bench, "layout"), experiment))
    return replace(found, tiles=bench.tiles["layout"], launches=bench.launches["layout"])


async def _suite(bench: Bench, names: Sequence[str]) -> dict[str, Finding]:
    """The range first, with the plainest sums; then every question."""
    if not names:
        return {}
    opening = ProbeSession(bench, names[0])
    try:
        wrong = await _opened(opening)
    except UnrepresentableError as why:
        text = f"the experiment cannot be built: {why}"
        return {name: ProbeSession(bench, name).finding("inconclusive", None, text) for name in names}
    except ContradictionError as why:
        wrong = str(why)
    bench.unstable = wrong or bench.unstable
    left = opening.complement
    sessions = [
        ProbeSession(bench, name) for name in names
        if PROBES[name].of_tiles or (wrong is None and (left is None or PROBES[name].of_opposites))
    ]  # fmt: skip
    findings = await together(*(_ask(session, PROBES[session.question]) for session in sessions))
    asked = {session.question: finding for session, finding in zip(sessions, findings, strict=True)}
    other = opening.finding("inconclusive", None, left) if left else opening.finding("contradictory", None, wrong or "")
    return {n: asked.get(n) or replace(other, question=n) for n in names}


async def _opened(opening: ProbeSession) -> str | None:
    """Find out the range, and whether opposites cancel; what came out wrong of the plainest sums, if anything did."""
    facts = opening.bench.facts
    facts["high"] = high = anchor_exponent(opening)
    wrong: str | None
    lower, facts["low"], wrong = await together(lower_anchor(opening), unit_exponent(opening), fault(opening))
    left = await complement(opening) if wrong is not None or lower is None else None
    if left is not None:
        facts["complement"], facts["low"] = left, await complement_low(opening)
        return None
    await _in_reach(opening, lower, wrong)
    if lower not in (None, high):
        facts["high"] = lower
        facts["low"] = await unit_exponent(opening)
    return wrong


async def _in_reach(opening: ProbeSession, anchor: int | None, wrong: str | None) -> None:
    """UnrepresentableError where the device answers as a unit does, out of the range of the experiments."""
    if wrong is not None and opening.is_float and (above := await lost_below(opening)) is not None:
        raise UnrepresentableError(f"numbers are lost beside zeros, at 2^{above} no more")
    if wrong is None and anchor is None:
        raise UnrepresentableError("a power of two and its negative cancel nowhere")


async def _ask(session: ProbeSession, probe: Probe) -> Finding:
    if not probe.applies(session.instruction):
        return session.finding("exact", *probe.otherwise)
    return await _carried_out(session, probe.experiment)


async def _carried_out(session: ProbeSession, experiment: Experiment) -> Finding:
    try:
        return await experiment(session)
    except UnrepresentableError as why:
        return session.finding("inconclusive", None, f"the experiment cannot be built: {why}")
    except ContradictionError as why:
        return session.finding("contradictory", None, str(why))


def _unstable(finding: Finding, how: str) -> Finding:
    """No answer of a device that contradicts itself, or the plainest sums, counts."""
    if finding.status == "contradictory":
        return finding
    return replace(finding, status="contradictory", text=f"the device cannot be relied on ({how}); {finding.text}")
