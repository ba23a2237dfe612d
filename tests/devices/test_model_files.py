"""A parameter file is a device: it brings the rows of its architecture, and every call takes its path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mmaprobe
from cases.new_unit import PRIMITIVE, parameters
from mmaprobe.catalog import lookup, supplements
from mmaprobe.cli import main
from mmaprobe.devices.model import open_model
from mmaprobe.errors import UsageError
from mmaprobe.parameters.files import ParameterFile, from_text, to_text
from mmaprobe.parameters.lookup import load
from mmaprobe.survey.parameter_entries import basis_of

X86 = "model:x86-64+intel"
Print = pytest.CaptureFixture[str]


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The path of a parameter file of an architecture that nothing else knows."""
    (tmp_path / "acme9.toml").write_text(to_text(parameters()), "utf-8")
    monkeypatch.chdir(tmp_path)
    return "acme9.toml"


def test_what_it_carries_along_is_read_as_it_was_written() -> None:
    text = to_text(parameters())
    assert from_text(text, "acme9.toml") == replace(parameters(), entries=from_text(text, "acme9.toml").entries)
    assert to_text(from_text(text, "acme9.toml")) == text
    assert "catalog" not in to_text(load("sm_80"))


def test_it_is_a_device(acme: str) -> None:
    device = mmaprobe.device(f"model:{acme}")
    (made,) = device.instructions()
    assert made.id == "acme.fma"
    assert device.supports(made)
    assert device.info()["architecture"] == "acme9"
    assert device.info()["file"] == acme
    assert "edited" not in device.info()["parameters"]
    assert basis_of(device.name, device.info()) == "predicted"
    assert lookup.match("acme9", "*") == (made,)


@pytest.mark.parametrize("kind", [str, Path])
def test_a_model_by_its_path(acme: str, kind: Callable[[str], Any]) -> None:
    one = np.ones((3, 1), np.float32)
    assert mmaprobe.model(kind(acme), "acme.fma").dot(one, one, one[:, 0]).tolist() == [2.0, 2.0, 2.0]


def test_an_edited_copy_of_what_ships_is_what_the_copy_says(tmp_path: Path) -> None:
    """The path counts, not the architecture's shipped file; and what ships is not said to be edited."""
    shipped, made = load("x86-64"), lookup.instruction("x86.pmaddwd")
    path = tmp_path / "mine.toml"
    kept = {name: entry for name, entry in shipped.entries.items() if name.startswith("PMADDWD")}
    path.write_text(to_text(ParameterFile("x86-64", kept)), "utf-8")
    device = open_model(str(path))
    assert device.supports(made)
    assert not device.supports(lookup.instruction("x86.dpps"))
    assert mmaprobe.model(path, "x86.pmaddwd").datapath == mmaprobe.model("x86-64", "x86.pmaddwd").datapath


def test_commands_take_its_path(acme: str, capsys: Print) -> None:
    assert main(["parameters", "show", acme]) == 0
    assert capsys.readouterr().out.startswith(f"{PRIMITIVE}\n")
    assert main(["parameters", "diff", acme, acme]) == 0
    assert main(["parameters", "diff", acme, "x86-64"]) == 1
    assert f"{acme} alone, x86-64 has" in capsys.readouterr().out
    assert main(["explain", acme, "acme.fma", "1.5", "2", "0.25"]) == 0
    assert "d = 40500000" in capsys.readouterr().out
    assert main(["validate", f"model:{acme}", f"model:{acme}", "acme.fma", "-n", "1000"]) == 0


@pytest.mark.parametrize("order", [0, 1])
def test_the_witnesses_are_those_of_the_file(acme: str, order: int, capsys: Print) -> None:
    """Whichever of the two devices it is; a mutant of it is found out."""
    names = [f"model:{acme}", f"mutant:{acme}/FMA/tree.to.rounding=RZ"]
    assert main(["validate", f"model:{acme}", f"model:{acme}", "--plan", "witnesses"]) == 0
    assert "vectors of 1 instruction, 0 mismatches" in capsys.readouterr().out
    assert main(["validate", names[order], names[1 - order], "--plan", "witnesses"]) == 1
    assert "acme.fma" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("schema = 1\n\n[cat", "schema = 3\n\n[cat"), "catalog: schema is 3"),
        (lambda text: text.replace('a = "f32"', 'a = "f23"', 1), "row 1 (acme): unknown format 'f23'"),
        (lambda text: text.replace('family = "acme"', 'famly = "acme"'), "row 1 (no family): unknown key 'famly'"),
        (lambda text: text.replace("[[catalog.row]]", "[[catalog.rows]]", 1), "unknown key"),
        (lambda text: text.replace('architecture = "acme9"', 'architecture = "acme8"'), "unknown architecture 'acme8'"),
        (lambda text: "catalog = 3\n" + text[: text.index("[[cat")] + text[text.index("[[prim") :],
         "catalog is a list of tables"),
        (lambda text: text[:-20], "acme9.toml"),
    ],
)  # fmt: skip
def test_a_broken_file_is_one_line_and_adds_nothing(acme: str, change: Callable[[str], str], message: str) -> None:
    text = Path(acme).read_text("utf-8")
    assert change(text) != text
    Path(acme).write_text(change(text), "utf-8")
    before = supplements.added()
    with pytest.raises(UsageError) as caught:
        open_model(acme)
    assert str(caught.value).startswith(acme)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert supplements.added() == before


def test_a_file_that_is_not_there(capsys: Print) -> None:
    assert main(["parameters", "show", "nowhere.toml"]) == 2
    assert capsys.readouterr().err == "mmaprobe: nowhere.toml: No such file or directory\n"


def test_a_file_without_the_rows_says_where_they_come_from(acme: str, capsys: Print) -> None:
    Path("bare.toml").write_text(to_text(replace(parameters(), catalog=())), "utf-8")
    words = ["validate", "model:bare.toml", "model:bare.toml", "acme.fma", "-n", "1000"]
    assert main(words) == 2
    assert "bare.toml: unknown architecture 'acme9'" in (said := capsys.readouterr().err)
    assert said.endswith("--catalog FILE\n")
    assert main([*words, "--catalog", acme]) == 0
