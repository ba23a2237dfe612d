"""Tensors of PyTorch go in and come out as they came, bf16 and FP8 too: ``nox -s torch``, which installs it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import mmaprobe
from mmaprobe.errors import UsageError

UNITS = [
    ("float16", "sm_90a", "mma.m16n8k16.f32.f16.f16.f32"),
    ("bfloat16", "sm_90a", "wgmma.m64n8k16.f32.bf16.bf16"),
    ("float8_e4m3fn", "sm_90a", "wgmma.m64n8k32.f32.e4m3.e4m3"),
    ("float8_e5m2", "sm_90a", "wgmma.m64n8k32.f32.e5m2.e5m2"),
    ("float8_e4m3fnuz", "gfx942", "v_mfma_f32_32x32x16_fp8_fp8"),
]


def pair(name: str, shape: tuple[int, ...], seed: int) -> tuple[Any, Any]:
    """The same numbers as an array and as a tensor of a type."""
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    host = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
    return host, torch.from_numpy(host.view(f"u{dtype.itemsize}").copy()).view(getattr(torch, name))


@pytest.mark.parametrize(("name", "architecture", "instruction"), UNITS)
def test_vectors_and_tiles(name: str, architecture: str, instruction: str) -> None:
    model = mmaprobe.model(architecture, instruction)
    made = model.instruction
    for call, shapes in (
        (model.dot, ((5, made.k), (5, made.k), (5,))),
        (model, ((2, made.m, made.k), (2, made.k, made.n), (2, made.m, made.n))),
    ):
        (a, a_there), (b, b_there) = (pair(name, shape, seed) for seed, shape in enumerate(shapes[:2]))
        c, c_there = pair("float32", shapes[2], 2)
        d = call(a_there, b_there, c_there)
        assert isinstance(d, torch.Tensor)
        assert (d.dtype, d.device) == (torch.float32, a_there.device)
        assert (d.numpy().view("u4") == call(a, b, c).view("u4")).all()


def test_a_result_that_numpy_has_no_type_for() -> None:
    """bf16 comes out as bf16."""
    model = mmaprobe.model("gfx1100", "v_wmma_bf16_16x16x16_bf16_w32")
    k = model.instruction.k
    (a, a_there), (b, b_there), (c, c_there) = (
        pair("bfloat16", shape, seed) for seed, shape in enumerate(((4, k), (4, k), (4,)))
    )
    d = model.dot(a_there, b_there, c_there)
    assert d.dtype == torch.bfloat16
    assert (d.view(torch.uint16).numpy() == model.dot(a, b, c).view("u2")).all()


def test_strides_and_gradients() -> None:
    """A transposed tensor is read as it lies; one that wants a gradient is refused in a line, as PyTorch does."""
    model = mmaprobe.model("sm_90a", "mma.m16n8k16.f32.f16.f16.f32")
    (a, a_there), (b, b_there) = pair("float16", (16, 5), 0), pair("float16", (5, 16), 1)
    c, c_there = pair("float32", (5,), 2)
    d = model.dot(a_there.T, b_there, c_there)
    assert (d.numpy().view("u4") == model.dot(a.T, b, c).view("u4")).all()
    with pytest.raises(UsageError, match="operand c is not an array that can be read"):
        model.dot(a_there.T, b_there, c_there.requires_grad_())
