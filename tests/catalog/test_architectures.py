"""Architectures by likeness: one line makes a new one, and a group means one thing in every file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cases import like_architecture
from cases.linked_package import PACKAGE, linked
from mmaprobe.catalog.architectures import FILE, Architectures, every, tables
from mmaprobe.catalog.names import names
from mmaprobe.errors import UsageError

HERE = Architectures(
    {"a1": "", "b1": "", "a2": "a1", "a3": "a2"}, {"none": (), "as": ("a1",), "all": ("b1", "as"), "late": ("a2",)}
)


def test_what_is_like_another_is_wherever_that_is_named() -> None:
    assert HERE.of("a1") == HERE.of("as") == ("a1", "a2", "a3")
    assert HERE.of("a2") == HERE.of("late") == ("a2", "a3")
    assert HERE.of("all") == ("a1", "b1", "a2", "a3")
    assert HERE.of("none") == ()
    assert HERE.line("a3") == ("a3", "a2", "a1")
    assert HERE.among("a3", ["b1", "as"])
    assert not HERE.among("a1", ["b1", "late"])
    assert HERE.pick({"a1": 1, "a2": 2, "b1": 3}, "a3", 0) == 2
    assert HERE.pick({"b1": 3}, "a3", 0) == 0
    with pytest.raises(UsageError, match=r"unknown architecture 'a4'; did you mean a"):
        HERE.of("a4")


@pytest.mark.parametrize(
    ("like", "groups", "said"),
    [
        ({"a": "b", "b": ""}, {}, "a is like 'b', which is not there before it"),
        ({"a": "a"}, {}, "a is like 'a', which is not there before it"),
        ({"a": ""}, {"one": ("two",), "two": ("a",)}, "group one: 'two' is not there before it"),
    ],
)
def test_likeness_and_groups_that_mean_nothing(
    like: dict[str, str], groups: dict[str, tuple[str, ...]], said: str
) -> None:
    with pytest.raises(UsageError, match="^" + re.escape(f"{FILE}: {said}")):
        Architectures(like, groups)


def test_a_group_has_one_meaning() -> None:
    """No other data file has groups; what templates make is said by names of groups, and hides none."""
    assert every().of("blackwell") == ("sm_100a", "sm_103a", "sm_107a", "sm_110a", "sm_120a", "sm_121a")
    assert {name: every().of(name) for name in names().generations} == names().generations
    assert not every().groups.keys() & set(every().names)
    for file in PACKAGE.rglob("*.toml"):
        data = tomllib.loads(file.read_text("utf-8"))
        assert "groups" not in data or file.name == FILE, file
        where = data.get("where", {})
        assert not any(every().knows(name) for name in where), file
        assert {name for named in where.values() for name in named} <= every().groups.keys(), file


def package_with(folder: Path, *lines: str) -> Path:
    """The package in a folder, with more lines at the end of the table of architectures; all else is linked."""
    made = linked(folder, "catalog")
    text = (made / "catalog" / FILE).read_text("utf-8")
    last = f'{list(tables()["architectures"])[-1]} = {{ like = "sm_120a" }}\n'
    assert text.count(last) == 1
    (made / "catalog" / FILE).unlink()
    (made / "catalog" / FILE).write_text(text.replace(last, "".join([last, *(f"{line}\n" for line in lines)])), "utf-8")
    return made


@pytest.mark.long
def test_an_architecture_like_another_is_one_line(tmp_path: Path) -> None:
    made = package_with(tmp_path, 'sm_130a = { like = "sm_121a" }')
    command = [sys.executable, "-B", like_architecture.__file__, str(made), "sm_130a", "sm_121a"]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(made.parent)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
