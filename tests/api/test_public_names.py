"""The package shows its public names and nothing else; each verb has an example that runs and options by name."""

from __future__ import annotations

import ast
import doctest
import inspect
import pydoc
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mmaprobe

VERBS = sorted(
    name for name in mmaprobe.__all__ if callable(verb := getattr(mmaprobe, name)) and not inspect.isclass(verb)
)


def test_the_package_shows_its_public_names_whatever_is_loaded() -> None:
    show = "import mmaprobe; print(*dir(mmaprobe)); mmaprobe.model; mmaprobe.run; print(*dir(mmaprobe))"
    said = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True)
    fresh, loaded = said.stdout.splitlines()
    assert fresh.split() == loaded.split() == sorted(mmaprobe.__all__)
    assert len(VERBS) == 19
    assert {"model", "architectures", "instructions", "devices", "gemm", "run"} <= set(VERBS)
    with pytest.raises(AttributeError, match="has no attribute 'modle'"):
        mmaprobe.modle  # noqa: B018


def test_a_type_checker_sees_the_public_names_and_no_others() -> None:
    text = Path(str(mmaprobe.__file__)).read_text("utf-8")
    guards = {ast.unparse(each.test): each for each in ast.parse(text).body if isinstance(each, ast.If)}
    seen: dict[str, str] = {}
    for each in guards["_typing.TYPE_CHECKING"].body:
        if isinstance(each, ast.ImportFrom):
            seen |= {name.asname or name.name: str(each.module) for name in each.names}
    assert "mmaprobe" not in seen.values(), "a name that is a room cannot be called"
    errors = {name for name in mmaprobe.__all__ if inspect.isclass(getattr(mmaprobe, name))}
    assert sorted({*seen, *errors, "__version__"}) == sorted(mmaprobe.__all__)
    asked_for = [each.name for each in guards["not _typing.TYPE_CHECKING"].body if isinstance(each, ast.FunctionDef)]
    assert asked_for == ["__getattr__"], "every other name would be there"


def test_instructions_of_a_device_show_themselves_in_short() -> None:
    listed = mmaprobe.device("model:sm_90a").instructions()
    assert len(listed) > 300
    assert len(repr(listed)) < 3000
    assert "more rows" in listed._repr_html_()


def test_help_names_every_verb_and_no_word_of_typing() -> None:
    text = pydoc.plain(pydoc.render_doc(mmaprobe))
    assert all(f"\n    {name}(" in text for name in VERBS if name != "devices")
    assert "TYPE_CHECKING" not in text
    assert "import_module" not in text


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_spells_its_options_out_and_its_example_runs(name: str) -> None:
    verb: Any = getattr(mmaprobe, name)
    kinds = {parameter.kind for parameter in inspect.signature(verb).parameters.values()}
    assert not kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}
    said = verb if inspect.isfunction(verb) else type(verb).__call__
    (example,) = doctest.DocTestFinder(recurse=False).find(said, name, globs={})
    assert len(example.examples) > 1
    assert doctest.DocTestRunner().run(example).failed == 0


def test_devices_is_a_verb_and_a_room() -> None:
    from mmaprobe.devices import base

    assert mmaprobe.devices.base is base
    assert "cpu" in [each.device for each in mmaprobe.devices()]


def test_an_option_that_a_verb_has_not_is_named() -> None:
    call: Any = mmaprobe.validate
    with pytest.raises(TypeError, match="unexpected keyword argument 'thread'"):
        call("model:sm_90a", "model:sm_90a", "mma.m16n8k16.f32.f16.f16.f32", thread=2)
