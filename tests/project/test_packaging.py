"""What was installed is complete: data files, headers, types, entry points, version; and it works elsewhere."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from importlib import metadata, resources
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import mmaprobe
from mmaprobe import _native
from mmaprobe.catalog.lookup import instruction
from mmaprobe.errors import NotHereError
from mmaprobe.models.program import program
from mmaprobe.native_module import agree
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.report.tables.doctor import doctor_rows
from mmaprobe.toolchain.compiled import constants

PACKAGE = Path(str(resources.files("mmaprobe")))
CHECKOUT = Path(__file__).parents[2]
IN_PLACE = PACKAGE == CHECKOUT / "src" / "mmaprobe"
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]


def test_version() -> None:
    assert mmaprobe.__version__ == metadata.version("mmaprobe") == PROJECT["version"]


@pytest.mark.parametrize(
    "folder",
    [
        "catalog/data",
        "catalog/data/layouts",
        "parameters/data",
        "parameters/data/shared",
        "parameters/data/measured",
        "evidence/data",
        "report/page/template",
        "report/pictures/data",
    ],
)
def test_data_files_are_installed(folder: str) -> None:
    shipped = {file.name for file in (CHECKOUT / "src" / "mmaprobe" / folder).iterdir()}
    assert shipped
    assert {file.name for file in (PACKAGE / folder).iterdir()} == shipped


def test_types_are_installed() -> None:
    assert (PACKAGE / "py.typed").is_file()
    stub = ast.parse((PACKAGE / "_native.pyi").read_text("utf-8"))
    declared = {node.name for node in stub.body if isinstance(node, ast.FunctionDef)}
    declared |= {node.target.id for node in stub.body if isinstance(node, ast.AnnAssign) and hasattr(node.target, "id")}
    assert declared == {name for name in dir(_native) if not name.startswith("_")}


@pytest.mark.skipif(IN_PLACE, reason="mmaprobe runs from its checkout, where the headers lie in csrc/")
def test_every_source_of_the_engine_is_installed() -> None:
    def files(folder: Path) -> set[Path]:
        return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}

    assert files(PACKAGE / "csrc") == files(CHECKOUT / "csrc")


@pytest.mark.needs("g++")
def test_the_headers_stand_alone(tmp_path: Path) -> None:
    """The engine's headers compile without Python, pybind11 or anything else of the build; those that a datapath is
    compiled into, behind its program."""
    headers = (CHECKOUT if IN_PLACE else PACKAGE) / "csrc"
    source = tmp_path / "all.cpp"
    words = program(datapath_for("sm_90a", instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_90a")))
    assert words is not None
    includes = [f'#include "model/{file.name}"\n' for file in sorted((headers / "model").iterdir())]
    made_of_a_program = [line for line in includes if "/compiled" in line]
    plain = [line for line in includes if line not in made_of_a_program]
    source.write_text("".join([*plain, constants(words.tolist(), 0), *made_of_a_program]))
    words = ["g++", "-std=c++17", "-fsyntax-only", "-DMMAPROBE_BUILD=alone", f"-I{headers}", str(source)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_entry_points() -> None:
    """The command, the pytest plug-in and every device that pyproject.toml declares, each loadable."""
    groups = {"console_scripts": PROJECT["scripts"], **PROJECT["entry-points"]}
    for group, declared in groups.items():
        ours = {e.name: e for e in metadata.entry_points(group=group) if e.value.startswith("mmaprobe.")}
        assert {name: entry.value for name, entry in ours.items()} == declared
        for entry in ours.values():
            assert entry.load() is not None


@pytest.mark.skipif(IN_PLACE, reason="mmaprobe runs from its checkout, which has no metadata of dependencies")
def test_dependencies() -> None:
    needs = metadata.requires("mmaprobe") or []
    core = {need.partition(">")[0] for need in needs if "extra ==" not in need}
    assert core == {"numpy", "ml_dtypes", "typer", "rich", "tomli-w"}
    assert set(metadata.metadata("mmaprobe").get_all("Provides-Extra") or []) == set(PROJECT["optional-dependencies"])


@pytest.mark.parametrize(("extra", "cupy"), [("cuda12", "cupy-cuda12x"), ("cuda13", "cupy-cuda13x"), ("driver", "")])
def test_what_a_gpu_needs(extra: str, cupy: str) -> None:
    """``cuda.core.ProgramOptions`` came with cuda-core 0.5; before, it was in ``cuda.core.experimental`` alone."""
    wanted = {Requirement(text).name: Requirement(text).specifier for text in PROJECT["optional-dependencies"][extra]}
    assert not wanted["cuda-core"].contains("0.4.2")
    assert wanted["cuda-core"].contains("0.5.0")
    assert [name for name in wanted if name.startswith("cupy")] == [cupy] * bool(cupy)


def test_it_works_elsewhere(tmp_path: Path) -> None:
    """Import, a device and the command, isolated from environment and folder."""
    code = "import mmaprobe.cli, sys; mmaprobe.device('cpu'); sys.exit(mmaprobe.cli.main(['devices']))"
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MMAPROBE"))}
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], cwd=tmp_path, env=clean, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "cpu" in done.stdout


def test_every_build_of_the_hot_code_is_in_the_module() -> None:
    """Baseline always; the wider ones where the CPU has them, the same for the engine and the generators."""
    assert _native.engine_builds()[0] == "baseline"
    assert _native.engine_builds() == _native.generator_builds() == _native.runnable_builds()


def test_the_doctor_names_a_build_that_was_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that another machine built for itself is slower than it need be."""
    monkeypatch.setattr(_native, "runnable_builds", lambda: [*_native.engine_builds(), "wider"])
    row = next(row for row in doctor_rows() if row["subject"] == "native module")
    assert (row["ok"], row["found"].rpartition("; ")[2]) == (False, "built without wider")
    assert row["command"] == "pip install --force-reinstall -C cmake.define.MMAPROBE_BUILDS=all ."


@pytest.mark.sampled(1)
@pytest.mark.parametrize("stale", ["del _native.generator_versions", "_native.generator_versions = lambda: []"])
def test_a_module_of_other_sources_is_refused(stale: str) -> None:
    """One from before a family was there, or before it said so, makes other vectors without a word."""
    code = f"import sys; from mmaprobe import _native, cli; {stale}; sys.argv[1:] = ['doctor']; sys.exit(cli.main())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr.startswith(
        f"mmaprobe: {_native.__file__} was built from other sources than the Python beside it"
    )
    assert done.stderr.endswith("pip install .\n")


def test_a_module_with_other_programs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    layout = _native.engine_layout()
    agree("engine_layout", layout)
    monkeypatch.setattr(_native, "engine_layout", lambda: layout | {"header": []})
    with pytest.raises(NotHereError, match="engine_layout differs"):
        agree("engine_layout", layout)
