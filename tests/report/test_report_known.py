"""What is known of primitives, as people read it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mmaprobe
from mmaprobe.catalog.lookup import architectures
from mmaprobe.models.engine import evaluate
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Exact, Fma, Overflow, Products
from mmaprobe.parameters.lookup import load
from mmaprobe.report.datapath.known import folded, parameter_lines, parameter_rows
from mmaprobe.report.datapath.meaning import meaning
from mmaprobe.report.datapath.naming import encoding
from mmaprobe.report.datapath.phrases import describe


@pytest.mark.parametrize(
    ("arch", "primitive", "said"),
    [
        ("sm_80", "HMMA.16816.F32.BF16[bf16,bf16->f32]",
         "c + 8 products, aligned to the largest exponent, truncated 24 bits below it, a zero as 2^-132 there, "
         "to f32 truncated, overflow to infinity, never -0, in 2 steps of 8 lanes; subnormals kept; NaN 0x7fffffff"),
        ("sm_90a", "DMMA.16x8x4.RM[f64,f64->f64]",
         "fused multiply-adds of lanes 0, 1, 2, 3 onto c, each to f64 rounded down; subnormals kept; "
         "local NaN, b acc a; 0xfff8000000000000"),
        ("sm_120a", "OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X[e2m1,e2m1,ue4m3->f32]",
         "4 times (the exact sum of 16 products times its scales) + c, aligned to the largest exponent, truncated 35 "
         "bits below it, a zero as 2^-139 there, to f32 truncated, overflow to infinity, never -0; "
         "ue4m3 scales, one for 16 lanes; subnormals kept; NaN 0x7fffffff"),
        ("gfx90a", "MFMA.BF16[bf16,bf16->f32,k2]",
         "(c + (product 0 + product 1)), each to f32 to nearest even; products rounded to f32 to nearest even; "
         "subnormal inputs flushed to +0; subnormal results flushed, sign kept; NaN 0x7fc00000"),
        ("x86-64+intel", "PMADDUBSW[u8,s8->s16]", "the exact sum of 2 products, to s16, saturates"),
    ],
)  # fmt: skip
def test_a_datapath_in_a_sentence(arch: str, primitive: str, said: str) -> None:
    assert meaning(load(arch).entries[primitive].datapath) == said


def test_multiply_adds_one_after_another_are_told_as_one_chain() -> None:
    """Those of one lane each, as an emulated instruction has them, too; another rounding is a chain of its own."""
    chain = mmaprobe.model("sm_90a", "mma.m8n8k4.f32.f16.f16.f32").datapath
    assert meaning(chain).startswith("((fused multiply-adds of lanes 0, 1, 2, 3 onto 0) + c), each to f32 to nearest")
    inner = Fma(Accumulator(), (3, 1), Encode("f32", "RZ"))
    tree = Fma(inner, (0, 2), Encode("f32"))
    assert meaning(Datapath("f16", "f16", "f32", "f32", 4, tree)).startswith(
        "fused multiply-adds of lanes 0, 2 onto fused multiply-adds of lanes 3, 1 onto c, each to f32 "
    )
    joined = replace(tree, acc=replace(inner, to=tree.to))
    assert meaning(Datapath("f16", "f16", "f32", "f32", 4, joined)).startswith(
        "fused multiply-adds of lanes 3, 1, 0, 2 onto c, each to f32 to nearest even"
    )


def test_every_shipped_entry_can_be_told() -> None:
    """The text says whatever a file holds, and tells apart what differs in more than formats."""
    for arch in (*architectures(), "x86-64+amd", "x86-64+intel"):
        told = {row["primitive"]: row for row in parameter_rows(arch)}
        assert told.keys() == load(arch).entries.keys()
        text = "\n".join(parameter_lines(arch))
        assert all(row["meaning"] in text and row["source"] in text for row in told.values())


def test_names_of_one_opcode_stand_together() -> None:
    assert folded(["A.x[1]", "A.y[1]", "A.z[1]", "A.w[1]", "B[2]"]) == "A.x[1], A.y[1], A.z[1] and 1 more A; B[2]"


def test_witnesses_are_shown_as_words() -> None:
    row = next(row for row in parameter_rows("sm_70") if row["primitive"] == "HMMA.884.F32.F32[f16,f16->f32]")
    words = "a f000 b800 b400 b000, b 6400 3c00 3c00 3c00, c 4b000000 -> d 00000000"
    assert row["witnesses"] == [f"{words} (equation 10 of MMA-Sim: -0.875 becomes 0)"]
    assert "a f000 b800 b400 b000 and 12 zeros, b 6400" in "\n".join(parameter_lines("sm_90a"))


@pytest.mark.parametrize(("rule", "said"), [("wrap", "wraps"), ("largest", "saturates"), ("ieee", "saturates")])
def test_an_integer_beyond_its_range_is_said_as_it_is_computed(rule: Overflow, said: str) -> None:
    """Every rule but ``wrap`` saturates: the sentence, the table and the engine agree."""
    total = Exact((Accumulator(), Products((0,))), Encode("s32", overflow=rule))
    path = Datapath("s8", "s8", "s32", "s32", 1, total)
    one = np.ones((1, 1), np.uint8)
    d = evaluate(path, Batch(one, one, np.array([0x7FFFFFFF], np.uint32)))
    assert bool(d[0] == 0x7FFFFFFF) == (said == "saturates")
    assert meaning(path).endswith(f"to s32, {said}")
    assert describe(path)["rounding"] == said
    assert encoding(path.root) == f"s32 {said}"
