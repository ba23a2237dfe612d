"""Sparse operands: which metadata is legal, and that a sparse model is the dense one of the selected lanes."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import mmaprobe
from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction, instructions
from mmaprobe.catalog.sparsity import check_metadata, kept_positions, legal_items
from mmaprobe.devices.base import run_vectors
from mmaprobe.devices.model import DatapathDevice, ModelDevice, open_model
from mmaprobe.errors import UsageError
from mmaprobe.generators import families_for, generate
from mmaprobe.generators.tiles import generate_tiles, vector_at
from mmaprobe.models.model import bind
from mmaprobe.operands.batch import Batch, check_batch, check_vectors
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Exact, Fused, Products, Scale
from oracle.sparse import scattered, selected

C = Accumulator()
F32 = Encode(rounding="RZ", overflow="infinity", zero="positive")


def lanes(k: int) -> Products:
    return Products(tuple(range(k)))


def fused(a: str, k: int, step: int = 0) -> Datapath:
    return Datapath(a, a, "f32", "f32", k, Fused.alike((lanes(step or k), C), 25, "RZ", -133, F32), step=step)


def sparse(a: str, k: int, chunk: int, m: int = 4, n: int = 3) -> Instruction:
    c = "f32" if formats.get(a).is_float else "s32"
    return Instruction(f"s.{a}.k{k}", "s", "test", m, n, k, a, a, c, c, chunk=chunk)


INTEGER = Datapath("s8", "s8", "s32", "s32", 16, Exact((C, lanes(16)), Encode("s32", overflow="wrap")))
NIBBLES = Datapath("u4", "u4", "s32", "s32", 32, Exact((C, lanes(32)), Encode("s32", overflow="wrap")))
SCALED = replace(fused("e2m1", 64), scale=Scale("ue8m0", 32))
CASES = {
    "16 bits": (sparse("f16", 32, 4), fused("f16", 16, 8)),
    "8 bits": (sparse("s8", 32, 4), INTEGER),
    "tf32": (sparse("tf32", 16, 2), fused("tf32", 8)),
    "4 bits": (sparse("u4", 64, 8), NIBBLES),
    "scaled": (replace(sparse("e2m1", 128, 8), scale="ue8m0", scale_size=64), SCALED),
    "blocks": (replace(sparse("f16", 16, 4), blocks=2), fused("f16", 8)),
}
TILED = [name for name in CASES if name != "blocks"]


def test_the_legal_items_are_those_of_the_isa() -> None:
    assert legal_items(4) == legal_items(8) == (0x4, 0x8, 0x9, 0xC, 0xD, 0xE)
    assert legal_items(4, unordered=True) == (1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 13, 14)
    assert legal_items(2) == legal_items(2, unordered=True) == (0x4, 0xE)


@pytest.mark.parametrize("chunk", [2, 4, 8])
def test_every_legal_item_selects_what_the_oracle_does(chunk: int) -> None:
    items = legal_items(chunk, unordered=True)
    made = sparse("u8", 4 * chunk, chunk)
    metadata = np.array(list(itertools.product(items, repeat=4)), np.uint8)
    expected = [selected(range(made.k), row, chunk) for row in metadata.tolist()]
    np.testing.assert_array_equal(kept_positions(made, metadata), expected)


@pytest.mark.parametrize("name", TILED)
def test_a_sparse_model_is_the_dense_one_of_the_selected_lanes(name: str) -> None:
    made, datapath = CASES[name]
    model = bind(made, datapath)
    dense = replace(made, k=made.selected, chunk=0, scale_size=made.scale_size // 2)
    for family in families_for(made):
        v = generate(made, family, 3, 0, 200)
        assert v.metadata is not None
        b = np.array([selected(*row, made.chunk) for row in zip(v.b.tolist(), v.metadata.tolist(), strict=True)])
        chosen = Batch(v.a, b.astype(v.b.dtype), v.c, v.scale_a, v.scale_b)
        np.testing.assert_array_equal(model.run_vectors(v), bind(dense, datapath).run_vectors(chosen), family)


@pytest.mark.parametrize("name", ["8 bits", "4 bits"])
def test_absent_lanes_are_zeros_where_a_zero_changes_nothing(name: str) -> None:
    """An exact sum: the dense instruction of all K lanes with zeros in A."""
    made, datapath = CASES[name]
    whole = replace(datapath, k=made.k, tree=Exact((C, lanes(made.k)), Encode("s32", overflow="wrap")))
    v = generate(made, "uniform", 5, 0, 300)
    assert v.metadata is not None
    a = np.array([scattered(*row, made.chunk) for row in zip(v.a.tolist(), v.metadata.tolist(), strict=True)])
    dense = bind(replace(made, chunk=0), whole).run_vectors(Batch(a.astype(v.a.dtype), v.b, v.c))
    np.testing.assert_array_equal(bind(made, datapath).run_vectors(v), dense)


@pytest.mark.parametrize("name", TILED)
def test_each_row_of_a_tile_selects_for_itself(name: str) -> None:
    made, datapath = CASES[name]
    model = bind(made, datapath)
    tiles = generate_tiles(made, "uniform", 1, 0, 3)
    d = model.run_tiles(check_batch(made, tiles))
    for place in np.ndindex(d.shape):
        assert d[place] == model.run_vectors(vector_at(tiles, *place))[0], place


def test_mfma_blocks_select_for_themselves() -> None:
    made, datapath = CASES["blocks"]
    one = replace(made, blocks=1)
    tiles = generate_tiles(one, "uniform", 2, 0, 6)
    pairs = Batch(**{name: value.reshape(3, 2, *value.shape[1:]) for name, value in tiles.items()})
    d = bind(made, datapath).run_tiles(check_batch(made, pairs))
    np.testing.assert_array_equal(d.reshape(6, one.m, one.n), bind(one, datapath).run_tiles(tiles))


class TilesOnly:
    """A device without ``run_vectors``; its tiles are checked as hardware's are."""

    name = "tiles only"

    def __init__(self, inside: DatapathDevice | ModelDevice) -> None:
        self.info, self.instructions, self.supports, self.run = (
            inside.info, inside.instructions, inside.supports, inside.run,
        )  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_separate_vectors_lie_on_diagonals_of_tiles_with_legal_metadata(name: str) -> None:
    made, datapath = CASES[name]
    device = DatapathDevice(made, datapath)
    vectors = generate(made, "uniform", 1, 0, 50)
    np.testing.assert_array_equal(run_vectors(TilesOnly(device), made, vectors), device.run_vectors(made, vectors))


@pytest.mark.parametrize("name", CASES)
def test_illegal_metadata_is_named_by_its_place(name: str) -> None:
    made, datapath = CASES[name]
    model = bind(made, datapath)
    legal = legal_items(made.chunk)
    v = generate(made, "uniform", 1, 0, 8)
    shape = made.shapes(2)["metadata"]
    tiles = Batch(**{n: np.zeros(s, made.formats().get(n, formats.get("u8")).dtype) for n, s in made.shapes(2).items()})
    values = " ".join(f"{item:#x}" for item in legal)
    for item in sorted(set(range(256)) - set(legal)):
        assert v.metadata is not None
        metadata = v.metadata.copy()
        metadata[6, -1] = item
        said = f"metadata of item 6, chunk {shape[-1] - 1} is {item:#x}; it must be one of {values}$"
        with pytest.raises(UsageError, match=said):
            check_vectors(made, replace(v, metadata=metadata))
        with pytest.raises(UsageError, match=said):
            model.run_vectors(replace(v, metadata=metadata))
        full = np.full(shape, legal[0], np.uint8)
        full[(1, *([0] * made.blocks)[1:], 2, 1)] = item
        where = "item 1, MFMA block 0, row 2, chunk 1" if made.blocks > 1 else "item 1, row 2, chunk 1"
        with pytest.raises(UsageError, match=f"metadata of {where} is {item:#x}"):
            check_batch(made, replace(tiles, metadata=full))


def test_the_later_place_first_needs_a_sort() -> None:
    made, datapath = CASES["16 bits"]
    v = generate(made, "clustered", 1, 0, 40)
    assert v.metadata is not None
    turned = replace(v, metadata=(v.metadata >> 2 | v.metadata << 2) & 15)
    swapped = replace(turned, a=v.a.reshape(40, -1, 2)[:, :, ::-1].reshape(40, -1))
    plain = replace(made, unordered=True)
    sorting = bind(plain, datapath, sorts=True)
    np.testing.assert_array_equal(sorting.run_vectors(swapped), bind(made, datapath).run_vectors(v))
    check_vectors(plain, turned)
    for model in (bind(plain, datapath), bind(made, datapath, sorts=True)):
        with pytest.raises(UsageError, match="it must be one of 0x4 0x8 0x9 0xc 0xd 0xe"):
            model.run_vectors(turned)
    with pytest.raises(UsageError, match="nothing sorts metadata here"):
        check_metadata(plain, turned.metadata)
    with pytest.raises(UsageError, match=r"is 0x5; it must be one of 0x1 0x2 0x3 0x4 0x6 0x7 0x8 0x9 0xb 0xc 0xd 0xe$"):
        check_vectors(plain, replace(v, metadata=np.full_like(v.metadata, 5)))


def test_wrong_operands_are_one_line() -> None:
    made, datapath = CASES["scaled"]
    model = bind(made, datapath)
    v = generate(made, "uniform", 1, 0, 4)
    assert v.metadata is not None
    assert v.scale_a is not None
    cases = [
        (replace(v, metadata=None), r"operand metadata of shape \(4, 16\) is missing"),
        (
            replace(v, metadata=v.metadata[:, :8]),
            r"metadata must have shape \(4, 16\) \(one for 8 lanes\), got \(4, 8\)",
        ),
        (replace(v, metadata=v.metadata.astype(np.uint16)), r"operand metadata must be uint8 of shape \(4, 16\)"),
        (replace(v, scale_a=None), r"operand scale_a of shape \(4, 2\) is missing"),
        (
            replace(v, scale_b=np.repeat(v.scale_a, 2, axis=1)),
            r"scale_b must have shape \(4, 2\) \(one for 64 lanes\), got \(4, 4\)",
        ),
        (replace(v, b=v.b[:, :64]), r"operand b must have shape \(4, 128\), got \(4, 64\)"),
        (replace(v, a=np.repeat(v.a, 2, axis=1)), r"operand a must have shape \(4, 64\), got \(4, 128\)"),
    ]
    for vectors, said in cases:
        with pytest.raises(UsageError, match=said) as caught:
            check_vectors(made, vectors)
        assert "\n" not in str(caught.value)
    for vectors in (cases[0][0], cases[1][0], cases[2][0], cases[5][0]):
        with pytest.raises(UsageError, match=r"operand (metadata|b)"):
            model.run_vectors(vectors)
    with pytest.raises(UsageError, match="metadata of item 0, chunk 0 is 0xff"):
        model.dot(v.a, v.b, v.c, scale_a=v.scale_a, scale_b=v.scale_b, metadata=np.full_like(v.metadata, 255))
    with pytest.raises(UsageError, match="2, 4 or 8 lanes"):
        replace(made, chunk=3)


def sparse_forms() -> dict[str, tuple[str, str]]:
    """One modelled sparse instruction of each family of some architectures."""
    forms: dict[str, tuple[str, str]] = {}
    for architecture in ("sm_80", "sm_90a", "sm_100a", "sm_120a"):
        for made in instructions(architecture):
            if made.chunk and f"{architecture} {made.family}" not in forms and open_model(architecture).supports(made):
                forms[f"{architecture} {made.family}"] = (architecture, made.id)
    return forms


FORMS = sparse_forms()


@pytest.mark.parametrize("form", FORMS)
def test_validation_knows_sparse_forms(form: str) -> None:
    """Every family of vectors, alone and in whole tiles, against a device that takes tiles alone."""
    architecture, name = FORMS[form]
    model = open_model(architecture)
    made = instruction(name)
    summary = mmaprobe.validate(TilesOnly(model), model, made, 2000, threads=1)
    assert (summary.verdict, summary.mismatches) == ("equal", 0)
    assert [family for family, _ in summary.families] == sorted(families_for(made))


def test_enough_families_are_sparse() -> None:
    assert len(FORMS) > 25
