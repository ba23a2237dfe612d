"""Write ``docs/hopper.md``: ``python docs/hopper.py``.

What the page says comes from the questions' data file, the shipped parameters, evidence of runs on the hardware, and
``hopper_recorded.json``: how many recorded vectors each claim gets wrong (``python docs/hopper.py --corpus FOLDER``
writes it anew).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import lowering, short
from mmaprobe.derivation.dense_view import dense_form
from mmaprobe.devices.base import open_device
from mmaprobe.devices.replay import Replay
from mmaprobe.evidence.corpus import Corpus
from mmaprobe.evidence.files import FileValue
from mmaprobe.evidence.records import Witness
from mmaprobe.evidence.silicon import kind_of
from mmaprobe.models.engine import evaluate
from mmaprobe.operands.batch import take
from mmaprobe.parameters.lookup import basis_for, datapath_for, entry_for
from mmaprobe.parameters.modified import changes
from mmaprobe.report.tables.open_questions import word
from mmaprobe.report.vectors import vector_text
from mmaprobe.runs.open_questions.answers import Answer, answer_from_json
from mmaprobe.runs.open_questions.ask import ask_about, instructions_of, rivals_of
from mmaprobe.runs.open_questions.claims import Question, open_questions
from mmaprobe.runs.open_questions.contest import Ring, words_of
from mmaprobe.runs.open_questions.directed import directed

ARCHITECTURE = "sm_90a"
GPU = "H200"
HERE = Path(__file__).parent
PAGE, RECORDED = HERE / "hopper.md", HERE / "hopper_recorded.json"
EVIDENCE = HERE.parent / "validation" / "evidence"
NOT_MEASURED = "not measured yet: no GPU was at hand"
Counts = dict[str, dict[str, dict[str, int]]]

HEAD = """# What Hopper does

Written by `docs/hopper.py` from the questions that ship (`runs/open_questions/data/questions.toml`), the shipped
parameters, evidence of runs, and recorded data. Each question is one that sources answer differently, or not at all.
`mmaprobe probe --questions --device cuda:0` asks them all: the claims go before the device as rival datapaths, on the
vectors below and on those that a search finds, and what agrees with every answer is left. An answer that nobody
claims is a finding.

- *shipped*: the claim that the model `model:sm_90a` follows, the basis of the primitive as a whole, and what the
  parameter file notes about this field;
- *recorded*: how many of the 2,500 vectors that were recorded on an H200 (C = 0 for FP8 `wgmma`) each claim gets
  wrong, where the same primitive was recorded;
- *measured*: what a GPU said: an H100 80GB HBM3, in the run `beafa0e45cde`
  ([evidence](../validation/evidence/README.md)).

One answer was nobody's claim in full: f64 `mma.sync` has no NaN code of its own. Every link of its chain of
multiply-adds hands on the first NaN of b, the sum so far and a, quieted, with sign and payload; an invalid operation
makes fff8000000000000. The shipped parameters say so since.

Vectors are written as `mmaprobe explain sm_90a INSTRUCTION` reads them, lanes that are not written being zero; beside
them stands d, as each claim has it.
"""


def page(counts: Counts, measured: Sequence[Answer]) -> str:
    """The whole page."""
    lines = [HEAD]
    topic = ""
    for question in open_questions():
        if not question.concerns(ARCHITECTURE):
            continue
        if question.topic != topic:
            topic = question.topic
            lines.append(f"## {topic}\n")
        lines += _about(question, counts.get(question.name, {}), measured)
    elsewhere = [f"`{q.name}` ({', '.join(q.architectures)})" for q in open_questions() if not q.concerns(ARCHITECTURE)]
    lines.append(f"## Not about this GPU\n\n{'; '.join(elsewhere)}.\n")
    return "\n".join(lines)


def _about(question: Question, counts: Mapping[str, dict[str, int]], measured: Sequence[Answer]) -> Iterator[str]:
    claims = question.claims_on(ARCHITECTURE)
    yield f"### {question.name}\n\n{question.asks} {question.matters}\n"
    yield "| claim | who says so |\n|---|---|"
    yield from (f"| {claim.name} | {'; '.join(claim.sources)} |" for claim in claims)
    yield "\n| instruction | shipped | basis of its primitive | recorded | measured |\n|---|---|---|---|---|"
    asked = _instructions(question)
    for made in asked:
        known = [m for m in measured if (m.question, m.instruction) == (question.name, made.id)]
        found = "; ".join(m.claim or m.finding for m in known) or NOT_MEASURED
        told = counts.get(made.id, {})
        wrong = "; ".join(f"{claim.name}: {told[claim.name]} wrong" for claim in claims if claim.name in told) or "-"
        yield f"| `{short(made.id)}` | {_shipped(question, made)} | {_rests_on(question, made)} | {wrong} | {found} |"
    yield ""
    yield from _vectors(question, asked[0])


def _instructions(question: Question) -> list[Instruction]:
    """The instructions that it asks about: of a glob the first."""
    return [some[0] for some in instructions_of(question, ARCHITECTURE)]


def _of_datapaths(question: Question) -> bool:
    return all(claim.answer is None and claim.outcome is None for claim in question.claims)


def _ring(question: Question, made: Instruction) -> Ring:
    """The claims about an instruction."""
    rivals = [rival for rival in rivals_of(question, ARCHITECTURE, made) if rival.claim]
    return Ring(open_device(f"model:{ARCHITECTURE}"), made, rivals, 0, question.specials)


def _shipped(question: Question, made: Instruction) -> str:
    """The claims that the shipped model follows, on the vectors that settle the question where it is in other words."""
    if not _of_datapaths(question):
        answer = ask_about(open_device(f"model:{ARCHITECTURE}"), question, made)
        return answer.claim or answer.finding.partition(f": {made.id}")[0]
    ring, path = _ring(question, made), datapath_for(ARCHITECTURE, made)
    same = [rival.name for rival in ring.rivals if rival.datapath == path]
    if not same:
        vectors, table = ring.settling(directed(dense_form(made), question.vectors), question.search)
        agrees = (table == evaluate(path, vectors)).all(axis=1)
        same = [rival.name for rival, good in zip(ring.rivals, agrees, strict=True) if good]
    return " or ".join(same) or "none of the claims"


def _rests_on(question: Question, made: Instruction) -> str:
    """The basis, and what the parameter file notes about the fields that the claims differ in."""
    fields = {change.partition("=")[0] for claim in question.claims for change in claim.changes}
    notes = [text.replace("\n", " ") for field, text in entry_for(ARCHITECTURE, made).notes if field in fields]
    basis = str(basis_for(ARCHITECTURE, made))
    return f"{basis}; of this field: {'; '.join(notes)}" if notes else basis


def _vectors(question: Question, made: Instruction) -> Iterator[str]:
    """The vectors that settle the question, with d by each claim; of a probe's those that it asked."""
    if not _of_datapaths(question):
        answer = ask_about(open_device(f"model:{ARCHITECTURE}"), question, made)
        asked = f"probe `{question.probe}`" if question.probe else f"experiment: {question.experiment}"
        yield f"Asked by the {asked}" + ("; among its vectors:\n" if answer.witnesses else ".\n")
        yield from (
            f"- `{_written(shown.witness)}` ({shown.witness.note}): {word(made.d, shown.witness.d)} by the model"
            for shown in answer.witnesses
        )
        yield ""
        return
    ring = _ring(question, made)
    vectors, table = ring.settling(directed(dense_form(made), question.vectors), question.search)
    kept = ", kept lanes" if made.chunk else ""
    yield f"| vector of `{short(made.id)}`{kept} | {' | '.join(rival.name for rival in ring.rivals)} |"
    yield f"|---|{'---|' * len(ring.rivals)}"
    for at in range(vectors.size):
        written = _written(Witness.of(take(vectors, [at]), 0))
        yield f"| `{written}` | {' | '.join(word(made.d, int(d)) for d in table[:, at])} |"
    yield ""


def _written(witness: Witness) -> str:
    """A vector without its last lanes of +0 times +0, and without scales and metadata."""
    lanes = list(zip(witness.a, witness.b, strict=False))
    while len(lanes) > 1 and lanes[-1] == (0, 0):
        lanes.pop()
    a, b = zip(*lanes, strict=True)
    sparse = len(witness.a) != len(witness.b)
    cut = Witness(witness.a if sparse else a, witness.b if sparse else b, witness.c, 0, metadata=witness.metadata)
    return vector_text(cut)


# -- recorded data and evidence


def recorded_counts(folder: Path) -> Counts:
    """By question and instruction: how many recorded vectors each claim gets wrong."""
    replay = Replay("recorded", Corpus.open(folder), GPU)
    sets = {_computed(made): made for made in replay.instructions()}
    counts: Counts = {}
    for question in open_questions():
        if not question.concerns(ARCHITECTURE) or not _of_datapaths(question):
            continue
        for made in _instructions(question):
            same = sets.get(_computed(made))
            if same is None or changes(made):
                continue
            vectors, d = replay.recorded(same)
            rivals = _ring(question, made).rivals
            wrong = (words_of(rivals, vectors, d.dtype) != d).sum(axis=1)
            found = {rival.name: int(n) for rival, n in zip(rivals, wrong, strict=True)}
            counts.setdefault(question.name, {})[made.id] = found
    return counts


def _computed(made: Instruction) -> tuple[object, ...]:
    """What two instructions have in common that compute the same."""
    return lowering(made, ARCHITECTURE).primitives, made.k, made.chunk, made.a, made.b, made.c, made.d


def measured_answers(folder: Path = EVIDENCE) -> list[Answer]:
    """The answers in the evidence of runs on silicon of this architecture."""
    found: list[Answer] = []
    for manifest in sorted(folder.glob("*/manifest.json")):
        said = json.loads(manifest.read_text())
        identity = said.get("identity", {})
        silicon = kind_of(said.get("device", ""), identity) == "silicon"
        if identity.get("architecture") != ARCHITECTURE or not silicon:
            continue
        for path in sorted(manifest.parent.rglob("*.json")):
            for answer in _answers_in(json.loads(path.read_text())):
                found.append(answer_from_json(FileValue(path, "answers", answer)))
    return [answer for answer in found if answer.status != "not here"]


def _answers_in(document: Any) -> list[Any]:
    """Of a document of answers, or of a step's result that has some."""
    inside = document.get("result", document) if isinstance(document, dict) else None
    found = inside.get("answers", []) if isinstance(inside, dict) else []
    return [answer for answer in found if isinstance(answer, dict) and "witnesses" in answer]


def written() -> str:
    """The page as it must be."""
    return page(json.loads(RECORDED.read_text()), measured_answers())


if __name__ == "__main__":
    if sys.argv[1:2] == ["--corpus"]:
        RECORDED.write_text(json.dumps(recorded_counts(Path(sys.argv[2])), indent=1, sort_keys=True) + "\n")
    PAGE.write_text(written())
