"""The workflow for GPU runners and the recipes for schedulers do what they say, on a model device.

Shell texts are run as they stand in the files, by the same bash; ``mmaprobe`` is this checkout's.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from mmaprobe.campaigns.shard_file import SUFFIX
from mmaprobe.cli import main

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "docs" / "recipes"
WORKFLOW = ROOT / ".github" / "workflows" / "gpu-nightly.yml"
DEVICES = {"DEVICE": "model:x86-64+intel", "REFERENCE": "model:x86-64+amd", "PLAN": "mine.toml", "BUDGET": "5"}
PLAN = 'instructions = ["x86.pmadd*"]\nvectors = 20_000\nleast_instructions = 2\n'
EXPRESSION = re.compile(r"\$\{\{ (.*?) \}\}")
PYTHON = shlex.quote(sys.executable)
KEEPS = f"""#!/bin/sh
exec {PYTHON} -c 'import json, sys; open("said.jsonl", "a").write(json.dumps(sys.argv[1:]) + chr(10))' "$@"
"""
RUNS = f"""#!/bin/sh
exec {PYTHON} -c 'import sys; from mmaprobe.cli import main; sys.exit(main(sys.argv[1:]))' "$@"
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a plan, to work in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(PLAN)
    (tmp_path / "bin").mkdir()
    return tmp_path


def shell(place: Path, text: str, programs: dict[str, str], **environment: str) -> tuple[int, str]:
    """Run a text as GitHub and Kubernetes do, with programs of ours first; exit code and words."""
    for name, program in programs.items():
        (place / "bin" / name).write_text(program)
        (place / "bin" / name).chmod(0o755)
    given = os.environ | environment | {"PATH": f"{place / 'bin'}:{os.environ['PATH']}"}
    words = ["bash", "--noprofile", "--norc", "-euo", "pipefail", "-c", text]
    done = subprocess.run(words, cwd=place, env=given, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def commands(place: Path, text: str, **environment: str) -> list[list[str]]:
    """The words of each mmaprobe command that a text gives."""
    (place / "said.jsonl").unlink(missing_ok=True)
    code, said = shell(place, text, {"mmaprobe": KEEPS}, **environment)
    assert code == 0, said
    return [json.loads(line) for line in (place / "said.jsonl").read_text().splitlines()]


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((RECIPES / name).read_text()))


def slurm() -> tuple[str, str, list[dict[str, str]]]:
    text = (RECIPES / "slurm.sh").read_text()
    (merge,) = re.findall(r"--wrap '(.*)'", text)
    first, last = map(int, re.findall(r"--array=(\d+)-(\d+)", text)[0])
    assert (first, last > first) == (0, True)
    tasks = [{"SLURM_ARRAY_TASK_ID": str(i), "SLURM_ARRAY_TASK_COUNT": "2", "SEED": "7"} for i in range(2)]
    return text, merge, tasks


def gitlab() -> tuple[str, str, list[dict[str, str]]]:
    (said,) = documents("gitlab-ci.yml")
    assert [said[name]["stage"] for name in ("shard", "merge")] == said["stages"]
    assert said["shard"]["artifacts"]["paths"] == ["shards"]
    (one,), (merge,) = said["shard"]["script"], said["merge"]["script"]
    tasks = [{"CI_NODE_INDEX": str(i + 1), "CI_NODE_TOTAL": "2", "CI_PIPELINE_IID": "7"} for i in range(2)]
    return one, merge, tasks


def kubernetes() -> tuple[str, str, list[dict[str, str]]]:
    shards, merge = documents("kubernetes.yaml")
    (one,), (two,) = (each["spec"]["template"]["spec"]["containers"] for each in (shards, merge))
    given = {each["name"]: each["value"] for each in one["env"]}
    assert given["OF"] == str(shards["spec"]["completions"])
    assert given.keys() >= DEVICES.keys()
    (rule,) = shards["spec"]["podFailurePolicy"]["rules"]
    assert (rule["action"], rule["onExitCodes"]["containerName"]) == ("FailIndex", one["name"])
    (single,), (merged,) = one["args"], two["args"]
    tasks = [{"JOB_COMPLETION_INDEX": str(i), "OF": "2", "SEED": given["SEED"], "SHARDS": "shards"} for i in range(2)]
    return single, merged.replace("/data/", ""), tasks


@pytest.mark.parametrize("recipe", [slurm, gitlab, kubernetes])
def test_the_shards_of_a_recipe_are_one_campaign(place: Path, recipe: Any) -> None:
    text, merge, tasks = recipe()
    for number, task in enumerate(tasks):
        ((*words,),) = commands(place, text, **DEVICES, **task)
        assert words[:3] == ["validate", DEVICES["DEVICE"], DEVICES["REFERENCE"]]
        assert words[words.index("--shard") + 1] == f"{number}/2"
        assert main(words) == 0
    assert len(list((place / "shards").glob(f"*{SUFFIX}"))) == 2
    ((*words,),) = commands(place, merge)
    assert main(words) == 0
    assert (place / "junit.xml").read_text().count("<testcase") == 2
    assert (place / "night" / "manifest.json").exists()


def test_slurm_without_a_seed_says_so(place: Path) -> None:
    """Shards with a seed each would be refused by the merge, after the night."""
    code, said = shell(place, (RECIPES / "slurm.sh").read_text(), {}, SLURM_ARRAY_TASK_ID="0")
    assert (code != 0, "SEED: the same number for all shards" in said) == (True, True)


def workflow() -> Any:
    return yaml.safe_load(WORKFLOW.read_text())


def filled(job: str, row: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The texts of a job's steps by their names, and its environment with a row of the matrix put in."""
    said = workflow()["jobs"][job]

    def value(match: re.Match[str]) -> str:
        name, _, default = match[1].partition(" || ")
        return row[name.removeprefix("matrix.")] if name.startswith("matrix.") else default.strip("'")

    environment = {name: EXPRESSION.sub(value, str(text)) for name, text in said["env"].items()}
    return {step["name"]: step["run"] for step in said["steps"] if "run" in step}, environment


def test_the_matrix_of_gpus_has_a_pack_for_each() -> None:
    jobs = workflow()["jobs"]
    packs = {(row["arch"], row["toolchain"]) for row in jobs["pack"]["strategy"]["matrix"]["include"]}
    rows = jobs["night"]["strategy"]["matrix"]["include"]
    assert {(row["arch"], row["toolchain"]) for row in rows} == packs
    assert len({row["gpu"] for row in rows}) == len(rows)
    assert jobs["night"]["needs"] == "pack"
    for row in rows:
        steps, environment = filled("night", row)
        assert environment["DEVICE"] == f"{row['scheme']}:0?pack=pack"
        assert environment["REFERENCE"] == f"model:{row['arch']}"
        assert environment["BUDGET"] == "50"
        assert not any("${{" in text for text in steps.values())  # what runs is the file's, and no event's


def test_a_pack_is_what_the_night_downloads(place: Path) -> None:
    jobs = workflow()["jobs"]
    up, down = (next(step["with"] for step in jobs[job]["steps"] if "artifact" in step.get("uses", "")) for job in jobs)
    assert (up["name"], up["path"]) == (down["name"], down["path"])
    for row in jobs["pack"]["strategy"]["matrix"]["include"]:
        steps, environment = filled("pack", row)
        ((*words,),) = commands(place, steps["compile"], **environment)
        assert words == ["compile", "--arch", row["arch"], "--instruction", "*", "--campaign", "--out", "pack"]


GITHUB = {"GITHUB_REF_NAME": "main", "GITHUB_REPOSITORY": "us/ours"}
GH = """#!/bin/sh
case "$1 $2" in
"run list") echo "$LAST" ;;
"run download") echo "$@" >downloaded; mkdir baseline; cp -r before/. baseline ;;
"api "*) echo "$2" >>listed; echo "${KEPT:-1}" ;;
esac
"""


def night(place: Path, names: tuple[str, ...], **environment: str) -> dict[str, int]:
    """Exit codes of a night's steps."""
    steps, given = filled("night", workflow()["jobs"]["night"]["strategy"]["matrix"]["include"][0])
    given |= DEVICES | GITHUB | {"GITHUB_STEP_SUMMARY": "page.md", "LAST": ""} | environment
    return {name: shell(place, steps[name], {"mmaprobe": RUNS, "gh": GH}, **given)[0] for name in names}


@pytest.mark.long
def test_a_night_on_a_model_device(place: Path) -> None:
    """The first one, without a night before it."""
    codes = night(place, ("validate", "last green night", "gate", "summary"))
    assert set(codes.values()) == {0}, codes
    page = (place / "page.md").read_text()
    assert "### model:x86-64+intel x86-64+intel: passed" in page
    assert "| `x86.pmaddwd` | equal | 20,000 | 0 | 1 in 6,666 |" in page
    assert "no green night of a100 is kept: this one is the first baseline" in page
    assert (place / "junit.xml").read_text().count("<testcase") == 2
    assert (place / "evidence" / "manifest.json").exists()


@pytest.mark.long
def test_a_night_on_a_device_that_differs_is_red_and_has_its_page(place: Path) -> None:
    (place / "mine.toml").write_text(PLAN.replace("x86.pmadd*", "x86.dpps").replace("= 2\n", "= 1\n"))
    wrong = "mutant:x86-64+intel/DPPS[f32,f32->f32]/tree.x.to.rounding=RZ"
    codes = night(place, ("validate", "summary"), DEVICE=wrong, REFERENCE="model:x86-64+intel")
    assert codes == {"validate": 1, "summary": 0}
    assert "| `x86.dpps` | mismatch |" in (place / "page.md").read_text()


@pytest.mark.long
def test_a_second_night_is_held_against_the_first(place: Path) -> None:
    assert night(place, ("validate",)) == {"validate": 0}
    (place / "evidence").rename(place / "before")
    codes = night(place, ("validate", "last green night", "gate", "summary"), LAST="17")
    assert set(codes.values()) == {0}, codes
    assert "no difference in meaning" in (place / "page.md").read_text()


def test_a_gpu_that_the_last_green_night_had_not_has_its_first_baseline(place: Path) -> None:
    """New in the matrix, or its evidence expired: asking for what is not there would be red on every night from then
    on, and so never green."""
    codes = night(place, ("last green night", "gate", "summary"), LAST="17", KEPT="0")
    assert set(codes.values()) == {0}
    assert not (place / "downloaded").exists()
    assert "no green night of a100 is kept" in (place / "page.md").read_text()


def test_a_night_without_its_gpu_has_a_page_that_says_so(place: Path) -> None:
    assert night(place, ("validate", "summary"), DEVICE="cuda:99", REFERENCE="model:sm_80") == {
        "validate": 3,
        "summary": 0,
    }
    assert (place / "page.md").read_text() == "### a100: nothing was compared; the first red step says why\n"


DIFF = """#!/bin/sh
echo "$@" >asked; echo "one vector differs"; exit $CODE
"""


@pytest.mark.parametrize(("code", "accept", "said"), [(0, "false", 0), (1, "false", 1), (1, "true", 0), (2, "true", 2)])
def test_the_gate_holds_the_last_green_night_against_this_one(place: Path, code: int, accept: str, said: int) -> None:
    """And lets through only a difference that somebody accepts, not an error."""
    steps, given = filled("night", workflow()["jobs"]["night"]["strategy"]["matrix"]["include"][0])
    (place / "before").mkdir()
    given |= GITHUB | {"LAST": "17", "CODE": str(code), "ACCEPT_CHANGE": accept}
    programs = {"mmaprobe": DIFF, "gh": GH}
    assert shell(place, steps["last green night"], programs, **given)[0] == 0
    assert (place / "listed").read_text() == "repos/us/ours/actions/runs/17/artifacts?name=evidence-a100\n"
    assert (place / "downloaded").read_text() == "run download 17 --name evidence-a100 --dir baseline\n"
    assert shell(place, steps["gate"], programs, **given)[0] == said
    assert (place / "asked").read_text() == "evidence diff baseline evidence\n"
    assert "one vector differs" in (place / "summary.md").read_text()
