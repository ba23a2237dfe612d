"""The device ``model:ARCH``: shipped parameters as a device, and what the shipped files say."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import architectures, instruction, instructions, lowering, match
from mmaprobe.catalog.modifiers import legal, resolve
from mmaprobe.devices.base import open_device, run_vectors
from mmaprobe.devices.model import ModelDevice, open_model
from mmaprobe.errors import UsageError
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.diff import diff, in_words
from mmaprobe.parameters.files import ParameterFile, from_text, to_text
from mmaprobe.parameters.lookup import datapath_for, load

SHIPPED = (*architectures(), "x86-64+amd", "x86-64+intel")


def _signed(made: Instruction) -> list[Instruction]:
    """The instruction with its integer operands signed by modifiers, where those say it."""
    return [resolve(made, {"neg_lo": bits}) for bits in legal(made, {})["neg_lo"]] if "signs" in made.takes else []


@pytest.mark.parametrize("arch", SHIPPED)
def test_shipped_files_fit_the_catalog(arch: str) -> None:
    file = load(arch)
    every = [signed for made in instructions(arch) for signed in (made, *_signed(made))]
    used = {name for made in every for name in lowering(made, arch).primitives}
    assert set(file.entries) <= used
    assert from_text(to_text(file), arch).entries.keys() == file.entries.keys()
    for made in instructions(arch):
        if open_model(arch).supports(made):
            path = datapath_for(arch, made)
            assert (path.a, path.b, path.c, path.d, path.k) == (made.a, made.b, made.c, made.d, made.selected)


@pytest.mark.parametrize("arch", SHIPPED)
def test_only_what_ran_is_called_measured_or_recorded(arch: str) -> None:
    for entry in load(arch).entries.values():
        if entry.basis == "measured":
            assert entry.evidence
        if entry.basis == "recorded" and arch.startswith("sm_"):
            assert "recordings" in entry.source
            assert re.search(r"\d+ vectors", entry.source)
        if entry.origin != arch:
            assert arch == f"{entry.origin}+{arch.partition('+')[2]}"


def test_every_cpu_instruction_has_a_datapath() -> None:
    for arch in ("x86-64+intel", "aarch64"):
        assert all(open_model(arch).supports(made) for made in instructions(arch))
    amx = instruction("x86.tdpbf16ps")
    assert not open_model("x86-64+amd").supports(amx)
    assert open_model("x86-64").supports(instruction("x86.vdpbf16ps{width=512}"))


def test_a_model_runs_tiles_and_vectors_alike() -> None:
    device = open_device("model:sm_90a")
    made = instruction("mma.m16n8k16.f32.f16.f16.f32")
    rng = np.random.default_rng(1)
    shapes = made.shapes(3)
    tiles = Batch(
        rng.integers(0, 1 << 16, shapes["a"], np.uint16),
        rng.integers(0, 1 << 16, shapes["b"], np.uint16),
        rng.integers(0, 1 << 32, shapes["c"], np.uint32),
    )
    d = device.run(made, tiles)
    assert d.shape == (3, 16, 8)
    assert tiles.c is not None
    vectors = Batch(tiles.a[:, 5], tiles.b[:, :, 6], tiles.c[:, 5, 6])
    assert (run_vectors(device, made, vectors) == d[:, 5, 6]).all()
    with pytest.raises(UsageError, match="operand a must have shape"):
        device.run(made, Batch(tiles.a[:, :4], tiles.b, tiles.c))


def test_ready_made_results_of_three_generations() -> None:
    """The one-vector discriminator of Valpey et al.: 2 x 1.9990234375 2^-9 - 2^13."""
    a, b = np.zeros((1, 8), np.uint16), np.zeros((1, 8), np.uint16)
    a[0, 0], b[0, 0] = 0x4000, np.float16(1.9990234375 * 2**-9).view(np.uint16)
    c = np.array([np.float32(-(2**13)).view(np.uint32)], np.uint32)
    found = {}
    for arch, name in (("sm_70", "mma.m8n8k4.f32.f16.f16.f32"), ("sm_80", ""), ("sm_90a", ""), ("sm_120a", "")):
        made = instruction(name or "mma.m16n8k8.f32.f16.f16.f32")
        vector = Batch(a[:, : made.k], b[:, : made.k], c)
        found[arch] = f"{open_model(arch).run_vectors(made, vector)[0]:08x}"
    assert found == {"sm_70": "c5fffff2", "sm_80": "c5fffff1", "sm_90a": "c5fffff0", "sm_120a": "c5fffff0"}


def test_zero_exponents_show_where_they_can() -> None:
    """Ladders: a tie (f16) or the last place (f32) beside a term just above or below what is kept."""
    f16 = instruction("mma.m16n8k8.f16.f16.f16.f16")
    bf16 = instruction("mma.m16n8k8.f32.bf16.bf16.f32")
    for arch, last16, last32 in (("sm_80", 44, 156), ("sm_89", 44, 156), ("sm_90a", 46, 158), ("sm_100a", 46, 158)):
        a, b = np.zeros((2, 2, 8), np.float32), np.zeros((2, 2, 8), np.float32)
        a[0, :, :2], b[0, :, 0], b[0, :, 1] = (2**-12, 2**-24), 2**-13, (2.0 ** (24 - last16), 2.0 ** (23 - last16))
        half = Batch(a[0].astype(np.float16).view(np.uint16), b[0].astype(np.float16).view(np.uint16),
                     np.zeros(2, np.uint16))  # fmt: skip
        assert open_model(arch).run_vectors(f16, half).tolist() == [1, 0]
        a[1, :, :2], b[1, :, 0] = (2.0**-75, -(2.0**-80)), 2.0**-74
        b[1, :, 1] = (2.0 ** (80 - last32), 2.0 ** (79 - last32))
        high_a, high_b = ((x[1].view(np.uint32) >> 16).astype(np.uint16) for x in (a, b))
        brain = Batch(high_a, high_b, np.zeros(2, np.uint32))
        assert open_model(arch).run_vectors(bf16, brain).tolist() == [0, 1]


def test_what_is_unknown_says_so() -> None:
    device = open_model("gfx1250")
    unknown = match("gfx1250", "v_wmma_f32_16x16x32_f16")[0]
    answer = device.supports(unknown)
    assert not answer
    assert answer.reason.startswith("no datapath is known for v_wmma_f32_16x16x32_f16")
    assert "(native: " in answer.reason
    assert "mmaprobe derive --device hip:0 'v_wmma" in answer.reason
    with pytest.raises(UsageError, match="no datapath is known"):
        device.run(unknown, Batch(np.zeros((1, 16, 32), np.uint16), np.zeros((1, 32, 16), np.uint16)))
    assert "sm_90a has no x86.dpps; x86-64 has" in open_model("sm_90a").supports(instruction("x86.dpps")).reason
    for name, said in (("model:sm_91", "did you mean sm_89, sm_90a"), ("model", "of which architecture")):
        with pytest.raises(UsageError, match=said):
            open_device(name)


def test_info_names_the_parameters() -> None:
    first, second = open_model("sm_80"), open_model("sm_89")
    assert first.info()["architecture"] == "sm_80"
    assert first.info()["parameters"] == f"sha256:{load('sm_80').digest}" != second.info()["parameters"]
    assert [made.id for made in first.instructions()] == [made.id for made in instructions("sm_80")]


def test_split_f64_runs_as_one_chain() -> None:
    one, other = open_model("sm_90a"), open_model("sm_100a")
    rng = np.random.default_rng(2)
    for made in match("sm_100a", "mma.m16n8k16.f64*"):
        a, b = (rng.standard_normal((50, 16)).view(np.uint64) for _ in "ab")
        vectors = Batch(a, b, np.zeros(50, np.uint64))
        assert (one.run_vectors(made, vectors) == other.run_vectors(made, vectors)).all()


def test_control_states_change_the_model() -> None:
    device = open_model("x86-64+intel")
    third = np.full((1, 1), np.float32(1 / 3).view(np.uint32), np.uint32)
    low = np.full((1, 1), 1, np.uint32)
    batch = Batch(third, third, np.zeros(1, np.uint32))
    down, up = (
        device.run_vectors(instruction(f"x86.vfmadd.f32{{rounding={mode}}}"), batch)[0] for mode in ("rd", "ru")
    )
    assert up == down + 1
    tiny = Batch(low, np.full((1, 1), 0x3F800000, np.uint32), np.zeros(1, np.uint32))
    assert [
        int(device.run_vectors(instruction(f"x86.vfmadd.f32{state}"), tiny)[0]) for state in ("", "{daz}", "{ftz}")
    ] == [1, 0, 0]


def test_daz_keeps_an_intermediate_result_that_rounds_up_to_the_lowest_normal() -> None:
    """Read from an Intel processor: the product below -2^-126 rounds to it and is an operand, not a zero."""
    a = np.array([[0x80000000, 0xC71C639B, 0x257FFFFF, 0]], np.uint32)
    b = np.array([[0x80000000, 0x05000000, 0x9A800000, 0]], np.uint32)
    found = open_model("x86-64+intel").run_vectors(instruction("x86.dpps{daz}"), Batch(a, b))
    assert found.tolist() == [0x8C9C639C]


def test_diff_speaks_of_meaning() -> None:
    ampere, hopper = load("sm_80"), load("sm_90a")
    assert diff(ampere, ampere) == []
    name = "HMMA.16816.F32[f16,f16->f32]"
    lines = [str(change) for change in diff(ampere, hopper) if change.primitive == name]
    assert f"{name}: the sum: fused(c, 0..7) -> fused(c, 0..15)" in lines
    assert f"{name}: fraction bits kept below the largest exponent of the sum: 24 -> 25" in lines
    assert f"{name}: exponent of a zero in the alignment of the sum: -132 -> -133" in lines
    assert "DMMA.884[f64,f64->f64]: gone" in map(str, diff(ampere, hopper))
    assert "DMMA.884[f64,f64->f64]: new" in map(str, diff(hopper, ampere))
    renamed = replace(ampere, entries={k: replace(e, source="elsewhere") for k, e in ampere.entries.items()})
    assert diff(ampere, renamed) == []
    shared, intel = load("x86-64"), load("x86-64+intel")
    assert "DPPS[f32,f32->f32]: the sum: add(add(0, 1), add(2, 3)) -> add(add(1, 0), add(3, 2))" in map(
        str, diff(shared, intel)
    )
    assert in_words("tree.y.to.rounding") == "rounding of the result of the second operand of the sum"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"follows": ("ftz",)}, "control state obeyed: rounding -> ftz"),
        ({"follows": ()}, "control state obeyed: rounding -> nothing"),
        ({"basis": "recorded"}, "basis: published -> recorded"),
    ],
)
def test_diff_speaks_of_control_state_and_basis(change: dict[str, Any], said: str) -> None:
    name = "VFMADDSD[f64,f64->f64]"
    entry = replace(load("x86-64").entries[name], follows=("rounding",), basis="published")
    old = ParameterFile("x86-64", entries={name: entry})
    new = ParameterFile("x86-64", entries={name: replace(entry, **change)})
    assert [str(line) for line in diff(old, new)] == [f"{name}: {said}"]
    assert diff(old, old) == diff(new, new) == []


def test_a_model_of_other_parameters() -> None:
    made = instruction("x86.dpps")
    assert not ModelDevice("model:mine", ParameterFile("x86-64")).supports(made)
    assert ModelDevice("model:mine", load("x86-64")).supports(made)
