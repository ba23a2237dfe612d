"""The native path of a validation finds what the devices' own answers show, vector for vector."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmaprobe import _native
from mmaprobe.catalog import lookup
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device, open_device, run_blocks
from mmaprobe.devices.model import DatapathDevice, ModelDevice
from mmaprobe.devices.mutant import open_mutant
from mmaprobe.errors import UsageError
from mmaprobe.evidence.files import FileValue
from mmaprobe.generators import Recipe, families_for, generate, generate_tiles, regenerate
from mmaprobe.models.program import program
from mmaprobe.parameters.datapath import Encode, Scale, Special
from mmaprobe.validation import Summary, validate
from mmaprobe.validation.batches import FIRST, FIRST_OF, even
from mmaprobe.validation.native import pipeline
from mmaprobe.validation.summary import Batches, summary_from_json

HMMA = "HMMA.16816.F32[f16,f16->f32]"
BLOCKS = "MFMA.BF16[bf16,bf16->f32,k4]"
TILE = lookup.instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
DOT = lookup.instruction("x86.vdpbf16ps")
NVFP4 = lookup.instruction(
    "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X.m128n64k64.f32.e2m1.e2m1.ue4m3"
)
NVFP4_UNIT = "UTCOMMA.4X[e2m1,e2m1,ue4m3->f32,k64]"


class Slow(ModelDevice):
    """A model that the native path does not know."""


def slow(device: ModelDevice) -> Slow:
    return Slow(device.name, device.parameters)


def models(mutant: str) -> tuple[ModelDevice, ModelDevice]:
    changed = open_mutant(mutant)
    return changed, open_device(f"model:{mutant.partition('/')[0]}")  # type: ignore[return-value]


FAULTS = [
    (f"sm_90a/{HMMA}/tree.fraction_bits=24", TILE.id),
    (f"sm_90a/{HMMA}/tree.to.rounding=RNE", TILE.id),
    (f"sm_90a/{HMMA}/special.code=0x7fc00000", TILE.id),
    (f"sm_90a/{HMMA}/operand_a.subnormals=signed_zero", TILE.id),
    (f"sm_90a/{HMMA}/step=8", TILE.id),
    ("x86-64+intel/VDPBF16PS[bf16,bf16->f32]/tree.to.rounding=RZ", DOT.id),
    ("x86-64+intel/VPDPBUSD[u8,s8->s32]/tree.to.overflow=largest", "x86.vpdpbusd"),
    ("sm_70/HMMA.884.F16.F16[f16,f16->f16]/tree.fraction_bits=22", None),
    ("gfx942/MFMA.BF16[bf16,bf16->f32,k4]/tree.to.rounding=RZ", None),
    ("sm_90a/DMMA.8x8x4[f64,f64->f64]/tree.to.rounding=RZ", None),
    ("sm_90a/IGMMA.S8.S8[s8,s8->s32,k32]/tree.to.overflow=largest", None),
    ("sm_120a/QMMA.16832.F16.E4M3.E4M3[e4m3,e4m3->f16]/tree.fraction_bits=12", None),
]


def found(mutant: str, name: str | None) -> tuple[ModelDevice, ModelDevice, Instruction]:
    """The two models, and an instruction on which they differ."""
    first, second = models(mutant)
    for made in lookup.instructions(second.architecture) if name is None else [lookup.instruction(name)]:
        if second.supports(made) and first.datapath(made) != second.datapath(made):
            return first, second, made
    raise AssertionError(f"no instruction of {mutant}")


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("mutant", "name"), FAULTS, ids=[fault for fault, _ in FAULTS])
def test_native_and_python_paths_agree(mutant: str, name: str | None) -> None:
    """Every family's counts, the mismatches and the examples: recipes, witnesses, shrunk ones."""
    first, second, made = found(mutant, name)
    found_any = False
    for nan in ("bits", "any"):
        fast = validate(first, second, made, 9001, 3, nan=nan)
        plain = validate(slow(first), slow(second), made, 9001, 3, nan=nan)
        assert bare(fast) == bare(plain)
        found_any |= plain.mismatches > 0
        beside = validate(slow(first), second, made, 9001, 3, nan=nan)
        assert bare(beside) == bare(plain)
    assert fast.vectors == 9001
    assert found_any


def test_tiles_whose_rows_aim_are_compared_counted_and_named() -> None:
    """Of ``FIRST_OF`` vectors one is alone; recipes of mismatches have the tiles' version and name what shows them."""
    first, second, made = found(f"sm_90a/{HMMA}/tree.fraction_bits=24", TILE.id)
    summary = validate(first, second, made, 30_000, 3, ["cancel", "clustered"])
    families = summary.form()["families"]
    vectors = families["cancel"]["vectors"]
    tiles = (vectors - vectors // FIRST_OF) // 128
    assert families["cancel"]["tiles"] == {"version": 2, "count": tiles, "vectors": 128 * tiles}
    assert (families["cancel"]["version"], "tiles" in families["clustered"]) == (1, False)
    again = summary_from_json(made.id, FileValue(Path("shard"), "", summary.form()))
    assert again.families == summary.families
    for field, text in (("vectors", 2**60), ("count", 2**60)):
        families["cancel"]["tiles"][field] = text
        with pytest.raises(UsageError, match="more vectors in tiles"):
            summary_from_json(made.id, FileValue(Path("shard"), "", {**summary.form(), "families": families}))
    first, second, made = found(f"sm_90a/{HMMA}/tree.to.rounding=RNE", TILE.id)
    few = validate(first, second, made, 520, 3, ["cancel"])
    named = [example.recipe for example in few.examples if "/cancel.2/3/" in example.recipe]
    assert named
    for recipe in named:
        vector = regenerate(recipe, made)
        assert first.run_vectors(made, vector) != second.run_vectors(made, vector)


def test_a_family_begins_with_vectors_on_their_own() -> None:
    """What one in ten of them shows needs ten, not the 128 results of a tile, and of many vectors they are few."""
    for count, least in ((10_000, 10_000 // FIRST_OF), (1 << 24, FIRST)):
        first, *others = even(TILE, "cancel", 1000, count, 1 << 13)
        assert (first.start, first.tiles) == (1000, 0)
        assert least <= first.count < max(count // 2048, least) + 128
        assert {chunk.version for chunk in others} == {2}
        assert others[0].start == 1000 + first.count
        assert first.count + sum(chunk.count for chunk in others) == count


def test_of_wide_tiles_two_models_compare_the_first_rows_and_columns() -> None:
    """Whose recipes name outputs of whole tiles; a device, which sees tiles, is asked those of separate vectors."""
    changed = open_mutant(f"sm_100a/{NVFP4_UNIT}/tree.fraction_bits=34")
    model: Any = open_device("model:sm_100a")
    summary = validate(changed, model, NVFP4, 20_000, 3, ["ulp"])
    tiles = (20_000 - 20_000 // FIRST_OF) // 128
    assert summary.form()["families"]["ulp"]["tiles"] == {"version": 2, "count": tiles, "vectors": 128 * tiles}
    named = [Recipe.parse(example.recipe) for example in summary.examples if "/ulp.2/3/" in example.recipe]
    assert named
    for recipe in named:
        assert recipe.index % 128 == (20_000 - 128 * tiles) % 128
        assert recipe.place is not None
        assert recipe.place[0] < 16
        assert recipe.place[1] < 8
        vector = regenerate(recipe, NVFP4)
        assert changed.run_vectors(NVFP4, vector) != model.run_vectors(NVFP4, vector)
    beside = validate(slow(changed), model, NVFP4, 20_000, 3, ["ulp"])
    assert "tiles" not in beside.form()["families"]["ulp"]


def bare(summary: Summary) -> Summary:
    """What was found, without how: the native path asks no device, so it has no batches and takes another time; and
    a model that hides explains nothing."""
    examples = tuple(replace(example, reference_says="", device_as="") for example in summary.examples)
    return replace(summary, seconds=0.0, batches=Batches(), examples=examples)


def distinct(architecture: str) -> Iterator[Instruction]:
    """One dense instruction of every datapath and shape class that the architecture's model knows."""
    device = open_device(f"model:{architecture}")
    seen = set()
    for made in device.instructions():
        if made.chunk or not device.supports(made):
            continue
        path = device.datapath(made)  # type: ignore[attr-defined]
        key = (path, made.m % 16 == 0, made.m < made.n, made.blocks > 1)
        if key not in seen:
            seen.add(key)
            yield made


@pytest.mark.sampled(15)
@pytest.mark.parametrize("architecture", [*lookup.architectures(), "x86-64+intel"])
def test_native_results_are_the_models(architecture: str) -> None:
    """Models of every architecture: 0 mismatches against their own answers, in tiles and in separate vectors."""
    device: Any = open_device(f"model:{architecture}")
    for made in distinct(architecture):
        native = pipeline(device, device, made)
        if native is None:
            continue
        one = replace(native, programs=native.programs[:1])
        for number, family in enumerate(families_for(made)):
            vectors = generate(made, family, number, 77, 21)
            answers = device.run_vectors(made, vectors)
            assert one.compare(family, number, 77, 21, 0, answers, "bits", 4)[0] == 0, (made.id, family)
            if number > 2 or made.m * made.n == 1 or made.m * made.n > 1024:
                continue
            tiles = generate_tiles(made, family, number, 78, 2)
            answers = np.ascontiguousarray(run_blocks(device, made, tiles))
            count = answers.size
            assert one.compare(family, number, 78, count, 2, answers, "bits", 4)[0] == 0, (made.id, family)
            answers[1, -1, -1] ^= 1
            bad, where = one.compare(family, number, 78, count, 2, answers, "bits", 4)
            assert (bad, where.tolist()) == (1, [count - 1]), (made.id, family)


def test_between_models_a_block_is_a_tile() -> None:
    """Of an instruction of several blocks; devices are asked whole items, so that they see separate vectors."""
    made = lookup.instruction("v_mfma_f32_16x16x4_4b_bf16", "gfx942")
    changed, model = models(f"gfx942/{BLOCKS}/tree.to.rounding=RZ")
    summary = validate(changed, model, made, 20_000, 3, ["cancel"])
    assert summary.form()["families"]["cancel"]["tiles"]["vectors"] > 19_000
    named = [Recipe.parse(example.recipe) for example in summary.examples if "/cancel.2/3/" in example.recipe]
    assert named
    for recipe in named:
        vector = regenerate(recipe, made)
        assert changed.run_vectors(made, vector) != model.run_vectors(made, vector)
    seen = validate(slow(changed), model, made, 5_000, 3, ["cancel"])
    assert "tiles" not in seen.form()["families"]["cancel"]


def test_places_are_the_first_in_order() -> None:
    """Places count tile by tile, row by row; ``limit`` bounds them, not the count."""
    device = open_device("model:sm_90a")
    native = pipeline(device, device, TILE)
    assert native is not None
    one = replace(native, programs=native.programs[:1])
    answers = np.ascontiguousarray(device.run(TILE, generate_tiles(TILE, "clustered", 0, 0, 3)))
    wrong = [1, 8, 127, 129, 300]
    answers.reshape(-1)[wrong] ^= 1
    bad, where = one.compare("clustered", 0, 0, 384, 3, answers, "bits", 4)
    assert (bad, where.tolist()) == (5, wrong[:4])


def test_answers_are_read_where_their_piece_begins() -> None:
    """Of more tiles than are computed at a time."""
    device = open_device("model:sm_90a")
    native = pipeline(device, device, TILE)
    assert native is not None
    one = replace(native, programs=native.programs[:1])
    answers = np.ascontiguousarray(device.run(TILE, generate_tiles(TILE, "clustered", 0, 0, 150)))
    assert one.compare("clustered", 0, 0, answers.size, 150, answers, "bits", 4)[0] == 0
    wrong = [3, answers.size // 2, answers.size - 1]
    answers.reshape(-1)[wrong] ^= 1
    bad, where = one.compare("clustered", 0, 0, answers.size, 150, answers, "bits", 4)
    assert (bad, where.tolist()) == (3, wrong)


OTHERS: list[dict[str, Any]] = [
    {"a": "e4m3"}, {"b": "f32"}, {"c": "f16"}, {"c": None}, {"scale": Scale("ue8m0", 16)},
    {"d": "f64", "result": Encode("f64"), "special": Special(code=0x7FF8 << 48)},
    {"d": "f16", "result": Encode("f16"), "special": Special(code=0x7FFF)},
]  # fmt: skip


@pytest.mark.parametrize("change", OTHERS, ids=lambda change: next(iter(change)))
def test_a_program_for_other_operands_is_refused(change: dict[str, Any]) -> None:
    """One that was made for another width of an operand or of results, without one or with one more."""
    device = open_device("model:sm_90a")
    native = pipeline(device, device, TILE)
    assert native is not None
    own, other = native.programs[0], program(replace(device.datapath(TILE), **change))  # type: ignore[attr-defined]
    assert other is not None
    for programs in ((own, other), (other, own)):
        with pytest.raises(UsageError, match=r"the program's (operands|results) are not the domain's"):
            replace(native, programs=programs).compare("clustered", 0, 0, 128, 1, None, "bits", 4)


@pytest.mark.parametrize("name", [
    TILE.id, "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
])  # fmt: skip
def test_every_place_is_compared(name: str) -> None:
    """One bit changed in the answer at any place of a tile is found there, and nowhere else."""
    device = open_device("model:sm_90a")
    made = lookup.instruction(name)
    native = pipeline(device, device, made)
    assert native is not None
    one = replace(native, programs=native.programs[:1])
    answers = np.ascontiguousarray(device.run(made, generate_tiles(made, "clustered", 5, 0, 1)))
    flat = answers.reshape(-1)
    for place in range(flat.size):
        bit = flat.dtype.type(1 << place % (8 * flat.itemsize))
        flat[place] ^= bit
        bad, where = one.compare("clustered", 5, 0, flat.size, 1, answers, "bits", 4)
        flat[place] ^= bit
        assert (bad, where.tolist()) == (1, [place])


def test_what_has_no_native_path() -> None:
    device = open_device("model:sm_90a")
    sparse = next(made for made in lookup.instructions("sm_90a") if made.chunk)
    assert pipeline(device, device, sparse) is None
    assert pipeline(open_device("cpu"), open_device("cpu"), DOT) is None
    own = DatapathDevice(TILE, device.datapath(TILE))  # type: ignore[attr-defined]
    native = pipeline(own, device, TILE)
    assert native is not None
    assert (native.asked, native.fast) == (None, True)
    beside = pipeline(slow(device), device, TILE)  # type: ignore[arg-type]
    assert beside is not None
    assert beside.asked == 0


@pytest.mark.parametrize(("change", "message"), [
    ({"programs": []}, "two programs are expected"),
    ({"programs": [np.zeros(200, np.int64)] * 2}, "not a program"),
    ({"answers": np.zeros(5, np.uint32)}, "answers must be contiguous"),
    ({"domain": np.zeros(85, np.int64)}, "are not the domain's"),
    ({"build": "sse"}, "no engine build sse"),
])  # fmt: skip
def test_wrong_native_calls(change: dict[str, Any], message: str) -> None:
    from mmaprobe.generators.domain import domain

    device: Device = open_device("model:sm_90a")
    native = pipeline(device, device, TILE)
    assert native is not None
    given: dict[str, Any] = {
        "domain": domain(TILE).packed(), "family": 0, "stream": 1 << 16, "seed": 0, "start": 0, "count": 2, "m": 16,
        "n": 8, "programs": list(native.programs),
    }  # fmt: skip
    if "answers" in change:
        given["programs"] = given["programs"][:1]
    with pytest.raises(ValueError, match=re.escape(message)):
        _native.pipeline(**{**given, **change})


@pytest.mark.long
def test_memory_stays_flat() -> None:
    """The high-water mark of a process does not grow with the vectors."""
    code = (
        "import resource, sys; from mmaprobe.devices.base import open_device; from mmaprobe.catalog import lookup;"
        "from mmaprobe.validation import validate; m = open_device('model:sm_90a');"
        f"validate(m, m, lookup.instruction({TILE.id!r}), int(sys.argv[1]), generators=['uniform', 'clustered']);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    most = [
        int(subprocess.run([sys.executable, "-c", code, count], check=True, capture_output=True, env=os.environ).stdout)
        for count in ("200000", "8000000")
    ]
    assert most[1] < most[0] + 30_000, f"kilobytes: {most}"
