"""Summation trees in words and as pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mmaprobe.errors import CannotWriteError, UsageError
from mmaprobe.parameters.datapath import Accumulator, Add, Datapath, Encode, Exact, Fma, Fused, Product, Products, Term
from mmaprobe.report.datapath.tree import Branch, datapath_text, from_answer, from_datapath, text
from mmaprobe.report.pictures.tree import draw

C = Accumulator()
HOPPER = Datapath(
    "f16", "f16", "f32", "f32", 16,
    Fused.alike((C, Products(tuple(range(16)))), 25, "RZ", -133, Encode(rounding="RZ")),
)  # fmt: skip
FLUSHED = Encode(subnormals="signed_zero")
VDPBF16PS = Datapath("bf16", "bf16", "f32", "f32", 2, Fma(C, (1, 0), FLUSHED))
DPPS = Datapath(
    "f32", "f32", None, "f32", 4,
    Add(Add(Products((0,)), Products((1,)), Encode()), Add(Products((2,)), Products((3,)), Encode()), Encode()),
    product=Product(to=Encode()),
)  # fmt: skip
GROUPED = Datapath(
    "e4m3fnuz", "e4m3fnuz", "f32", "f32", 16,
    Fused((
        Term(Fused.alike((Products(tuple(range(0, 16, 2))),), 24), 31, "RD"),
        Term(Fused.alike((Products(tuple(range(1, 16, 2))),), 24), 31, "RD"),
        Term(C, 24, "RD", -126, cutoff=25),
    ), Encode(first=(31, "RD"))),
)  # fmt: skip
SUM = Datapath("s8", "u8", "s32", "s32", 4, Exact((C, Products((0, 1, 2, 3))), Encode("s32", overflow="wrap")))


@pytest.mark.parametrize(
    ("path", "lines"),
    [
        (HOPPER, ["f16 · f16 + f32 → f32, K = 16", "fused 25 bits RZ → f32 RZ", "├─ c", "└─ a0·b0 … a15·b15"]),
        (
            VDPBF16PS,
            [
                "bf16 · bf16 + f32 → f32, K = 2",
                "fma → f32 RNE flushed",
                "├─ fma → f32 RNE flushed",
                "│  ├─ c",
                "│  └─ a1·b1",
                "└─ a0·b0",
            ],
        ),
        (
            DPPS,
            [
                "f32 · f32 → f32, K = 4",
                "add → f32 RNE",
                "├─ add → f32 RNE",
                "│  ├─ a0·b0 → f32 RNE",
                "│  └─ a1·b1 → f32 RNE",
                "└─ add → f32 RNE",
                "   ├─ a2·b2 → f32 RNE",
                "   └─ a3·b3 → f32 RNE",
            ],
        ),
        (
            GROUPED,
            [
                "e4m3fnuz · e4m3fnuz + f32 → f32, K = 16",
                "fused → f32 first 31 bits RD, then RNE",
                "├─ fused 24 bits RZ [31 bits RD]",
                "│  └─ a·b of lanes 0..14:2",
                "├─ fused 24 bits RZ [31 bits RD]",
                "│  └─ a·b of lanes 1..15:2",
                "└─ c [24 bits RD dropped 25 below]",
            ],
        ),
        (
            SUM,
            [
                "s8 · u8 + s32 → s32, K = 4",
                "exact → s32 wraps",
                "├─ c",
                "└─ a0·b0, a1·b1, a2·b2, a3·b3",
            ],
        ),
        (
            replace(HOPPER, k=64, step=16),
            [
                "f16 · f16 + f32 → f32, K = 64, 4 steps of 16 lanes",
                "fused 25 bits RZ → f32 RZ",
                "├─ the same over lanes 0..15; 16..31; 32..47; start with c",
                "└─ a48·b48 … a63·b63",
            ],
        ),
        (
            replace(HOPPER, k=32, step=16),
            [
                "f16 · f16 + f32 → f32, K = 32, 2 steps of 16 lanes",
                "fused 25 bits RZ → f32 RZ",
                "├─ fused 25 bits RZ → f32 RZ",
                "│  ├─ c",
                "│  └─ a0·b0 … a15·b15",
                "└─ a16·b16 … a31·b31",
            ],
        ),
    ],
)
def test_trees_as_text(path: Datapath, lines: list[str]) -> None:
    assert datapath_text(path).splitlines() == lines


def test_found_trees_as_text() -> None:
    def found(answer: object) -> list[str]:
        return text(from_answer(answer)).splitlines()

    assert found({"kind": "fused", "terms": ["c", *range(8)]}) == ["fused", "├─ c", "└─ a0·b0 … a7·b7"]
    assert found({"kind": "fma", "acc": "c", "lanes": [1, 0]}) == [
        "fma",
        "├─ fma",
        "│  ├─ c",
        "│  └─ a1·b1",
        "└─ a0·b0",
    ]
    assert found({"kind": "add", "terms": [0, 1]}) == ["add", "├─ a0·b0", "└─ a1·b1"]
    assert found({"kind": "exact", "terms": [0, 1], "lossless": True}) == ["exact lossless", "└─ a0·b0, a1·b1"]


def trees() -> list[tuple[str, str, Branch]]:
    return [(name, "beneath", from_datapath(path)) for name, path in (("one", HOPPER), ("two", GROUPED), ("3", SUM))]


@pytest.mark.needs("matplotlib")
@pytest.mark.parametrize(("suffix", "magic"), [(".png", b"\x89PNG"), (".svg", b"<?xml")])
def test_pictures_are_whole_files_and_the_same_each_time(tmp_path: Path, suffix: str, magic: bytes) -> None:
    one, two = tmp_path / f"one{suffix}", tmp_path / f"two{suffix}"
    draw(trees(), one)
    draw(trees(), two)
    assert one.read_bytes().startswith(magic)
    assert one.read_bytes() == two.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [one.name, two.name]


@pytest.mark.needs("matplotlib")
def test_a_picture_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWriteError, match="cannot write"):
        draw(trees(), tmp_path / "file" / "tree.png")
    with pytest.raises(UsageError, match=r"tree.gif: a picture is .png or .svg"):
        draw(trees(), tmp_path / "tree.gif")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
