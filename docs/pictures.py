"""Make the pictures of the documentation: ``python docs/pictures.py`` (needs the extra ``plot``)."""

from __future__ import annotations

from pathlib import Path

from mmaprobe.catalog.layouts import layout
from mmaprobe.catalog.lookup import instruction
from mmaprobe.devices.products import open_product
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.schedule import schedule_named
from mmaprobe.report.datapath.naming import headline
from mmaprobe.report.datapath.tree import Branch, from_datapath
from mmaprobe.report.datapath.window import windows
from mmaprobe.report.pictures.element_classes import classes_of, draw_classes
from mmaprobe.report.pictures.fragments import draw_fragment
from mmaprobe.report.pictures.parameter_matrix import draw_matrix, matrix
from mmaprobe.report.pictures.rounding_errors import draw_bias, draw_drift, draw_errors
from mmaprobe.report.pictures.schedule import draw_schedule
from mmaprobe.report.pictures.tree import draw
from mmaprobe.report.pictures.units import units
from mmaprobe.report.pictures.windows import draw_windows
from mmaprobe.validation.products.partial_sums import kernel_of

IMAGES = Path(__file__).parent / "images"
TREES = (
    ("Hopper, mma f16", "sm_90a", "mma.m16n8k16.f32.f16.f16.f32"),
    ("x86 vdpbf16ps", "x86-64", "x86.vdpbf16ps"),
    ("x86 dpps", "x86-64", "x86.dpps"),
)
FRAGMENT = ("sm_80", "mma.m16n8k16.f32.f16.f16.f32")
WINDOW = ("gfx942", "v_mfma_f32_16x16x16_f16")


def summation_trees() -> list[tuple[str, str, Branch]]:
    """The trees of README.md, from the shipped parameter files."""
    paths = [(title, datapath_for(architecture, instruction(name))) for title, architecture, name in TREES]
    return [(title, headline(path), from_datapath(path)) for title, path in paths]


def fragment() -> None:
    """Where operand A lies."""
    architecture, name = FRAGMENT
    found = layout(instruction(name), architecture, "a")
    draw_fragment(f"{architecture} {name}, operand A", found, IMAGES / f"fragment_{architecture}.png")


def window() -> None:
    """The bits that survive in CDNA3's sums."""
    architecture, name = WINDOW
    path = datapath_for(architecture, instruction(name, architecture))
    draw_windows(f"{architecture} {name}", headline(path), windows(path), IMAGES / "window.png")


def product() -> None:
    """The classes of OpenBLAS' product, and how an element of the smaller one is added."""
    draw_classes(classes_of(open_product("gemm:openblas_haswell_f32?m=100&n=140&k=1003")), IMAGES / "classes.png")
    kernel = kernel_of(schedule_named("openblas_haswell_f32"), (100, 140, 1003), (0, 0))
    draw_schedule("openblas_haswell_f32, D[0, 0] of 100 x 140 x 1003", kernel, 1003, IMAGES / "schedule.png")


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    draw(summation_trees(), IMAGES / "summation_tree.png")
    fragment()
    window()
    product()
    draw_errors(units("errors", ()), IMAGES / "errors.png", 0)
    draw_bias(units("bias", ()), IMAGES / "bias.png", 0)
    draw_drift(units("fp8", ()), IMAGES / "drift.png", 0)
    draw_matrix(matrix(), IMAGES / "parameters.png")
