"""A release is what its tag says, from sources that agree, for every Python that is promised, with licences."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import subprocess
import tomllib
from fnmatch import fnmatch
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


@pytest.mark.long
def test_no_other_file_names_the_version() -> None:
    """What the tag is not held against does not say it: nothing is left behind by a release."""
    version = re.escape(PROJECT["project"]["version"])
    said = re.compile(rf"(?im)^\s*#*\s*[\"']?(?:version|mmaprobe)?[\"']?\s*[:=]?\s*[\"']?v?{version}\b")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    kinds = (".toml", ".cff", ".md", ".txt", ".yml", ".cfg", ".py", ".hpp")
    texts = [ROOT / name for name in listed if name.endswith(kinds) and not name.startswith(("tests/", "licenses/"))]
    found = {
        path.relative_to(ROOT).as_posix() for path in texts if path.exists() and said.search(path.read_text("utf-8"))
    }
    assert found == {"pyproject.toml", "CHANGELOG.md", "CITATION.cff"}


def steps_of(jobs: Any) -> list[dict[str, Any]]:
    return [step for job in jobs.values() for step in job["steps"]]


@pytest.mark.parametrize("name", ["release.yml", "gpu-nightly.yml"])
def test_an_action_is_of_a_version(name: str) -> None:
    """A tag of a version, or a commit: no branch under which another day's code would run."""
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text("utf-8"))["jobs"]
    used = [step["uses"] for step in steps_of(jobs) if "uses" in step]
    assert used
    pinned = re.compile(r"[\w.-]+/[\w./-]+@(?:v\d+(?:\.\d+)*|release/v\d+|[0-9a-f]{40})")
    assert [each for each in used if not pinned.fullmatch(each)] == []


def test_every_step_of_a_release_does_something_that_is_there() -> None:
    """Each has an action or a command; a command is Python's with a file of ours or a module that the job installs."""
    jobs = workflow()["jobs"]
    for job in jobs.values():
        installed = {"pip"}
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            for line in step.get("run", "").splitlines():
                program, *words = shlex.split(line)
                assert program == "python", line
                if words[0] == "-m":
                    assert words[1] in installed, line
                    installed |= set(words[3:]) if words[1:3] == ["pip", "install"] else set()
                else:
                    assert (ROOT / words[0]).is_file(), line


def test_what_is_uploaded_is_what_is_published() -> None:
    """One artefact each, which must not be empty, by a name that the last job takes."""
    jobs = workflow()["jobs"]
    uploads = [step["with"] for step in steps_of(jobs) if "upload-artifact" in step.get("uses", "")]
    (taken,) = (step["with"] for step in steps_of(jobs) if "download-artifact" in step.get("uses", ""))
    assert {each["path"] for each in uploads} == {"dist/*.tar.gz", "dist/*.whl"}
    assert all(each["if-no-files-found"] == "error" for each in uploads)
    assert all(fnmatch(each["name"], taken["pattern"]) for each in uploads)
    assert (taken["path"], taken["merge-multiple"]) == ("dist", True)


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


def test_what_is_built_for_other_machines_has_every_build_of_the_hot_code() -> None:
    assert PROJECT["tool"]["cibuildwheel"]["config-settings"] == {"cmake.define.MMAPROBE_BUILDS": "all"}
    image = (ROOT / "docs" / "recipes" / "Dockerfile").read_text("utf-8")
    assert "-C cmake.define.MMAPROBE_BUILDS=all" in next(line for line in image.splitlines() if "pip wheel" in line)
    assert 'set(MMAPROBE_BUILDS "here" CACHE' in (ROOT / "CMakeLists.txt").read_text("utf-8")


def test_what_is_compiled_in_has_its_licence_in_the_wheel() -> None:
    """pybind11 is the one library whose code the module holds."""
    assert "licenses/*.txt" in PROJECT["project"]["license-files"]
    assert {path.stem for path in (ROOT / "licenses").iterdir()} == {"pybind11"}
    assert any(need.startswith("pybind11") for need in PROJECT["build-system"]["requires"])


def test_what_the_image_copies_is_there() -> None:
    """From the checkout, or from a stage before, which made it; every argument is declared where it is used."""
    text = (ROOT / "docs" / "recipes" / "Dockerfile").read_text("utf-8")
    stages: dict[str, str] = {}
    declared: set[str] = set()
    before: set[str] = set()  # the arguments above every stage, which FROM alone sees
    stage = ""
    for line in filter(None, (line.partition("#")[0].strip() for line in text.splitlines())):
        word, _, rest = line.partition(" ")
        assert word in {"ARG", "FROM", "RUN", "COPY", "ENTRYPOINT", "CMD"}, line
        assert set(re.findall(r"\$\{(\w+)\}", rest)) <= (before if word == "FROM" else declared), line
        if word == "FROM":
            stage = rest.partition(" AS ")[2]
            declared, stages[stage] = set(), ""
        elif word == "ARG":
            (declared if stages else before).add(rest.partition("=")[0])
        elif word == "COPY":
            *sources, _ = (each for each in rest.split() if not each.startswith("--"))
            whence = re.search(r"--from=(\w+)", rest)
            assert all(each in stages[whence[1]] if whence else (ROOT / each).exists() for each in sources), line
        elif word in ("ENTRYPOINT", "CMD"):
            assert isinstance(json.loads(rest), list), line
        if stages:
            stages[stage] += line
    assert list(stages) == ["build", ""]


def test_the_image_compiles_where_no_gpu_is_and_runs_where_no_compiler_is() -> None:
    build, run = (ROOT / "docs" / "recipes" / "Dockerfile").read_text("utf-8").split("\nFROM ")[1:]
    assert "g++" in build
    assert "mmaprobe compile --arch" in build
    assert "g++" not in run
    assert "COPY --from=build /pack /pack" in run
    assert "driver" in PROJECT["project"]["optional-dependencies"]
