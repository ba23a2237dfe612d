"""All questions to one device about one instruction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device
from mmaprobe.errors import NotHereError, UsageError, near
from mmaprobe.evidence.records import Finding
from mmaprobe.probing.accumulator_precision import probe_accumulator_precision
from mmaprobe.probing.alignment_rounding import probe_alignment_rounding
from mmaprobe.probing.c_position import probe_c_position
from mmaprobe.probing.determinism import probe_determinism
from mmaprobe.probing.independence import probe_independence
from mmaprobe.probing.intermediate_rounding import probe_intermediate_rounding
from mmaprobe.probing.limits import anchor_exponent, fault, unit_exponent
from mmaprobe.probing.nan import probe_nan
from mmaprobe.probing.overflow import probe_overflow
from mmaprobe.probing.result_rounding import probe_result_rounding, roundings_that_fit
from mmaprobe.probing.session import Fact, Session
from mmaprobe.probing.signed_zero import probe_signed_zero
from mmaprobe.probing.subnormals import probe_subnormals
from mmaprobe.probing.summation_tree import measure, probe_summation_tree
from mmaprobe.probing.terms import ContradictionError, UnrepresentableError
from mmaprobe.probing.zero_exponent import probe_zero_exponent

PROBES: dict[str, Callable[[Session], Finding]] = {
    "determinism": probe_determinism,
    "independence": probe_independence,
    "summation_tree": probe_summation_tree,
    "c_position": probe_c_position,
    "accumulator_precision": probe_accumulator_precision,
    "alignment_rounding": probe_alignment_rounding,
    "intermediate_rounding": probe_intermediate_rounding,
    "result_rounding": probe_result_rounding,
    "zero_exponent": probe_zero_exponent,
    "subnormals": probe_subnormals,
    "signed_zero": probe_signed_zero,
    "nan_and_infinity": probe_nan,
    "overflow": probe_overflow,
}

QUESTIONS = tuple(PROBES)

FACTS: dict[str, Fact] = {
    "high": anchor_exponent,
    "low": unit_exponent,
    "measured": measure,
    "rounding": roundings_that_fit,
    "fault": fault,
}
"""What several questions need to know first; each is found out once a session."""


def probe(
    device: Device, instruction: Instruction, questions: Sequence[str] | None = None, seed: int = 0
) -> dict[str, Finding]:
    """The finding of each question (all of ``QUESTIONS`` where None), by name.

    A device that gives two answers to one vector, or a wrong one to a sum that
    every dot product gets right, is ``contradictory`` in every question.
    ``tiles`` and ``launches`` of a finding count what that question cost beyond
    the ones before it.  UsageError for an unknown question, NotHereError
    where the device does not run the instruction.
    """
    names = QUESTIONS if questions is None else tuple(questions)
    for name in names:
        if name not in PROBES:
            raise UsageError(f"unknown question {name!r}{near(name, QUESTIONS)}")
    support = device.supports(instruction)
    if not support:
        raise NotHereError(f"{instruction.id} on {device.name}: {support.reason}")
    session = Session(device, instruction, FACTS, seed)
    if instruction.chunk:
        reason = "sparse instructions are not probed yet"
        return {name: Finding(name, "inconclusive", None, reason) for name in names}
    found = {}
    for name in names:
        session.witnesses.clear()
        tiles, launches = session.tiles, session.launches
        answer = _ask(session, name)
        found[name] = replace(answer, tiles=session.tiles - tiles, launches=session.launches - launches)
    if session.unstable is not None:
        found = {name: _unstable(finding, session.unstable) for name, finding in found.items()}
    return found


def _unstable(finding: Finding, how: str) -> Finding:
    """No answer of a device that contradicts itself counts."""
    if finding.status == "contradictory":
        return finding
    return replace(finding, status="contradictory", text=f"the device is unstable ({how}); {finding.text}")


def _ask(session: Session, name: str) -> Finding:
    try:
        if session.fault is not None:
            raise ContradictionError(session.fault)
        return PROBES[name](session)
    except UnrepresentableError as why:
        return session.finding(name, "inconclusive", None, f"the experiment cannot be built: {why}")
    except ContradictionError as why:
        return session.finding(name, "contradictory", None, str(why))
