"""Derive a datapath from a black box: search, refute the neighbours, validate afresh."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.budget import ALLOWANCE, NOTHING, Allowance, Spent, SpentError
from mmaprobe.derivation.certificate import Certificate, NeighbourVerdict, against
from mmaprobe.derivation.certify import Settlement
from mmaprobe.derivation.dense_view import KeptLanes
from mmaprobe.derivation.disagreements import Disagreement
from mmaprobe.derivation.metadata import prove_selection
from mmaprobe.derivation.outside import MENDING, Repair, apart, explain, mended
from mmaprobe.derivation.random_bits import settled
from mmaprobe.derivation.search.stages import Search
from mmaprobe.derivation.session import (
    TIMES,
    ContradictedError,
    Ended,
    Say,
    Session,
    State,
    UnstableError,
    smallest,
)
from mmaprobe.derivation.stochastic import spread
from mmaprobe.devices.base import Device
from mmaprobe.devices.no_random_bits import NoRandomBits
from mmaprobe.devices.plain_signs import PlainSigns, unread_sign
from mmaprobe.errors import DeviceError
from mmaprobe.evidence.records import Finding, Witness
from mmaprobe.models.engine import evaluate
from mmaprobe.operands.witness_batches import as_vectors
from mmaprobe.options import ANY, FUNCTION, Rule, checked, of_type, or_none, whole
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.rewrite import map_encodes
from mmaprobe.parameters.table import from_table, to_table
from mmaprobe.probing.suite import with_witnesses
from mmaprobe.showing import Row, Showing, counted

Change = Callable[[Witness], Witness]
DerivationStatus = Literal["exact", "bounded", "inconclusive"]


def _is_findings(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(each, Finding) for each in value.values())


FRESH = 480_000
"""Vectors that the derived datapath must get right and that the search never saw; a flip of one answer in 100,000
escapes them eight times in a thousand: (1 - 1e-5)**480,000.  Of forms with few lanes there are twice as many."""
FEW_LANES = 8
"""Lanes, at most, of such forms: their vectors cost little, and rare differences are met by chance alone."""
OPTIONS: dict[str, Rule] = {
    "seed": ANY, "start": or_none(of_type("a Datapath", Datapath)), "fresh": or_none(whole(0)), "allowance": whole(0),
    "findings": or_none(Rule("findings by question, as probe gives them", _is_findings)),
    "say": or_none(FUNCTION),
}  # fmt: skip
"""Options of ``derive``; a seed is whatever ``seeds.fixed`` takes."""
KEPT = 0.1
"""Of the allowance the part that is kept for mending and settling the closest datapath where the search ends without an
answer; tuned by ``tests/recovery``."""
MENDED = "the closest, mended"
"""What pays for that, as the allowance names it."""
TURNED = {"keep": "flip", "flip": "keep"}
"""What happens to a sign bit that was flipped before; cleared or set, it stays so."""
LEFT = 16
"""Hypotheses that are given where the allowance ran out; a person compares no more."""


@dataclass(frozen=True, repr=False)
class Derivation(Showing):
    """The outcome: a datapath with its certificate, or the reason why there is none.

    ``exact``: every neighbour is refuted, or shown to be the same function.
    ``bounded``: some neighbours answered the same on everything searched.
    Either way the certificate names what else the search met that did (``otherwise``).
    ``inconclusive``: nothing that was found in the grammar fits, or nothing was found within the allowance;
    ``closest`` is then the nearest datapath, mended until no change of one field leaves fewer answers wrong,
    ``counterexample`` the smallest vector it gets wrong, ``kinds`` say of which kinds its mismatches are, and
    ``repairs`` how many each change of one field would repair.  Where the allowance ran out, ``left`` are hypotheses
    that nobody refuted: at most ``LEFT`` of those that were tried and agree with every plain vector asked, and
    ``telling`` a vector for each of them on which it answers otherwise than the first.  ``spent`` are the units of work
    that it took, by stage.
    ``findings`` are the probes' answers that it was given or asked for itself: the
    summation tree, mostly.  Where answers do not repeat, the counterexample is the smallest vector seen to get two, and
    ``again`` is the other one; where sparse metadata is read otherwise than the
    catalog says, it is the smallest vector that shows it.
    """

    instruction: str
    status: DerivationStatus
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
    again: int | None = None
    kinds: tuple[Disagreement, ...] = ()
    repairs: tuple[Repair, ...] = ()
    left: tuple[Datapath, ...] = ()
    telling: tuple[Witness | None, ...] = ()
    spent: Spent = NOTHING

    def in_a_line(self) -> str:
        """The outcome, and what the certificate counts."""
        said = self.reason or self.certificate.counted()
        return f"derivation of {self.instruction}: {self.status}: {said}; {counted(self.vectors, 'vector')} asked"

    def as_row(self) -> Row:
        """The outcome, the counts, and what it cost."""
        names = ("instruction", "status", "reason", "tiles", "launches", "vectors", "fresh", "seconds")
        return {name: getattr(self, name) for name in names} | dict(self.certificate.as_row())

    def as_rows(self) -> list[Row]:
        """The certificate: a row for each neighbour."""
        return self.certificate.as_rows()

    def form(self) -> dict[str, Any]:
        """As evidence keeps it: the datapath in its file form, and the verdicts of the certificate."""
        datapath = self.datapath or self.closest
        return {
            "status": self.status,
            "reason": self.reason,
            "datapath" if self.datapath else "closest": to_table(datapath) if datapath else None,
            "certificate": self.certificate.form(),
            "repairs": [str(repair) for repair in self.repairs],
            "kinds": [str(kind) for kind in self.kinds],
            "left": [to_table(path) for path in self.left],
            "telling": [None if found is None else asdict(found) for found in self.telling],
            "counterexample": None if self.counterexample is None else asdict(self.counterexample),
            "again": self.again,
            "cost": {"tiles": self.tiles, "launches": self.launches, "vectors": self.vectors, "fresh": self.fresh},
        }


def usual_fresh(instruction: Instruction) -> int:
    """Fresh vectors of a derivation where nothing is said: ``FRESH``, twice as many of at most ``FEW_LANES`` lanes."""
    return FRESH * (2 if instruction.k <= FEW_LANES else 1)


def derive(
    device: Device,
    instruction: Instruction,
    *,
    seed: int = 0,
    start: Datapath | None = None,
    fresh: int | None = None,
    findings: dict[str, Finding] | None = None,
    allowance: int = ALLOWANCE,
    say: Say | None = None,
) -> Derivation:
    """Find the datapath of an instruction from the device's answers alone.

    It must get right ``fresh`` vectors that the search never saw (``usual_fresh`` of the instruction where nothing is
    said).  ``start`` is a hypothesis to begin with (the same unit in its default control
    state, another width of it): it is tested like any other and saves the
    search of structures where it holds.  ``findings`` are the probes' answers
    where they were already asked: the search takes the summation tree from there, and
    asks for it otherwise.  A sparse instruction is derived as the dense one of the lanes that its
    metadata keeps, after directed vectors have shown that it keeps those of the
    catalog; one whose modifiers negate operands as the one that does not, with the signs flipped of what is asked.
    One that takes an absolute value is inconclusive: what its unit makes of the other sign no vector shows.
    After ``allowance`` units of work (``budget``), counted and not timed, it ends without an answer.

    Raises DeviceError where the device fails, or its plainest sums contradict each other, as those of a broken
    layout do, and no datapath explains them.
    """
    options = {"start": start, "fresh": fresh, "findings": findings, "allowance": allowance, "say": say}
    checked("derive", options, OPTIONS)
    known, view = findings or {}, PlainSigns.of(device, instruction)
    if reason := unread_sign(instruction):
        return _unsearched(instruction, known, _inconclusive(reason))
    if view is None:
        return _of_lanes(device, instruction, seed, start, fresh, known, allowance, say)
    known, start = with_witnesses(known, view.witness), start and negated(view.signs, start)
    return signed(view, _of_lanes(view, view.plain, seed, start, fresh, known, allowance, say))


def _of_lanes(
    device: Device, instruction: Instruction, seed: int, start: Datapath | None, fresh: int | None,
    findings: dict[str, Finding], allowance: int, say: Say | None,
) -> Derivation:  # fmt: skip
    """The derivation of all lanes, or of those that metadata keeps."""
    if not instruction.chunk:
        return _of_bits(device, instruction, seed, start, fresh, findings, allowance, say)
    begin = time.monotonic()
    view = KeptLanes.of(device, instruction)
    try:
        bare = NoRandomBits.of(device, instruction)
        rule = prove_selection(view if bare is None else KeptLanes.of(bare, bare.plain))
    except UnstableError as error:
        return _unsearched(instruction, findings, _unstable(device, instruction, error, seed))
    if rule.reason:
        outcome = _inconclusive(rule.reason) | {"counterexample": rule.counterexample}
        found = _unsearched(instruction, findings, outcome)
    else:
        lanes = _of_bits(view, view.dense, seed, start, fresh, findings, allowance, say)
        found = _with_vectors(lanes, view.witness, view.simplest)
    return replace(
        found,
        tiles=found.tiles + rule.tiles,
        launches=found.launches + rule.launches,
        vectors=found.vectors + rule.vectors,
        seconds=time.monotonic() - begin,
    )


def _of_bits(
    device: Device, instruction: Instruction, seed: int, start: Datapath | None, fresh: int | None,
    findings: dict[str, Finding], allowance: int, say: Say | None,
) -> Derivation:  # fmt: skip
    """The derivation of an instruction; of one with random bits first of none of them set, then of the roundings that
    take some."""
    view = NoRandomBits.of(device, instruction)
    if view is None:
        return _derived(device, instruction, seed, start, fresh, findings, allowance, say)
    bare = start and map_encodes(start, lambda to: replace(to, random_bits=0))
    known = with_witnesses(findings, lambda witness: replace(witness, random=None))
    first = _derived(view, view.plain, seed, bare and replace(bare, random=None), fresh, known, allowance, say)
    found = _with_vectors(first, view.witness, view.witness)
    found = replace(found, findings=with_witnesses(first.findings, view.witness))
    if first.datapath is None:
        drawing = partial(replace, random=instruction.random)
        return replace(
            found,
            reason=f"without random bits: {first.reason}",
            closest=first.closest and drawing(first.closest),
            left=tuple(map(drawing, first.left)),
        )
    return _with_random_bits(device, instruction, seed, found, first.fresh, allowance, say)


def _with_random_bits(
    device: Device, instruction: Instruction, seed: int, found: Derivation, fresh: int, allowance: int, say: Say | None
) -> Derivation:
    """What was found without random bits, with those that its roundings take; ``fresh`` vectors hold it once more."""
    begin = time.monotonic()
    assert found.datapath is not None
    own = Allowance(allowance, stages=dict(found.spent.stages))
    own.left -= found.spent.total
    session = Session(device, instruction, seed, say or (lambda _: None), own)
    state = State(session, dict(found.findings))
    bases = [found.datapath, *(from_table(table) for _, table in found.certificate.otherwise)]
    bases += [mutate(bases[0], e.field, e.value) for e in found.certificate.entries if e.verdict != "refuted"]
    known = [*found.witnesses, *found.certificate.witnesses]
    outcome: dict[str, Any]
    try:
        if known:
            session.confirm(
                as_vectors(instruction, known), np.array([w.d for w in known], formats.get(instruction.d).dtype)
            )
        certificate = settled(state, bases, fresh)
        if isinstance(certificate, Ended):
            outcome = _outside(state, certificate.stage, certificate.closest)
        else:
            status: DerivationStatus = "bounded" if certificate.open_fields else "exact"
            outcome = {"datapath": state.current, "certificate": certificate, "status": status}
    except SpentError as spent:
        outcome = _inconclusive(f"{spent} (--allowance): which roundings take random bits is open")
    except UnstableError as error:
        state.proofs.clear()
        outcome = _unstable(device, instruction, error, seed)
    return replace(
        found,
        witnesses=tuple(dict.fromkeys(replace(w, note="") for w in state.proofs.values())),
        tiles=found.tiles + session.tiles,
        launches=found.launches + session.launches,
        vectors=found.vectors + session.run,
        fresh=found.fresh + fresh if outcome["datapath"] is not None else 0,
        seconds=found.seconds + time.monotonic() - begin,
        spent=own.spent,
        **outcome,
    )


def _derived(
    device: Device, instruction: Instruction, seed: int, start: Datapath | None, fresh: int | None,
    findings: dict[str, Finding], allowance: int, say: Say | None,
) -> Derivation:  # fmt: skip
    begin = time.monotonic()
    fresh = usual_fresh(instruction) if fresh is None else fresh
    own = Allowance(allowance, kept=int(allowance * KEPT))
    session = Session(device, instruction, seed, say or (lambda _: None), own)
    state = State(session, dict(findings))
    search = Search(state)
    try:
        certificate = _settled(search, start, fresh)
        if isinstance(certificate, Ended):
            reason = f"no datapath of the grammar was found that fits: {certificate.stage}"
            outcome = _outside(state, reason, certificate.closest)
        else:
            status: DerivationStatus = "bounded" if certificate.open_fields else "exact"
            outcome = {"datapath": state.current, "certificate": certificate, "status": status}
    except ContradictedError as error:
        outcome = _contradicted(state, str(error))
    except SpentError as spent:
        outcome = _contradicted(state, search.contradiction) if search.contradiction else _spent(search, spent)
    except UnstableError as error:
        state.proofs.clear()  # they rest on answers that do not repeat
        outcome = _unstable(device, instruction, error, seed)
    probed = list(findings.values())
    return Derivation(
        instruction=instruction.id,
        findings=state.findings,
        witnesses=tuple(dict.fromkeys(replace(w, note="") for w in state.proofs.values())),
        tiles=session.tiles + sum(finding.tiles for finding in probed),
        launches=session.launches + sum(finding.launches for finding in probed),
        vectors=session.run,
        fresh=fresh if outcome["datapath"] is not None else 0,
        seconds=time.monotonic() - begin,
        spent=session.allowance.spent,
        **outcome,
    )


def _contradicted(state: State, text: str) -> dict[str, Any]:
    """No datapath, since answers do not repeat; DeviceError where they do."""
    outcome = _outside(state, text, None, TIMES)
    if outcome.get("again") is None:
        raise DeviceError(f"{state.session.device.name}: {state.instruction.id}: {text}") from None
    return outcome


def _settled(search: Search, start: Datapath | None, fresh: int) -> Certificate | Ended:
    """What the search came up with, settled; where it ends without an answer, or has used up its part of the allowance,
    the closest, mended."""
    spent = None
    try:
        path = search.run(start)
        ended = path if isinstance(path, Ended) else Settlement(search).run(path, fresh)
        if not isinstance(ended, Ended):
            return ended
    except SpentError as error:
        if search.contradiction or search.closest is None:
            raise
        spent, ended = error, Ended(str(error), search.closest)
    search.session.allowance.release()
    found = _again(search, ended, fresh)
    if spent is not None and isinstance(found, Ended):
        raise spent
    return found


def _again(search: Search, ended: Ended, fresh: int) -> Certificate | Ended:
    """From the closest datapath once more, where changes of single fields mend all that it got wrong, and may."""
    if ended.closest is None or ended.fault:
        return ended
    search.session.begin(MENDED)
    vectors, answers = search.session.all.seen()
    own = Allowance(int(min(MENDING, search.session.allowance.left)))
    path = mended(ended.closest, vectors, answers, own)
    search.session.allowance.spend(own.spent.total)
    if (evaluate(path, vectors) != answers).any():
        is_float = formats.get(search.instruction.d).is_float
        found = None
        for mend in (search.mended, search.mended_rarely) if is_float else ():  # of NaNs alone, maybe
            with search.session.allowance.part(0.5):
                found = found or mend(path)
        if found is None:
            return Ended(ended.stage, path)
        path = found
    return Settlement(search).run(path, fresh)


def _spent(search: Search, spent: SpentError) -> dict[str, Any]:
    """The hypotheses that are left where the allowance ran out."""
    left = search.left(LEFT)
    count = f"{len(left)}{' or more' if len(left) == LEFT else ''} {'agrees' if len(left) == 1 else 'agree'}"
    reason = f"{spent} (--allowance); of what was tried, {count} with every plain vector asked"
    told = apart(search.instruction, left, search.state.seed) if left else ()
    return _outside(search.state, reason, search.closest) | {"left": left, "telling": told}


def _outside(state: State, reason: str, closest: Datapath | None, times: int = 1) -> dict[str, Any]:
    """No datapath: for this reason, unless some answer, asked for so many ``times`` again, does not repeat."""
    shown, session = None, state.session
    try:
        for _ in range(times):
            session.check_stable()
        if closest is not None:
            shown = explain(session.device, state.instruction, closest, session.all.seen(), state.seed)
    except UnstableError as unstable:
        state.proofs.clear()
        return _unstable(session.device, state.instruction, unstable, state.seed)
    if shown is None:
        return _inconclusive(reason)
    return _inconclusive(reason) | {
        name: getattr(shown, name) for name in ("closest", "counterexample", "kinds", "repairs")
    }


def _unstable(device: Device, instruction: Instruction, error: UnstableError, seed: int) -> dict[str, Any]:
    least = smallest(device, instruction, error)
    reason = f"the device's answers do not repeat: one vector was answered {least.first:#x} and {least.second:#x}"
    dense = formats.get(instruction.d).is_float and not instruction.chunk
    if dense and (said := str(spread(device, instruction, seed))):
        reason = f"{reason}; {said}"
    return _inconclusive(reason) | {
        "counterexample": Witness.of(least.vector, least.first, f"answered {least.second:#x} another time"),
        "again": least.second,
    }


def _inconclusive(reason: str) -> dict[str, Any]:
    return {"status": "inconclusive", "datapath": None, "certificate": Certificate(()), "reason": reason}


def _unsearched(instruction: Instruction, findings: dict[str, Finding], outcome: dict[str, Any]) -> Derivation:
    """Nothing is searched where metadata does not select as the catalog says, or a sign is never read."""
    return Derivation(
        instruction=instruction.id,
        findings=findings,
        witnesses=(),
        tiles=0,
        launches=0,
        vectors=0,
        fresh=0,
        seconds=0.0,
        **outcome,
    )


def _with_vectors(found: Derivation, witness: Change, shown: Change) -> Derivation:
    """A derivation with its vectors as they were asked of the device, and those that it shows a person."""
    entries = tuple(replace(e, witness=e.witness and witness(e.witness)) for e in found.certificate.entries)
    return replace(
        found,
        certificate=replace(found.certificate, entries=entries),
        witnesses=tuple(map(witness, found.witnesses)),
        counterexample=found.counterexample and shown(found.counterexample),
        kinds=tuple(replace(kind, witness=shown(kind.witness)) for kind in found.kinds),
        telling=tuple(each and witness(each) for each in found.telling),
    )


def signed(view: PlainSigns, found: Derivation) -> Derivation:
    """The derivation of a plain instruction as that of the one which negates: vectors, datapaths, what fields say."""
    found = _with_vectors(found, view.witness, view.witness)
    change = partial(negated, view.signs)
    certificate = found.certificate
    entries = tuple(_negated_verdict(view, entry) for entry in certificate.entries)
    tables = tuple((text, to_table(change(from_table(table)))) for text, table in certificate.otherwise)
    return replace(
        found,
        findings=with_witnesses(found.findings, view.witness),
        certificate=replace(certificate, entries=entries, otherwise=tables),
        datapath=found.datapath and change(found.datapath),
        closest=found.closest and change(found.closest),
        left=tuple(map(change, found.left)),
        repairs=tuple(
            replace(e, old=_negated_value(view, e.field, e.old), value=_negated_value(view, e.field, e.value))
            for e in found.repairs
        ),
    )


def negated(signs: Mapping[str, tuple[str, str]], path: Datapath) -> Datapath:
    """The datapath with the operands negated whose every lane is; where every other one is, the batch changes."""
    names = (f"operand_{name}" for name, pair in signs.items() if pair == ("flip", "flip"))
    fields: dict[str, Any] = {}
    for name in names:
        operand = getattr(path, name)
        fields[name] = replace(operand, sign=TURNED.get(operand.sign, operand.sign))
    return replace(path, **fields)


def _negated_verdict(view: PlainSigns, entry: NeighbourVerdict) -> NeighbourVerdict:
    value = _negated_value(view, entry.field, entry.value)
    if value == entry.value:
        return entry
    return replace(
        entry, value=value, witness=entry.witness and replace(entry.witness, note=against(entry.field, value))
    )


def _negated_value(view: PlainSigns, field: str, value: str) -> str:
    flips = (f"operand_{name}.sign" for name, pair in view.signs.items() if pair == ("flip", "flip"))
    return TURNED.get(value, value) if field in flips else value
