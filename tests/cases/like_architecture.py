"""What the package knows of one architecture and of another that it is like; run on a package that says so.

    python tests/cases/like_architecture.py PACKAGE NEW OLD

Every assertion is a line of ``tests/catalog/test_architectures.py``'s promise: instructions, lowerings, layouts,
kernels' sources, compile targets, parameters, models, open questions, and what the groups mean.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import mmaprobe
from mmaprobe.catalog.architectures import every
from mmaprobe.catalog.layouts import candidates, operands
from mmaprobe.catalog.lookup import Form, forms, parts
from mmaprobe.catalog.names import accepted, names
from mmaprobe.devices.nvidia.identity import architecture as of_capability
from mmaprobe.parameters.lookup import datapath_for, load
from mmaprobe.runs.open_questions.claims import open_questions
from mmaprobe.toolchain.render import render


def lowered(architecture: str) -> list[object]:
    return [(form.first, form.count, replace(form.way, architecture="")) for form in forms(architecture)]


def laid_out(architecture: str, some: tuple[Form, ...]) -> list[object]:
    return [candidates(form.first, architecture, name) for form in some for name in operands(form.first)]


def sources(architecture: str, some: tuple[Form, ...]) -> list[str]:
    return [render(form.first, architecture).text.replace(architecture, "ARCH") for form in some]


def letters(architecture: str) -> dict[str, tuple[str, ...]]:
    stem = architecture.rstrip("a")
    found = names().targets.items()
    return {name.removeprefix(stem): made.accepts for name, made in found if made.architecture == architecture}


def main(package: str, new: str, old: str) -> None:
    assert Path(mmaprobe.__file__).parent == Path(package)
    some = forms(old)[::40]
    assert lowered(new) == lowered(old) != []
    assert laid_out(new, some) == laid_out(old, some) != []
    assert sources(new, some) == sources(old, some) != []
    assert letters(new) == letters(old) == {"": ("all",), "f": ("all", "family")}
    assert accepted(new.replace("a", "f"), "family")
    assert not accepted(new.replace("a", "f"), "none")
    assert of_capability("a GPU", 13, 0) == new
    first, second = (
        {n: (e.datapath, e.basis) for n, e in load(architecture).entries.items()} for architecture in (new, old)
    )
    assert first == second != {}
    assert load(new).entries["HMMA.16816.F32[f16,f16->f32]"].source.endswith(f"has {new} like {old}")
    half = mmaprobe.instruction("mma.m16n8k16.f32.f16.f16.f32")
    assert datapath_for(new, half) == datapath_for(old, half)
    assert mmaprobe.device(f"model:{new}").supports(half)
    assert (
        [q.name for q in open_questions() if q.concerns(new)]
        == [q.name for q in open_questions() if q.concerns(old)]
        != []
    )
    assert new in parts("blackwell") == every().of("blackwell")
    assert {group for group in every().groups if new in every().of(group)} == {
        group for group in every().groups if old in every().of(group)
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
