"""Modifiers of AMD instructions, each by vectors made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mmaprobe
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.layouts import layout
from mmaprobe.catalog.lookup import instruction, instructions
from mmaprobe.catalog.modifiers import legal, resolve
from mmaprobe.devices.base import run_vectors
from mmaprobe.devices.model import open_model
from mmaprobe.errors import UsageError
from mmaprobe.models.model import bind
from mmaprobe.models.modifiers import of_tiles
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Exact, Products, Scale
from mmaprobe.parameters.lookup import basis_for, datapath_for
from mmaprobe.parameters.modified import modified
from mmaprobe.validation.native import pipeline


def numbered(made: Instruction) -> tuple[Any, Any, Any]:
    """A of ones with its block number, B of ones with its block number and column, C = 0: small f32 integers."""
    lead = (1, made.blocks) if made.blocks > 1 else (1,)
    block = np.arange(made.blocks, dtype=np.float32).reshape(*lead[1:], 1, 1)
    a = np.broadcast_to(1 + block, (*lead, made.m, made.k)).astype(np.float32)
    b = np.broadcast_to(100 * (1 + block) + np.arange(made.n), (*lead, made.k, made.n)).astype(np.float32)
    return a, b, np.zeros((*lead, made.m, made.n), np.float32)


@pytest.mark.parametrize(
    ("arch", "opcode"), [("gfx908", "v_mfma_f32_4x4x1f32"), ("gfx942", "v_mfma_f32_4x4x1_16b_f32")]
)
def test_one_block_of_a_feeds_its_neighbours(arch: str, opcode: str) -> None:
    """cbsz 2, abid 1: block 1 feeds 0 to 3, block 5 feeds 4 to 7, and so on (AMD lab notes, HIP documentation)."""
    made = instruction(f"{opcode}{{abid=1,cbsz=2}}", arch)
    a, b, c = numbered(made)
    b = np.ones_like(b)
    d = mmaprobe.model(arch, made.id)(a, b, c)
    assert d[0, :, 0, 0].tolist() == [block // 4 * 4 + 1 + 1 for block in range(16)]
    full = mmaprobe.model(arch, f"{opcode}{{abid=9,cbsz=4}}")(a, b, c)
    assert set(full.reshape(-1).tolist()) == {10.0}


LANE = {1: lambda x: x % 32, 2: lambda x: x % 32 + 32, 3: lambda x: (x + 16) % 64, 4: lambda x: x % 16,
        5: lambda x: x % 16 + 16, 6: lambda x: x % 16 + 32, 7: lambda x: x % 16 + 48}  # fmt: skip


@pytest.mark.parametrize("blgp", range(1, 8))
@pytest.mark.parametrize(("opcode", "width"), [("32x32x1_2b", 32), ("16x16x1_4b", 16), ("4x4x1_16b", 4)])
def test_lanes_of_b_are_permuted(opcode: str, width: int, blgp: int) -> None:
    """Several blocks, one lane of K: lane l holds column l mod N of block l div N."""
    made = instruction(f"v_mfma_f32_{opcode}_f32{{blgp={blgp}}}", "gfx942")
    a, b, c = numbered(made)
    d = mmaprobe.model("gfx942", made.id)(np.ones_like(a), b, c)
    flat = b[0, :, 0, :].reshape(-1)
    assert flat.shape == (64,)
    assert d[0, :, 0, :].reshape(-1).tolist() == [flat[LANE[blgp](lane)] for lane in range(64)]
    assert made.n == width


@pytest.mark.parametrize(("blgp", "sums"), [(1, 2 * 1), (2, 2 * 10), (3, None)])
def test_lanes_of_b_are_permuted_across_k(blgp: int, sums: int | None) -> None:
    """CDNA1, one block of 32 columns: lanes 0 to 31 hold k = 0, the others k = 1."""
    made = instruction(f"v_mfma_f32_32x32x2f32{{blgp={blgp}}}", "gfx908")
    b = np.broadcast_to(np.array([[[1.0], [10.0]]]), (1, 2, 32)).astype(np.float32).copy()
    b[0, :, :16] *= 3
    d = mmaprobe.model("gfx908", made.id)(np.ones((1, 32, 2), np.float32), b, np.zeros((1, 32, 32), np.float32))
    if sums is not None:
        assert d[0, 0].tolist() == [3.0 * sums] * 16 + [1.0 * sums] * 16
    else:  # lane l takes lane l + 16: column 0 has 1 and 10, column 16 has 30 and 3
        assert d[0, 0].tolist() == [11.0] * 16 + [33.0] * 16


def test_single_vectors_have_no_neighbours() -> None:
    made = instruction("v_mfma_f32_4x4x1_16b_f32{cbsz=1}", "gfx942")
    vectors = Batch(np.zeros((1, 1), np.uint32), np.zeros((1, 1), np.uint32), np.zeros(1, np.uint32))
    with pytest.raises(UsageError, match="moves operands within a tile; run it on tiles"):
        run_vectors(open_model("gfx942"), made, vectors)
    with pytest.raises(UsageError, match="moves operands within a tile; call it with tiles"):
        mmaprobe.model("gfx942", made.id).dot(vectors.a, vectors.b, vectors.c)


@pytest.mark.parametrize("bits", ["100", "010", "001", "110", "111"])
def test_f64_operands_are_negated(bits: str) -> None:
    """1 * 3 + 8 with signs; a rounding to nearest even of a sum that is not its own mirror shows the order."""
    signs = [-1.0 if bit == "1" else 1.0 for bit in bits]
    name = f"v_mfma_f64_16x16x4_f64{{neg={bits}}}"
    d = mmaprobe.model("gfx942", name).dot(np.array([1.0, 0, 0, 0]), np.array([3.0, 0, 0, 0]), np.array(8.0))
    assert d == signs[0] * signs[1] * 3 + signs[2] * 8


def f16_sum(made: Instruction) -> Datapath:
    lanes = Products(tuple(range(made.selected)))
    return Datapath(made.a, made.b, made.c, made.d, made.selected, Exact((lanes, Accumulator()), Encode(made.d)))


@pytest.mark.parametrize(
    ("bits", "a", "b", "c"),
    [
        ("neg_lo=100", (-1, 1), (1, 1), 1), ("neg_hi=100", (1, -1), (1, 1), 1),
        ("neg_hi=010,neg_lo=010", (1, 1), (-1, -1), 1), ("neg_hi=010", (1, 1), (1, -1), 1),
        ("neg_lo=001", (1, 1), (1, 1), -1),
    ],
)  # fmt: skip
@pytest.mark.parametrize("tiles", [True, False])
def test_halves_are_negated(bits: str, a: tuple[int, int], b: tuple[int, int], c: int, tiles: bool) -> None:
    """Low halves of a register hold the even lanes, high halves the odd ones."""
    made = instruction(f"v_wmma_f32_16x16x16_f16{{{bits}}}", "gfx1200")
    model = bind(made, modified(f16_sum(made), made))
    x = np.array([1, 2, 4, 8] + [0] * 12, np.float16)
    y = np.ones(16, np.float16)
    expected = sum(v * a[k % 2] * b[k % 2] for k, v in enumerate([1, 2, 4, 8])) + c * 100
    if tiles:
        d = model(np.tile(x, (1, 16, 1)), np.tile(y[:, None], (1, 1, 16)), np.full((1, 16, 16), 100, np.float32))
        assert set(d.reshape(-1).tolist()) == {float(expected)}
    else:
        assert model.dot(x, y, np.float32(100)) == expected


@pytest.mark.parametrize(("bits", "c"), [("neg_hi=001", 100), ("neg_hi=001,neg_lo=001", -100), ("neg_lo=001", 100)])
def test_c_is_made_positive_before_it_is_negated(bits: str, c: int) -> None:
    made = instruction(f"v_wmma_f32_16x16x16_f16{{{bits}}}", "gfx1100")
    model = bind(made, modified(f16_sum(made), made))
    assert model.dot(np.zeros(16, np.float16), np.zeros(16, np.float16), np.array(-100, np.float32)) == c


CARDS = {
    "f16": """
        5530 5060 5060 5530 55d0 51a0 51a0 55d0  d1a0 d5d0 d5d0 d1a0 d060 d530 d530 d060
        d1a0 d5d0 d5d0 d1a0 d060 d530 d530 d060  5530 5060 5060 5530 55d0 51a0 51a0 55d0
        55d0 51a0 51a0 55d0 5530 5060 5060 5530  d060 d530 d530 d060 d1a0 d5d0 d5d0 d1a0
        d060 d530 d530 d060 d1a0 d5d0 d5d0 d1a0  55d0 51a0 51a0 55d0 5530 5060 5060 5530""",
    "bf16": """
        42a6 420c 420c 42a6 42ba 4234 4234 42ba  c234 c2ba c2ba c234 c20c c2a6 c2a6 c20c
        c234 c2ba c2ba c234 c20c c2a6 c2a6 c20c  42a6 420c 420c 42a6 42ba 4234 4234 42ba
        42ba 4234 4234 42ba 42a6 420c 420c 42a6  c20c c2a6 c2a6 c20c c234 c2ba c2ba c234
        c20c c2a6 c2a6 c20c c234 c2ba c2ba c234  42ba 4234 4234 42ba 42a6 420c 420c 42a6""",
}  # fmt: skip
"""V_WMMA_F16_16X16X16_F16 and V_WMMA_BF16_16X16X16_BF16, as a Radeon Pro W7900 (gfx1100) and a Radeon AI Pro R9700
(gfx1201) answered in waves of 32 and of 64: A is 1 in even lanes and 2 in odd ones, B 3 and 4, C -5.  By NEG_HI from 0
to 7, inside it by NEG; bit 0 is A's.  ROCm/rocm-systems, emulation/rocjitsu/tests/fixtures/float_dot,
packed_operand_cases.h (MIT, Advanced Micro Devices, Inc., 2026)."""
CODES = {"f16": (0x3C00, 0x4000, 0x4200, 0x4400, 0xC500), "bf16": (0x3F80, 0x4000, 0x4040, 0x4080, 0xC0A0)}


@pytest.mark.parametrize("fmt", CARDS)
@pytest.mark.parametrize("wave", ["", ",wave=64"])
@pytest.mark.parametrize("arch", ["gfx1100", "gfx1150", "gfx1201"])
def test_signs_as_two_cards_took_them(arch: str, wave: str, fmt: str) -> None:
    """Of C the absolute value comes first, then the negation: AMD's manuals call the bits ABS and NEG."""
    codes = CODES[fmt]
    batch = Batch(
        *(np.array([pair * 8], np.uint16) for pair in (codes[:2], codes[2:4])), np.array(codes[4:], np.uint16)
    )
    for code, answer in enumerate(CARDS[fmt].split()):
        high, low = (f"{bits:03b}"[::-1] for bits in divmod(code, 8))
        made = instruction(f"v_wmma_{fmt}_16x16x16_{fmt}{{neg_hi={high},neg_lo={low}{wave}}}", arch)
        assert run_vectors(open_model(arch), made, batch).tolist() == [int(answer, 16)], made.id


@pytest.mark.parametrize(
    ("bits", "d"), [("neg_hi=001", 0x7FC12345), ("neg_lo=001", 0x7FC12345), ("neg_hi=001,neg_lo=001", 0xFFC12345)]
)
@pytest.mark.parametrize(
    ("arch", "name"),
    [
        ("gfx1100", "v_wmma_f32_16x16x16_bf16"),
        ("gfx1200", "v_wmma_f32_16x16x16_f16"),
        ("gfx1201", "v_dot4_f32_fp8_bf8"),
    ],
)
def test_the_sign_of_a_nan_is_changed_too(arch: str, name: str, bits: str, d: int) -> None:
    made = instruction(f"{name}{{{bits}}}", arch)
    zeros = [np.zeros((1, made.k), fmt.dtype) for key, fmt in made.formats().items() if key in "ab"]
    assert run_vectors(open_model(arch), made, Batch(*zeros, np.array([0xFF812345], np.uint32))).tolist() == [d]


@pytest.mark.parametrize(("arch", "name"), [("gfx1100", "v_dot2_f32_f16"), ("gfx1201", "v_dot2_f32_bf16{wave=64}")])
def test_whether_a_float_is_limited_is_open(arch: str, name: str) -> None:
    """AMD's manuals and its emulator differ; an integer sum is limited."""
    made = resolve(instruction(name, arch), {"clamp": ""})
    with pytest.raises(UsageError, match=r"no datapath is known for .*clamp.*: manuals limit a float to \[0, 1\]"):
        mmaprobe.model(arch, made.id)
    assert not open_model(arch).supports(made)


@pytest.mark.parametrize("arch", ["gfx1100", "gfx1201", "gfx1250"])
def test_integers_wrap_or_are_limited(arch: str) -> None:
    shape = "16x16x64" if arch == "gfx1250" else "16x16x16"
    k = instruction(f"v_wmma_i32_{shape}_iu8", arch).k
    ones = np.full(k, 255, np.uint8)
    near = np.array(2**31 - 1, np.int32)
    wrapped = mmaprobe.model(arch, f"v_wmma_i32_{shape}_iu8").dot(ones, ones, near.view(np.uint32))
    assert int(wrapped) == 2**31 - 1 + k * 255 * 255
    limited = mmaprobe.model(arch, f"v_wmma_i32_{shape}_iu8{{clamp}}").dot(ones, ones, near.view(np.uint32))
    assert int(limited) == 2**31 - 1
    signed = mmaprobe.model(arch, f"v_wmma_i32_{shape}_iu8{{clamp,neg_lo=100}}")
    assert int(signed.dot(ones, ones, np.uint32(1 << 31))) == 1 << 31
    assert int(signed.dot(ones, ones, np.uint32(0))) == 2**32 - 255 * k


def test_a_modifier_that_chooses_registers_leaves_the_numbers_alone() -> None:
    plain, chosen = (instruction(f"v_smfmac_f32_16x16x32_f16{x}", "gfx942") for x in ("", "{abid=3}"))
    assert datapath_for("gfx942", plain) == datapath_for("gfx942", chosen)
    assert basis_for("gfx942", chosen) == "predicted"


def test_what_no_datapath_says_never_runs_without_its_batch() -> None:
    """The native path evaluates datapaths alone: not what moves operands or negates half of them."""
    device = open_model("gfx942")
    for name, native in (("v_mfma_f64_16x16x4_f64{neg=110}", True), ("v_mfma_f32_4x4x1_16b_f32{cbsz=2}", False),
                         ("v_mfma_f32_32x32x1_2b_f32{blgp=3}", False)):  # fmt: skip
        assert (pipeline(device, device, instruction(name, "gfx942")) is not None) == native


def test_a_negated_operand_is_a_prediction() -> None:
    assert basis_for("gfx942", instruction("v_mfma_f64_16x16x4_f64", "gfx942")) == "published"
    assert basis_for("gfx942", instruction("v_mfma_f64_16x16x4_f64{neg=001}", "gfx942")) == "predicted"
    assert basis_for("gfx1100", instruction("v_wmma_i32_16x16x16_iu8{neg_lo=100}", "gfx1100")) == "published"
    assert basis_for("gfx1100", instruction("v_wmma_i32_16x16x16_iu8{clamp}", "gfx1100")) == "predicted"


@pytest.mark.parametrize(
    ("arch", "name", "basis"),
    [
        ("gfx1100", "v_wmma_bf16_16x16x16_bf16{neg_hi=001}", "recorded"),
        ("gfx1201", "v_wmma_f16_16x16x16_f16{neg_hi=011,neg_lo=001}", "recorded"),
        ("gfx1201", "v_wmma_bf16_16x16x16_bf16{neg_hi=001}", "published"),
        ("gfx1100", "v_wmma_f32_16x16x16_f16{neg_hi=001,wave=64}", "published"),
        ("gfx1200", "v_dot4_f32_bf8_bf8{neg_hi=001}", "published"),
        ("gfx1100", "v_dot2_f32_f16{neg_hi=001}", "predicted"),
        ("gfx1200", "v_wmma_f32_16x16x16_fp8_fp8{neg_hi=001}", "predicted"),
    ],
)
def test_the_basis_of_an_absolute_value(arch: str, name: str, basis: str) -> None:
    """The manuals name the bits of WMMA and V_DOT4, results of two cards those of packed WMMA; of V_DOT2 nobody."""
    assert basis_for(arch, instruction(name, arch)) == basis


PERMUTING = [(arch, made) for arch in ("gfx908", "gfx90a", "gfx942", "gfx950") for made in instructions(arch)
             if len(legal(made, {}).get("blgp", ())) == 8]  # fmt: skip


@pytest.mark.parametrize(("arch", "made"), PERMUTING, ids=lambda x: x if isinstance(x, str) else x.id)
def test_a_permutation_is_one_of_registers(arch: str, made: Instruction) -> None:
    """What blgp does to tiles is what it does to the lanes of B's registers, by the operand's layout."""
    rng = np.random.default_rng(7)
    a, b = (rng.integers(0, 100, made.shapes(2)[name]).astype(made.formats()[name].dtype) for name in "ab")
    registers = layout(made, arch, "b")
    for blgp in range(1, 8):
        lanes = [LANE[blgp](lane) for lane in range(64)]
        expected = registers.unpack(registers.pack(b)[:, lanes])
        changed = of_tiles(resolve(made, {"blgp": str(blgp)}), Batch(a, b))
        assert (changed.b == expected).all()
        assert (changed.a == a).all()


HALVES = [(arch, made) for arch in ("gfx1100", "gfx1200", "gfx1250") for made in instructions(arch)
          if "negate_halves" in made.takes]  # fmt: skip


@pytest.mark.parametrize(("arch", "made"), HALVES, ids=lambda x: x if isinstance(x, str) else x.id)
def test_halves_are_halves_of_registers(arch: str, made: Instruction) -> None:
    """neg_lo flips bit 15 of every register of an operand, neg_hi bit 31, by the operand's layout."""
    rng = np.random.default_rng(7)
    batch = Batch(*(rng.integers(0, 1 << 16, made.shapes(2)[name]).astype(np.uint16) for name in "ab"))
    for place, name in enumerate("ab"):
        bits = "".join("1" if i == place else "0" for i in range(3))
        for key, mask in (("neg_lo", 1 << 15), ("neg_hi", 1 << 31)):
            changed = of_tiles(resolve(made, {key: bits}), batch)
            try:
                registers = layout(made, arch, name)
            except UsageError:  # the sparse operands of gfx1250 have open layouts
                assert arch == "gfx1250"
                continue
            flipped = registers.pack(getattr(batch, name)) ^ np.uint32(mask)
            assert (getattr(changed, name) == registers.unpack(flipped)).all()


def test_formats_by_modifier() -> None:
    """fp4 times fp6 with block scales, on an exact sum in the datapath's place: 6 * 7.5 * 2^3 * 2^-1 + 1."""
    made = instruction("v_mfma_scale_f32_32x32x64_f8f6f4{blgp=2,cbsz=4,op_sel=110}", "gfx950")
    lanes = Products(tuple(range(64)))
    path = Datapath(made.a, made.b, "f32", "f32", 64, Exact((lanes, Accumulator()), Encode("f32")),
                    scale=Scale("ue8m0", 32))  # fmt: skip
    a, b = np.zeros(64, np.uint8), np.zeros(64, np.uint8)
    a[40], b[40] = 0b0111, 0b011111  # the largest of e2m1 and of e2m3
    d = bind(made, path).dot(
        a, b, np.float32(1), scale_a=np.array([0, 130], np.uint8), scale_b=np.array([0, 126], np.uint8)
    )
    assert d == 6 * 7.5 * 8 / 2 + 1
    with pytest.raises(UsageError, match="operand a holds 0x10, outside its 4 bits"):
        bind(made, path).dot(np.full(64, 16, np.uint8), b, np.float32(1), scale_a=a[:2], scale_b=a[:2])
