"""Make the pictures of the documentation: ``python docs/pictures.py`` (needs the extra ``plot``)."""

from __future__ import annotations

from pathlib import Path

from matplotlib import pyplot

from mmaprobe.catalog.layouts import layout
from mmaprobe.catalog.lookup import instruction
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.report.datapath.naming import headline
from mmaprobe.report.datapath.tree import Branch, from_datapath
from mmaprobe.report.pictures.tree import draw

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


FRAGMENTS = (
    ("mma.m16n8k16.f32.f16.f16.f32", "sm_80", "a"),
    ("v_mfma_f32_16x16x16_f16", "gfx942", "a"),
)


def fragments(path: Path) -> None:
    """Operand A of two units, a square an element: its lane as colour and number, its register below."""
    figure, axes = pyplot.subplots(1, len(FRAGMENTS), figsize=(13, 7))
    for axis, (name, architecture, operand) in zip(axes, FRAGMENTS, strict=True):
        found = layout(instruction(name), architecture, operand)
        index = found.coordinates()
        for lane in range(found.lanes):
            for slot in range(found.slots):
                m, k = int(index["m"][lane, slot]), int(index["k"][lane, slot])
                colour = pyplot.get_cmap("tab20")(lane % 20, alpha=0.55)
                axis.add_patch(pyplot.Rectangle((k, m), 1, 1, facecolor=colour, edgecolor="white"))
                text = f"{lane}\nr{slot // found.per_register}"
                axis.text(k + 0.5, m + 0.5, text, ha="center", va="center", fontsize=6)
        axis.set(
            xlim=(0, found.shape[1]), ylim=(found.shape[0], 0), aspect="equal", xlabel="k", ylabel="row", title=name
        )
        axis.set_xticks([])
        axis.set_yticks([])
    figure.tight_layout()
    figure.savefig(path, dpi=80)


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    draw(summation_trees(), IMAGES / "summation_tree.png")
    fragments(IMAGES / "fragments.png")
