"""``--catalog``: every command and suite takes rows from outside, and says what is wrong with them."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cases.new_unit import CATALOG, PRIMITIVE, device_of, parameters, program
from mmaprobe.cli import main
from mmaprobe.cli.terminal import app, corpus_app, evidence_app, parameters_app, vectors_app
from mmaprobe.devices.mutant import with_datapath
from mmaprobe.parameters.files import ParameterFile, to_text
from mmaprobe.parameters.lookup import load
from mmaprobe.parameters.mutate import mutate

Print = pytest.CaptureFixture[str]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a catalog file, a parameter file of it without rows, and the page's program."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "acme.toml").write_text(CATALOG, "utf-8")
    (tmp_path / "acme9.toml").write_text(to_text(parameters()), "utf-8")
    (tmp_path / "acme.py").write_text(program(), "utf-8")
    return tmp_path


def test_every_command_has_the_option() -> None:
    for group in (app, corpus_app, evidence_app, parameters_app, vectors_app):
        for command in group.registered_commands:
            assert command.callback is not None
            assert "catalog" in command.callback.__annotations__, command.callback.__name__


@pytest.mark.parametrize("words", [
    "instructions acme9", "instructions", "layout acme.fma", "parameters show acme9", "parameters diff acme9 acme9",
    "vectors show acme.fma/uniform.1/0/3", "bench acme9 --smoke",
])  # fmt: skip
def test_commands_know_the_architecture(acme: Path, words: str, capsys: Print) -> None:
    code = main([*words.split(), "--catalog", "acme.toml"])
    assert code == 0, capsys.readouterr().err


@pytest.mark.parametrize("words", ["instructions acme9", "layout acme.fma", "vectors show acme.fma/uniform.1/0/3"])
def test_without_it_the_error_names_it(acme: Path, words: str, capsys: Print) -> None:
    assert main(words.split()) == 2
    assert capsys.readouterr().err.endswith("or name the file that has it: --catalog FILE\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CATALOG.replace("k = 1", "kk = 1"), "acme.toml, row 1 (acme): unknown key 'kk'; did you mean k"),
        (CATALOG + "[more]\n", "acme.toml: unknown key 'more'"),
        (CATALOG[:60], "acme.toml"),
    ],
)
def test_a_wrong_file_is_one_line(acme: Path, text: str, message: str, capsys: Print) -> None:
    Path("acme.toml").write_text(text, "utf-8")
    assert main(["instructions", "acme9", "--catalog", "acme.toml"]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_a_parameter_file_is_what_ships_of_its_architecture(acme: Path, capsys: Print) -> None:
    given = ["--catalog", "acme9.toml"]
    assert main(["parameters", "show", "acme9", *given]) == 0
    assert capsys.readouterr().out.startswith(f"{PRIMITIVE}\n")
    assert main(["explain", "acme9", "acme.fma", "1", "2", "3", *given]) == 0
    assert main(["instructions", "acme9", *given]) == 0
    assert "published" in capsys.readouterr().out
    assert main(["validate", "model:acme9", "model:acme9.toml", "acme.fma", "-n", "100", *given]) == 0
    assert main(["parameters", "diff", "acme9", "acme9.toml", *given]) == 0


@pytest.mark.parametrize(("written", "code"), [("tree.to.rounding=RNE", 0), ("tree.to.rounding=RZ", 1), ("", 1)])
def test_a_run_is_held_against_it(acme: Path, written: str, code: int, capsys: Print) -> None:
    """What is derived is the file's datapath or not; without a word of it in the file it is new."""
    file = parameters()
    if written and code:
        file = with_datapath(file, PRIMITIVE, mutate(file.entries[PRIMITIVE].datapath, *written.split("=")))
    file = file if written else replace(file, entries={})
    Path("reviewed.toml").write_text(to_text(file), "utf-8")
    words = ["run", "-d", "model:acme9.toml", "-n", "1000", "--seed", "1", "--out", "e", "--check"]
    assert main([*words, "--catalog", "reviewed.toml"]) == code
    assert ("new, nothing is shipped for it" in capsys.readouterr().out) == (not written)


def test_what_ships_gives_way_to_it_and_says_so(acme: Path, capsys: Print) -> None:
    entry = load("x86-64").entries["DPPS[f32,f32->f32]"]
    Path("mine.toml").write_text(
        to_text(ParameterFile("x86-64", {entry.primitive: replace(entry, source="read by me")})), "utf-8"
    )
    assert main(["parameters", "show", "x86-64", "--catalog", "mine.toml"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("edited")
    assert "read by me" in said
    assert "PMADDWD" in said
    assert main(["parameters", "show", "x86-64"]) == 0


def test_a_wrong_parameter_file_adds_nothing(acme: Path, capsys: Print) -> None:
    Path("acme9.toml").write_text(to_text(parameters()).replace("primitives = 1", "primitives = 2"), "utf-8")
    assert main(["parameters", "show", "acme9", "--catalog", "acme9.toml"]) == 2
    assert "truncated" in capsys.readouterr().err
    assert main(["parameters", "show", "acme9"]) == 2


def test_a_file_that_is_not_there(capsys: Print) -> None:
    assert main(["instructions", "--catalog", "nowhere.toml"]) == 2
    assert capsys.readouterr().err == "mmaprobe: nowhere.toml: No such file or directory\n"


def test_a_file_of_another_architecture_is_told_before_anything_is_derived(acme: Path, capsys: Print) -> None:
    """And a broken one, and one that the device contradicts; the file stays as it is."""
    device = device_of(acme / "acme.py")
    for text, message in (
        (to_text(parameters()), "acme9.toml is of acme9, the device of acme1"),
        ("schema = 1\n", "key 'architecture' is missing"),
    ):
        Path("acme9.toml").write_text(text, "utf-8")
        assert main(["derive", "acme.dot4", "-d", device, "--write", "acme9.toml"]) == 2
        assert message in capsys.readouterr().err
        assert Path("acme9.toml").read_text("utf-8") == text


def test_what_is_derived_of_a_function_is_written_and_loads(acme: Path, capsys: Print) -> None:
    made, device = "function.numpy:dot{format=f64,k=2}", "function:numpy:dot?k=2&format=f64"
    assert main(["derive", made, "-d", device, "--fresh", "1000", "--write", "dot.toml"]) == 0
    assert f"{made}: new (predicted)" in capsys.readouterr().out
    assert main(["validate", device, "model:dot.toml", made, "-n", "1000"]) == 0
    assert main(["derive", "function", "-d", device, "--fresh", "1000", "--write", "dot.toml", "--check"]) == 0
    assert main(["derive", "dot", "-d", device]) == 2
    assert f"has no instruction 'dot'; it has {made}" in capsys.readouterr().err


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("given", "code"), [(["--catalog", "acme.toml"], 0), ([], 4), (["--catalog", "no.toml"], 4)])
def test_the_suites_take_it(acme: Path, given: list[str], code: int) -> None:
    Path("bare9.toml").write_text(to_text(replace(parameters(), catalog=())), "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--seed", "1", str(ROOT / "probes"),
               "--device", "model:bare9.toml", "--ref", device_of(acme / "acme.py"), "-k", "determinism",
               *given]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, cwd=acme, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    assert "--catalog FILE" in done.stderr or "no.toml" in done.stderr or not code
