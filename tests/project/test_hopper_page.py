"""docs/hopper.md is what its script writes, from the questions, the parameters, evidence and recorded counts."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from types import ModuleType

import pytest

from mmaprobe.runs.open_questions.answers import Answer, answer_to_json

DOCS = Path(__file__).parents[2] / "docs"
CORPUS = Path(os.environ.get("MMAPROBE_CORPUS", "no corpus"))


@pytest.fixture(scope="module")
def hopper() -> ModuleType:
    found = importlib.util.spec_from_file_location("hopper", DOCS / "hopper.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.long
def test_the_page_is_what_the_script_writes(hopper: ModuleType) -> None:
    assert hopper.PAGE.read_text() == hopper.written(), "run: python docs/hopper.py"


def test_measured_answers_come_from_evidence(hopper: ModuleType, tmp_path: Path) -> None:
    """A run on the GPU stands in the page; one on another architecture, or on no silicon, does not."""
    name = "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32"
    runs = (
        ("h", "cuda:0", "sm_90a", "two sums of four"), ("a", "cuda:0", "sm_80", "one sum of eight"),
        ("e", "process:gpu", "sm_90a", "one sum of eight"),
    )  # fmt: skip
    for folder, device, architecture, claim in runs:
        (tmp_path / folder / "steps").mkdir(parents=True)
        answer = Answer("step-tf32", name, "settled", claim, "99 vectors agree")
        (tmp_path / folder / "manifest.json").write_text(
            json.dumps({"device": device, "identity": {"architecture": architecture}})
        )
        step = {"step": "questions", "result": {"answers": [answer_to_json(answer)]}}
        (tmp_path / folder / "steps" / "questions.json").write_text(json.dumps(step))
    found = hopper.measured_answers(tmp_path)
    assert [answer.claim for answer in found] == ["two sums of four"]
    (question,) = (q for q in hopper.open_questions() if q.name == "step-tf32")
    lines = "\n".join(hopper._about(question, {}, found))
    assert lines.count(hopper.NOT_MEASURED) == 1
    assert "| two sums of four |" in lines


@pytest.mark.needs("corpus")
def test_recorded_counts(hopper: ModuleType) -> None:
    assert json.loads(hopper.RECORDED.read_text()) == hopper.recorded_counts(CORPUS)
