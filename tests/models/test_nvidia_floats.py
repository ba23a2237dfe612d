"""NVIDIA's floating-point forms: modifiers, block scales, narrow formats, by published rules and by hand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import mmaprobe
from mmaprobe import formats
from mmaprobe.catalog.lookup import instruction, match
from mmaprobe.devices.model import open_model
from mmaprobe.errors import UsageError
from mmaprobe.generators import families_for, generate
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.lookup import basis_for, datapath_for, entry_for
from mmaprobe.parameters.modified import modified
from second_source.by_hand import code, exact, p

WGMMA = [f"wgmma.mma_async.m64n8k{k}.{d}.{a}.{a}"
         for a, k, d in (("f16", 16, "f16"), ("f16", 16, "f32"), ("bf16", 16, "f32"), ("tf32", 8, "f32"),
                         ("e4m3", 32, "f16"), ("e5m2", 32, "f32"))]  # fmt: skip


def negated(name: str, codes: Any) -> Any:
    """Codes with the sign bit flipped."""
    fmt = formats.get(name)
    return codes ^ fmt.dtype.type(fmt.sign_mask)


@pytest.mark.parametrize("form", WGMMA)
def test_negated_operands_and_no_operand_c(form: str) -> None:
    """A form with modifiers is the plain form on other operands, for every family of hard vectors."""
    device, plain = open_model("sm_90a"), instruction(form)
    for family in families_for(plain):
        vectors = generate(plain, family, 3, 0, 300)
        assert vectors.c is not None
        a, b, zero = negated(plain.a, vectors.a), negated(plain.b, vectors.b), np.zeros_like(vectors.c)
        for inside, same in (
            ("neg_a", Batch(a, vectors.b, vectors.c)),
            ("neg_b", Batch(vectors.a, b, vectors.c)),
            ("neg_a,neg_b", Batch(a, b, vectors.c)),
            ("neg_b,scale_d=0", Batch(vectors.a, b, zero)),
        ):
            made = instruction(f"{form}{{{inside}}}")
            given = Batch(vectors.a, vectors.b, None if made.c is None else vectors.c)
            assert (device.run_vectors(made, given) == device.run_vectors(plain, same)).all(), (inside, family)


def test_what_a_modifier_does_is_a_prediction() -> None:
    plain = instruction("wgmma.mma_async.m64n8k32.f32.e5m2.e5m2")
    assert basis_for("sm_90a", plain) == entry_for("sm_90a", plain).basis == "measured"
    for inside, basis in (("{neg_a}", "predicted"), ("{scale_d=0}", "predicted"), ("{a=regs}", "measured")):
        assert basis_for("sm_90a", instruction(f"{plain.id}{inside}")) == basis
    turned = instruction("wgmma.mma_async.m64n8k16.f32.f16.f16{trans_a,trans_b}")
    assert datapath_for("sm_90a", turned) == datapath_for("sm_90a", instruction(turned.opcode))
    assert modified(datapath_for("sm_90a", plain), plain) == datapath_for("sm_90a", plain)


def dots(arch: str, form: str, a: list[float], b: list[float], c: float = 0.0, **scales: Any) -> int:
    """One vector of values and scale codes (one code for every block); the missing lanes are +0."""
    made = mmaprobe.model(arch, form)
    wide = made.instruction
    rows = [np.array([[code(fmt, x) for x in (*values, *[0.0] * (wide.k - len(values)))]], formats.get(fmt).dtype)
            for fmt, values in ((wide.a, a), (wide.b, b))]  # fmt: skip
    if wide.scale:
        count = wide.k // wide.scale_size
        blank = formats.get(wide.scale).one
        scales = {f"scale_{side}": np.array([scales.get(f"scale_{side}", [blank] * count)], np.uint8) for side in "ab"}
    return int(made.dot(*rows, np.array([code("f32", c)], np.uint32), **scales)[0])


A, B, C = [-p(13), -0.5, -0.25, -0.125], [p(10), 1.0, 1.0, 1.0], p(23)
MXF8 = "mma.m16n8k32.kind::mxf8f6f4.block_scale.f32.{0}.{1}.f32.ue8m0"
NVF4 = "mma.m16n8k64.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.{0}"
MXF4 = "mma.m16n8k64.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"


TC = "tcgen05.mma.cta_group::1.kind::{0}.m128n64k{1}.{2}"


@pytest.mark.parametrize(
    ("kind", "k", "types"),
    [
        ("f16", 16, "f32.f16.f16"),
        ("f16", 16, "f32.bf16.bf16"),
        ("tf32", 8, "f32.tf32.tf32"),
        ("f8f6f4", 32, "f32.e5m2.e5m2"),
    ],
)
def test_equation_10_of_tcgen05(kind: str, k: int, types: str) -> None:
    """MMA-Sim, table 8: Blackwell keeps -0.75 of -0.875, e5m2 included."""
    assert exact("f32", dots("sm_100a", TC.format(kind, k, types), A, B, C)) == Fraction(-3, 4)


@pytest.mark.parametrize(("arch", "form"), [
    ("sm_120a", MXF8.format("e5m2", "e5m2")),
    ("sm_100a", TC.format("mxf8f6f4.block_scale", 32, "f32.e5m2.e5m2.ue8m0")),
])  # fmt: skip
@pytest.mark.parametrize(("first", "second"), [(0, 0), (3, -3), (-100, 100)])
def test_equation_10_with_block_scales_of_eight_bits(arch: str, form: str, first: int, second: int) -> None:
    """MMA-Sim, table 8: mxfp8 keeps -0.75 of -0.875; scales of the product 1 change nothing."""
    scales = {"scale_a": [127 + first], "scale_b": [127 + second]}
    assert exact("f32", dots(arch, form, A, B, C, **scales)) == Fraction(-3, 4)


def test_equation_10_with_block_scales_of_four_bits() -> None:
    """MMA-Sim, table 8: nvfp4 keeps all of -0.875.  Eight products of -2^20, then the small ones, each in its group."""
    a = [-4.0] * 8 + [0.0] * 8 + [-0.5] + [0.0] * 15 + [-0.5] + [0.0] * 15 + [-0.5]
    b = [4.0] * 8 + [0.0] * 8 + [1.0] + [0.0] * 15 + [0.5] + [0.0] * 15 + [0.5]
    for scale, big, half in (("ue4m3", code("ue4m3", 256), code("ue4m3", 0.5)), ("ue8m0", 127 + 8, 126)):
        one = formats.get(scale).one
        scales = {"scale_a": [big, one, one, half], "scale_b": [big, one, one, one]}
        blackwell = TC.format("mxf4nvf4.block_scale.scale_vec::4X", 64, f"f32.e2m1.e2m1.{scale}")
        for arch, form in (("sm_120a", NVF4.format(scale)), ("sm_100a", blackwell), ("sm_103a", blackwell)):
            assert exact("f32", dots(arch, form, a, b, C, **scales)) == Fraction(-7, 8)


def test_four_bit_sums_keep_35_bits_below_the_largest_scale() -> None:
    """MMA-Sim 2.1.1: a group's exponent is that of its scales; 2^-35 below the largest is the last place kept."""
    form = NVF4.format("ue8m0")
    for distance, kept in ((35, True), (36, False)):
        a, b = [1.0] + [0.0] * 15 + [1.0, -1.0] + [0.0] * 14 + [-1.0], [1.0] * 33
        scales = {"scale_a": [127 - distance, 127, 127, 127], "scale_b": [127] * 4}
        found = dots("sm_120a", form, a, b, 1.0, **scales)
        assert exact("f32", found) == (Fraction(2) ** -distance if kept else 0)
    # a group that cancels keeps its scales' exponent, a group of zeros does not
    for last, value in (([4.0, -4.0], Fraction(0)), ([0.0, 0.0], Fraction(1, 2**40))):
        a = [1.0] + [0.0] * 15 + last
        found = dots("sm_120a", form, a, [1.0] * 18, 0.0, scale_a=[127 - 40, 127, 127, 127], scale_b=[127] * 4)
        assert exact("f32", found) == value


@pytest.mark.parametrize(
    ("form", "nan"), [(MXF8.format("e4m3", "e2m1"), 0xFF), (MXF4, 0xFF), (NVF4.format("ue4m3"), 0x7F)]
)
def test_a_scale_that_is_no_number(form: str, nan: int) -> None:
    made = instruction(form)
    count = made.k // made.scale_size
    one = formats.get(made.scale or "").one
    for block in range(count):
        scales = [one] * count
        scales[block] = nan
        for name in ("scale_a", "scale_b"):
            assert dots("sm_120a", form, [], [], 1.0, **{name: scales}) == 0x7FFFFFFF, (name, block)


def test_the_sign_bit_of_an_unsigned_scale_is_ignored() -> None:
    a, b = [1.0, 0.5], [2.0, -6.0]
    form = NVF4.format("ue4m3")
    for word in (0x00, 0x01, 0x38, 0x7E, 0x7F):
        scales = [[word | high, 0x38, 0x38, 0x38] for high in (0, 0x80)]
        assert dots("sm_120a", form, a, b, 1.0, scale_a=scales[0]) == dots(
            "sm_120a", form, a, b, 1.0, scale_a=scales[1]
        )


@pytest.mark.parametrize(("arch", "form"), [("sm_89", "mma.m16n8k32.f32.e4m3.e4m3.f32"),
                                            ("sm_90a", "wgmma.mma_async.m64n8k32.f32.e4m3.e4m3")])  # fmt: skip
def test_results_of_thirteen_fraction_bits(arch: str, form: str) -> None:
    """MMA-Sim 2.1.1: F = 13, results RZ-E8M13: the last ten bits of an f32 result are 0, its range is f32's."""
    assert exact("f32", dots(arch, form, [1.0], [1.0], p(-13))) == 1 + Fraction(1, 2**13)
    assert exact("f32", dots(arch, form, [1.0], [1.0], p(-14) + p(-15))) == 1
    assert exact("f32", dots(arch, form, [1.0], [1.0], 1 + p(-13))) == 2
    assert exact("f32", dots(arch, form, [], [], float.fromhex("0x1.fffffep+127"))) == 2**128 - 2**114
    assert dots(arch, form, [], [], p(-149)) == 0
    assert exact("f32", dots(arch, form, [], [], p(-139))) == Fraction(1, 2**139)


def test_every_pair_of_narrow_formats_multiplies() -> None:
    """One product of the largest values, kind::f8f6f4 and mxf8f6f4 with scales 2 and 4."""
    small = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
    for a in small:
        for b in small:
            x, y = (exact(name, formats.get(name).largest) for name in (a, b))
            plain = dots("sm_120a", f"mma.m16n8k32.kind::f8f6f4.f32.{a}.{b}.f32", [float(x)], [float(y)])
            assert exact("f32", plain) == x * y
            scaled = dots("sm_120a", MXF8.format(a, b), [float(x)], [float(y)], scale_a=[128], scale_b=[129])
            assert exact("f32", scaled) == 8 * x * y


def test_wide_scales_leave_the_range_of_results() -> None:
    """2^127 twice overflows to infinity; 2^-127 twice is below every result."""
    form = MXF8.format("e4m3", "e4m3")
    assert dots("sm_120a", form, [1.0], [1.0], 0.0, scale_a=[254], scale_b=[254]) == 0x7F800000
    assert dots("sm_120a", form, [-1.0], [1.0], 0.0, scale_a=[254], scale_b=[254]) == 0xFF800000
    assert dots("sm_120a", form, [-1.0], [1.0], 0.0, scale_a=[0], scale_b=[0]) == 0


def test_predicted_architectures_are_their_siblings() -> None:
    for arch, sibling in (
        ("sm_107a", "sm_100a"),
        ("sm_110a", "sm_100a"),
        ("sm_103a", "sm_100a"),
        ("sm_121a", "sm_120a"),
    ):
        for made in match(arch, "mma.m16n8k*.f32.*"):
            if made.chunk == 0 and made.d == "f32" and open_model(arch).supports(made):
                assert datapath_for(arch, made) == datapath_for(sibling, made)
                assert basis_for(arch, made) == "predicted"
                assert sibling in entry_for(arch, made).source


def test_zero_exponents_with_block_scales() -> None:
    """By MMA-Sim 2.1.1 (a prediction): beside zeros the largest exponent is at least -133, or -139 for groups of 16.

    2^-149 is f32's last place; it stays where the second term, n bits lower and negative, is cut off.
    """
    form = MXF8.format("e5m2", "e5m2")
    for n, kept in ((9, True), (10, False)):
        found = dots("sm_120a", form, [1.0, -1.0], [1.0, p(-n)], 0.0, scale_a=[0], scale_b=[127 - 22])
        assert found == (0 if kept else 1), n
    for scale in ("mxf4", "mxf4nvf4"):
        form = MXF4 if scale == "mxf4" else NVF4.format("ue8m0")
        for n, kept in ((25, True), (26, False)):
            a = [1.0] + [0.0] * (31 if scale == "mxf4" else 15) + [-1.0]
            blocks = 2 if scale == "mxf4" else 4
            scales = {"scale_a": [0] * blocks, "scale_b": [127 - 22, 127 - 22 - n, *[127] * (blocks - 2)]}
            assert dots("sm_120a", form, a, [1.0] * len(a), 0.0, **scales) == (0 if kept else 1), (scale, n)


def test_tcgen05_is_the_wider_unit_of_its_architecture() -> None:
    """The same sums as mma.sync on f16, bf16 and tf32; what is new or acts on whole tiles has no datapath."""
    for kind, k, types, other in (("f16", 16, "f32.f16.f16", "mma.m16n8k16.f32.f16.f16.f32"),
                                  ("f16", 16, "f16.f16.f16", "mma.m16n8k16.f16.f16.f16.f16"),
                                  ("tf32", 8, "f32.tf32.tf32", "mma.m16n8k8.f32.tf32.tf32.f32")):  # fmt: skip
        made = instruction(TC.format(kind, k, types))
        assert datapath_for("sm_100a", made) == datapath_for("sm_100a", instruction(other))
        assert basis_for("sm_100a", made) == "published"
        first = instruction(f"{made.id}{{enable_input_d=0}}")
        assert (datapath_for("sm_100a", first).c, basis_for("sm_100a", first)) == (None, "predicted")
    plain = TC.format("f16", 16, "f32.f16.f16")
    for inside, said in (
        ("scale_input_d=3", "how D times 2\\^-s is rounded and aligned is not published; run `mmaprobe derive`"),
        ("disable_output_lane", "which rows keep their D is no operand"),
    ):
        with pytest.raises(UsageError, match=said):
            datapath_for("sm_100a", instruction(f"{plain}{{{inside}}}"))
    for form in (TC.format("mxf4.block_scale.block32", 96, "f32.e2m1.e2m1.ue8m0"),
                 TC.format("f8f6f4", 64, "f32.e4m3.e4m3")):  # fmt: skip
        with pytest.raises(UsageError, match=r"no datapath is known for .*: mmaprobe derive --device cuda:0"):
            datapath_for("sm_107a", instruction(form))


@pytest.mark.parametrize(("arch", "form"), [("sm_80", "mma.m16n8k8.f32.tf32.tf32.f32"),
                                            ("sm_90a", "wgmma.mma_async.m64n8k8.f32.tf32.tf32"),
                                            ("sm_120a", "mma.m16n8k4.f32.tf32.tf32.f32")])  # fmt: skip
def test_tf32_reads_the_upper_19_bits(arch: str, form: str) -> None:
    """Of any words: the lower 13 bits change nothing, and a NaN that lies in them alone is an infinity."""
    model = mmaprobe.model(arch, form)
    rng = np.random.default_rng(8)
    shape = (500, model.instruction.k)
    a, b = (rng.integers(0, 1 << 32, shape, np.uint32) for _ in "ab")
    c = rng.integers(0, 1 << 32, 500, np.uint32)
    upper = np.uint32(0xFFFFE000)
    assert (model.dot(a, b, c) == model.dot(a & upper, b & upper, c)).all()
    one = np.zeros((2, shape[1]), np.uint32)
    one[:, 0] = 0x3F800000
    high = np.zeros_like(one)
    high[:, 0] = 0x7F800001, 0xFF801FFF
    assert model.dot(high, one, np.zeros(2, np.uint32)).tolist() == [0x7F800000, 0xFF800000]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_120a"])
def test_directed_rounding_of_f64(arch: str) -> None:
    """Each multiply-add rounds as the suffix says: 1 + 2^-60 and -1 - 2^-60, of either sign."""
    up, down = float.fromhex("0x1.0000000000001p0"), 1.0
    for mode, plus, minus in ((".rn", down, -down), (".rz", down, -down), (".rm", down, -up), (".rp", up, -down)):
        model = mmaprobe.model(arch, f"mma.m8n8k4.f64.f64.f64.f64{mode}")
        a = np.array([[p(-30), 0, 0, 0], [-p(-30), 0, 0, 0]])
        b = np.array([[p(-30), 0, 0, 0]] * 2)
        assert model.dot(a, b, np.array([1.0, -1.0])).tolist() == [plus, minus]


@pytest.mark.parametrize("arch", ["sm_70", "sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120a"])
def test_wmma_is_its_parts(arch: str) -> None:
    """Formats of C and D of their own: C widens exactly, D is rounded once more; a conversion is no recording."""
    forms = {(made.c, made.d): made for made in match(arch, "wmma.mma.m16n16k16.f*.f*") if made.a == "f16"}
    assert forms.keys() == {(c, d) for c in ("f16", "f32") for d in ("f16", "f32")}
    device, plain = open_model(arch), forms["f32", "f32"]
    for family in families_for(plain):
        vectors = generate(plain, family, 9, 0, 200)
        sums = device.run_vectors(plain, vectors).view(np.float32)
        with np.errstate(all="ignore"):
            narrow = sums.astype(np.float16)
        d = np.where(np.isnan(sums), np.uint16(0x7FFF), narrow.view(np.uint16))
        assert (device.run_vectors(forms["f32", "f16"], vectors) == d).all(), family
        assert vectors.c is not None
        half = (vectors.c >> 16).astype(np.uint16)
        wide = Batch(vectors.a, vectors.b, half.view(np.float16).astype(np.float32).view(np.uint32))
        if arch != "sm_70":  # there the first part takes C as it is
            narrow_c = Batch(vectors.a, vectors.b, half)
            assert (device.run_vectors(forms["f16", "f32"], narrow_c) == device.run_vectors(plain, wide)).all(), family
    bases = {pair: basis_for(arch, made) for pair, made in forms.items()}
    assert bases["f32", "f16"] == "published"
    known = {"sm_70": "recorded", "sm_90a": "measured", "sm_100a": "recorded"}
    assert bases["f32", "f32"] == known.get(arch, bases["f32", "f32"])
    assert arch in known or bases["f32", "f32"] not in known.values()
