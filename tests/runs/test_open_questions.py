"""The open questions on devices that follow each claim in turn, none of them, or nothing: what is said of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np
import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import match
from mmaprobe.cli import main
from mmaprobe.devices.base import open_device, run_vectors
from mmaprobe.evidence.files import FileValue
from mmaprobe.models.engine import evaluate
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.operands.witness_batches import as_vectors
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.mutate import mutate
from mmaprobe.runs.open_questions.answers import Answer, answer_from_json, answer_to_json
from mmaprobe.runs.open_questions.ask import ask, ask_about, instructions_of, rivals_of
from mmaprobe.runs.open_questions.claims import Question, named, open_questions
from mmaprobe.runs.open_questions.contest import Ring
from mmaprobe.runs.open_questions.directed import directed
from stand_ins.followers import Follower, follower
from stand_ins.gpu import StandIn, plugged
from stand_ins.gpu import name as cuda

pytestmark = pytest.mark.needs("cuda.bindings")


def asked_of(question: Question) -> Iterator[tuple[str, Instruction]]:
    """One instruction of one architecture that a question concerns, sm_90a's where it does."""
    architecture = min(question.architectures, key=lambda name: name != "sm_90a")
    yield architecture, instructions_of(question, architecture)[-1][0]


def of_datapaths(question: Question) -> bool:
    return question.probe is None or all(claim.answer is None for claim in question.claims)


CONTESTS = [
    pytest.param(question, architecture, instruction, id=f"{question.name}/{architecture}/{instruction.id}")
    for question in open_questions() if question.experiment is None and of_datapaths(question)
    for architecture, instruction in asked_of(question)
]  # fmt: skip
SAME_HERE = {"sparse-absent-zeros": {"they are no terms", "they are zero terms"}}
"""Claims that are one function: a zero C shows what an absent product would, any other C more."""


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("question", "architecture"), [
    pytest.param(question, architecture, id=f"{question.name}/{architecture}")
    for question in open_questions() if question.experiment is None and of_datapaths(question)
    for architecture in question.architectures
])  # fmt: skip
def test_every_two_claims_are_told_apart_by_the_vectors_that_settle_a_question(
    question: Question, architecture: str
) -> None:
    for instruction, *_ in instructions_of(question, architecture):
        rivals = [rival for rival in rivals_of(question, architecture, instruction) if rival.claim]
        ring = Ring(open_device(f"model:{architecture}"), instruction, rivals, 0, question.specials)
        _, table = ring.settling(directed(ring.instruction, question.vectors), question.search)
        for (i, one), (j, other) in combinations(enumerate(rivals), 2):
            same = {one.name, other.name} <= SAME_HERE.get(question.name, set())
            assert same != bool((table[i] != table[j]).any()), (instruction.id, one.name, other.name)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("question", "architecture", "instruction"), CONTESTS)
def test_a_device_that_follows_a_claim(question: Question, architecture: str, instruction: Instruction) -> None:
    rivals = [rival for rival in rivals_of(question, architecture, instruction) if rival.claim]
    assert len(rivals) == len(question.claims_on(architecture)) > 1, "claims that are the same datapath"
    for rival in rivals:
        answer = ask_about(follower(architecture, instruction, rival), question, instruction, seed=7)
        same = SAME_HERE.get(question.name, set())
        if rival.name in same:
            assert answer.status == "open"
            assert all(name in answer.finding for name in same)
            continue
        assert (answer.status, answer.claim) == ("settled", rival.name), answer.finding
        refuted = {n for shown in answer.witnesses for n, d in shown.claims if d != shown.witness.d}
        assert refuted == {other.name for other in rivals} - {rival.name}


@pytest.mark.parametrize(("name", "pattern", "change", "says"), [
    ("zero-exponent-f16", "mma.m16n8k16.f16.f16.f16.f16", "tree.zero_exponent=-18", "tree.zero_exponent=-18 agrees"),
    ("precision-f16-result", "mma.m16n8k16.f16.f16.f16.f16", "tree.fraction_bits=23", "tree.fraction_bits=23 agrees"),
    ("precision-fp8-wgmma", "wgmma.mma_async.m64n8k32.f32.e4m3.e4m3", "tree.fraction_bits=15", "=15 agrees"),
    ("precision-f32-result", "mma.m16n8k16.f32.f16.f16.f32", "tree.rounding=RNE", "nearest is "),
    ("precision-f32-result", "mma.m16n8k16.f32.f16.f16.f32", "step=8", "aimed at the claims agree with 25"),
    ("step-tf32", "mma.m16n8k8.f32.tf32.tf32.f32", "step=2", "step=2 agrees"),
    ("fp8-order-f32", "mma.m16n8k32.f32.e5m2.e5m2.f32", "tree.to.rounding=RZ", "nearest is "),
    ("integer-satfinite", "mma.m16n8k32.satfinite.s32.s8.s8.s32", "step=8", "step=8 agrees"),
    ("minus-zero", "mma.m16n8k16.f32.f16.f16.f32", "tree.to.rounding=RNE", "nearest is "),
])  # fmt: skip
def test_a_device_that_follows_none(name: str, pattern: str, change: str, says: str) -> None:
    (question,), (instruction,) = named((name,)), match("sm_90a", pattern)
    path = mutate(datapath_for("sm_90a", instruction), *change.split("="))
    answer = ask_about(Follower(instruction, path), question, instruction)
    if name == "minus-zero":  # a zero's sign is one of two: what else the unit does is no matter of this question
        assert answer.claim == "+0, never -0"
        return
    assert (answer.status, answer.claim) == ("settled", "")
    assert answer.finding.startswith("none of the claims: ")
    assert says in answer.finding
    refuted = {claim for shown in answer.witnesses for claim, d in shown.claims if d != shown.witness.d}
    assert refuted == {claim.name for claim in question.claims_on("sm_90a")}


@pytest.mark.parametrize("claim", ["of each group", "of the whole wave", "other"])
def test_which_blocks_of_a_feed_others(claim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit by the manuals' rule, which differs but for a full broadcast, and one by neither."""
    (question,) = named(("cbsz-abid",))
    device = open_device("model:gfx942")
    instruction = match("gfx942", "v_mfma_f32_4x4x1_16b_f32{abid=1,cbsz=2}")[0]
    plain = match("gfx942", "v_mfma_f32_4x4x1_16b_f32")[0]
    if claim != "of each group":
        block = np.arange(16)
        fed = block % 4 + 4 if claim == "of the whole wave" else block ^ 1
        run = type(device).run
        moved = partial(run, device, plain)
        monkeypatch.setattr(type(device), "run", lambda _, made, batch: moved(replace(batch, a=batch.a[:, fed])))
    answer = ask_about(device, question, instruction)
    assert answer.status == "settled"
    assert answer.claim == next((each.name for each in question.claims if each.outcome == claim), "")


def unit(d: Bits) -> Bits:
    """f32 codes limited to [0, 1], NaNs as they are."""
    limited: Bits = np.where(np.isnan(d.view(np.float32)), d, np.clip(d.view(np.float32), 0, 1).view(np.uint32))
    return limited


LIMITS: dict[str, Callable[[Bits], Bits]] = {
    "it does, and a NaN is 0": lambda d: np.where(np.isnan(d.view(np.float32)), np.uint32(0), unit(d)),
    "it does, and a NaN stays": unit,
    "it does not": lambda d: d,
    "": lambda d: np.minimum(d, np.uint32(0x3F800000)),
}
"""A unit of each claim, and one that makes 1 of a negative number."""


@pytest.mark.parametrize("claim", LIMITS)
def test_whether_a_float_is_limited(claim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No datapath says what clamp makes of a float, so the model's device runs the instruction without it."""
    (question,), device = named(("float-clamp",)), open_device("model:gfx1201")
    plain, instruction = (match("gfx1201", f"v_dot2_f32_bf16{clamp}")[0] for clamp in ("", "{clamp}"))
    run = partial(type(device).run_vectors, device, plain)
    monkeypatch.setattr(type(device), "run_vectors", lambda _, made, vectors: LIMITS[claim](run(vectors)))
    answer = ask_about(device, question, instruction)
    assert (answer.status, answer.claim) == ("settled", claim)
    assert len(answer.witnesses) == 4


def test_a_finding_comes_as_a_simple_vector() -> None:
    """A unit that rounds to nearest: no claim about its precision holds, and few lanes show it."""
    instruction = match("sm_90a", "mma.m16n8k16.f32.f16.f16.f32")[0]
    device = Follower(instruction, mutate(datapath_for("sm_90a", instruction), "tree.to.rounding", "RNE"))
    answer = ask_about(device, named(("precision-f32-result",))[0], instruction)
    (shown,) = answer.witnesses
    assert len(np.flatnonzero(shown.witness.a)) <= 2
    assert int(run_vectors(device, instruction, as_vectors(instruction, [shown.witness]))[0]) == shown.witness.d
    assert all(d != shown.witness.d for _, d in shown.claims)


def test_what_is_settled_is_believed_by_later_questions() -> None:
    """A unit with another zero exponent: its other answers are those of the claims none the less."""
    instruction = match("sm_90a", "mma.m16n8k16.f32.bf16.bf16.f32")[0]
    device = Follower(instruction, mutate(datapath_for("sm_90a", instruction), "tree.zero_exponent", "-129"))
    both = [a for a in ask(device, names=["zero-exponent-f32", "minus-zero"]) if a.instruction == instruction.id]
    assert [answer.claim for answer in both] == ["", "+0, never -0"]
    assert "tree.zero_exponent=-129 agrees" in both[0].finding
    believed: dict[str, Datapath] = {}
    for name in ("zero-exponent-f32", "minus-zero"):
        (answer,) = [a for a in ask(device, names=[name], believed=believed) if a.instruction == instruction.id]
    assert answer.claim == "+0, never -0"
    assert believed == {instruction.id: device.datapath}


def test_a_claimed_tree_has_its_own_order() -> None:
    """What is believed may be the same sums in other words: contiguous halves of lanes in another order."""
    (question,), (instruction,) = named(("fp8-order-f32",)), match("sm_90a", "mma.m16n8k32.f32.e5m2.e5m2.f32")
    rivals = {r.name: r.datapath for r in rivals_of(question, "sm_90a", instruction)}
    lanes = [*(k for k in range(32) if k % 4 < 2), *(k for k in range(32) if k % 4 > 1)]
    halves, low_first = rivals["contiguous halves"], rivals["k mod 4 < 2 first, then the others, C last"]
    assert halves is not None
    believed = {instruction.id: replace(halves, order=tuple(lanes))}
    answer = ask_about(open_device("model:sm_90a"), question, instruction, believed=believed)
    assert answer.claim == "k mod 4 < 2 first, then the others, C last"
    assert believed == {instruction.id: low_first}


def test_on_a_stand_in_gpu() -> None:
    """The kernels' own loads and stores around a model; one that does nothing fails, and the next question is asked."""
    dead = "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16{scale_d=0}"
    with plugged(StandIn(dead=(dead,))):
        first, second = ask(open_device(cuda()), names=["scale-d-zero"])
    assert (first.instruction, first.status) == (dead, "failed")
    assert "0 items stored" in first.finding
    assert (second.status, second.claim) == ("settled", "C is +0")


FOUND = [
    ("nan-f32", "special.code=0x7fc00000", "always 7fc00000"),
    ("nan-f32", "nan_rule=the first NaN, ascending, then c", "an operand's payload"),
    ("nan-f32", "special.code=0x7fffff00", ""),
    ("carry-bits", "tree.fraction_bits=25", "room for all"),
]


@pytest.mark.parametrize(("name", "change", "claim"), FOUND)
def test_what_a_probe_finds(name: str, change: str, claim: str) -> None:
    instruction = match("sm_90a", "mma.m16n8k16.f32.f16.f16.f32")[0]
    device = Follower(instruction, mutate(datapath_for("sm_90a", instruction), *change.split("=", 1)))
    answer = ask_about(device, named((name,))[0], instruction)
    assert (answer.status, answer.claim) == ("settled", claim), answer.finding
    assert bool(claim) != answer.finding.startswith("none of the claims")
    assert answer.witnesses


class Ordered(Follower):
    """A sparse unit that takes metadata in either order; ``ascending``: as if it were sorted."""

    ascending = False

    def run_vectors(self, instruction: Instruction, vectors: Batch) -> Bits:
        assert vectors.metadata is not None
        low, high = vectors.metadata & 3, vectors.metadata >> 2
        if self.ascending:
            low, high = np.minimum(low, high), np.maximum(low, high)
        lanes = np.stack([low, high], axis=2) + 4 * np.arange(low.shape[1], dtype=np.uint8)[:, None]
        kept = np.take_along_axis(vectors.b, lanes.reshape(vectors.size, -1).astype(np.intp), axis=1)
        return evaluate(self.datapath, replace(vectors, b=kept, metadata=None))


@pytest.mark.parametrize(("ascending", "claim"), [(False, "each place is read by itself"), (True, "as if sorted")])
def test_the_order_of_metadata(ascending: bool, claim: str) -> None:
    instruction = match("sm_90a", "mma.sp.m16n8k32.f32.f16.f16.f32")[0]
    kind = type("Ordered", (Ordered,), {"ascending": ascending})
    answer = ask_about(kind(instruction, datapath_for("sm_90a", instruction)), *named(("sparse-metadata-order",)),
                       instruction)  # fmt: skip
    assert (answer.status, answer.claim) == ("settled", claim)
    model = ask_about(open_device("model:sm_90a"), *named(("sparse-metadata-order",)), instruction)
    assert model.status == "open"
    assert "refuses" in model.finding


def test_answers_one_by_one_and_an_end_on_request() -> None:
    done: list[Answer] = []
    for answer in ask(open_device("model:sm_90a"), names=["zero-exponent-f32"], stop=lambda: len(done) == 2):
        done.append(answer)
    assert [answer.claim for answer in done] == ["-133", "-133"]
    again = list(ask(open_device("model:sm_90a"), names=["zero-exponent-f32"]))
    assert again[:2] == done, "the same seed asks the same"
    for answer in again:
        assert answer_from_json(FileValue("here", "answer", json.loads(json.dumps(answer_to_json(answer))))) == answer


@pytest.mark.parametrize(("name", "pattern", "words"), [
    ("zero-exponent-f16", "mma.m16n8k16.f16.f16.f16.f16", {"-21": [1, 1, 1, 1, 1, 0], "-22": [1] * 6, "-15": [0] * 6}),
    ("zero-exponent-f32", "mma.m16n8k16.f32.bf16.bf16.f32", {"-133": [0, 0, 0, 1], "-132": [0, 0, 1, 1]}),
])  # fmt: skip
def test_the_published_ladders(name: str, pattern: str, words: dict[str, list[int]]) -> None:
    """Hopper breaks an f16 tie by 2^-k through k = 46 of 42 to 47; its f32 result is 0 through 158 of 156 to 159."""
    (question,), (instruction,) = named((name,)), match("sm_90a", pattern)
    ladder = directed(instruction, question.vectors)
    assert ladder is not None
    for rival in rivals_of(question, "sm_90a", instruction):
        if rival.name in words:
            assert rival.datapath is not None
            assert evaluate(rival.datapath, ladder).tolist() == words[rival.name]


def test_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["probe", "--questions", "-d", "model:sm_90a", "-q", "zero-exponent-f16", "-q", "cdna1-sum"]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert "-21" in text
    assert "2 of 2 answers settled; 1 not here" in text
    assert main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [answer["claim"] for answer in found["answers"]] == ["-21", "-21", ""]
    assert main(["probe", "--questions", "-q", "zero-exponent", "-d", "model:sm_90a"]) == 2
    assert "zero-exponent-f16" in capsys.readouterr().err
    assert main(["probe", "--questions", "--suite", "eq10"]) == 2
