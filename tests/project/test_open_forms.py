"""docs/open_forms.md: every open form and every open layout once, and vectors that decide what they say they do."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterable
from functools import cache
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.layouts import claims, open_reason
from mmaprobe.catalog.lookup import architectures, instruction, instructions
from mmaprobe.catalog.names import device_of
from mmaprobe.derivation.dense_view import dense_form
from mmaprobe.errors import UsageError
from mmaprobe.models.engine import evaluate_many
from mmaprobe.operands.literal import parse_vector
from mmaprobe.parameters.lookup import datapath_for

DOCS = Path(__file__).parents[2] / "docs"
VECTOR = re.compile(r"(?m)^\| `(a=[^`]*)` \| (.*) \|$")
NAMES = re.compile(r"(?m)^\| vector of `[^`]*`[^|]* \| (.*) \|$")
COMMAND = re.compile(r"`mmaprobe (?:derive|probe) '([^']*)' -d (\S+?)(?: --question layout)?`")


why_open = cache(open_reason)
"""Asked once of a form, by the script and by the tests."""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    found = importlib.util.spec_from_file_location("open_forms", DOCS / "open_forms.py")
    assert found is not None
    assert found.loader is not None
    module = sys.modules["open_forms"] = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    module.__dict__["open_reason"] = why_open
    return module


@pytest.fixture(scope="module")
def sections(script: ModuleType) -> dict[Any, str]:
    """What the page says of each group."""
    text = script.PAGE.read_text(encoding="utf-8")
    found = {}
    for group in script.groups():
        heading = f"### {group.first.facts['architecture']}: {script.title(group)}\n"
        assert text.count(heading) == 1, heading
        found[group] = re.split(r"(?m)^##", text.partition(heading)[2])[0]
    return found


@pytest.fixture(scope="module")
def opened() -> dict[str, set[str]]:
    """The ids of each architecture whose layout is open."""
    return {home: {made.id for made in instructions(home) if why_open(made, home)} for home in architectures()}


@pytest.fixture(scope="module")
def unknown() -> dict[str, set[str]]:
    """The ids of each architecture without a datapath."""
    return {home: {made.id for made in instructions(home) if lacks(home, made)} for home in architectures()}


def lacks(home: str, made: Instruction) -> bool:
    try:
        datapath_for(home, made)
    except UsageError:
        return True
    return False


def once(forms: Iterable[Any]) -> dict[str, set[str]]:
    """The ids of each architecture; none is there twice."""
    pairs = [(form.architecture, form.made.id) for form in forms]
    assert len(set(pairs)) == len(pairs)
    return {home: {name for at, name in pairs if at == home} for home in architectures()}


def vectors(section: str) -> list[tuple[list[str], list[str]]]:
    """The vectors of a section, each as the words of a command line, with d as each candidate has it."""
    found = VECTOR.findall(section)
    return [([part.partition("=")[2] for part in text.split()], words.split(" | ")) for text, words in found]


def test_every_form_without_a_datapath_is_in_one_group(script: ModuleType, unknown: dict[str, set[str]]) -> None:
    assert once(form for group in script.groups() for form in group.forms) == unknown


@pytest.mark.long
def test_every_open_layout_is_in_one_group(script: ModuleType, opened: dict[str, set[str]]) -> None:
    assert once(form for found in script.open_layouts() for form in found.forms) == opened


def test_a_group_has_rival_candidates_or_an_experiment(script: ModuleType) -> None:
    for group in script.groups():
        assert group.candidates, script.title(group)
        assert all(candidate["sources"] for candidate in group.candidates)
        assert len(group.candidates) > 1 or script.said_of(group.first, "experiment")
        for form in group.forms:
            assert script.names_of(form) == script.names_of(group.first)
            assert len(script.rivals_of(form)) == len(group.candidates), form.made.id


def test_the_vectors_of_a_group_tell_its_candidates_apart(script: ModuleType, sections: dict[Any, str]) -> None:
    for group, section in sections.items():
        made, rivals = dense_form(group.first.made), script.rivals_of(group.first)
        columns = []
        for words, said in vectors(section):
            (names,) = NAMES.findall(section)
            assert names.split(" | ") == [rival.name for rival in rivals]
            d = evaluate_many([rival.datapath for rival in rivals], parse_vector(made, words))[:, 0].tolist()
            assert [int(word, 16) for word in said] == d, words
            columns.append(d)
        for i, j in combinations(range(len(rivals)), 2):
            assert any(d[i] != d[j] for d in columns), (script.title(group), rivals[i].name, rivals[j].name)


def test_the_table_counts_what_the_catalog_has(
    script: ModuleType, sections: dict[Any, str], unknown: dict[str, set[str]], opened: dict[str, set[str]]
) -> None:
    text = script.PAGE.read_text(encoding="utf-8").partition("\n## ")[0]
    rows = re.findall(r"(?m)^\| ([\w-]+) \|((?: *\d* *\|){5})$", text)
    table = {home: [int(cell.strip() or 0) for cell in cells.split("|")[:-1]] for home, cells in rows}
    whole = table.pop("all")
    for home in architectures():
        found = [len(vectors(section)) for group, section in sections.items() if home in group.architectures]
        counted = [len(unknown[home]), len(found), sum(map(bool, found)), sum(found), len(opened[home])]
        assert table.get(home, [0] * 5) == counted, home
    found = [len(vectors(section)) for section in sections.values()]
    forms, layouts = (sum(map(len, some.values())) for some in (unknown, opened))
    assert whole == [forms, len(found), sum(map(bool, found)), sum(found), layouts]


def test_every_record_of_the_data_says_something(script: ModuleType) -> None:
    text = script.PAGE.read_text(encoding="utf-8")
    for table in ("known", "candidate", "experiment"):
        said = [record for form in script.open_forms() for record in script.said_of(form, table)]
        assert [record for record in script.data()[table] if record not in said] == []
    for record in script.data()["layout"]:
        assert f"*{record['reason'][:1].upper()}{record['reason'][1:]}.*" in text
    assert {record["experiment"] for record in script.data()["layout"]} == set(script.data()["experiments"])


def test_every_open_layout_has_claims_or_an_experiment(script: ModuleType) -> None:
    for found in script.open_layouts():
        for form in found.forms:
            assert claims(form.made, form.architecture) or all(map(script.layout_said, found.reasons)), form.made.id


def test_the_commands_name_instructions_of_the_device(script: ModuleType, sections: dict[Any, str]) -> None:
    for group, section in sections.items():
        asked = COMMAND.findall(section)
        assert asked, script.title(group)
        for name, device in asked:
            home = group.first.architecture
            assert (instruction(name, home).id, device) == (group.first.made.id, device_of(home))


@pytest.mark.long
def test_the_page_is_what_the_script_writes(script: ModuleType) -> None:
    assert script.main(["--check"]) == 0, "run: python docs/open_forms.py"
