"""A release is what its tag says, from sources that agree, for every Python that is promised, with licences."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
VERSION = runpy.run_path(str(ROOT / ".ci" / "release_version.py"))


def workflow() -> Any:
    return yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8"))


def test_every_file_says_the_version_of_the_tag(capsys: pytest.CaptureFixture[str]) -> None:
    assert VERSION["main"](f"v{PROJECT['project']['version']}") == 0
    assert capsys.readouterr().out == ""
    assert VERSION["main"]("v9.9.9") == 1
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "pyproject.toml", "CHANGELOG.md", "CITATION.cff",
    ]  # fmt: skip


def test_nothing_is_published_before_everything_was_tried() -> None:
    jobs = workflow()["jobs"]
    assert set(jobs["publish"]["needs"]) == {"sdist", "wheels"}
    assert jobs["wheels"]["needs"] == "sdist"
    steps = [step.get("run", "") for step in jobs["sdist"]["steps"]]
    version, build = (next(i for i, run in enumerate(steps) if word in run) for word in ("release_version", "--sdist"))
    assert version < build
    assert {row["machine"] for row in jobs["wheels"]["strategy"]["matrix"]["include"]} == {"x86_64", "aarch64"}


def test_a_wheel_for_every_python_that_is_promised() -> None:
    wheels = PROJECT["tool"]["cibuildwheel"]
    promised = re.findall(r"Python :: 3\.(\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    assert wheels["build"].split() == [f"cp3{minor}-*" for minor in promised]
    assert all(command.startswith("mmaprobe ") for command in wheels["test-command"])


def test_what_is_compiled_in_has_its_licence_in_the_wheel() -> None:
    """pybind11 is the one library whose code the module holds."""
    assert "licenses/*.txt" in PROJECT["project"]["license-files"]
    assert {path.stem for path in (ROOT / "licenses").iterdir()} == {"pybind11"}
    assert any(need.startswith("pybind11") for need in PROJECT["build-system"]["requires"])


def test_the_image_compiles_where_no_gpu_is_and_runs_where_no_compiler_is() -> None:
    build, run = (ROOT / "docs" / "recipes" / "Dockerfile").read_text("utf-8").split("\nFROM ")[1:]
    assert "g++" in build
    assert "mmaprobe compile --arch" in build
    assert "g++" not in run
    assert "COPY --from=build /pack /pack" in run
    assert "driver" in PROJECT["project"]["optional-dependencies"]
