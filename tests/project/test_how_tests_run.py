"""The tests' own command: all cores for ``tests/`` alone, long ones left out, one line on what did not run."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import spread
from needs import CUDA, NEEDS, said

CHECKOUT = Path(__file__).parents[2]
SUITE = """
import os, pytest
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "none")

@pytest.mark.long
def test_long(): pass

@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", range(9))
def test_of_nine(number): print("number", number, "worker", WORKER)

@pytest.mark.needs("corpus")
def test_of_a_corpus(): pass

def test_of_a_cpu(): pytest.skip("x86.tdpbf16ps: needs amx-tile")
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a few tests and, as ``probes``, the same ones again."""
    for name in ("tests", "probes"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"test_of_{name}.py").write_text(SUITE)
    for name in ("tests/conftest.py", "tests/needs.py", "pyproject.toml"):
        shutil.copy(CHECKOUT / name, tmp_path / name)
    return tmp_path


def run(folder: Path, *words: str, **environment: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", *words]
    clean = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": ":".join(filter(None, sys.path)),
        "PYTEST_XDIST_AUTO_NUM_WORKERS": "2",
    }
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=clean | environment, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.long
def test_a_file_that_cannot_be_loaded_is_counted_once(checkout: Path) -> None:
    """Though every worker loads it."""
    text = "import pytest\npytest.importorskip('cuda.bindings.absent')\n"
    (checkout / "tests" / "test_of_a_module.py").write_text(text)
    assert "; 1 whole files want the CUDA wheels (" in run(checkout)[1]


@pytest.mark.long
def test_the_command_alone_says_in_one_line_what_did_not_run(checkout: Path) -> None:
    """With workers and without the same."""
    for words in ((), ("-n", "0"), ("-p", "no:xdist")):
        code, said = run(checkout, *words)
        assert code == 0, said
        assert "3 passed, 2 skipped" in said
        assert {f"number {i} worker" in said for i in (0, 4, 8)} == {True}
        (line,) = (line for line in said.splitlines() if line.startswith("did not run: "))
        assert line == (
            "did not run: 1 want a corpus (MMAPROBE_CORPUS=FOLDER pytest); 1 want another CPU (amx-tile); "
            "7 are long (nox -s long)"
        )


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("words", "workers"), [
    ((), True), (("tests",), True), (("-n", "1"), True), (("-n", "0"), False), (("-p", "no:xdist"), False),
    (("probes",), False), (("--pdb",), False), (("--dist", "no"), True), (("tests/test_of_tests.py",), False),
    (("tests", "probes"), False),
], ids=str)  # fmt: skip
def test_all_of_tests_and_nothing_else_runs_on_all_cores(checkout: Path, words: tuple[str, ...], workers: bool) -> None:
    """Unless the user says how many."""
    code, said = run(checkout, *words)
    assert code == 0, said
    assert ("worker gw" in said) == workers
    assert ("worker none" in said) == (not workers)
    assert ("worker gw1" in said) == (workers and words != ("-n", "1"))


@pytest.mark.long
def test_long_tests_run_when_they_are_asked_for(checkout: Path) -> None:
    assert "7 passed" in run(checkout, "-n", "0", "-m", "long")[1]
    assert "10 passed, 2 skipped" in run(checkout, "-n", "0", "-m", "")[1]
    assert "1 passed" in run(checkout, "-m", "", "tests/test_of_tests.py::test_long")[1]
    assert "1 passed" in run(checkout, "tests/test_of_tests.py::test_of_nine[1]")[1]


@pytest.mark.long
def test_of_long_parameters_others_run_each_day(checkout: Path) -> None:
    """Every one in as many days as are left out of; a test without parameters one day in three."""
    days = [
        run(checkout, "-n", "0", "-m", "long", "--one-in", "3", "--turn", str(day))[1] for day in (20780, 20781, 20782)
    ]
    found = [{number for number in range(9) if f"test_of_nine[{number}]" in said} for said in days]
    assert sorted(number for each in found for number in each) == [1, 2, 3, 5, 6, 7]
    assert [len(each) for each in found] == [2, 2, 2]
    assert sum("PASSED tests/test_of_tests.py::test_long" in said for said in days) == 1


@pytest.mark.long
def test_equipped_is_not_skipped(checkout: Path) -> None:
    """What CI installed must be there; a name that nothing needs is refused."""
    code, said = run(checkout, "-n", "0", "--equipped", "g++,corpus")
    assert code == 1
    assert "--equipped names corpus, but MMAPROBE_CORPUS names no folder of a corpus" in said
    code, said = run(checkout, "--equipped", "gcc")
    assert code == 4
    assert "--equipped gcc: known are cuda, " in said


def test_the_line_groups_by_what_gets_it() -> None:
    tests = [("cuda", "no nvrtc"), ("cuda.bindings", "no cuda"), ("", "nothing to do wrong")]
    want = f"2 and 1 whole files want {CUDA[0]} ({CUDA[1]})"
    assert said(tests, ["cuda.bindings"], 0) == f"did not run: {want}; 1 say why themselves (pytest -rs)"
    assert said([], ["cuda.bindings"], 0) == f"did not run: 1 whole files want {CUDA[0]} ({CUDA[1]})"
    assert said([], [], 0) == ""


@pytest.mark.parametrize(("count", "kept", "numbers"), [(9, 3, {0, 4, 8}), (2, 5, {0, 1}), (5, 1, {0}), (1, 1, {0})])
def test_a_sample_is_spread(count: int, kept: int, numbers: set[int]) -> None:
    assert spread(count, kept) == numbers


@pytest.mark.parametrize("name", NEEDS)
def test_every_need_names_the_command_that_gets_it(name: str) -> None:
    assert NEEDS[name].command.split()[0] in ("pip", "apt", "nox", "MMAPROBE_CORPUS=FOLDER", "MMAPROBE_ROWS=FOLDER")


@pytest.mark.long
def test_a_file_that_is_skipped_whole_says_what_it_needs() -> None:
    """CI runs what the stranger lacked the tools for by its mark: a file that cannot be imported without a module, and
    does not say so itself, would run nowhere."""
    tests = CHECKOUT / "tests"
    needy = {
        path for path in tests.rglob("*.py") if re.search(r"^(\w+ = )?pytest\.importorskip", path.read_text(), re.M)
    }
    assert needy, "nothing is skipped whole: this test can go"
    for path in sorted(tests.rglob("test_*.py")):
        if needy & reached(path, tests):
            assert re.search(r"^pytestmark = .*needs\(", path.read_text(), re.M), f"{path} lacks its pytestmark"


def reached(path: Path, tests: Path) -> set[Path]:
    """The files of the tests that a file imports, and those that they import."""
    found, waiting = set[Path](), [path]
    while waiting:
        for node in ast.walk(ast.parse(waiting.pop().read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            new = {file for name in names if (file := tests / f"{name.replace('.', '/')}.py").exists()} - found
            found |= new
            waiting += new
    return found
