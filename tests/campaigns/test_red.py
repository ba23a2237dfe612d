"""What must be red is red by a plan, by shards that are merged, and by every engine: no way makes a liar green."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cases.clusters import dask_cluster, one_node_slurm
from mmaprobe.cli import main
from mmaprobe.evidence.store import Part
from mmaprobe.exit_codes import DEVICE_FAILED, INCONCLUSIVE, MISMATCH, NOT_HERE

REF = "model:x86-64+amd"
PLAN = """
instructions = ["x86.vdpbf16ps", "x86.vpdpbusd"]
vectors = {vectors}
least_vectors = {vectors}
least_instructions = {least}
"""


@dataclass(frozen=True)
class Red:
    """A device under test, the plan's minimum of instructions, more options, and the exit code that it must come to."""

    dut: str
    code: int
    least: int = 2
    vectors: int = 20_000
    options: tuple[str, ...] = ()


def liar(words: str) -> str:
    return f"misbehaving:{words}of={REF}"


CASES = {
    "answers 0": Red(liar("zeros?"), MISMATCH),
    "answers what it was asked before": Red(liar("previous?"), DEVICE_FAILED),
    "answers another shape": Red(liar("shape?"), DEVICE_FAILED),
    "errs now and then": Red(liar("flaky?p=0.01&"), DEVICE_FAILED),
    "errs from the tenth call on": Red(liar("shape?after=9&"), DEVICE_FAILED),
    "errs every second call": Red(liar("call?n=2&"), DEVICE_FAILED),
    "errs on its own buffer": Red(liar("kept?p=0.01&"), DEVICE_FAILED),
    "overwrites its operands": Red(liar("operands?"), MISMATCH),
    "errs the second time": Red(liar("again?"), DEVICE_FAILED),
    "raises": Red(liar("crash?"), DEVICE_FAILED),
    "computes by another rounding": Red("mutant:x86-64+amd/VDPBF16PS[bf16,bf16->f32]/tree.to.rounding=RZ", MISMATCH),
    "has fewer instructions than the plan wants": Red(REF, INCONCLUSIVE, least=3),
    "has no time": Red(REF, INCONCLUSIVE, vectors=10**9, options=("--budget", "0.00001")),
    "has none of the instructions": Red("model:sm_90a", NOT_HERE),
}
"""What of a campaign is no success, and its exit code."""
BY_ENGINES = ("answers 0", "errs now and then", "raises", "has fewer instructions than the plan wants", "has no time")
"""Those that are run by each engine: a kind of each."""


def words(case: Red, tmp_path: Path) -> list[str]:
    """The command of a case, its evidence into a folder ``out``."""
    plan = tmp_path / "red.toml"
    plan.write_text(PLAN.format(vectors=case.vectors, least=case.least))
    return [
        "validate",
        case.dut,
        REF,
        "--plan",
        str(plan),
        "--seed",
        "3",
        "--out",
        str(tmp_path / "out"),
        *case.options,
    ]


@pytest.mark.parametrize("name", CASES)
def test_by_a_plan(name: str, tmp_path: Path) -> None:
    assert main(words(CASES[name], tmp_path)) == CASES[name].code


@pytest.mark.parametrize("name", CASES)
def test_by_shards_that_are_merged(name: str, tmp_path: Path) -> None:
    """A shard is red of its own where anything differs; what the plan wants at least the merge says."""
    case = CASES[name]
    shards = [main([*words(case, tmp_path), "--shard", f"{number}/2"]) for number in range(2)]
    if case.code == NOT_HERE:
        assert shards == [NOT_HERE] * 2
        return
    assert set(shards) <= {0, case.code}
    assert case.least > 2 or case.code in shards
    assert main(["merge", str(tmp_path / "out"), "--out", str(tmp_path / "all")]) == case.code


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", BY_ENGINES)
def test_by_processes(name: str, tmp_path: Path) -> None:
    assert main([*words(CASES[name], tmp_path), "--workers", "2", "--shards", "2"]) == CASES[name].code


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with dask_cluster() as found:
        yield found


@pytest.mark.needs("dask")
@pytest.mark.parametrize("name", BY_ENGINES)
def test_by_dask(name: str, address: str, tmp_path: Path) -> None:
    engine = ("--engine", "dask", "--scheduler", address, "--shards", "2")
    assert main([*words(CASES[name], tmp_path), *engine]) == CASES[name].code


@pytest.mark.long
@pytest.mark.needs("slurm")
def test_by_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with one_node_slurm(tmp_path / "slurm") as configuration:
        monkeypatch.setenv("SLURM_CONF", str(configuration))
        for number, name in enumerate(BY_ENGINES):
            (tmp_path / str(number)).mkdir()
            engine = ("--engine", "slurm", "--workers", "2", "--shards", "2")
            assert main([*words(CASES[name], tmp_path / str(number)), *engine]) == CASES[name].code, name


@pytest.mark.long
def test_a_unit_that_ends_the_process_of_its_worker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its shard is run three times, each in a new process, and named."""
    case = Red(liar("exit?"), DEVICE_FAILED)
    assert main([*words(case, tmp_path), "--workers", "2", "--shards", "2"]) == DEVICE_FAILED
    assert "its process died, 3 times; alone: --shard " in capsys.readouterr().err


@pytest.mark.parametrize(("named", "code"), [(["x86.vdpbf16ps"], MISMATCH), ([], INCONCLUSIVE)])
def test_what_cannot_be_asked_is_inconclusive_beside_whatever_else_is_wrong(
    named: list[str], code: int, tmp_path: Path
) -> None:
    """This device has no answer to x86.dpps, whose accumulator it lacks: no usage of anybody's is wrong (2), and what
    the other instruction comes to is not hidden; nor is it equal to whoever verifies."""
    plan, dut = tmp_path / "red.toml", liar("c?")
    plan.write_text(f"instructions = {[*named, 'x86.dpps']}\nvectors = 2_000\nleast_instructions = 1\n")
    given = ["validate", dut, REF, "--plan", str(plan), "--seed", "3", "--out", str(tmp_path / "out")]
    assert main(given) == code
    assert main(["evidence", "verify", str(tmp_path / "out")]) == code
    assert main(["merge", str(tmp_path / "out" / "shards"), "--out", str(tmp_path / "all")]) == code


def test_evidence_of_before_in_which_an_instruction_ended_with_2_is_not_equal() -> None:
    assert Part("x86.dpps", "partial", validation={"error": "no", "error_code": 2}, vectors=9).exit_code == INCONCLUSIVE
