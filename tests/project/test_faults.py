"""The table of seeded faults (``tests/mutants``): every row applies; the runner tells a killed one from a living."""

from __future__ import annotations

import ast
import fcntl
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from mutants import run
from mutants.table import ROOT, BadTable, Fault, faults

ROWS = faults()
LEAST = {"c++": 25, "data": 15, "ci": 10}
MOST_A_FILE = 8


@cache
def functions(file: str) -> dict[str, str]:
    """The tests that a file defines, with their decorators."""
    made = [node for node in ast.walk(ast.parse((ROOT / file).read_text("utf-8"))) if isinstance(node, ast.FunctionDef)]
    return {node.name: " ".join(map(ast.unparse, node.decorator_list)) for node in made}


def test_every_fault_applies() -> None:
    """Each row's old text stands in its file exactly once: a row that no longer applies is mended, not skipped."""
    wrong = []
    for fault in ROWS:
        try:
            assert fault.applied(ROOT) != (ROOT / fault.file).read_text("utf-8")
        except BadTable as error:
            wrong.append(str(error))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("fault", ROWS, ids=lambda fault: fault.name)
def test_the_killers_of_a_fault_are_tests(fault: Fault) -> None:
    for killer in fault.killers:
        file, _, rest = killer.partition("::")
        assert (ROOT / file).is_file(), killer
        name, one, _ = rest.partition("[")
        assert not rest or name in functions(file), killer
        marks = functions(file).get(name, "")
        assert fault.long or "mark.long" not in marks, f"{killer} is not in the bare command: the row is long"
        assert not (one and "mark.sampled" in marks), f"{killer} may be left out of the bare command: name the test"
        assert len(fault.why) > 20


ROW = """[[fault]]
name = "{name}"
file = "src/sum.py"
old = "{old}"
new = "x - y"
killers = ["tests/test_sum.py::{killer}"]
why = "a sign"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of its own: a sum and two tests, of which one looks at it."""
    for name, text in {
        "src/sum.py": "def add(x, y):\n    return x + y\n",
        "tests/test_sum.py": "from sum import add\n\ndef test_looks():\n    assert add(2, 2) == 4\n\n"
        "def test_looks_away():\n    assert add(2, 0) == 2\n\ndef test_fails():\n    assert add(1, 1) == 3\n",
        "pyproject.toml": '[tool.pytest.ini_options]\nmarkers = ["long: more"]\n',
    }.items():
        (tmp_path / "checkout" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "checkout" / name).write_text(text)
    subprocess.run(["git", "init", "-q", str(tmp_path / "checkout")], check=True)
    return tmp_path / "checkout"


def ran(checkout: Path, *rows: str, more: tuple[str, ...] = ()) -> int:
    tables = checkout.parent / "tables"
    tables.mkdir(exist_ok=True)
    (tables / "faults.toml").write_text("\n".join(rows))
    words = ["--root", str(checkout), "--tables", str(tables), "--work", str(checkout.parent / "work"), *more]
    return run.main(words)


def test_a_fault_is_killed_or_survives(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen = ROW.format(name="seen", old="x + y", killer="test_looks")
    unseen = ROW.format(name="unseen", old="x + y", killer="test_looks_away")
    assert ran(checkout, seen, unseen) == 1
    said = capsys.readouterr().out
    assert "survived: unseen (src/sum.py)" in said
    assert "survived: seen" not in said
    assert said.count("killed ") == 2  # its line, and the head of the table
    assert (checkout / "src" / "sum.py").read_text() == "def add(x, y):\n    return x + y\n"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("reason", "state"), [("x86.vpdpwssd needs avx512vnni", "absent"), ("no time for it", "survived")]
)
def test_a_killer_that_this_cpu_cannot_run_is_absent(
    reason: str, state: str, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not survived: nobody looked; and another reason to skip is none."""
    skips = f"import pytest\n\ndef test_skips():\n    pytest.skip({reason!r})\n"
    (checkout / "tests" / "test_cpu.py").write_text(skips)
    row = ROW.format(name="seen", old="x + y", killer="test_skips").replace("test_sum.py", "test_cpu.py")
    seen = ROW.format(name="other", old="x + y", killer="test_looks")
    assert ran(checkout, row, seen, more=("--passed",)) == (state == "survived")
    assert re.search(rf"(?m)^{state} .* seen$", capsys.readouterr().out)


@pytest.mark.long
def test_a_killer_that_fails_anyway_and_the_whole_suite(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A test that fails without the fault kills nothing; ``--whole`` finds the test that the row should have named."""
    assert ran(checkout, ROW.format(name="broken", old="x + y", killer="test_fails")) == 1
    assert "broken: broken (src/sum.py)" in capsys.readouterr().out
    assert ran(checkout, ROW.format(name="unseen", old="x + y", killer="test_looks_away"), more=("--whole",)) == 0


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (ROW.format(name="gone", old="x * y", killer="test_looks"), "its old text stands 0 times in src/sum.py"),
        (ROW.format(name="twice", old="x", killer="test_looks"), "its old text stands 2 times in src/sum.py"),
        (ROW.format(name="moved", old="x + y", killer="t").replace("src/sum", "src/add"), "there is no src/add.py"),
        (ROW.format(name="odd", old="x + y", killer="t") + 'rest = "x"', "unexpected keyword argument 'rest'"),
        (ROW.format(name="same", old="x - y", killer="t"), "it changes nothing"),
        (ROW.format(name="twin", old="x + y", killer="t") * 2, "two rows are named twin"),
    ],
)
def test_a_row_that_does_not_apply_fails_loudly(
    checkout: Path, row: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(checkout, row) == 2
    assert said in capsys.readouterr().err


def test_where_nothing_is_imported_nothing_is_killed(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A native module of another checkout fails every test, fault or not."""
    package = checkout / "src" / "mmaprobe"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('built from other sources')\n")
    assert ran(checkout, ROW.format(name="seen", old="x + y", killer="test_looks"), more=("--passed",)) == 2
    assert (
        "nothing is imported, so every test would fail: ImportError: built from other sources"
        in capsys.readouterr().err
    )


def test_two_runs_do_not_share_a_folder(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout.parent / "work").mkdir()
    with (checkout.parent / "work" / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert ran(checkout, ROW.format(name="seen", old="x + y", killer="test_looks")) == 2
    assert "another run is at work in" in capsys.readouterr().err


def test_what_fits_differs_from_day_to_day() -> None:
    days = [run.turn(ROWS, f"2026-01-{day:02}") for day in range(1, 10)]
    assert len({rows[0].name for rows in days}) > 1
    assert all(sorted(f.name for f in rows) == sorted(f.name for f in ROWS) for rows in days)


def test_the_command_says_how_it_is_used() -> None:
    done = subprocess.run([sys.executable, "tests/mutants/run.py", "--help"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0
    assert "--seconds" in done.stdout


def test_the_table_is_broad() -> None:
    kinds, files = Counter(fault.kind for fault in ROWS), Counter(fault.file for fault in ROWS)
    assert len(ROWS) >= 100
    assert {kind: kinds[kind] for kind, least in LEAST.items() if kinds[kind] < least} == {}
    assert {file: count for file, count in files.items() if count > MOST_A_FILE} == {}
    bare = [fault for fault in ROWS if not fault.long and not fault.needs]
    assert len(bare) >= 0.8 * len(ROWS), "four of five faults die in the bare command"
