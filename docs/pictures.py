"""Make the pictures of the documentation: ``python docs/pictures.py`` (needs the extra ``plot``)."""

from __future__ import annotations

from pathlib import Path

from mmaprobe.catalog.lookup import instruction
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.report.naming import headline
from mmaprobe.report.picture import draw
from mmaprobe.report.tree import Branch, from_datapath

IMAGES = Path(__file__).parent / "images"
TREES = (
    ("Hopper, mma f16", "sm_90a", "mma.m16n8k16.f32.f16.f16.f32"),
    ("x86 vdpbf16ps", "x86-64", "x86.vdpbf16ps"),
    ("x86 dpps", "x86-64", "x86.dpps"),
)


def summation_trees() -> list[tuple[str, str, Branch]]:
    """The trees of README.md, from the shipped parameter files."""
    paths = [(title, datapath_for(architecture, instruction(name))) for title, architecture, name in TREES]
    return [(title, headline(path), from_datapath(path)) for title, path in paths]


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    draw(summation_trees(), IMAGES / "summation_tree.png")
