"""The project's own files agree with each other: what is imported is asked for, what is written is built and run."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from mmaprobe.catalog.lookup import match
from mmaprobe.devices.base import GROUP
from mmaprobe.vendors import every
from needs import NEEDS

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
BUILD = (ROOT / "CMakeLists.txt").read_text("utf-8")
BUILDS = (ROOT / "csrc" / "cpu" / "CMakeLists.txt").read_text("utf-8")
"""What is built once for each instruction set."""
CI = (ROOT / ".ci" / "run").read_text("utf-8")
CPP = {".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp"}


def named(requirements: list[str]) -> set[str]:
    """The distributions that requirements name, as PEP 503 spells them."""
    return {re.split(r"[\[<>=~! @;]", line)[0].lower().replace("_", "-") for line in requirements}


def imported(folder: Path) -> set[str]:
    """Installed distributions whose modules a folder's files import, where they are loaded."""
    owners, names = metadata.packages_distributions(), set()
    for path in folder.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        for node in tree.body:
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names.add((node.module or "").partition(".")[0])
    return {owner.lower().replace("_", "-") for name in names for owner in owners.get(name, [])} - {"mmaprobe"}


def test_what_the_package_imports_is_a_dependency() -> None:
    assert imported(ROOT / "src" / "mmaprobe") - {"pytest"} <= named(PROJECT["project"]["dependencies"])


def test_what_the_tests_import_is_in_their_extra() -> None:
    """Somebody who installs '.[test]' and nothing else can load every test."""
    asked = named(PROJECT["project"]["dependencies"]) | named(EXTRAS["test"])
    assert imported(ROOT / "tests") <= asked
    assert {"pytest", "pytest-xdist"} <= asked


def test_every_entry_point_is_there() -> None:
    """And every GPU of a vendor's record."""
    points = PROJECT["project"]["entry-points"]
    devices = points[GROUP] | {vendor.scheme: vendor.device for vendor in every()}
    listed = re.search(r"(?s)## Devices.*?\n\n\|(.*?)\n\n", (ROOT / "README.md").read_text("utf-8"))
    assert listed
    assert set(re.findall(r"(?m)^\| `(\w+)", listed[1])) == devices.keys() - {"misbehaving"}
    for place in [*devices.values(), *PROJECT["project"]["scripts"].values()]:
        module, _, name = place.partition(":")
        assert callable(getattr(importlib.import_module(module), name)), place
    assert all(importlib.import_module(module) for module in points["pytest11"].values())


def test_the_oldest_python_is_one_thing() -> None:
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert f"Programming Language :: Python :: {oldest}" in PROJECT["project"]["classifiers"]
    assert PROJECT["tool"]["mypy"]["python_version"] == oldest
    assert PROJECT["tool"]["ruff"]["target-version"] == f"py{oldest.replace('.', '')}"
    assert f"find_package(Python {oldest} " in BUILD


def test_every_source_is_built_and_every_header_installed() -> None:
    folder = ROOT / "csrc" / "cpu"
    sources = {path.relative_to(folder).as_posix() for path in folder.rglob("*.cpp")} - {"units/arm_runner.cpp"}
    assert sources == set(re.findall(r"csrc/cpu/(\w+/\w+\.cpp)", BUILD) + re.findall(r"\b(\w+/\w+\.cpp)", BUILDS))
    assert "add_subdirectory(csrc/cpu)" in BUILD
    assert re.search(r"install\(DIRECTORY csrc/ DESTINATION mmaprobe/csrc\)", BUILD)
    assert re.search(r"install\(TARGETS _native DESTINATION mmaprobe\)", BUILD)
    assert PROJECT["tool"]["scikit-build"]["wheel"]["packages"] == ["src/mmaprobe"]


def test_each_instruction_set_has_a_build_of_its_own() -> None:
    """A build without its flags, or with another's name, is slow or ends older processors."""
    for name, flag in (("avx2", "-march=x86-64-v3"), ("avx512", "-march=x86-64-v4")):
        assert f"set(ENGINE_FLAGS_{name} {flag})" in BUILDS
        assert f"set(OPTIMISATION_{name} -O3)" in BUILDS
    assert "add_build(${build} ${ENGINE_FLAGS_${build}})" in BUILDS
    assert re.search(r"GENERATOR_FLAGS_avx2 -mavx2", BUILDS)
    assert "-mavx512f" not in re.search(r"GENERATOR_FLAGS_avx2.*\n", BUILDS)[0]  # type: ignore[index]
    assert "${OPTIMISATION_${name}} -fwrapv" in BUILDS
    assert "-ffast-math" not in BUILDS


def test_nox_installs_what_its_sessions_use() -> None:
    """Every file that a session runs is there, and every extra that it installs."""
    text = (ROOT / "noxfile.py").read_text("utf-8")
    assert all((ROOT / path).exists() for path in re.findall(r'"((?:tests|docs|benchmarks)/[\w./]+)"', text))
    for extras in re.findall(r'"(?:mmaprobe|\.)\[([\w,]+)\]', text):
        assert set(extras.split(",")) <= EXTRAS.keys()
    assert 'nox.options.sessions = ["lint", "tests"]' in text


def harness(last: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The part of .ci/run above its first step function, with other steps below it."""
    head = CI[: CI.index("# Recorded outputs")]
    (folder / ".ci").mkdir(exist_ok=True)
    (folder / ".ci" / "run").write_text(f"{head}\n{last}\n")
    return subprocess.run(
        ["bash", str(folder / ".ci" / "run")],
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"]} | environment,
    )


@pytest.mark.parametrize("bad", ["false", "sh -c 'exit 3'", "several", "piped", "no_such_command", 'echo "$unset"'])
def test_a_step_of_ci_that_fails_ends_it(bad: str, tmp_path: Path) -> None:
    """Whatever in a step failed, the first, a middle or a piped command: CI ends there, red, and names the step."""
    functions = "several() { true; false; true; }\npiped() { false | cat; true; }\n"
    done = harness(f"{functions}step good true\nstep bad {bad}\nstep never echo reached", tmp_path)
    assert done.returncode != 0
    assert "FAILED in step: " in done.stdout
    assert "reached" not in done.stdout
    assert "everything passed" not in done.stdout


def test_what_runs_aside_is_red_where_it_is_joined(tmp_path: Path) -> None:
    """What it printed is shown there, and what nobody joined ends with CI."""
    functions = "begin() { aside one sh -c 'echo done; exit 3'; aside other sleep 99; }\n"
    done = harness(f"{functions}step begin begin\nstep one joined one\nstep never echo reached", tmp_path)
    assert done.returncode == 3
    assert "done\n" in done.stdout
    assert "FAILED in step: one" in done.stdout
    assert "reached" not in done.stdout


def test_a_ci_whose_steps_pass_is_green(tmp_path: Path) -> None:
    done = harness("step first true\nstep 'second one' test -d .ci", tmp_path)
    assert done.returncode == 0
    assert "everything passed" in done.stdout
    assert re.search(r"(?m)^second one +\d+$", done.stdout)


def test_every_step_of_ci_is_run() -> None:
    functions = set(re.findall(r"(?m)^(\w+)\(\) \{", CI)) - {"finish", "step"}
    called = set(re.findall(r"(?m)^step .* (\w+)$", CI))
    helpers = {name for name in functions if re.search(rf"(?m)^(?!{name}\(\)).*\b{name}\b", CI)}
    assert functions <= called | helpers
    assert called <= functions
    assert {"lint", "tests", "mutants", "wheel"} <= called
    assert "set -euo pipefail" in CI
    assert not re.search(r"\|\| true\b", CI)
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_every_instruction_of_a_cpu_has_a_stand_in_on_some_day() -> None:
    """Of the CPUs that CI derives blind from their models, whatever part of them has its turn."""
    listed = re.search(r"(?s)^stand_ins=\((.*?)\)", CI, re.M)
    assert listed
    found: dict[str, list[str]] = {}
    for architecture, glob in re.findall(r'"(\S+) (\S+)"', listed[1]):
        found.setdefault(architecture, []).extend(each.id for each in match(architecture, glob))
    assert set(found) == {"x86-64+amd", "x86-64+intel", "aarch64"}
    for architecture, names in found.items():
        assert sorted(names) == sorted(each.id for each in match(architecture, "*"))


def test_lint_is_the_same_in_ci_and_nox() -> None:
    """Each checks the format of every C++ file with the one version that the extra, the hook and the style know."""
    ci = re.search(r"(?ms)^lint\(\) \{\n(.*?)^\}", CI)
    session = re.search(r"(?s)def lint\(.*?\n\n\n", (ROOT / "noxfile.py").read_text("utf-8"))
    assert ci
    assert session
    tools = {"ruff format", "ruff check", "mypy", "lint-imports", "clang-format"}
    assert all(tool in ci[1] and tool.replace(" ", '", "') in session[0] for tool in tools)
    for text in (ci[1], session[0].replace('", "', " ")):
        assert "clang-format --dry-run --Werror" in text
        listed = re.search(r"git ls-files (.*?)(?: \||,)", text)
        assert listed
        assert set(re.findall(r"\*(\.\w+)", listed[1])) == {
            path.suffix
            for folder in ("csrc", "tests")
            for path in (ROOT / folder).rglob("*.[ch]*")
            if path.suffix in CPP
        }
    pinned = [line for line in EXTRAS["dev"] if line.startswith("clang-format")]
    assert [line.partition("==")[1] for line in pinned] == ["=="]
    assert pinned[0] in (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    assert (ROOT / ".clang-format").is_file()


def stranger(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(ROOT / ".ci" / "stranger"), *map(str, words)], capture_output=True, text=True)


def test_ci_runs_the_commands_of_the_readme() -> None:
    """Both, as they stand there, and nothing else."""
    section = (ROOT / "README.md").read_text("utf-8").partition("## The two commands")[2].partition("\n## ")[0]
    commands = stranger("commands").stdout.splitlines()
    assert commands == re.findall(r"(?m)^\$ (.*)$", section)
    assert [line.partition("#")[0].strip() for line in commands] == [
        "pip install . && mmaprobe run",
        "pip install '.[test]' && pytest",
    ]
    assert re.search(r"(?m)^  \.ci/stranger run ", CI)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("8200 passed, 250 skipped, 2000 deselected in 9.00s", 0),
        ("8200 passed in 9.00s", 0),
        ("8200 passed, 901 skipped in 9.00s", 1),
        ("8000 passed, 350 skipped in 9.00s\ndid not run: 96 want another CPU (avx512bf16); 254 want a corpus", 0),
        ("8000 passed, 450 skipped in 9.00s\ndid not run: 96 want another CPU (avx512bf16); 354 want a corpus", 1),
        ("12 passed in 9.00s", 1),
        ("no tests ran in 0.01s", 1),
    ],
)
def test_a_stranger_who_skips_too_much_is_red(said: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "said").write_text(f"................\n{said}\ndid not run: 250 want a corpus\n")
    assert stranger("judge", tmp_path / "said").returncode == code


def test_a_stranger_has_a_compiler_and_no_other_tools(tmp_path: Path) -> None:
    assert stranger("bare_path", tmp_path / "bin").returncode == 0
    seen = {path.name for path in (tmp_path / "bin").iterdir()}
    assert {"bash", "git", "ld"} <= seen
    assert not [name for name in seen if re.match(r"clang|llvm|lld|ld\.lld|qemu|nvcc|zig|hipcc|python|.*aarch64", name)]


@pytest.mark.parametrize(("forge", "code"), [("true", 1), ("false", 0)])
def test_a_step_without_its_tool_says_so_and_is_red_where_ci_is_true(forge: str, code: int, tmp_path: Path) -> None:
    done = harness("less() { lacks 'a tool'; }\nstep less less\nstep more true", tmp_path, CI=forge)
    assert done.returncode == code
    assert "\nnot checked: a tool\n" in done.stdout


@pytest.mark.parametrize(("seconds", "pace", "samples"), [(1, 1, 120), (749, 1, 120), (750, 2, 60), (2300, 4, 30)])
def test_a_slow_machine_draws_fewer(seconds: int, pace: int, samples: int, tmp_path: Path) -> None:
    """The step's own lines, with a clock that a stranger moves on; what is drawn is a function of the pace."""
    lines = re.search(r"(?ms)^pace=1\n.*?^}\n", CI)
    assert lines
    steps = lines[0].replace('.ci/stranger run "$work"', f"SECONDS=$((SECONDS + {seconds}))")
    done = harness(f'{steps}step stranger stranger\necho "$pace $((120 / pace))"', tmp_path)
    assert f"{pace} {samples}\n" in done.stdout
    assert ("a slow machine" in done.stdout) == (pace > 1)
    for drawn in ("--one-in", "--most", "--refused", "--modified"):
        assert all(word.startswith("$((") for word in re.findall(rf" {drawn} (\S+)", CI))


def test_what_ci_installs_must_be_there() -> None:
    """The tests that it runs with its tools fail, instead of being skipped, without them."""
    assert 'pytest -m "long or needs" -rs --one-in $((16 * pace)) --equipped "$equipped"' in CI
    named = re.search(r'(?m)^equipped="([^$"]*)', CI)
    assert named
    assert set(named[1].split(",")) == NEEDS.keys() - {
        "corpus", "rows", "rocm", "slurm", "torch", "riscv64 programs", "spike", "openblas",
    }  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("passed", [8000, 80])
def test_a_stranger_has_nothing_but_what_the_readme_asks_for(passed: int, tmp_path: Path) -> None:
    """Another project's commands, run as ours are: both in a clone, with a new home, Python and few tools."""
    project = tmp_path / "project"
    (project / ".ci").mkdir(parents=True)
    (project / ".ci" / "stranger").write_bytes((ROOT / ".ci" / "stranger").read_bytes())
    (project / ".ci" / "stranger").chmod(0o755)
    second = f"python -c 'import sys; print(sys.prefix)' && printf '{passed} passed, 9 skipped\\n'"
    section = f"$ pwd && env && ! command -v qemu-aarch64-static   # first\n$ {second}\n"
    (project / "README.md").write_text(f"## The two commands\n\n{section}\n## Others\n\n$ false\n")
    git = ["git", "-C", str(project), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    done = subprocess.run(
        [str(project / ".ci" / "stranger"), "run", str(tmp_path / "work")],
        capture_output=True, text=True, env=os.environ | {"MMAPROBE_CORPUS": "here", "PYTHONPATH": "here"},
    )  # fmt: skip
    place = tmp_path / "work" / "a stranger"
    assert f"\n{place}/mmaprobe\n" in done.stdout
    assert f"\nHOME={place}/home\n" in done.stdout
    assert f"\n{place}/venv\n" in done.stdout
    assert not re.search(r"(?m)^(MMAPROBE|PYTHON|CI)\w*=", done.stdout)
    assert done.returncode == (0 if passed == 8000 else 1), done.stdout + done.stderr
