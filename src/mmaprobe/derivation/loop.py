"""Derive a datapath from a black box: eliminate, refine, refute the neighbours, validate afresh."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, Literal

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.certificate import Certificate
from mmaprobe.derivation.observations import Observations
from mmaprobe.derivation.outside import Explanation, Repair, explain
from mmaprobe.derivation.search import Search
from mmaprobe.derivation.settle import Settlement
from mmaprobe.derivation.state import OutsideError, Say, State
from mmaprobe.devices.base import Device
from mmaprobe.errors import UsageError
from mmaprobe.evidence.records import Finding, Witness
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.table import to_table

Status = Literal["exact", "bounded", "inconclusive"]
FRESH = 120_000
"""Vectors that the derived datapath must get right and that the search never saw; a flip of one answer in 10,000
escapes them six times in a million."""


@dataclass(frozen=True)
class Derivation:
    """The outcome: a datapath with its certificate, or the reason why there is none.

    ``exact``: every neighbour is refuted.  ``bounded``: some neighbours answered
    the same on everything searched.  ``inconclusive``: nothing in the grammar fits;
    ``closest`` is then the datapath with the fewest wrong observations,
    ``counterexample`` the smallest vector it gets wrong, and ``repairs`` say how
    many of its mismatches each change of one field would repair.
    """

    instruction: str
    status: Status
    datapath: Datapath | None
    certificate: Certificate
    findings: dict[str, Finding]
    witnesses: tuple[Witness, ...]
    tiles: int
    launches: int
    vectors: int
    fresh: int
    seconds: float
    reason: str = ""
    closest: Datapath | None = None
    counterexample: Witness | None = None
    repairs: tuple[Repair, ...] = ()

    def form(self) -> dict[str, Any]:
        """As evidence keeps it: the datapath in its file form, and the verdicts of the certificate."""
        certificate = {
            "refuted": self.certificate.refuted,
            "equivalent": self.certificate.equivalent,
            "open": {name: list(values) for name, values in self.certificate.open_fields.items()},
        }
        datapath = self.datapath or self.closest
        return {
            "status": self.status,
            "reason": self.reason,
            "datapath" if self.datapath else "closest": to_table(datapath) if datapath else None,
            "certificate": certificate,
            "repairs": [str(repair) for repair in self.repairs],
            "cost": {"tiles": self.tiles, "launches": self.launches, "vectors": self.vectors, "fresh": self.fresh},
        }


def derive(
    device: Device,
    instruction: Instruction,
    *,
    seed: int = 0,
    start: Datapath | None = None,
    fresh: int = FRESH,
    findings: dict[str, Finding] | None = None,
    say: Say | None = None,
) -> Derivation:
    """Find the datapath of an instruction from the device's answers alone.

    ``start`` is a hypothesis to begin with (the same unit in its default control
    state, another width of it): it is tested like any other and saves the
    search of structures where it holds.  ``findings`` are the probes' answers
    where they were already asked; they are handed on, the search asks for
    itself.  UsageError for sparse operands, which no hypothesis covers.
    """
    if instruction.chunk:
        raise UsageError(
            "sparse operands are not derived; hold the device against a model: "
            f"`mmaprobe validate DEVICE model:ARCH '{instruction.id}'`"
        )
    begin = time.monotonic()
    state = State(instruction, Observations(device, instruction), seed, say or (lambda _: None))
    search = Search(state)
    findings = findings or {}
    try:
        certificate = Settlement(search).run(search.run(start), fresh)
        status: Status = "bounded" if certificate.open_fields else "exact"
        outcome: dict[str, Any] = {"datapath": state.current, "certificate": certificate, "status": status}
    except OutsideError as error:
        state.observations.check_stable()
        outcome = _inconclusive(state, error)
    probed = list(findings.values())
    return Derivation(
        instruction=instruction.id,
        findings=findings,
        witnesses=tuple(dict.fromkeys(replace(w, note="") for w in state.proofs.values())),
        tiles=state.observations.tiles + sum(finding.tiles for finding in probed),
        launches=state.observations.launches + sum(finding.launches for finding in probed),
        vectors=state.observations.count,
        fresh=fresh if outcome["datapath"] is not None else 0,
        seconds=time.monotonic() - begin,
        **outcome,
    )


def _inconclusive(state: State, error: OutsideError) -> dict[str, Any]:
    shown, observations = Explanation(), state.observations
    if error.closest is not None:
        seen = observations.everything()
        shown = explain(observations.device, state.instruction, error.closest, seen, state.seed)
    return {
        "status": "inconclusive",
        "datapath": None,
        "certificate": Certificate(()),
        "reason": f"no datapath of the grammar fits: {error.stage}",
        "closest": error.closest,
        "counterexample": shown.counterexample,
        "repairs": shown.repairs,
    }
