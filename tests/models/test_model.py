"""Models as callables: tiles and vectors, the kinds of arrays that people hold, and what is refused."""

from __future__ import annotations

import ctypes
import sys
import types
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.errors import UsageError
from mmaprobe.models import engine
from mmaprobe.models.model import bind, evaluator, model
from mmaprobe.models.stages import evaluate
from mmaprobe.operands.batch import Batch
from mmaprobe.operands.bound import BoundInstruction
from mmaprobe.operands.edge import from_bits, held_as, to_bits
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Exact, Fused, Products, Scale, Special

LANES = Products(tuple(range(4)))
DATAPATH = Datapath(
    "f16", "f16", "f32", "f32", 4,
    Fused.alike((LANES, Accumulator()), 23, "RZ", -131, Encode(rounding="RZ", zero="positive")),
)  # fmt: skip
TILE = Instruction("t.m3n2k4", "t", "test", 3, 2, 4, "f16", "f16", "f32", "f32")
MODEL = bind(TILE, DATAPATH)


def tiles(count: int, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    a, b = (rng.normal(size=shape).astype(np.float16) for shape in ((count, 3, 4), (count, 4, 2)))
    return a, b, rng.normal(size=(count, 3, 2)).astype(np.float32)


def bits(array: Any) -> Any:
    return array.view(f"u{array.dtype.itemsize}")


def test_a_tile_is_every_row_by_every_column() -> None:
    a, b, c = (bits(x) for x in tiles(5))
    d = MODEL(a, b, c)
    assert d.shape == (5, 3, 2)
    assert d.dtype == np.uint32
    for t in range(5):
        for i in range(3):
            for j in range(2):
                one = Batch(a[t, i][None], b[t, :, j][None], c[t, i, j][None])
                assert d[t, i, j] == evaluate(DATAPATH, one)[0] == MODEL.dot(a[t, i], b[t, :, j], c[t, i, j])


def test_a_single_tile_comes_and_goes_without_batch_axis() -> None:
    a, b, c = (bits(x) for x in tiles(2))
    np.testing.assert_array_equal(MODEL(a[1], b[1], c[1]), MODEL(a, b, c)[1])
    assert MODEL(a[:0], b[:0], c[:0]).shape == (0, 3, 2)


def test_mfma_blocks_are_an_axis_after_the_batch() -> None:
    blocks = Instruction("t.blocks", "t", "test", 3, 2, 4, "f16", "f16", "f32", "f32", blocks=2)
    a, b, c = (bits(x) for x in tiles(6))
    d = bind(blocks, DATAPATH)(a.reshape(3, 2, 3, 4), b.reshape(3, 2, 4, 2), c.reshape(3, 2, 3, 2))
    np.testing.assert_array_equal(d.reshape(6, 3, 2), MODEL(a, b, c))


def test_dot_broadcasts_leading_axes() -> None:
    a, b, c = (bits(x) for x in tiles(5))
    d = MODEL.dot(a[:, :, None, :], b.swapaxes(1, 2)[:, None], c)
    np.testing.assert_array_equal(d, MODEL(a, b, c))
    assert MODEL.dot(a[0, 0], b[0, :, 0], c[0, 0, 0]).shape == ()


def test_floats_of_the_operands_formats_give_floats() -> None:
    a, b, c = tiles(4)
    d = MODEL(a, b, c)
    assert d.dtype == np.float32
    np.testing.assert_array_equal(bits(d), MODEL(bits(a), bits(b), bits(c)))
    np.testing.assert_array_equal(d, MODEL(bits(a), b, bits(c)))
    np.testing.assert_allclose(d, a.astype(np.float32) @ b.astype(np.float32) + c, rtol=1e-4, atol=1e-4)


def test_layout_and_byte_order_do_not_matter() -> None:
    a, b, c = tiles(4)
    d = MODEL(a, b, c)
    np.testing.assert_array_equal(MODEL(a.astype(">f2"), np.asfortranarray(b), c[::-1][::-1]), d)
    np.testing.assert_array_equal(MODEL(bits(a).astype(">u2"), bits(b), bits(c).astype(">u4")), bits(d))


@pytest.mark.parametrize("name", [name for name, fmt in formats.FORMATS.items() if held_as(fmt)])
def test_every_array_type_is_viewed_as_its_bits(name: str) -> None:
    fmt = formats.get(name)
    codes = np.arange(min(fmt.code_limit, 1 << 12), dtype=fmt.dtype)
    if name == "ue4m3":
        codes = codes[:128]
    held = held_as(fmt)
    assert held is not None
    got, typed = to_bits("t", "a", codes.view(held), fmt)
    assert typed
    np.testing.assert_array_equal(got, codes)


@pytest.mark.parametrize(
    ("operand", "value", "message"),
    [
        ("A", np.zeros((1, 3, 4), np.float32), "operand a is f16 and takes uint16 .* or float16, got float32"),
        ("A", np.zeros((1, 3, 4), np.int64), "operand a is f16 .* got int64"),
        ("B", np.zeros((1, 4, 3), np.uint16), r"operand b must have shape \(1, 4, 2\), got \(1, 4, 3\)"),
        ("C", np.zeros((2, 3, 2), np.uint32), r"operand c must have shape \(1, 3, 2\), got \(2, 3, 2\)"),
        ("C", None, r"operand c of shape \(1, 3, 2\) is missing"),
        ("scale_a", np.zeros((1, 3, 1), np.uint8), "takes no operand scale_a"),
        ("metadata", np.zeros((1, 3, 1), np.uint8), "takes no operand metadata"),
        ("A", [[1, 2], [3]], "operand a"),
        ("A", "text", "operand a .* got <U4"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(operand: str, value: Any, message: str) -> None:
    a, b, c = (bits(x) for x in tiles(1))
    with pytest.raises(ValueError, match=f"t.m3n2k4: .*{message}"):
        MODEL(**({"A": a, "B": b, "C": c} | {operand: value}))


def test_dot_names_what_does_not_fit() -> None:
    a, b = np.zeros((7, 4), np.uint16), np.zeros((5, 4), np.uint16)
    with pytest.raises(ValueError, match="leading axes do not broadcast"):
        MODEL.dot(a, b, np.uint32(0))
    with pytest.raises(ValueError, match=r"operand b must have shape \(\.\.\., 4\), got \(7, 3\)"):
        MODEL.dot(a, a[:, :3], np.uint32(0))


def test_codes_outside_a_small_format_are_refused() -> None:
    small = Instruction("t.e2m1", "t", "test", 1, 1, 4, "e2m1", "e2m1", None, "f32")
    path = Datapath("e2m1", "e2m1", None, "f32", 4, Exact((LANES,), Encode()))
    ok = np.full((1, 4), 2, np.uint8)
    assert bind(small, path).dot(ok, ok).view(np.float32)[0] == 4
    with pytest.raises(ValueError, match="operand b holds 0x10, outside its 4 bits"):
        bind(small, path).dot(ok, ok * 8)


def test_block_scales_reach_their_rows_and_columns() -> None:
    scaled = Instruction(
        "t.mx", "t", "test", 3, 2, 4, "e4m3", "e4m3", "f32", "f32", scale="ue8m0", scale_size=2
    )  # fmt: skip
    path = Datapath(
        "e4m3", "e4m3", "f32", "f32", 4, Fused.alike((LANES, Accumulator()), 25, to=Encode(rounding="RZ")),
        scale=Scale("ue8m0", 2), special=Special(),
    )  # fmt: skip
    rng = np.random.default_rng(1)
    a, b = (rng.choice([0.5, 1, 2, 3], shape).astype(ml_dtypes.float8_e4m3fn) for shape in ((2, 3, 4), (2, 4, 2)))
    sa, sb = (rng.choice([0.25, 1, 8], s).astype(ml_dtypes.float8_e8m0fnu) for s in ((2, 3, 2), (2, 2, 2)))
    d = bind(scaled, path)(a, b, np.zeros((2, 3, 2), np.float32), scale_a=sa, scale_b=sb)
    wide_a = a.astype(np.float32) * np.repeat(sa.astype(np.float32), 2, -1)
    wide_b = b.astype(np.float32) * np.repeat(sb.astype(np.float32), 2, -2)
    np.testing.assert_array_equal(d, wide_a @ wide_b)


class Tensor:
    """A DLPack producer as array libraries have them, of an element type NumPy does not export."""

    __module__ = "strange.arrays"

    def __init__(self, array: Any, code: int | None = None, device: int = 1) -> None:
        self.array, self.code, self.where = array, code, device

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.where, 0)

    def __dlpack__(self) -> Any:
        capsule = self.array.__dlpack__()
        if self.code is not None:
            get = ctypes.pythonapi.PyCapsule_GetPointer
            get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
            ctypes.c_uint8.from_address(get(capsule, b"dltensor") + 20).value = self.code
        return capsule


class OnGpu(Tensor):
    """A tensor on a GPU, which only its own ``cpu`` brings to the host."""

    def __dlpack__(self) -> Any:
        raise BufferError("on a GPU")

    def cpu(self) -> Tensor:
        return Tensor(self.array, self.code)


def test_dlpack_tensors_of_any_element_type() -> None:
    codes = np.arange(24, dtype=np.uint16).reshape(4, 6)[:, ::2]
    got, typed = to_bits("t", "a", Tensor(codes, code=4), formats.get("bf16"))
    assert typed
    np.testing.assert_array_equal(got, codes)
    small = np.arange(256, dtype=np.uint8)
    for name, code in (("e4m3", 10), ("e4m3fnuz", 11), ("e5m2", 12), ("e5m2fnuz", 13), ("ue8m0", 14)):
        got, typed = to_bits("t", "a", Tensor(small, code), formats.get(name))
        assert typed
        np.testing.assert_array_equal(got, small)
    got, typed = to_bits("t", "a", OnGpu(codes, code=4, device=2), formats.get("bf16"))
    np.testing.assert_array_equal(got, codes)
    with pytest.raises(ValueError, match=r"operand a is f16 .* got bfloat16"):
        to_bits("t", "a", Tensor(codes, code=4), formats.get("f16"))
    with pytest.raises(ValueError, match="element type 9"):
        to_bits("t", "a", Tensor(small, code=9), formats.get("e4m3"))


class Foreign:
    """An array of a library that reads NumPy's own types and views its own by name, as PyTorch does."""

    __module__ = "strange"

    def __init__(self, array: Any, kind: str = "") -> None:
        assert array.dtype.isbuiltin == 1
        self.array, self.kind, self.device = array, kind, "cpu"

    def view(self, kind: str) -> Foreign:
        return Foreign(self.array, kind)

    def to(self, device: str) -> Foreign:
        self.device = device
        return self


def test_results_return_to_the_callers_library(monkeypatch: pytest.MonkeyPatch) -> None:
    library = types.ModuleType("strange")
    vars(library).update(asarray=Foreign, float8_e5m2="strange e5m2", bfloat16="strange bf16")
    monkeypatch.setitem(sys.modules, "strange", library)
    like = Tensor(tiles(3)[0])
    like.device = "gpu"  # type: ignore[attr-defined]
    a, b, c = tiles(3)
    d = MODEL(like, b, c)
    assert isinstance(d, Foreign)
    assert d.device == "gpu"
    np.testing.assert_array_equal(d.array, MODEL(a, b, c))
    for name, dtype in (("e5m2", np.uint8), ("bf16", np.uint16)):
        codes = np.arange(5, dtype=dtype)
        own = from_bits(codes, formats.get(name), True, like)
        assert own.kind == f"strange {name}"
        np.testing.assert_array_equal(own.array, codes)
        assert from_bits(codes, formats.get(name), False, like).kind == ""


def test_a_device_binds_the_same_way() -> None:
    seen: list[str] = []

    def run(batch: Batch) -> Any:
        seen.append("tiles")
        return np.zeros((batch.size, 3, 2), np.uint32)

    bound = BoundInstruction(TILE, run, lambda vectors: np.ones(vectors.size, np.uint32))
    a, b, c = tiles(4)
    assert bound(a, b, c).dtype == np.float32
    assert bound.dot(bits(a)[:, 0], bits(b)[:, :, 0], bits(c)[:, 0, 0]).tolist() == [1, 1, 1, 1]
    assert seen == ["tiles"]


def test_the_engine_evaluates_what_it_can_and_the_stages_the_rest() -> None:
    wide = Datapath("f64", "f64", "f64", "f64", 4, Exact((LANES, Accumulator()), Encode("f64")))
    assert evaluator(DATAPATH) is engine.evaluate
    assert evaluator(wide) is evaluate
    one, c = np.full((1, 4), 1e300), np.array([2.0**-1074])
    path = bind(Instruction("t.f64", "t", "test", 1, 1, 4, "f64", "f64", "f64", "f64"), wide)
    assert path.dot(one * [1, -1, 1, -1], one, c) == c


def test_vectors_of_one_axis_give_a_result_of_none() -> None:
    hopper = model("sm_90a", "mma.m16n8k16.f32.f16.f16.f32")
    ones = np.ones(16, np.float16)
    found = hopper.dot(ones, ones, np.float32(0.5))
    assert (found.shape, found.dtype, float(found)) == ((), np.float32, 16.5)
    assert hopper.dot(ones[None], ones, np.float32(0.5)).shape == (1,)
    assert hopper.dot(ones.view(np.uint16), ones.view(np.uint16), np.uint32(0)).shape == ()


def test_whole_matrices_are_told_from_tiles() -> None:
    hopper = model("sm_90a", "mma.m16n8k16.f32.f16.f16.f32")
    half = partial(np.ones, dtype=np.float16)
    with pytest.raises(
        UsageError, match=r"A \(64, 32\) and B \(32, 48\) are whole matrices.*mmaprobe.gemm\(SCHEDULE\)"
    ):
        hopper(half((64, 32)), half((32, 48)), np.ones((64, 48), np.float32))
    with pytest.raises(UsageError, match=r"of one axis are vectors; m.dot\(a, b, c\) takes them"):
        hopper(half(16), half(16), np.float32(0))
    with pytest.raises(UsageError, match=r"operand b must have shape \(16, 8\), got \(16, 7\)"):
        hopper(half((16, 16)), half((16, 7)), np.ones((16, 8), np.float32))
    with pytest.raises(UsageError, match=r"operand c of shape \(16, 8\) is missing"):
        hopper(half((16, 16)), half((16, 8)))
    with pytest.raises(UsageError, match="operand c is missing"):
        hopper.dot(half(16), half(16))
