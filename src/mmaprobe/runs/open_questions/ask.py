"""The open questions, put to whatever device is given: ``ask`` yields an answer as each is found.

A question names claims (``claims``), never the answer.  Where the claims are rival
datapaths they are put before the device together (``contest``); where a probe or an
experiment answers, its finding is held against them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import match
from mmaprobe.derivation.dense_view import KeptLanes, asked, dense_form
from mmaprobe.devices.base import Device
from mmaprobe.devices.gpu.driver import ENDS_ALL
from mmaprobe.errors import DeviceError, NotHereError, UsageError
from mmaprobe.evidence.records import Finding
from mmaprobe.operands.batch import Witness, take
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.probing import probe
from mmaprobe.runs.open_questions.answers import Answer, Shown
from mmaprobe.runs.open_questions.claims import Claim, Question, named
from mmaprobe.runs.open_questions.contest import Contest, Ring, Rival, check_steady
from mmaprobe.runs.open_questions.directed import directed
from mmaprobe.runs.open_questions.experiments import EXPERIMENTS
from mmaprobe.showing import counted

Stop = Callable[[], bool]
SHOWN = 3
"""Witnesses of a probe's answer that are kept."""


def never() -> bool:
    """The default of ``stop``: go on."""
    return False


def ask(
    device: Device,
    *,
    seed: int = 0,
    stop: Stop = never,
    names: Sequence[str] = (),
    believed: dict[str, Datapath] | None = None,
    known: Container[tuple[str, str]] = (),
) -> Iterator[Answer]:
    """The answer to each open question (all, or those of these ``names``), about each instruction that it names.

    Of a glob the first instruction that the device runs.  A claim changes what is ``believed`` of the
    instruction (datapaths by id, as a derivation found them; what a question settles is put there), else the
    shipped datapath.  ``stop`` is looked at before each answer and each round of a search.  The question and
    instruction of an answer that is ``known`` are not asked again.  What the device does wrong is an answer
    (``failed``); one of ``ENDS_ALL`` where it answers nothing more or its results are worth nothing, UsageError
    for an unknown name.
    """
    believed = {} if believed is None else believed
    for question in named(tuple(names)):
        architecture = device.info().get("architecture", "")
        if not question.concerns(architecture):
            yield Answer(question.name, "", "not here", finding=f"asked of {', '.join(question.architectures)}")
            continue
        matching = instructions_of(question, architecture)
        if not matching:
            yield Answer(question.name, "", "not here", finding=f"{architecture} has none of its instructions")
        for some in matching:
            if stop():
                return
            here = [instruction for instruction in some if device.supports(instruction)]
            if (question.name, (here or some)[0].id) in known:
                continue
            if here:
                yield ask_about(device, question, here[0], seed, stop, believed)
            else:
                yield Answer(question.name, some[0].id, "not here", finding=device.supports(some[0]).reason)


def ask_about(
    device: Device,
    question: Question,
    instruction: Instruction,
    seed: int = 0,
    stop: Stop = never,
    believed: dict[str, Datapath] | None = None,
) -> Answer:
    """The answer to one question about one instruction that the device runs; it may change what is ``believed``."""
    try:
        if question.experiment:
            return _by_experiment(device, question, instruction, seed)
        if not _of_datapaths(question):
            return _by_probe(device, question, instruction, seed)
        return _by_contest(device, question, instruction, seed, stop, {} if believed is None else believed)
    except ENDS_ALL:
        raise
    except UsageError as error:
        return Answer(question.name, instruction.id, "open", finding=f"it cannot be asked: {error}")
    except NotHereError as error:
        return Answer(question.name, instruction.id, "not here", finding=str(error))
    except DeviceError as error:
        return Answer(question.name, instruction.id, "failed", finding=str(error))


def _of_datapaths(question: Question) -> bool:
    return all(claim.answer is None and claim.outcome is None for claim in question.claims)


def instructions_of(question: Question, architecture: str) -> list[tuple[Instruction, ...]]:
    """For each id or glob that a question names and the architecture knows, the instructions that match."""
    found = []
    for pattern in question.instructions_on(architecture):
        try:
            found.append(match(architecture, pattern))
        except UsageError:  # of another architecture
            continue
    return found


# -- rival datapaths


def rivals_of(
    question: Question, architecture: str, instruction: Instruction, believed: Datapath | None = None
) -> list[Rival]:
    """Each claim, then each value of ``others``, as a datapath; those that are another one's datapath are left out.

    They change what is ``believed`` where its fields are those that they name, else the shipped datapath.
    """
    if believed is not None:
        try:
            return _changed(question, architecture, believed)
        except UsageError:  # the same sums in other fields
            pass
    return _changed(question, architecture, datapath_for(architecture, instruction))


def _changed(question: Question, architecture: str, shipped: Datapath) -> list[Rival]:
    found: list[Rival] = []
    seen: set[Datapath] = set()
    for claim in question.claims_on(architecture):
        path = None if claim.word is not None else claim.datapath(shipped)
        if path is None or path not in seen:
            found.append(Rival(claim.name, path, claim.word))
            seen |= {path} if path is not None else set()
    for name, path in question.values(shipped).items():
        if path not in seen:
            found.append(Rival(name, path, claim=False))
            seen.add(path)
    return found


def _by_contest(
    device: Device, question: Question, instruction: Instruction, seed: int, stop: Stop, believed: dict[str, Datapath]
) -> Answer:
    architecture = device.info().get("architecture", "")
    rivals = rivals_of(question, architecture, instruction, believed.get(instruction.id))
    ring = Ring(device, instruction, rivals, seed, question.specials)
    contest = ring.hold(directed(dense_form(instruction), question.vectors), question.search, stop)
    left = [rival for rival, alive in zip(rivals, contest.alive, strict=True) if alive]
    claims = [rival.name for rival in left if rival.claim]
    count = contest.vectors.size
    settled = next((rival.datapath for rival in left if rival.claim or not claims), None)
    if len(claims) < 2 and settled is not None:
        believed[instruction.id] = settled
    surprise = None if claims else ring.surprise(contest)
    shown = _shown(ring, instruction, architecture, contest, surprise)
    if len(claims) == 1:
        values = [rival.name for rival in left if not rival.claim]
        also = f"; {_some(values)} would give the same on every vector found" if values else ""
        finding = f"{counted(count, 'vector')} {'agrees' if count == 1 else 'agree'}{also}"
        return Answer(question.name, instruction.id, "settled", claims[0], finding, shown, count)
    if claims:
        finding = (
            f"{' and '.join(claims)} agree with all {counted(count, 'vector')}: none was found that tells them apart"
        )
        return Answer(question.name, instruction.id, "open", "", finding, shown, count)
    found = _none_of(left, contest, rivals)
    if question.probe is not None:
        found += f"; {question.probe}: {_probed(device, question, instruction, seed).text}"
    return Answer(question.name, instruction.id, "settled", "", f"none of the claims: {found}", shown, count)


def _none_of(left: Sequence[Rival], contest: Contest, rivals: Sequence[Rival]) -> str:
    """Which value agrees with everything; else who is nearest, and whose the question's own vectors are."""
    if left:
        return f"{_some([rival.name for rival in left])} agrees with all {counted(contest.vectors.size, 'vector')}"
    right = (contest.table == contest.answers).sum(axis=1)
    best = int(right.argmax())
    text = f"nearest is {rivals[best].name}, with {right[best]} of {contest.vectors.size} vectors"
    own = [rival.name for rival, good in zip(rivals, contest.on_own, strict=True) if good]
    return f"{text}; the {contest.own} that are aimed at the claims agree with {_some(own)}" if own else text


def _some(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} .. {names[-1]} ({len(names)} values)"


def _shown(
    ring: Ring, instruction: Instruction, architecture: str, contest: Contest, surprise: Contest | None
) -> tuple[Shown, ...]:
    """What refutes all claims at once, in its simplest form; then for every claim that is refuted the first vector that
    refutes it; the first of all where none is."""
    claims = [i for i, rival in enumerate(ring.rivals) if rival.claim]
    wrong = contest.table[claims] != contest.answers
    picked: list[tuple[Contest, int]] = [] if surprise is None else [(surprise, 0)]
    for row in wrong if surprise is None else []:
        hits = np.flatnonzero(row)
        if hits.size and not any(row[at] for _, at in picked):
            picked.append((contest, int(hits[0])))
    shown = []
    for held, at in picked or [(contest, 0)]:
        vector = take(held.vectors, [at])
        if isinstance(ring.device, KeptLanes):
            vector = asked(architecture, instruction, vector)
        words = tuple((ring.rivals[i].name, int(held.table[i, at])) for i in claims)
        shown.append(Shown(Witness.of(vector, int(held.answers[at])), words))
    return tuple(shown)


# -- findings


def _probed(device: Device, question: Question, instruction: Instruction, seed: int) -> Finding:
    assert question.probe is not None
    return probe(device, instruction, [question.probe], seed)[question.probe]


def _by_probe(device: Device, question: Question, instruction: Instruction, seed: int) -> Answer:
    check_steady(device, instruction, seed)
    found = _probed(device, question, instruction, seed)
    shown = tuple(Shown(witness) for witness in found.witnesses[:SHOWN])
    if found.status == "contradictory":
        return Answer(question.name, instruction.id, "failed", "", found.text, shown)
    claims = [claim for claim in _claims(device, question) if claim.answers(found.answer)]
    if found.status == "inconclusive":
        return Answer(question.name, instruction.id, "open", "", found.text, shown)
    return _held(question, instruction, claims, found.text, shown, len(found.witnesses))


def _by_experiment(device: Device, question: Question, instruction: Instruction, seed: int) -> Answer:
    assert question.experiment is not None
    found = EXPERIMENTS[question.experiment](device, instruction, seed)
    if found.outcome is None:
        return Answer(question.name, instruction.id, "open", "", found.text, found.shown, found.vectors)
    claims = [claim for claim in _claims(device, question) if claim.outcome == found.outcome]
    return _held(question, instruction, claims, found.text, found.shown, found.vectors)


def _claims(device: Device, question: Question) -> tuple[Claim, ...]:
    return question.claims_on(device.info().get("architecture", ""))


def _held(
    question: Question, instruction: Instruction, claims: Sequence[Claim], text: str, shown: tuple[Shown, ...], n: int
) -> Answer:
    if len(claims) > 1:
        both = " and ".join(claim.name for claim in claims)
        return Answer(question.name, instruction.id, "open", "", f"{both} both say so: {text}", shown, n)
    claim = claims[0].name if claims else ""
    finding = text if claims else f"none of the claims: {text}"
    return Answer(question.name, instruction.id, "settled", claim, finding, shown, n)
