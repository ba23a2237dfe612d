"""Two parameter files: the same function in other words is no difference, and one that differs is shown by a vector."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mmaprobe.catalog.lookup import instruction
from mmaprobe.cli import main
from mmaprobe.models.engine import evaluate
from mmaprobe.operands.literal import parse_vector
from mmaprobe.operands.witness_batches import as_vectors
from mmaprobe.parameters.datapath import Datapath, Fused
from mmaprobe.parameters.files import Basis, Entry, ParameterFile, to_text
from mmaprobe.parameters.lookup import load
from mmaprobe.parameters.mutate import mutate
from mmaprobe.survey import file_comparison
from mmaprobe.survey.file_comparison import compare_datapaths, compared

F16 = "MFMA.F16[f16,f16->f32,k8]"
SHIPPED = load("gfx942").entries
UNIT = instruction("v_mfma_f32_32x32x8_f16", "gfx942")
PAIRS = "43 pairs of primitives with one name"
Print = pytest.CaptureFixture[str]
Write = Callable[..., str]


def rewritten(path: Datapath) -> Datapath:
    """The same function: terms in another order, a step as long as K, a bound that no product reaches."""
    assert isinstance(path.tree, Fused)
    turned = replace(path, tree=replace(path.tree, terms=path.tree.terms[::-1]), step=0)
    return mutate(turned, "product.overflow_exponent", "none")


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A copy of the shipped file in which one primitive is another record."""

    def made(path: Datapath, basis: Basis = "published") -> str:
        entry = replace(SHIPPED[F16], datapath=path, basis=basis)
        file = tmp_path / "mine.toml"
        file.write_text(to_text(ParameterFile("gfx942", {**SHIPPED, F16: entry})), "utf-8")
        return str(file)

    return made


def test_other_words_are_no_difference(write: Write, capsys: Print) -> None:
    path = rewritten(SHIPPED[F16].datapath)
    assert main(["parameters", "diff", "gfx942", write(path)]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{F16}\n  in v_mfma_f32_32x32x8_f16\n")
    assert "\n  the same function, proved: terms of one sum have no order" in said
    assert said.endswith(f"no difference in meaning: {PAIRS}: 43 the same function, 0 not; 1 the same in other words\n")
    found = compare_datapaths(SHIPPED[F16].datapath, path)
    assert found.verdict == "written otherwise"
    assert found.proof
    assert all(step.holds for step in found.proof)


@pytest.mark.parametrize(
    "change", [("tree.terms.1.fraction_bits", "23"), ("tree.to.first", "30 RD"), ("tree.terms.0.rounding", "RZ")]
)
def test_another_function_is_shown_by_a_vector(change: tuple[str, str], write: Write, capsys: Print) -> None:
    """Also beside other words; the vector's two answers are those of the two datapaths."""
    old = SHIPPED[F16].datapath
    for new in (mutate(old, *change), rewritten(mutate(old, *change))):
        assert main(["parameters", "diff", "gfx942", write(new)]) == 1
        said = capsys.readouterr().out
        assert f"\n{F16}\n" in f"\n{said}"
        found = compare_datapaths(old, new)
        assert found.verdict == "another function"
        assert found.vector is not None
        vector = as_vectors(UNIT, [found.vector])
        assert [int(evaluate(path, vector)[0]) for path in (old, new)] == [found.other, found.vector.d]
        lines = said.splitlines()
        at = next(number for number, line in enumerate(lines) if line.startswith("    gfx942 gives "))
        shown = parse_vector(UNIT, lines[at - 1].split())
        told = [int(code, 16) for code in re.findall(r" gives (0x\w+)", lines[at])]
        assert [int(evaluate(path, shown)[0]) for path in (old, new)] == told
        assert lines[-1] == f"{PAIRS}: 42 the same function, 1 not"


def test_what_nothing_decides_is_a_difference(write: Write, capsys: Print, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_comparison, "same_function", lambda old, new: None)
    compare_datapaths.cache_clear()
    assert main(["parameters", "diff", "gfx942", write(rewritten(SHIPPED[F16].datapath))]) == 1
    assert "no vector was found that tells the two apart, and no proof" in capsys.readouterr().out
    compare_datapaths.cache_clear()


def test_a_basis_is_said_and_is_no_difference(write: Write, capsys: Print) -> None:
    assert main(["parameters", "diff", "gfx942", write(SHIPPED[F16].datapath, "predicted")]) == 0
    name, *said, last = filter(None, capsys.readouterr().out.splitlines())
    assert name == F16
    assert said[-1].startswith("  basis: published in gfx942, predicted in ")
    assert last == f"no difference in meaning: {PAIRS}: 43 the same function, 0 not"


def test_the_control_state_that_one_follows_is_a_difference(tmp_path: Path, capsys: Print) -> None:
    entries = load("x86-64").entries
    name = next(name for name, each in entries.items() if each.follows)
    file = tmp_path / "mine.toml"
    other: Entry = replace(entries[name], follows=())
    file.write_text(to_text(ParameterFile("x86-64", {**entries, name: other})), "utf-8")
    assert main(["parameters", "diff", "x86-64", str(file)]) == 1
    assert "control state obeyed: " in capsys.readouterr().out


def test_one_that_no_instruction_runs_alone_may_be_missing(tmp_path: Path, capsys: Print) -> None:
    """No device can be asked what it computes; any other is a difference."""
    entries = load("sm_90a").entries
    file = tmp_path / "mine.toml"
    for gone, code in (("FFMA[f32,f32->f32]", 0), ("HMMA.1688.F16[f16,f16->f16]", 1)):
        left = {name: each for name, each in entries.items() if name != gone}
        file.write_text(to_text(ParameterFile("sm_90a", left)), "utf-8")
        assert main(["parameters", "diff", "sm_90a", str(file)]) == code
        why = "inside of other instructions" if code == 0 else f"{file} has no such primitive"
        assert f"sm_90a alone, {why}: {gone}" in capsys.readouterr().out


def test_two_files_are_json_too(write: Write, capsys: Print) -> None:
    mine = write(mutate(SHIPPED[F16].datapath, "tree.to.rounding", "RZ"))
    assert main(["diff", "gfx942", mine, "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["differs"]
    (pair,) = (each for each in said["pairs"] if each["verdict"] == "another function")
    assert (pair["work"], pair["differences"][0]["field"]) == (F16, "tree.to.rounding")
    assert set(pair["differences"][0]["results"]) == {"gfx942", mine}
    assert said["lines"][-1] == f"{PAIRS}: 42 the same function, 1 not"


def test_other_operands_are_another_function() -> None:
    one, other = (load("gfx942").entries[name].datapath for name in (F16, "MFMA.F16[f16,f16->f32,k4]"))
    found = compare_datapaths(one, other)
    assert (found.verdict, found.vector) == ("another function", None)


def test_only_what_both_have_is_compared() -> None:
    some = ParameterFile("gfx942", {F16: SHIPPED[F16]})
    assert [name for name, _ in compared(load("gfx942"), some)] == [F16]
