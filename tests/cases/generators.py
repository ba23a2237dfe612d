"""Instructions that the tests of the generators make vectors for."""

from __future__ import annotations

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.operands.batch import Batch


def make(a: str, b: str, c: str | None, d: str, k: int, chunk: int = 0, scale: str | None = None, size: int = 0):
    name = f"test.{k}.{a}.{b}.{c}.{d}" + (f".sparse{chunk}" if chunk else "") + (f".{scale}.{size}" if scale else "")
    return Instruction(name, name, "test", 1, 1, k, a, b, c, d, chunk=chunk, scale=scale, scale_size=size)


F16 = make("f16", "f16", "f32", "f32", 16)
FMA = make("f32", "f32", "f32", "f32", 1)
FLOATS = [
    F16, FMA,
    make("f16", "f16", "f16", "f16", 16),
    make("bf16", "bf16", "f32", "f32", 2),
    make("bf16", "bf16", "f32", "f32", 32),
    make("f64", "f64", "f64", "f64", 1),
    make("f16", "f16", "f16", "f16", 1),
    make("f32", "f32", None, "f32", 4),
    make("f64", "f64", None, "f64", 2),
    make("e4m3", "e4m3", "f32", "f32", 32),
    make("e5m2", "e4m3", "f16", "f16", 32),
    make("e3m2", "e2m3", "f16", "f16", 32),
    make("e2m1", "e2m1", "f32", "f32", 64, scale="ue4m3", size=16),
    make("e2m1", "e2m1", "f32", "f32", 64, scale="ue8m0", size=32),
    make("e4m3", "e5m2", "f32", "f32", 32, scale="ue8m0", size=32),
    make("e4m3fnuz", "e5m2fnuz", "f32", "f32", 16),
    make("e2m1", "e2m1", "f32", "f32", 32),
    make("tf32", "tf32", "f32", "f32", 8),
    make("bf16", "bf16", "bf16", "bf16", 3),
]  # fmt: skip
SPARSE = [
    make("e4m3", "e5m2", "f16", "f16", 64, chunk=4),
    make("tf32", "tf32", "f32", "f32", 8, chunk=2),
    make("e2m1", "e2m1", "f32", "f32", 128, chunk=8, scale="ue8m0", size=32),
    make("s8", "u8", "s32", "s32", 32, chunk=4),
]
INTEGERS = [
    make("u8", "s8", "s32", "s32", 4),
    make("s16", "s16", "s32", "s32", 2),
    make("u8", "s8", None, "s16", 2),
    make("s4", "u4", "s32", "s32", 64),
    make("b1", "b1", "s32", "s32", 256),
]
ALL = FLOATS + SPARSE + INTEGERS
by_id = {"ids": lambda instruction: instruction.id}


def same(x: Batch, y: Batch) -> bool:
    left, right = dict(x.items()), dict(y.items())
    return left.keys() == right.keys() and all(
        value.dtype == right[name].dtype and np.array_equal(value, right[name]) for name, value in left.items()
    )
