"""Pictures of matrix products: what they show is right, whatever draws them, and what cannot be drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mmaprobe
from cases.gemm_schedules import ONE, PLAIN, SHARED
from cases.random_products import Modelled
from mmaprobe.cli import main
from mmaprobe.devices.products import open_product
from mmaprobe.parameters.schedule import Accumulators, to_text
from mmaprobe.report.pictures.element_classes import classes_of
from mmaprobe.report.pictures.schedule import Addition, additions
from mmaprobe.report.tables.schedules import order_words

HASWELL = "openblas_haswell_f32?m=24&n=24&k=400"


def test_classes_are_the_kernels_of_a_schedule_or_what_answers_alike() -> None:
    """The same schedule as a file that is read, and as something that can only be asked."""
    product = open_product(f"gemm:{HASWELL}")
    read = classes_of(product)
    assert [words.partition(":")[0] for words in read.words] == ["one", "two"]
    assert (read.number[:6, :8] == 1).all()
    assert read.share(0) + read.share(1) == 1 > read.share(0) > 0.5
    asked = classes_of(Modelled(product.schedule, product.shape))  # type: ignore[attr-defined]
    assert (asked.number == read.number).all()


def test_what_workers_share_is_classes_by_tile(tmp_path: Path) -> None:
    made = replace(ONE, c=None, kernels=(replace(PLAIN, ranges=SHARED),))
    (tmp_path / "x.toml").write_text(to_text(made), "utf-8")
    found = classes_of(open_product(f"gemm:{tmp_path / 'x.toml'}?m=7&n=9&k=22"))
    assert np.unique(found.number[:4, :6]).size == np.unique(found.number[4:, :6]).size == 1
    assert [found.number[i, j] == found.number[0, 0] for i, j in ((4, 0), (0, 6), (4, 6))] == [False, False, True]
    assert sorted(words.partition("ranges of ")[2].partition(", chain")[0] for words in found.words) == [
        "", "16, 6", "8, 14",
    ]  # fmt: skip


def test_sums_lie_above_their_terms() -> None:
    """Four terms in a chain from a start, and pairwise with the start added to their sum."""
    chain = additions([1, 2, 3], False, 0)
    assert [(each.left, each.right, each.level) for each in chain] == [(0, 1, 1), (0.5, 2, 2), (1.25, 3, 3)]
    pairs = additions([1, 2, 3], True, 0)
    assert pairs == [Addition(1, 2, (0, 0), 1), Addition(1.5, 3, (1, 0), 2), Addition(0, 2.25, (0, 2), 3)]
    assert additions([1], True) == []


WRONG = [
    (["schedule", "function:numpy:matmul?m=8&n=8&k=9"], "mmaprobe gemm identify 'function:numpy:matmul?m=8&n=8&k=9'"),
    (["schedule", HASWELL, "--at", "24,0"], "--at is 24,0; D is 24 x 24"),
    (["schedule", HASWELL, "--at", "a"], "must be ROW,COLUMN"),
    (["schedule", "blis_generic_f32?m=24&n=24&k=9000"], "K = 9000 is cut into 36 ranges; a picture shows 1 to 24"),
    (["classes", "openblas_haswel_f32"], "multiplies no matrices of any shape"),
]


@pytest.mark.parametrize(("words", "said"), WRONG, ids=[said for _, said in WRONG])
def test_what_cannot_be_drawn_is_2(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plot", *words, "--out", str(tmp_path / "x.png")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "x.png").exists()


@pytest.mark.parametrize(("name", "kernel", "words"), [
    ("openblas_nehalem_f32", "late", "after them the last step of whole blocks of 4 and what is left"),
    ("openblas_nehalem_f64", "four", "before the last addition what is left of blocks of 4"),
    ("openblas_nehalem_f64", "two", "2 accumulators, joined by chain, rounded product"),
])  # fmt: skip
def test_steps_that_are_not_dealt_out_are_said(name: str, kernel: str, words: str) -> None:
    kernels = {each.name: each for each in mmaprobe.gemm(name).schedule.kernels}
    assert words in order_words(kernels[kernel])
    late = replace(kernels[kernel], accumulators=Accumulators("f32", 2, block=4, late=2))
    assert "to the first the last 2 steps of whole blocks of 4 and what is left" in order_words(late)
