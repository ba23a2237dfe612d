"""All questions to one device about one instruction, asked side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device
from mmaprobe.errors import NotHereError, UsageError, near
from mmaprobe.evidence.records import Finding
from mmaprobe.options import NAMES, or_none
from mmaprobe.options import checked as check
from mmaprobe.probing.experiments.window import anchor_exponent, fault, lost_below, lower_anchor, unit_exponent
from mmaprobe.probing.questions.accumulator_precision import probe_accumulator_precision
from mmaprobe.probing.questions.alignment_rounding import probe_alignment_rounding
from mmaprobe.probing.questions.bit_products import probe_bit_products
from mmaprobe.probing.questions.block_scales import probe_block_scales
from mmaprobe.probing.questions.c_position import probe_c_position
from mmaprobe.probing.questions.carry_bits import probe_carry_bits
from mmaprobe.probing.questions.container_bits import probe_container_bits
from mmaprobe.probing.questions.control_state import probe_control_state
from mmaprobe.probing.questions.cutoff import probe_cutoff
from mmaprobe.probing.questions.determinism import probe_determinism
from mmaprobe.probing.questions.independence import probe_independence
from mmaprobe.probing.questions.intermediate_rounding import probe_intermediate_rounding
from mmaprobe.probing.questions.layout import probe_layout
from mmaprobe.probing.questions.monotonicity import probe_monotonicity
from mmaprobe.probing.questions.nan import probe_nan
from mmaprobe.probing.questions.normalisation import probe_normalisation
from mmaprobe.probing.questions.one_hot import probe_one_hot
from mmaprobe.probing.questions.overflow import probe_overflow
from mmaprobe.probing.questions.product_label import probe_product_label
from mmaprobe.probing.questions.product_range import probe_product_range
from mmaprobe.probing.questions.result_rounding import probe_result_rounding
from mmaprobe.probing.questions.signed_zero import probe_signed_zero
from mmaprobe.probing.questions.sparsity import probe_sparsity
from mmaprobe.probing.questions.sticky_reach import probe_sticky_reach
from mmaprobe.probing.questions.subnormals import probe_subnormals
from mmaprobe.probing.questions.summation_tree import probe_summation_tree
from mmaprobe.probing.questions.zero_exponent import probe_zero_exponent
from mmaprobe.probing.session.bench import Bench
from mmaprobe.probing.session.exact_values import ContradictionError, UnrepresentableError
from mmaprobe.probing.session.rounds import Asking, together
from mmaprobe.probing.session.session import Session

PROBES: dict[str, Callable[[Session], Asking[Finding]]] = {
    "determinism": probe_determinism,
    "independence": probe_independence,
    "layout": probe_layout,
    "sparsity": probe_sparsity,
    "summation_tree": probe_summation_tree,
    "c_position": probe_c_position,
    "accumulator_precision": probe_accumulator_precision,
    "alignment_rounding": probe_alignment_rounding,
    "cutoff": probe_cutoff,
    "product_label": probe_product_label,
    "product_range": probe_product_range,
    "normalisation": probe_normalisation,
    "carry_bits": probe_carry_bits,
    "intermediate_rounding": probe_intermediate_rounding,
    "result_rounding": probe_result_rounding,
    "sticky_reach": probe_sticky_reach,
    "monotonicity": probe_monotonicity,
    "zero_exponent": probe_zero_exponent,
    "subnormals": probe_subnormals,
    "signed_zero": probe_signed_zero,
    "nan_and_infinity": probe_nan,
    "overflow": probe_overflow,
    "container_bits": probe_container_bits,
    "block_scales": probe_block_scales,
    "bit_products": probe_bit_products,
    "control_state": probe_control_state,
}

QUESTIONS = tuple(PROBES)
OF_TILES = ("determinism", "independence", "layout")
"""Those that say something of a device which gets the plainest sums wrong."""


def probe(
    device: Device, instruction: Instruction, questions: Sequence[str] | None = None, seed: int = 0
) -> dict[str, Finding]:
    """The finding of each question (all of ``QUESTIONS`` where None), by name.

    The questions are asked side by side: what they ask in one round is one
    launch.  ``tiles`` and ``launches`` of a finding count what the question cost
    beyond the ones before it, so that their sums are what was run (``bench``).
    A device that gives two answers to one vector, or a wrong one to a sum that
    every dot product gets right, is ``contradictory`` in every question.
    UsageError for an unknown question, NotHereError where the device does not
    run the instruction.
    """
    names = checked(questions)
    support = device.supports(instruction)
    if not support:
        raise NotHereError(f"{instruction.id} on {device.name}: {support.reason}")
    return probe_on(Bench(device, instruction, seed), names)


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
    it is one launch.  It is the only one that can be asked of an instruction which negates an operand."""
    return _alone(device, instruction, probe_layout, seed)


def probe_one_hot_alone(device: Device, instruction: Instruction, seed: int = 0) -> Finding:
    """Where each value of A goes, one at a time (``probing.one_hot``)."""
    return _alone(device, instruction, probe_one_hot, seed)


def _alone(device: Device, instruction: Instruction, ask: Callable[[Session], Asking[Finding]], seed: int) -> Finding:
    bench = Bench(device, instruction, seed)
    found = bench.run(_ask(Session(bench, "layout"), ask))
    return replace(found, tiles=bench.tiles["layout"], launches=bench.launches["layout"])


async def _suite(bench: Bench, names: Sequence[str]) -> dict[str, Finding]:
    """The range first, with the plainest sums; then every question."""
    if not names:
        return {}
    opening = Session(bench, names[0])
    try:
        bench.facts["high"] = high = anchor_exponent(opening)
        lower, low, wrong = await together(lower_anchor(opening), unit_exponent(opening), fault(opening))
        await _in_reach(opening, lower, wrong)
        bench.facts["high"], bench.facts["low"] = high if lower is None else lower, low
        if lower not in (None, high):
            bench.facts["low"] = await unit_exponent(opening)
    except UnrepresentableError as why:
        text = f"the experiment cannot be built: {why}"
        return {name: Session(bench, name).finding("inconclusive", None, text) for name in names}
    except ContradictionError as why:
        wrong = str(why)
    bench.unstable = wrong or bench.unstable
    sessions = [Session(bench, name) for name in names if wrong is None or name in OF_TILES]
    findings = await together(*(_ask(session, PROBES[session.question]) for session in sessions))
    asked = {session.question: finding for session, finding in zip(sessions, findings, strict=True)}
    return {n: asked.get(n) or replace(opening.finding("contradictory", None, wrong or ""), question=n) for n in names}


async def _in_reach(opening: Session, anchor: int | None, wrong: str | None) -> None:
    """UnrepresentableError where the device answers as a unit does, out of the range of the experiments."""
    if wrong is not None and opening.is_float and (above := await lost_below(opening)) is not None:
        raise UnrepresentableError(f"numbers are lost beside zeros, at 2^{above} no more")
    if wrong is None and anchor is None:
        raise UnrepresentableError("a power of two and its negative cancel nowhere")


async def _ask(session: Session, probe: Callable[[Session], Asking[Finding]]) -> Finding:
    try:
        return await probe(session)
    except UnrepresentableError as why:
        return session.finding("inconclusive", None, f"the experiment cannot be built: {why}")
    except ContradictionError as why:
        return session.finding("contradictory", None, str(why))


def _unstable(finding: Finding, how: str) -> Finding:
    """No answer of a device that contradicts itself, or the plainest sums, counts."""
    if finding.status == "contradictory":
        return finding
    return replace(finding, status="contradictory", text=f"the device cannot be relied on ({how}); {finding.text}")
