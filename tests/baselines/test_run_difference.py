"""``mmaprobe evidence diff``: what changed between two runs, in meaning, each change with the vector that shows it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cases.nights import (
    BF16,
    GPU,
    KEEPS,
    MADD,
    answered,
    layout,
    mismatch,
    night,
    part,
    questions,
    shipped,
)
from mmaprobe.baselines.difference import UNTOLD, RunDifference, compare_runs
from mmaprobe.baselines.facts import facts_of
from mmaprobe.baselines.instruction_changes import RunChange
from mmaprobe.catalog.lookup import instruction
from mmaprobe.cli import main
from mmaprobe.devices.model import DatapathDevice
from mmaprobe.evidence.records import Witness
from mmaprobe.evidence.steps import StepRecord
from mmaprobe.evidence.store import Part, Store
from mmaprobe.operands.witness_batches import as_vectors
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.table import to_table

COMMITTED = Path(__file__).parents[2] / "validation" / "evidence"


def diff(tmp_path: Path, old: list[Part], new: list[Part], **more: Any) -> RunDifference:
    """The difference of two nights with these parts; ``steps`` are those of the two."""
    steps = more.pop("steps", ((), ()))
    paths = [
        night(tmp_path / f"{day}", *parts, day=day, steps=steps[day - 1], **more) for day, parts in ((1, old), (2, new))
    ]
    return compare_runs(*(facts_of(Store.open(path)) for path in paths))


def kinds(found: RunDifference) -> list[tuple[str, str]]:
    return [(each.name, each.kind) for each in found.changes]


def check_shown(change: RunChange, old: Datapath, new: Datapath) -> None:
    """The vector of a change is answered by both datapaths as it says, and not alike."""
    assert change.vector is not None
    made = instruction(BF16, "x86-64")
    vector = as_vectors(made, [change.vector])
    answers = [int(DatapathDevice(made, path).run_vectors(made, vector)[0]) for path in (old, new)]
    assert answers == [change.other, change.vector.d]
    assert answers[0] != answers[1]


def test_a_field_that_changed_is_told_with_the_smallest_vector(tmp_path: Path) -> None:
    paths = shipped(), shipped(BF16, KEEPS)
    found = diff(tmp_path, [part(BF16, paths[0])], [part(BF16, paths[1])])
    (change,) = found.changes
    assert (change.kind, change.lines) == ("datapath", ("subnormals of operand a: signed_zero -> keep",))
    assert found.exit_code == 1
    check_shown(change, *paths)
    assert change.vector is not None
    assert sum(map(bool, (*change.vector.a, *change.vector.b))) <= 2


def test_a_witness_that_was_kept_shows_it_before_a_search_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The vectors that refuted a datapath once are the first to tell it again."""
    monkeypatch.setattr("mmaprobe.baselines.instruction_changes.compare_datapaths", lambda *_: pytest.fail("searched"))
    paths, witness = (shipped(), shipped(BF16, KEEPS)), Witness((0x0001, 0), (0x7F00, 0), 0, 0)
    found = diff(tmp_path, [part(BF16, paths[0], witnesses=(witness,))], [part(BF16, paths[1])])
    assert kinds(found) == [(BF16, "datapath")]
    check_shown(found.changes[0], *paths)


def test_other_words_for_the_same_function_are_no_difference(tmp_path: Path) -> None:
    """Two nights of one device with two seeds end in words of one class."""
    other = {**to_table(shipped()), "step": 1, "order": "1,0", "tree": {**to_table(shipped())["tree"], "lanes": "0"}}
    new = part(BF16, shipped())
    found = diff(
        tmp_path, [part(BF16, shipped())], [replace(new, datapath={**(new.datapath or {}), "datapath": other})]
    )
    assert (found.changes, found.exit_code, found.alike) == ((), 0, 1)
    ((name, said),) = found.remarks
    assert name == BF16
    assert said.startswith(("the same function in other words", "said otherwise"))


def test_what_appeared_and_what_vanished(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = diff(tmp_path, [part(BF16, shipped())], [part(MADD)])
    assert kinds(found) == [(MADD, "appeared"), (BF16, "vanished")]
    assert main(["evidence", "diff", str(tmp_path / "1"), str(tmp_path / "2")]) == 1
    told = capsys.readouterr().out
    assert f"{MADD}: appeared\n  equal, 1,000 vectors: no datapath was derived\n" in told
    assert f"{BF16}: vanished\n  equal, 1,000 vectors: fused multiply-adds of lanes" in told
    assert told.endswith("2 differences in meaning; of 0 instructions both say the same\n")


@pytest.mark.parametrize(("old", "new", "said"), [
    (part(MADD), part(MADD, wrong=3, mismatches=(mismatch(name=MADD),)), "mismatch, 3 of 1,000 vectors differ"),
    (part(MADD, wrong=3), part(MADD), "equal, 0 of 1,000 vectors differ"),
    (part(MADD), part(MADD, vectors=0), "inconclusive, nothing was compared"),
    (part(MADD), part(MADD, status="partial", validation={"error": "it hung", "error_code": 5}, vectors=0),
     "failed, nothing was compared: it hung"),
])  # fmt: skip
def test_outcomes_that_are_others(tmp_path: Path, old: Part, new: Part, said: str) -> None:
    found = diff(tmp_path, [old], [new])
    assert kinds(found) == [(MADD, "outcome")]
    assert found.changes[0].lines[0] == said


def test_a_mismatch_is_shown_with_its_recipe(tmp_path: Path) -> None:
    found = diff(tmp_path, [part(MADD)], [part(MADD, wrong=1, mismatches=(mismatch(name=MADD),))])
    assert "gives 0x1, expected 0x2 (x86.pmaddwd uniform/1 seed 1 index 7)" in found.changes[0].lines[1]


def test_a_derivation_that_came_to_nothing(tmp_path: Path) -> None:
    nothing = part(MADD, datapath=None)
    lost = replace(nothing, datapath={"datapath": None, "reason": "outside the grammar", "again": None})
    found = diff(tmp_path, [part(MADD, shipped(MADD))], [lost])
    assert kinds(found) == [(MADD, "datapath"), (MADD, "outcome")]
    assert found.changes[0].lines[0] == "derived: nothing, outside the grammar"
    assert kinds(diff(tmp_path / "x", [part(MADD, shipped(MADD))], [nothing])) == [(MADD, "datapath")]


def test_counts_seeds_and_surroundings_are_context(tmp_path: Path) -> None:
    paths = [
        night(tmp_path / "1", part(), day=1, device="cuda:0", identity=GPU, toolchain={"kernels": "NVRTC 12"}),
        night(tmp_path / "2", part(vectors=2000), day=2, device="cuda:1",
              identity=GPU | {"driver": "590", "clock_sm_mhz": "1980"}, toolchain={"kernels": "NVRTC 13"}),
    ]  # fmt: skip
    found = compare_runs(*(facts_of(Store.open(path)) for path in paths))
    assert (found.changes, found.other_device) == ((), "")
    assert found.context == (
        "device: cuda:0 -> cuda:1", "seed: 1 -> 2", "clock_sm_mhz: 345 -> 1980", "driver: 580 -> 590",
        "toolchain: kernels: NVRTC 12 -> NVRTC 13", "vectors: 1,000 -> 2,000",
    )  # fmt: skip


@pytest.mark.parametrize(("identity", "said"), [
    (GPU | {"uuid": "GPU-2"}, "uuid was GPU-1, is GPU-2"),
    (GPU | {"architecture": "sm_100a"}, "architecture was sm_90a, is sm_100a"),
    ({"architecture": "sm_90a"}, "device was cuda:0, is model:sm_90a"),
])  # fmt: skip
def test_two_devices_are_compared_and_named(
    tmp_path: Path, identity: dict[str, str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    night(tmp_path / "1", part(), device="cuda:0", identity=GPU)
    night(tmp_path / "2", part(), device="model:sm_90a" if "uuid" not in identity else "cuda:0", identity=identity)
    assert main(["evidence", "diff", str(tmp_path / "1"), str(tmp_path / "2")]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("of two devices: ")]
    assert said in line


NAMED = {"a": "as named", "b": "as named"}
MOVED = {"a": "element (0, 1) at (1, 0)", "b": "as named"}


@pytest.mark.parametrize(("old", "new", "lines"), [
    (layout("6 tiles agree", NAMED), layout("9 tiles agree", NAMED), None),
    (layout("agrees", NAMED), layout("a is transposed", MOVED, "contradictory"),
     ("contradictory: a is transposed", "was bounded: agrees")),
    (layout("is", {"claim": "rows", "claims": {"a": 1}}), layout("is", {"claim": "rows", "claims": {}}), None),
    (layout("by rows", {"claim": "rows"}), layout("by columns", {"claim": "columns"}),
     ("bounded: by columns", "was bounded: by rows")),
    (layout("by rows", {"claim": "rows"}), None, ("its layout was not asked", "was bounded: by rows")),
    (None, layout("by rows", {"claim": "rows"}), None),
])  # fmt: skip
@pytest.mark.parametrize("by_steps", [False, True])
def test_layouts(tmp_path: Path, old: Any, new: Any, lines: tuple[str, str] | None, by_steps: bool) -> None:
    from mmaprobe.evidence.records_json import finding_to_json

    def step(finding: Any) -> tuple[StepRecord, ...]:
        found = {} if finding is None else {BF16: finding_to_json(finding)}
        return (StepRecord("layouts", "where", "finished", "", result={"findings": found}),) if by_steps else ()

    parts = [part(findings=() if by_steps or each is None else (each,)) for each in (old, new)]
    found = diff(tmp_path, parts[:1], parts[1:], steps=(step(old), step(new)))
    assert [(each.kind, each.lines) for each in found.changes] == ([] if lines is None else [("layout", lines)])


def test_what_an_instruction_is_made_of(tmp_path: Path) -> None:
    """The instruction that a primitive was derived by may be another one; the primitive may not."""

    def by(*like: str) -> Part:
        made = part(BF16, shipped())
        return replace(
            made, datapath={**(made.datapath or {}), "outcome": "equal" if like else "derived", "like": like}
        )

    assert diff(tmp_path / "same", [by()], [by(BF16)]).changes == ()
    (change,) = diff(tmp_path / "other", [by()], [by("x86.dpps")]).changes
    assert (change.kind, change.lines) == (
        "lowering",
        ("made of DPPS[f32,f32->f32]", "was made of VDPBF16PS[bf16,bf16->f32]"),
    )


def test_answers_to_open_questions(tmp_path: Path) -> None:
    old = questions(
        answered("carry", "settled", "all", "5 bits"), answered("zero", "settled", "-21", "25 vectors agree"),
        answered("nan", "settled", "", "0x7fff"), answered("gone", "open"), answered("amd", "not here", about=""),
    )  # fmt: skip
    new = questions(
        answered("carry", "settled", "none", "0 bits"), answered("zero", "settled", "-21", "99 vectors agree"),
        answered("nan", "settled", "", "0xffff"), answered("amd", "not here", about=""), answered("new", "open"),
    )  # fmt: skip
    found = diff(tmp_path, [part()], [part()], steps=((old,), (new,)))
    assert [(each.name, each.about, each.lines) for each in found.changes] == [
        ("carry", BF16, ("settled: none (0 bits)", "was settled: all (5 bits)")),
        ("gone", BF16, ("not asked", "was open")),
        ("nan", BF16, ("settled: 0xffff", "was settled: 0x7fff")),
        ("new", BF16, ("open", "was not asked")),
    ]


def test_the_cpu_of_a_bring_up_is_compared_too(tmp_path: Path) -> None:
    for day, paths in ((1, shipped()), (2, shipped(BF16, KEEPS))):
        night(tmp_path / str(day), part(MADD), day=day, device="cuda:0", identity=GPU)
        night(tmp_path / str(day) / "cpu", part(BF16, paths), day=day)
    found = compare_runs(*(facts_of(Store.open(tmp_path / name)) for name in ("1", "2")))
    assert kinds(found) == [(BF16, "datapath")]


def test_an_instruction_that_no_catalog_knows(tmp_path: Path) -> None:
    parts = [part("function.mine", shipped(), validation={}, vectors=0) for _ in range(2)]
    changed = part("function.mine", shipped(BF16, KEEPS), validation={}, vectors=0)
    assert diff(tmp_path / "a", parts[:1], parts[1:]).changes == ()
    (change,) = diff(tmp_path / "b", parts[:1], [changed]).changes
    assert change.vector is not None


@pytest.mark.parametrize("bend", ["cut", "changed", "missing", "nothing"])
def test_bad_input_is_2(tmp_path: Path, bend: str, capsys: pytest.CaptureFixture[str]) -> None:
    night(tmp_path / "1", part())
    night(tmp_path / "2", part(), day=2)
    path = tmp_path / "2" / "instructions" / f"{BF16}.json"
    text = path.read_text()
    if bend == "missing":
        path.unlink()
    else:
        path.write_text({"cut": text[:50], "changed": text.replace("finished", "partial"), "nothing": ""}[bend])
    for words in (["1", "2"], ["2", "1"]):
        assert main(["evidence", "diff", *(str(tmp_path / word) for word in words)]) == 2
        assert str(path) in capsys.readouterr().err
    assert main(["evidence", "diff", str(tmp_path), str(tmp_path / "1")]) == 2


def test_a_run_beside_itself_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(night(tmp_path / "1", part(), part(MADD)))
    assert main(["evidence", "diff", path, path]) == 0
    assert capsys.readouterr().out.splitlines()[2:] == [
        "both are the same run", "no difference in meaning; of 2 instructions both say the same",
    ]  # fmt: skip


def test_the_difference_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    diff(tmp_path, [part(BF16, shipped())], [part(BF16, shipped(BF16, KEEPS))])
    assert main(["evidence", "diff", "--json", str(tmp_path / "1"), str(tmp_path / "2")]) == 1
    told = json.loads(capsys.readouterr().out)
    (change,) = told["changes"]
    assert (told["exit_code"], told["alike"], change["name"], change["kind"]) == (1, 0, BF16, "datapath")
    assert change["old"] != change["vector"]["d"]


def test_two_processors_that_were_really_run() -> None:
    """AMD and Intel agree in all but what NaN DPPS hands on; neither has all of the other's instructions."""
    names = ("x86-64+amd-bc6b12d2e5a2", "x86-64+intel-63aa5f269c1d")
    found = compare_runs(*(facts_of(Store.open(COMMITTED / name)) for name in names))
    assert {each.name.partition("{")[0] for each in found.changes if each.kind == "datapath"} == {"x86.dpps"}
    assert {each.kind for each in found.changes} == {"datapath", "appeared"}
    assert found.alike > 60


@pytest.mark.parametrize(("name", "parameters", "said"), [
    ("model:x86-64+amd", "sha256:0", ""),
    ("model:x86-64+amd", "sha256:1", "its parameters are others"),
    ("model:x86-64+intel", "sha256:0", "device was model:x86-64+amd, is model:x86-64+intel"),
])  # fmt: skip
def test_what_was_held_against_another_reference_is_not_called_the_same(
    name: str, parameters: str, said: str, tmp_path: Path
) -> None:
    """A device that equals one model and, after a change, another one is equal both times, and has changed."""
    runs = []
    for day, reference in ((1, ("model:x86-64+amd", "sha256:0")), (2, (name, parameters))):
        identity = {"architecture": "x86-64", "parameters": reference[1]}
        settings = {"plan": {"name": "p"}, "parts": "", "reference": reference[0], "reference_identity": identity}
        runs.append(facts_of(Store.open(night(tmp_path / f"{day}", part(), part(MADD), day=day, settings=settings))))
    found = compare_runs(*runs)
    assert (found.changes, found.alike) == ((), 0 if said else 2)
    assert [remark[0] for remark in found.remarks] == ([MADD, BF16] if said else [])
    assert all(f"equal, as before, but {UNTOLD}: {said}" in remark for _, remark in found.remarks)
