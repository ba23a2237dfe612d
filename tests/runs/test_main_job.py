"""The main job: its evidence folder is whole after every end, and resuming does nothing twice."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import mmaprobe
from cases.sealing import replaced
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device, Support, open_device
from mmaprobe.errors import CannotWriteError, UsageError
from mmaprobe.evidence import files
from mmaprobe.evidence.files import Lock
from mmaprobe.evidence.store import Part, Store
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.files import read_parameter_file, to_text
from mmaprobe.runs.selection import select
from mmaprobe.survey.parameter_entries import parameter_file
from stand_ins.stepping import Heard

MODEL = "model:x86-64+intel"
QUICK: dict[str, Any] = {"instruction": "x86.vpdpbusd*", "vectors": 2000, "seed": 3}


@dataclass
class Breaking:
    """The model, but one instruction raises ``error``."""

    error: BaseException
    opcode: str = "x86.vpdpbusds"
    name: str = "breaking"
    inner: Device = open_device(MODEL)  # noqa: RUF009

    def info(self) -> dict[str, str]:
        return {"architecture": "x86-64+intel"}

    def instructions(self) -> Sequence[Instruction]:
        return self.inner.instructions()

    def supports(self, instruction: Instruction) -> Support:
        return self.inner.supports(instruction)

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        if instruction.opcode == self.opcode:
            raise self.error
        return self.inner.run(instruction, batch)


def test_evidence_is_complete(tmp_path: Path) -> None:
    report = mmaprobe.run(MODEL, out=tmp_path / "e", **QUICK)
    assert (report.exit_code, report.mismatches, report.ended) == (0, 0, "")
    store = Store.open(tmp_path / "e")
    assert store.finished
    assert set(store.parts) == {result.instruction.id for result in report.results}
    for part in store.parts.values():
        assert part.status == "finished"
        assert part.datapath
        assert part.datapath["datapath"]
        assert part.vectors == 2000
    assert report.vectors == sum(part.vectors for part in store.parts.values())


class Counts(Heard):
    """A listener that keeps what it hears."""

    def __init__(self) -> None:
        super().__init__()
        self.coming: list[tuple[int, int | None]] = []
        self.texts: list[str] = []
        self.named: list[str] = []
        self.vectors = 0

    def begin(self, instructions: int, vectors: int | None) -> None:
        self.coming.append((instructions, vectors))

    def at(self, text: str, left: float | None) -> None:
        super().at(text, left)
        self.texts.append(text)

    def derived(self, instruction: str) -> None:
        self.named.append(instruction)

    def compared(self, vectors: int) -> None:
        self.vectors += vectors


def test_a_listener_hears_what_is_to_come_and_what_is_done(tmp_path: Path) -> None:
    """The same of a run and by steps; of what an earlier run finished nothing is to come."""
    heard = Counts()
    report = mmaprobe.run(MODEL, out=tmp_path / "e", listener=heard, budget=60, **QUICK)
    names = [result.instruction.id for result in report.results]
    assert (heard.coming, heard.named, heard.vectors) == ([(6, 12_000)], names, 12_000)
    assert "x86.vpdpbusd: probing" in heard.texts
    assert all(left is not None and 0 < left < 3600 for left in heard.left)
    again = Counts()
    mmaprobe.run(MODEL, out=tmp_path / "e", listener=again, resume=True, **QUICK)
    assert (again.coming, again.named, again.vectors) == ([(0, 0)], [], 0)
    stepwise = Counts()
    mmaprobe.bring_up(MODEL, out=tmp_path / "s", listener=stepwise, steps=["survey", "validation"], **QUICK)
    assert (stepwise.coming, sorted(stepwise.named)) == ([(6, None)], sorted(names))
    assert stepwise.vectors == 12_000


def test_resume_does_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = mmaprobe.run(MODEL, out=tmp_path / "e", **QUICK)
    monkeypatch.setattr("mmaprobe.runs.instructions.derive", lambda *_, **__: pytest.fail("derived again"))
    again = mmaprobe.run(MODEL, out=tmp_path / "e", resume=True, **QUICK)
    assert (again.vectors, again.exit_code) == (first.vectors, 0)
    assert all(result.resumed for result in again.results)


def test_resume_where_clocks_were_read_anew(tmp_path: Path) -> None:
    """Clocks are readings; another model name is another device."""

    class Clocked:
        def __init__(self, **read_parameter_file: str) -> None:
            self.inner, self.read = open_device(MODEL), read_parameter_file

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        def info(self) -> dict[str, str]:
            return self.inner.info() | self.read

    mmaprobe.run(Clocked(clock_sm_mhz="1980"), out=tmp_path / "e", **QUICK)
    again = mmaprobe.run(Clocked(clock_sm_mhz="345"), out=tmp_path / "e", resume=True, **QUICK)
    assert all(result.resumed for result in again.results)
    with pytest.raises(UsageError, match="was begun with another identity"):
        mmaprobe.run(Clocked(uuid="GPU-1"), out=tmp_path / "e", resume=True, **QUICK)


@pytest.mark.parametrize("change", [{"seed": 4}, {"vectors": 3000}, {"instruction": "x86.pmaddwd"}])
def test_resume_needs_the_same_options(tmp_path: Path, change: dict[str, Any]) -> None:
    mmaprobe.run(MODEL, out=tmp_path / "e", **QUICK)
    with pytest.raises(UsageError, match=r"was begun with (another seed|other settings): .* now "):
        mmaprobe.run(MODEL, out=tmp_path / "e", resume=True, **(QUICK | change))
    with pytest.raises(UsageError, match="holds evidence already"):
        mmaprobe.run(MODEL, out=tmp_path / "e", **QUICK)


def test_a_tiny_budget_ends_cleanly_and_goes_on(tmp_path: Path) -> None:
    report = mmaprobe.run(MODEL, out=tmp_path / "e", budget=0, **QUICK)
    assert report.ended == "the budget was spent; 6 of 6 instructions and control states had less than 2,000 vectors"
    assert report.exit_code == 4
    assert not Store.open(tmp_path / "e").finished
    again = mmaprobe.run(MODEL, out=tmp_path / "e", resume=True, **QUICK)
    assert again.exit_code == 0
    assert Store.open(tmp_path / "e").finished


RELATED: dict[str, Any] = {"instruction": "x86.vfmadd.f16*", "vectors": 400, "seed": 3}
"""Control states of one opcode: each is derived from the datapath of the one before."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    out = tmp_path_factory.mktemp("undisturbed") / "e"
    run = mmaprobe.run(MODEL, out=out, **RELATED).run
    return {name: part.to_json("") for name, part in Store.open(out).parts.items()} | {"run": run}


class Killed(BaseException):
    """As SIGKILL: nothing catches it."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("after", [1, 3])
def test_a_resumed_run_gives_the_evidence_of_an_undisturbed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: dict[str, Any], after: int
) -> None:
    """Part by part the same bytes, but for the run's id: what is known of a relative comes from its part."""
    save, left = Store.save, iter(range(100))

    def killed(self: Store, part: Part) -> Path:
        if next(left) >= after:
            raise Killed
        return save(self, part)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "save", killed)
        with pytest.raises(Killed):
            mmaprobe.run(MODEL, out=tmp_path / "e", **RELATED)
    assert len(Store.open(tmp_path / "e").parts) == after
    report = mmaprobe.run(MODEL, out=tmp_path / "e", resume=True, **RELATED)
    parts = Store.open(tmp_path / "e").parts
    assert {name: part.to_json("") for name, part in parts.items()} | {"run": undisturbed["run"]} == undisturbed
    assert report.run != undisturbed["run"]


LIES: dict[str, Any] = {
    "exit code 0": lambda part: part["validation"].update(exit_code=0),
    "no exit code": lambda part: part["validation"].pop("exit_code", None),
    "counts of 0": lambda part: (part.update(mismatch_count=0, mismatches=[]), part["validation"].update(mismatches=0)),
    "every count of 0": lambda part: (
        part.update(mismatch_count=0, mismatches=[], vectors=0),
        part["validation"].update(mismatches=0, vectors=0, families={}),
    ),
    "no validation": lambda part: part.update(validation={}),
}


RED: dict[str, Any] = {"device": f"misbehaving:pattern?of={MODEL}", "instruction": "x86.vdpbf16ps", "vectors": 200_000}


@pytest.fixture(scope="module")
def red(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("red") / "e"
    assert mmaprobe.run(out=out, seed=3, **RED).exit_code == 1
    return out


@pytest.mark.sampled(4)
@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("sealing", ["as it was", "anew"])
def test_a_red_part_never_resumes_green(tmp_path: Path, red: Path, lie: str, sealing: str) -> None:
    """Its verdict is what its counts make; where these are bent it is refused, or compared nothing."""
    folder = shutil.copytree(red, tmp_path / "e")
    path = folder / "instructions" / f"{RED['instruction']}.json"
    part = json.loads(path.read_text())
    LIES[lie](part)
    replaced(path, part) if sealing == "anew" else path.write_text(files.json_text(part))
    try:
        code = mmaprobe.run(out=folder, resume=True, seed=3, **RED).exit_code
    except UsageError as error:
        code = error.exit_code
    harmless = lie == "no exit code" or (lie, sealing) == ("exit code 0", "anew")
    assert code == 1 if harmless else code in (2, 4)


def test_of_two_runs_in_one_folder_the_second_is_refused(tmp_path: Path) -> None:
    with Lock(tmp_path / "e"), pytest.raises(UsageError, match=f"process {os.getpid()} is writing there"):
        mmaprobe.run(MODEL, out=tmp_path / "e", **QUICK)
    assert mmaprobe.run(MODEL, out=tmp_path / "e", **QUICK).exit_code == 0
    assert sorted(path.name for path in (tmp_path / "e").iterdir()) == ["instructions", "manifest.json"]


def test_no_run_goes_on_in_evidence_without_digests(tmp_path: Path) -> None:
    mmaprobe.run(MODEL, out=tmp_path / "e", **QUICK)
    for path in (tmp_path / "e").rglob("*.json"):
        document = json.loads(path.read_text())
        path.write_text(json.dumps({**{k: v for k, v in document.items() if k != "sha256"}, "schema": 1}))
    with pytest.raises(UsageError, match="was written without digests"):
        mmaprobe.run(MODEL, out=tmp_path / "e", resume=True, **QUICK)


@pytest.mark.parametrize(("error", "code"), [(RuntimeError("dead"), 5), (KeyboardInterrupt(), 130)])
def test_one_instruction_dies(tmp_path: Path, error: BaseException, code: int) -> None:
    report = mmaprobe.run(Breaking(error), out=tmp_path / "e", **QUICK)
    assert report.exit_code == code
    parts = Store.open(tmp_path / "e").parts
    assert parts["x86.vpdpbusd"].status == "finished"
    if code == 5:
        assert {name for name, part in parts.items() if part.status == "partial"} == {
            name for name in parts if name.startswith("x86.vpdpbusds")
        }
        assert "dead" in parts["x86.vpdpbusds"].validation["error"]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "e").write_text("a file")
    with pytest.raises(CannotWriteError) as caught:
        mmaprobe.run(MODEL, out=tmp_path / "e", **QUICK)
    assert caught.value.exit_code == 6


def test_a_full_disk_keeps_what_was_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, left = files._write_through, iter(range(100))

    def full(folder: int, name: str, content: bytes) -> None:
        if next(left) >= 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(folder, name, content)

    monkeypatch.setattr(files, "_write_through", full)
    with pytest.raises(CannotWriteError, match="No space left"):
        mmaprobe.run(MODEL, out=tmp_path / "e", **QUICK)
    monkeypatch.undo()
    store = Store.open(tmp_path / "e")
    assert [part.status for part in store.parts.values()] == ["finished"]
    assert not list((tmp_path / "e").rglob(".*"))
    assert mmaprobe.run(MODEL, out=tmp_path / "e", resume=True, **QUICK).exit_code == 0


def test_parameters_from_evidence(tmp_path: Path) -> None:
    mmaprobe.run(MODEL, out=tmp_path / "e", **QUICK)
    derived = parameter_file(Store.open(tmp_path / "e"))
    (tmp_path / "x86-64+intel.toml").write_text(to_text(derived))
    assert read_parameter_file(tmp_path / "x86-64+intel.toml").entries.keys() == derived.entries.keys()
    assert {entry.basis for entry in derived.entries.values()} == {"predicted"}  # a model's answers are no measurement


def test_no_parameters_from_a_device_that_fails(tmp_path: Path) -> None:
    mmaprobe.run(f"misbehaving:flaky?p=0.02&of={MODEL}", out=tmp_path / "e", **QUICK)
    with pytest.raises(UsageError, match="nothing is written"):
        parameter_file(Store.open(tmp_path / "e"))


def test_a_glob_names_ids_that_a_device_lists_together() -> None:
    """A model lists wgmma by its first N; a glob or an id of another one names that."""
    hopper = open_device("model:sm_90a")
    groups, absent = select(hopper, "wgmma*n128k16.f32.*{a=regs}")
    assert {(group[0].n, group[0].modifiers) for group in groups} == {(128, (("a", "regs"),))}
    assert [group[0].a for group in groups] == ["f16", "bf16", "tf32"]
    assert absent == []
    ((only,),), _ = select(hopper, "wgmma.mma_async.m64n256k16.f32.bf16.bf16{trans_b}")
    assert only.id == "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16{trans_b}"
