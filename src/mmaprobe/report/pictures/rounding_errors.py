"""Errors of long dot products against the exact result, unit by unit: how large, to which side, and how they grow."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mmaprobe.parameters.rewrite import map_encodes, map_terms
from mmaprobe.report.datapath.phrases import describe
from mmaprobe.report.pictures.canvas import INK, SOFT, new_figure, save
from mmaprobe.report.pictures.palette import COLOURS, LINES, plain, style
from mmaprobe.report.pictures.units import Floats, LongDots, PicturedUnit, long_dots, one_call

LENGTHS = tuple(1 << power for power in range(5, 13))
VECTORS = 400
"""Dot products of each length."""
BIAS_VECTORS = 40_000
"""Calls whose errors are sorted into bins."""
LARGE = 2.0**10
"""How much larger A and B are than C where a bias is shown: the founding paper's condition."""
BINS = 81
"""Bins of errors; an odd number has one around 0."""
REACH = 2.5
"""Units on either side of 0 that the bins cover."""
SMALLEST = 2.0**-10
"""Operands of long dot products are no smaller: what becomes of subnormal ones is another matter."""
UNIT_ROUNDOFF = 2.0**-24
"""Half the distance from 1 to the next f32."""
LABEL_LETTERS = 54
"""Letters of a line of a label: what there is room for beside the axes."""
PERCENT = 100
"""Hundredths."""


def draw_errors(units: Sequence[PicturedUnit], path: Path, seed: int) -> None:
    """The root of the mean squared error, relative to that of the exact results, by length."""
    figure = new_figure(path, 9.5, 5.8)
    axes = figure.add_axes((0.09, 0.11, 0.5, 0.76))
    a, b = _normal(seed, VECTORS, max(LENGTHS))
    for number, unit in enumerate(units):
        found = long_dots(unit, a, b, LENGTHS)
        axes.loglog(found.terms, relative_error(found), label=_label(unit), markersize=5, **style(number))
    axes.axhline(UNIT_ROUNDOFF, color=SOFT, linewidth=1)
    axes.text(LENGTHS[-1], UNIT_ROUNDOFF / 1.25, "2⁻²⁴: half an f32's last place", fontsize=8, color=SOFT, ha="right")
    axes.set_xscale("log", base=2)
    axes.set_xlabel("terms of the dot product", fontsize=9)
    axes.set_ylabel("error, relative to the results (root mean square)", fontsize=9)
    _finish(axes, f"Error against the exact result: {VECTORS} dot products of normal random numbers")
    save(figure, path, "--out")


def draw_bias(units: Sequence[PicturedUnit], path: Path, seed: int) -> None:
    """How often which signed error of one call, where products are large and c is small: what rounds down moves all
    errors to the left, and beside it stands the same unit, were it to truncate."""
    figure = new_figure(path, 9.5, 5.8)
    axes = figure.add_axes((0.08, 0.11, 0.53, 0.76))
    shown = [each for unit in units for each in (unit, *_truncating(unit))]
    edges = np.linspace(-REACH, REACH, BINS + 1)
    for number, unit in enumerate(shown):
        errors = call_errors(unit, seed)
        mean = float(errors.mean())
        look = {"color": COLOURS[number % len(COLOURS)], "linestyle": LINES[number % len(LINES)]}
        share = np.histogram(errors, edges)[0] / len(errors) * PERCENT
        axes.stairs(share, edges, linewidth=1.8, label=f"{_label(unit)}\n  mean {mean:+.3f}", **look)
        axes.axvline(mean, linewidth=1.2, **look)
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_xlabel("error, in units of 2⁻²⁴ of the largest product's binade; upright lines: the means", fontsize=9)
    axes.set_ylabel("share of the calls, %", fontsize=9)
    _finish(axes, f"Bias: signed errors of {BIAS_VECTORS:,} calls, A and B 2¹⁰ times as large as C")
    save(figure, path, "--out")


def draw_drift(units: Sequence[PicturedUnit], path: Path, seed: int) -> None:
    """The mean signed error of sums of positive terms, by length: what is cut off each term adds up."""
    figure = new_figure(path, 9.5, 5.8)
    axes = figure.add_axes((0.09, 0.11, 0.5, 0.76))
    random = np.random.default_rng(seed)
    a, b = (random.uniform(0.5, 1, (VECTORS, max(LENGTHS))) for _ in "ab")
    for number, unit in enumerate(units):
        found = long_dots(unit, a, b, LENGTHS)
        end = float(drift(found)[-1])
        last = f"\n  {found.terms[-1]:,} terms: {f'{end:+.3g} %' if end else 'no error'}"
        axes.semilogx(found.terms, drift(found), base=2, label=_label(unit) + last, markersize=5, **style(number))
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.set_xlabel("terms of the dot product", fontsize=9)
    axes.set_ylabel("mean error, % of the exact result", fontsize=9)
    _finish(axes, f"Accumulation of FP8: mean of {VECTORS} dot products of numbers between 1/2 and 1")
    save(figure, path, "--out")


def relative_error(found: LongDots) -> Floats:
    """The root of the mean squared error over that of the exact results, by length."""
    return np.asarray(np.sqrt(((found.results - found.exact) ** 2).mean(1) / (found.exact**2).mean(1)))


def call_errors(unit: PicturedUnit, seed: int) -> Floats:
    """The errors of single calls in units of 2^-24 of the binade of each one's largest product."""
    path, random = unit.datapath, np.random.default_rng(seed)
    a, b = (random.standard_normal((BIAS_VECTORS, path.k)) * LARGE for _ in "ab")
    found = one_call(unit, a, b, random.standard_normal(BIAS_VECTORS))
    return np.asarray((found.results[0] - found.exact[0]) / (UNIT_ROUNDOFF * np.exp2(found.largest)))


def _truncating(unit: PicturedUnit) -> list[PicturedUnit]:
    """A unit that rounds terms down as it would be if it truncated them; none for another one."""
    downward = unit.datapath
    cut = map_terms(downward, lambda term: replace(term, rounding="RZ") if term.rounding == "RD" else term)
    path = map_encodes(cut, lambda to: replace(to, first=(to.first[0], "RZ")) if to.first else to)
    return [PicturedUnit(f"{unit.title.partition(':')[0]}: were it to truncate", path)] if cut != downward else []


def drift(found: LongDots) -> Floats:
    """The mean signed error by length, in percent of the exact result."""
    return np.asarray(((found.results - found.exact) / found.exact).mean(1) * PERCENT)


def _normal(seed: int, vectors: int, terms: int) -> tuple[Floats, Floats]:
    random = np.random.default_rng(seed)
    drawn = [random.standard_normal((vectors, terms)) for _ in "ab"]
    a, b = (np.where(abs(each) < SMALLEST, SMALLEST, each) for each in drawn)
    return a, b


def _label(unit: PicturedUnit) -> str:
    """What a line is: the unit, and in as many lines as it takes how it adds and what it keeps."""
    words = describe(unit.datapath)
    said = textwrap.wrap(f"{words['order']}; {words['precision']}", LABEL_LETTERS)
    return "\n  ".join([unit.title, *said])


def _finish(axes: Any, title: str) -> None:
    """The title, and what each line is, to the right."""
    plain(axes)
    axes.tick_params(labelsize=8)
    axes.set_title(title, loc="left", fontsize=11, color=INK, pad=12)
    axes.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.02, 1.0), labelspacing=0.9)
