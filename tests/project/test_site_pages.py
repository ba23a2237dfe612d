"""Pages of the site that are made from the package."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

import mmaprobe
from mmaprobe.probing.questions import PROBES

DOCS = Path(__file__).parents[2] / "docs"


def loaded(name: str) -> ModuleType:
    """A script of the documentation as a module."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def site() -> ModuleType:
    return loaded("conf")


def test_every_question_has_the_answers_of_units(site: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two units here; those that answer alike stand in one row."""
    chosen = [each for each in site.ASKED if each[0] in ("A100, f16", "H100, f16")]
    monkeypatch.setattr(site, "ASKED", chosen)
    page = "\n".join(site.questions())
    parts = dict(re.findall(r"(?ms)^## (\w+)$(.*?)(?=^## |\Z)", page))
    assert list(parts) == list(PROBES)
    for name, part in parts.items():
        rows = re.findall(r"(?m)^\| (.*?) \| (.*) \|$", part.partition("|---|")[2])
        assert sorted(unit for units, _ in rows for unit in units.split("; ")) == ["A100, f16", "H100, f16"], name
    assert "| H100, f16 | fraction bits kept: products 25, C 25 |" in parts["accumulator_precision"]
    assert "| A100, f16 | fraction bits kept: products 24, C 24 |" in parts["accumulator_precision"]
    assert "| A100, f16; H100, f16 | 23 fraction bits, RZ |" in parts["result_rounding"]


def test_units_that_are_asked_are_there(site: ModuleType) -> None:
    for _, name, instruction in site.ASKED:
        assert mmaprobe.model(name, instruction) is not None


def test_an_answer_is_text_and_nothing_else(site: ModuleType) -> None:
    (row,) = [line for line in site.answers_table({"a|b <i> *x* y_z": ["unit"]}) if line.startswith("| unit | a")]
    assert row == r"| unit | a\|b \<i> \*x\* y\_z |"


def test_a_notebook_is_shown_whole(site: ModuleType) -> None:
    """Every cell was executed in its turn and ended well; text, code and outputs are on the page."""
    for path in (DOCS / "notebooks").glob("*.ipynb"):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
        outputs = [output for cell in code for output in cell["outputs"]]
        assert len(outputs) == len(code)
        assert {output["output_type"] for output in outputs} == {"execute_result"}
        page = "\n".join(site.notebook(path))
        assert all("".join(cell["source"]) in page for cell in cells)
        assert page.count("```{raw} html\n<div ") == sum("text/html" in output["data"] for output in outputs) >= 3


def test_pictures_of_words_are_those_that_the_script_draws() -> None:
    """Each is on the page, of a few kB, and has a title, a description and nothing that runs or is fetched."""
    drawn = loaded("word_pictures").pictures()
    kept = {path.name: path.read_text("utf-8") for path in (DOCS / "images" / "words").iterdir()}
    assert kept == drawn
    assert set(re.findall(r"\(images/words/(\w+\.svg)\)", (DOCS / "words.md").read_text("utf-8"))) == set(drawn)
    for name, text in drawn.items():
        root = ElementTree.fromstring(text)
        tags = {each.tag.partition("}")[2] for each in root.iter()}
        assert tags <= {"svg", "style", "title", "desc", "rect", "line", "text"}, name
        assert {"title", "desc", "style"} <= tags
        assert len(text) < 16_000
        assert "url(" not in text
