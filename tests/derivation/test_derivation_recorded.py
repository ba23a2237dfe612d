"""Derivation from recordings: what they settle, what they leave open, and the questions that close it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmaprobe.catalog import lookup
from mmaprobe.cli import main
from mmaprobe.derivation.dense_view import asked, dense_form
from mmaprobe.derivation.missing_vectors import missing_vectors
from mmaprobe.derivation.recording import Reading, _certificate, read
from mmaprobe.derivation.vectors.mixtures import mixed_vectors
from mmaprobe.devices.base import open_device, run_vectors
from mmaprobe.devices.replay import Replay, open_replay, record
from mmaprobe.equivalence.arguments import argument
from mmaprobe.evidence.corpus import Corpus, write_corpus
from mmaprobe.evidence.missing_vectors_file import read_missing_vectors
from mmaprobe.models.engine import evaluate
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import Accumulator, Datapath, lanes_of, walk
from mmaprobe.parameters.diff import datapath_changes, outline
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.moves import _mapped
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.neighbours import Neighbour, neighbourhood
from mmaprobe.report.tables.recordings import field_rows, ranges
from mmaprobe.survey.comparison import compare, difference

AMPERE = open_device("model:sm_80")
HMMA = lookup.instruction("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32")


def normal_vectors(count: int, seed: int = 1) -> Batch:
    """Operands as the public recordings have them: N(0, 1), and c in (-1, 1)."""
    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal((count, HMMA.k)).astype(np.float32).view(np.uint32) for _ in range(2))
    c = rng.uniform(-1, 1, count).astype(np.float32).view(np.uint32)
    return Batch(*((x >> 16).astype(np.uint16) for x in (a, b)), c)


VECTORS = normal_vectors(600)
ANSWERS = run_vectors(AMPERE, HMMA, VECTORS)


@pytest.fixture(scope="module")
def plain() -> Reading:
    return read("sm_80", HMMA, VECTORS, ANSWERS)


@pytest.mark.long
def test_plain_vectors_settle_the_precision_and_leave_the_ends_open(plain: Reading) -> None:
    states = {row["field"]: row["state"] for row in field_rows(plain)}
    assert states["tree.fraction_bits"] == states["tree.rounding"] == states["tree.to.rounding"] == "settled"
    assert states["operand_a.subnormals"] == states["special"] == states["tree.zero_exponent"] == "open"
    assert plain.derivation.status == "bounded"
    assert plain.derivation.launches == 0


@pytest.mark.long
def test_nothing_wrong_is_claimed(plain: Reading) -> None:
    check(plain, "sm_80")


def check(reading: Reading, architecture: str) -> None:
    """What the reading settles is what the shipped datapath says: of one that agrees, every field in which it differs
    is named, or is no difference."""
    shipped = datapath_for(architecture, reading.instruction)
    entries = reading.derivation.certificate.entries
    unsettled = {(entry.field, entry.value) for entry in entries if entry.verdict != "refuted"}

    def untold(path: Datapath, spelled: Datapath) -> list[tuple[str, Any, Any]]:
        """An open structure excuses no number of the same structure."""
        return [
            (field, old, new)
            for field, old, new in datapath_changes(path, spelled)
            if not {(field, str(new)), (field, "any")} & unsettled
            and not (field.startswith("special.") and ("special", "any") in unsettled)
        ]

    near = [each.datapath for each in neighbourhood(reading.every[0]) if each[:2] in unsettled]
    trees = {("tree", "any"), *(("tree", outline(spelled.tree)) for spelled in (shipped, in_order(shipped)))}
    other = reading.every if trees & unsettled else ()
    pairs = [(path, spelled) for path in (reading.every[0], *near, *other) for spelled in (shipped, in_order(shipped))]
    best, shipped = min(pairs, key=lambda pair: len(untold(*pair)))
    for field, _, value in untold(best, shipped):
        assert field != "tree", value
        rival = mutate(best, field, str(value))
        assert difference(reading.instruction, best, rival, 1) is None, field


def test_a_certificate_looks_at_structures_too() -> None:
    """Vectors that terms cut at 31 bits and the whole sum cut there answer alike do not make either exact."""
    made = lookup.instruction("v_mfma_f32_32x32x4_2b_bf16", "gfx942")
    believed = mutate(datapath_for("gfx942", made), "cut", "32 bits at 31 RD")
    vectors = mixed_vectors(made, 4, 200)
    found = _certificate(believed, [], (vectors, vectors, evaluate(believed, vectors)), [], ["order"], True)
    assert "the whole at 31 RD" in found.open_fields["cut"]
    assert found.open_fields["order"] == ("any",)


def test_where_not_all_was_looked_for_nothing_is_settled() -> None:
    """A value that is refuted beside the believed ones may agree beside others."""
    seen = (VECTORS, VECTORS, ANSWERS)
    believed = datapath_for("sm_80", HMMA)
    whole, cut = (_certificate(believed, [], seen, [], [], complete) for complete in (True, False))
    refuted = {each.field for each in whole.entries if each.verdict == "refuted"}
    assert "tree.fraction_bits" in refuted - set(whole.open_fields)
    assert all("any" in cut.open_fields[field] for field in refuted)


@pytest.mark.long
def test_one_vector_leaves_the_structure_open() -> None:
    """Nearly everything agrees with it: some of that is kept, and nothing is called exact."""
    one = VECTORS.slice(0, 1)
    found = read("sm_80", HMMA, one, ANSWERS[:1])
    assert found.derivation.status == "bounded"
    assert found.derivation.reason == "not all that agrees was looked for"
    assert "any" in found.derivation.certificate.open_fields["tree"]
    assert "settled" not in {row["state"] for row in field_rows(found)}
    assert (evaluate(found.every[0], one) == ANSWERS[:1]).all()
    check(found, "sm_80")


def in_order(path: Datapath) -> Datapath:
    """A tree of all lanes with these as they come, and their order said apart."""
    lanes = tuple(lane for node in walk(path.tree) for lane in lanes_of(node))
    if path.order is not None or len(lanes) != path.k:
        return path
    places = {lane: place for place, lane in enumerate(lanes)}
    tree = _mapped(path.tree, Accumulator(), tuple(places[lane] for lane in range(path.k)))
    return replace(path, tree=tree, order=lanes)


@pytest.mark.long
def test_every_question_has_the_answer_of_what_is_believed(plain: Reading) -> None:
    found = missing_vectors(plain)
    assert found is not None
    believed = evaluate(plain.every[0], found.vectors)
    for rivals, answer in zip(found.rivals, believed, strict=True):
        assert "as believed" in rivals[int(answer)]
    assert sum(len(rivals) > 1 for rivals in found.rivals) > 10


@pytest.mark.long
def test_the_answers_close_what_was_open(plain: Reading) -> None:
    reading, vectors, answers = plain, VECTORS, ANSWERS
    for _ in range(3):
        asked = missing_vectors(reading)
        if asked is None:
            break
        assert asked.vectors.size < 400
        vectors = Batch(**{n: np.concatenate([v, dict(asked.vectors.items())[n]]) for n, v in vectors.items()})
        answers = np.concatenate([answers, run_vectors(AMPERE, HMMA, asked.vectors)])
        reading = read("sm_80", HMMA, vectors, answers)
        check(reading, "sm_80")
    assert reading.derivation.status == "exact"
    assert compare("sm_80", HMMA, reading.derivation.datapath, 1).outcome in ("same", "equivalent")


@pytest.mark.long
def test_what_no_datapath_fits_is_said_to_be_so() -> None:
    faulty = ANSWERS ^ (VECTORS.a[:, 0] & 3 == 3).astype(np.uint32)
    found = read("sm_80", HMMA, VECTORS, faulty).derivation
    assert found.status == "inconclusive"
    assert found.datapath is None
    assert found.reason.startswith("no datapath of the grammar was found that fits the recording: structures")


@pytest.mark.parametrize(("name", "architecture"), [
    pytest.param("mma.sp.m16n8k16.f32.f16.f16.f32", "sm_90a", marks=pytest.mark.long),
    ("mma.sp.m16n8k32.s32.s8.u8.s32", "sm_90a"),
])  # fmt: skip
def test_a_sparse_recording_is_read_by_its_kept_lanes(name: str, architecture: str) -> None:
    made = lookup.instruction(name, architecture)
    vectors = asked(architecture, made, mixed_vectors(dense_form(made), 4, 600))
    answers = run_vectors(open_device(f"model:{architecture}"), made, vectors)
    found = read(architecture, made, vectors, answers)
    assert found.derivation.status in ("exact", "bounded"), found.derivation.reason
    assert found.survivors[0].k == made.k // 2
    check(found, architecture)
    refuting = [entry.witness for entry in found.derivation.certificate.entries if entry.witness]
    assert refuting
    assert all(witness.metadata for witness in refuting)


@pytest.mark.long
def test_every_zero_exponent_that_a_recording_allows_is_named(plain: Reading) -> None:
    """Vectors with zeros and others that no zero exponent tells apart."""
    made = lookup.instruction("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32")
    vectors = mixed_vectors(made, 6, 700)
    answers = run_vectors(AMPERE, made, vectors)
    found = read("sm_80", HMMA, vectors, answers)
    named = {e.value for e in found.derivation.certificate.entries if e.field.endswith("zero_exponent")}
    shipped = datapath_for("sm_80", made)
    path = found.survivors[0]
    for value in range(-500, 100, 20):
        rival = mutate(path, "tree.zero_exponent", str(value))
        agrees = bool((evaluate(rival, vectors) == answers).all())
        assert not agrees or str(value) in named or argument(path, Neighbour("tree.zero_exponent", str(value), rival))
    assert (evaluate(shipped, vectors) == answers).all()


@pytest.mark.long
def test_a_narrow_form_is_read_though_another_operation_runs_it() -> None:
    """Its compiler converts the operands and takes four parts of K in an order of its own: nothing is told of that."""
    made = lookup.instruction("mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16")
    vectors = mixed_vectors(made, 4, 1500)
    answers = run_vectors(open_device("model:sm_90a"), made, vectors)
    found = read("sm_90a", made, vectors, answers)
    assert found.derivation.status in ("exact", "bounded"), found.derivation.reason
    check(found, "sm_90a")


def test_whole_numbers_are_settled_by_what_refutes_them() -> None:
    """All hypotheses of an integer sum are held to everything, so there is nothing around them to look for."""
    made = lookup.instruction("mma.m16n8k32.s32.s8.u8.s32", "sm_80")
    vectors = mixed_vectors(made, 4, 600)
    found = read("sm_80", made, vectors, run_vectors(AMPERE, made, vectors))
    assert found.derivation.status == "exact", found.derivation.certificate.open_fields


TWO_STAGES = {
    "v_mfma_f32_32x32x4_2b_bf16": ("step",),
    "v_mfma_f32_32x32x8_f16": ("tree.terms.0.of.fraction_bits", "tree.terms.0.of.rounding", "tree.to.rounding"),
    "v_mfma_f32_16x16x16_f16": ("tree.terms.0.of.fraction_bits", "tree.terms.0.of.rounding", "step", "order"),
}
"""Forms whose products are summed before C joins, and what a recording settles; of four lanes not even the tree."""


@pytest.mark.long
@pytest.mark.parametrize("name", list(TWO_STAGES)[: None if os.environ.get("MMAPROBE_DEPTH") == "full" else 1])
def test_sums_in_sums_are_read_as_far_as_plain_vectors_say(name: str) -> None:
    made = lookup.instruction(name, "gfx942")
    vectors = mixed_vectors(made, 4, 2500)
    found = read("gfx942", made, vectors, run_vectors(open_device("model:gfx942"), made, vectors))
    assert found.derivation.status == "bounded", found.derivation.reason
    states = {row["field"]: row["state"] for row in field_rows(found)}
    assert {states[field] for field in TWO_STAGES[name]} == {"settled"}
    assert all(state == "settled" for field, state in states.items() if field.startswith("special"))
    check(found, "gfx942")


def test_runs_of_numbers_are_ranges() -> None:
    assert ranges(["3", "1", "2", "7", "none", "-4", "-5"]) == ["-5..-4", "1..3", "7", "none"]


@pytest.mark.long
def test_questions_travel_as_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, file, second, third = (tmp_path / name for name in ("first", "ask.json", "second", "third"))
    write_corpus(first, record(AMPERE, [(HMMA, VECTORS)]), "here")
    command = ["derive", HMMA.id, "--from", f"replay:{first}"]
    assert main([*command, "--ask", str(file)]) == 0
    assert "open" in capsys.readouterr().out
    assert main(["corpus", "answer", str(file), str(second)]) == 2
    assert "not every vector" in capsys.readouterr().err
    assert main(["corpus", "answer", str(file), str(second), "-d", "model:sm_80"]) == 0
    form = json.loads(file.read_text())  # as a script without mmaprobe would
    [asked] = read_missing_vectors(file)[2]
    for row, d in zip(form["questions"][0]["vectors"], run_vectors(AMPERE, HMMA, asked.vectors), strict=True):
        row["d"] = f"{int(d):08x}"
    file.write_text(json.dumps(form))
    assert main(["corpus", "answer", str(file), str(third)]) == 0
    assert np.array_equal(open_replay(str(second)).recorded(HMMA)[1], open_replay(str(third)).recorded(HMMA)[1])
    capsys.readouterr()
    again, fourth = tmp_path / "again.json", tmp_path / "fourth"
    assert main([*command, "--from", f"replay:{third}", "--ask", str(again)]) == 0
    assert main(["corpus", "answer", str(again), str(fourth), "-d", "model:sm_80"]) == 0
    capsys.readouterr()
    every = [*command, "--from", f"replay:{third}", "--from", f"replay:{fourth}"]
    assert main([*every, "--json", "--write", str(tmp_path / "p.toml")]) == 0
    [found] = json.loads(capsys.readouterr().out)["instructions"]
    assert found["status"] == "exact"
    assert 'basis = "predicted"' in (tmp_path / "p.toml").read_text()  # recorded, but of a model


@pytest.mark.parametrize(("arguments", "said"), [
    (["derive", HMMA.id, "-d", "model:sm_80", "--ask", "x"], "--from replay:PATH"),
    (["derive", HMMA.id, "--from", "model:sm_80"], "only recordings"),
])  # fmt: skip
def test_only_recordings_are_read_so(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert said in capsys.readouterr().err


CORPUS = os.environ.get("MMAPROBE_CORPUS", "")
SETS = (
    ("V100", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"),
    ("A100", "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16"),
    ("Ada", "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32"),
    ("H200", "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32"),
    ("H200", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"),
    ("B200", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
)


def every_set() -> Iterator[tuple[str, str]]:
    """All recorded sets, at full depth."""
    if CORPUS and os.environ.get("MMAPROBE_DEPTH") == "full":
        for gpu in dict.fromkeys(each.gpu for each in Corpus.open(CORPUS).sets()):
            yield from ((gpu, made.id) for made in open_replay(f"{CORPUS}?gpu={gpu}").instructions())


@pytest.mark.sampled(1)
@pytest.mark.needs("corpus")
@pytest.mark.parametrize(("gpu", "name"), (list(every_set()) or SETS)[::-1], ids=str)
def test_real_recordings_leave_the_shipped_datapath(gpu: str, name: str) -> None:
    device: Replay = open_replay(f"{CORPUS}?gpu={gpu}")
    architecture = device.info()["architecture"]
    made = next(each for each in device.instructions() if each.id == name)
    vectors, answers = device.recorded(made)
    assert (evaluate(datapath_for(architecture, made), vectors) == answers).all()
    reading = read(architecture, made, vectors, answers)
    assert reading.derivation.status == "bounded", reading.derivation.reason
    check(reading, architecture)
