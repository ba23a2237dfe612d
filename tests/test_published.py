"""Published results of matrix units against the models: each test names whose they are.

Columns are generations: Volta, Turing to Ada, Hopper to Blackwell. The third one of the tables
of Fasi et al. and Khattak and Mikaitis is what the published parameters predict, not a run.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import mmaprobe
from by_hand import code, exact, p
from mmaprobe.catalog.lookup import lowering

GENERATIONS = (("sm_70",), ("sm_75", "sm_80", "sm_86", "sm_89"), ("sm_90a", "sm_100a", "sm_120a"))
Values = list[float]


def f16_form(arch: str, d: str) -> str:
    if arch == "sm_70":
        return f"mma.m8n8k4.row.col.{d}.f16.f16.{d}"
    return f"mma.m16n8k{8 if arch == 'sm_75' else 16}.{d}.f16.f16.{d}"


def run(arch: str, form: str, a: Values, b: Values, c: float = 0.0) -> int:
    """The result of one vector of values, the missing lanes +0, as a code."""
    made = mmaprobe.model(arch, form)
    wide = made.instruction
    rows = [np.array([[code(fmt, x) for x in (*values, *[0.0] * (wide.k - len(values)))]],
                     mmaprobe.formats.get(fmt).dtype)
            for fmt, values in ((wide.a, a), (wide.b, b))]  # fmt: skip
    assert wide.c is not None
    return int(made.dot(rows[0], rows[1], np.array([code(wide.c, c)], mmaprobe.formats.get(wide.c).dtype))[0])


def ones(*values: float) -> tuple[Values, Values]:
    return list(values), [1.0] * len(values)


TINY, BELOW = p(-24), 1 - p(-24)
NEAR = 1 - p(-11)
SUM = 1 + p(-22) + p(-23)
FASI: dict[str, tuple[tuple[Values, Values], float, tuple[int, int, int]]] = {
    "A1 subnormal operand": (([TINY], [4.0]), 0, (0x34800000,) * 3),
    "A2 subnormal C": (ones(0), p(-149), (1, 1, 1)),
    "A5 product below f16 normals": (([p(-14)], [0.5]), 0, (0x38000000,) * 3),
    "A5 difference": (ones(p(-14), -p(-15)), 0, (0x38000000,) * 3),
    "B1 once": (([NEAR], [NEAR]), 0, (0x3F7FC004,) * 3),
    "B1 four": (([NEAR] * 4, [NEAR] * 4), 0, (0x407FC004,) * 3),
    "B3 V100 form": (ones(*[TINY] * 4), 1, (0x3F800000, 0x3F800002, 0x3F800002)),
    "B3 A100 form": (([0.5] * 4, [TINY] * 4), 1, (0x3F800000, 0x3F800000, 0x3F800001)),
    "C1": (([2, 1], [1, p(-23) + p(-24)]), 0, (0x40000000,) * 3),
    "C2": (([-2, -1], [1, p(-23) + p(-24)]), 0, (0xC0000000,) * 3),
    "D1": (ones(1), -BELOW, (0x34000000, 0x33800000, 0x33800000)),
    "D2": (ones(*[TINY] * 4), BELOW, (0x3F800001,) * 3),
    "D3": (ones(1, -TINY), -1 + TINY, (0x34000000, 0, 0)),
    "D4b": (ones(1, 1.5, 1.75, 1.875), 1.875, (0x41000000,) * 3),
    "D4c": (ones(1, 1, 1, 1), SUM, (0x40A00000,) * 3),
    "D4d": (ones(-1, -1, -1, -1), -SUM, (0xC0A00000,) * 3),
    "D5 A100 form, first": (([0.5, 0.5, 0.5, 1.5], [TINY] * 4), BELOW, (0x3F800000, 0x3F800001, 0x3F800001)),
    "D5 A100 form, second": (([0.5, 0.5, 0.5, 1.5], [TINY] * 4), 1, (0x3F800000, 0x3F800000, 0x3F800001)),
}
KHATTAK: dict[str, tuple[tuple[Values, Values], float, tuple[int, int, int]]] = {
    "G1": (ones(TINY, TINY), 1, (0x3F800000, 0x3F800001, 0x3F800001)),
    "G1b": (([1, 0.5, 0.5], [TINY] * 3), 1, (0x3F800000, 0x3F800000, 0x3F800001)),
    "G4": (ones(*[p(-21) + TINY] * 2), 1 - p(-21), (0x3F800005,) * 3),
    "G5 +": (ones(1, 1, 1), SUM, (0x40800000,) * 3),
    "G5 -": (ones(-1, -1, -1), -SUM, (0xC0800000,) * 3),
}
R = 1.9990234375
VALPEY: dict[str, tuple[tuple[Values, Values], float, tuple[int, int, int]]] = {
    "assoc": (([R * p(-9), R * p(-1)], [R * p(-1)] * 2), 1.0021368265151978 * p(15),
              (0x47004704, 0x47004705, 0x47004705)),
    "RNE/RTP sub": (([1.5 * p(15)], [1.5 * p(14)]), -1.0029296875 * p(15), (0x4E8FFEFF,) * 3),
    "RNE/RTP add": (([1.0302734375 * p(15)], [1.748046875 * p(15)]), 1.5009765625 * p(8), (0x4EE68613,) * 3),
    "RNE/RTZ sub": (([1.767578125 * p(15)], [-1.1142578125 * p(15)]), 6.57421875, (0xCEFC19D0,) * 3),
    # printed with 1.7822265625 p(-3) x 1.0048828125 p(-15); f16 holds the second only at p(-14): the same product
    "RNE/RTZ add": (([1.7822265625 * p(-4)], [1.0048828125 * p(-14)]), 1.9951171875 * p(-8), (0x3BFF994F,) * 3),
    "RTP/RTN sub": (([1.7939453125 * p(-12)], [-1.9619140625 * p(15)]), 1.4921875 * p(-15), (0xC1E1407C,) * 3),
    "RTZ/RTN sub": (([2], [R * p(-9)]), -p(13), (0xC5FFFFF2, 0xC5FFFFF1, 0xC5FFFFF0)),
}  # fmt: skip


@pytest.mark.parametrize(("table", "name"), [(t, n) for t in (FASI, KHATTAK, VALPEY) for n in t])
def test_results_of_three_generations(table: dict[str, tuple[tuple[Values, Values], float, tuple[int, ...]]],
                                      name: str) -> None:  # fmt: skip
    """Fasi et al. 2021; Khattak and Mikaitis 2025; Valpey et al.: f16 operands, f32 results."""
    (a, b), c, expected = table[name]
    for archs, bits in zip(GENERATIONS, expected, strict=True):
        for arch in archs:
            assert f"{run(arch, f16_form(arch, 'f32'), a, b, c):08x}" == f"{bits:08x}", arch


def test_f16_results() -> None:
    """Fasi et al., f16 results: A1, A4, A5, B2, C3."""
    for arch in (arch for archs in GENERATIONS for arch in archs):
        form = f16_form(arch, "f16")
        assert run(arch, form, [TINY], [4.0]) == 0x0004
        assert run(arch, form, [p(-14)], [0.5]) == run(arch, form, *ones(p(-14), -p(-15))) == 0x0200
        assert run(arch, form, [NEAR, NEAR], [NEAR, p(-11)]) == 0x3BFF
        assert run(arch, form, [TINY, TINY], [0.5, 0.25]) == 0x0001


@pytest.mark.parametrize("position", range(4))
def test_the_sum_is_anchored_at_the_largest_term_anywhere(position: int) -> None:
    """Fasi et al., B4 (V100 form) and D4a: one product leads, C and the others follow."""
    small = [TINY] * 3
    for archs, bits in zip(GENERATIONS, (0x3F800000, 0x3F800002, 0x3F800002), strict=True):
        for arch in archs:
            values = [*small[:position], 1.0, *small[position:]]
            assert run(arch, f16_form(arch, "f32"), *ones(*values), TINY) == bits
            a, b = ones(1, 1, 1)
            a.insert(position, 1.0)
            b.insert(position, p(-23))
            assert run(arch, f16_form(arch, "f32"), a, b, SUM) == 0x40800001


@pytest.mark.parametrize(
    ("archs", "d", "last"),
    [(GENERATIONS[0], "f16", 42), (GENERATIONS[1], "f16", 44), (GENERATIONS[2], "f16", 46),
     (("sm_80", "sm_89"), "f32", 156), (GENERATIONS[2], "f32", 158)],
)  # fmt: skip
def test_zero_exponent_ladders(archs: tuple[str, ...], d: str, last: int) -> None:
    """MMA-Sim 2.1.1: a tie of f16, or f32's last place below the zeros' exponent, beside a shrinking term."""
    for arch in archs:
        for k in range(last - 3, last + 3):
            if d == "f16":
                found = run(arch, f16_form(arch, "f16"), [p(-12), TINY], [p(-13), p(24 - k)])
                assert found == (k <= last), (arch, k)
            else:
                found = run(arch, "mma.m16n8k8.f32.bf16.bf16.f32", [p(-75), -p(-80)], [p(-74), p(80 - k)])
                assert found == (k > last), (arch, k)


def test_the_founding_papers_sum() -> None:
    """MMA-Sim, equation 10 and table 8: -2^23 - 0.5 - 0.25 - 0.125 + 2^23; exactly -0.875."""
    a, b, c = [-p(13), -0.5, -0.25, -0.125], [p(10), 1.0, 1.0, 1.0], p(23)
    table = {"sm_70": 0.0} | dict.fromkeys(GENERATIONS[1], -0.5) | dict.fromkeys(GENERATIONS[2], -0.75)
    for arch, value in table.items():
        assert exact("f32", run(arch, f16_form(arch, "f32"), a, b, c)) == Fraction(value)
    for form in ("mma.m16n8k8.f32.tf32.tf32.f32", "mma.m16n8k16.f32.bf16.bf16.f32"):
        assert exact("f32", run("sm_80", form, a, b, c)) == Fraction(-1, 2)
    assert exact("f64", run("sm_80", "mma.m8n8k4.f64.f64.f64.f64", a, b, c)) == Fraction(-7, 8)
    for arch, form in (
        ("sm_89", "mma.m16n8k32.f32.e5m2.e5m2.f32"),
        ("sm_90a", "wgmma.mma_async.m64n8k32.f32.e5m2.e5m2"),
    ):
        assert run(arch, form, a, b, c) == 0


def test_details_of_three_ampere_and_ada_parts() -> None:
    """Facts of lookup1980/tensor-cores-numerical-behavior: the same bits on RTX3080, A10 and RTX4090."""
    cases: list[tuple[Values, Values, float, int]] = [
        (*ones(p(-23), 1), 0, 0x3F800001), (*ones(TINY, 1), 0, 0x3F800000), ([p(-12), 1], [p(-12), 1], 0, 0x3F800000),
        ([p(-12), -1, 1], [p(-11), 1, 1], 0, 0x34000000), (*ones(TINY, -1, 1), 0, 0x33800000),
        (*ones(2, -2, TINY), 0, 0), *[(*ones(p(4), -p(4), p(-e)), 0, 0) for e in range(21, 25)],
        (*ones(p(4), -p(4), p(-20)), 0, 0x35800000),
        *[([p(e), -p(e), TINY], [p(f), p(f), 1], 0, 0) for e, f in ((8, 0), (8, 8), (12, 12), (15, 14))],
        *[(*ones(1, -1), p(-e), bits) for e, bits in ((23, 0x34000000), (24, 0x33800000), (25, 0), (26, 0), (40, 0))],
    ]  # fmt: skip
    for a, b, c, bits in cases:
        for arch in ("sm_86", "sm_89"):
            assert run(arch, "mma.m16n8k8.f32.f16.f16.f32", a, b, c) == bits, (a, b, c)


def test_binary64() -> None:
    """Fasi et al., binary64 on A100: subnormals, ties to even, a rounding after each addition."""
    u = p(-53)
    cases: list[tuple[Values, Values, float, float]] = [
        ([p(-1074)], [p(52)], 0, p(-1022)), ([p(-1022)], [0.5], 0, p(-1023)), ([0.5, 0.5], [u, u], 1, 1),
        (*ones(2 * u + u), 2, 2 + p(-51)), (*ones(u), 2, 2), (*ones(p(-52)), 2, 2),
        (*ones(p(-52)), 2 + p(-51), 2 + p(-50)), (*ones(u, u), 1 - u, 1),
    ]  # fmt: skip
    for a, b, c, value in cases:
        assert run("sm_80", "mma.m8n8k4.f64.f64.f64.f64", a, b, c) == np.float64(value).view(np.uint64), (a, b, c)


def test_the_directed_vector_of_emulated_fp8() -> None:
    """Derived from recordings of H200 and B200: a sum that two interleaved halves alone keep (a prediction)."""
    e4m3, e5m2 = ("mma.m16n8k32.f32.e4m3.e4m3.f32", "mma.m16n8k32.f32.e5m2.e5m2.f32")
    for arch in ("sm_90a", "sm_100a", "sm_89", "sm_120a"):
        emulated = lowering(mmaprobe.instruction(e4m3), arch).kind == "emulated"
        large = run(arch, e5m2, [p(15), -p(15), 1], [p(15), p(15), 1])
        small = run(arch, e4m3, [p(8), -p(8), p(-6)], [p(8), p(8), p(-6)])
        assert (large, small) == ((0x3F800000, 0x39800000) if emulated else (0, 0)), arch


def test_no_result_is_a_negative_zero_and_every_nan_is_one_code() -> None:
    """MMA-Sim and Valpey et al.: special values of the fused units."""
    zero, negative_zero, two, infinity, negative_infinity, nan = 0, 0x8000, 0x4000, 0x7C00, 0xFC00, 0x7FFFFFFF
    cases = [
        (zero, infinity, nan), (infinity, zero, nan), (negative_zero, infinity, nan), (negative_zero, two, 0),
        (infinity, two, 0x7F800000), (negative_infinity, two, 0xFF800000), (0x7C01, two, nan), (0xFE00, two, nan),
    ]  # fmt: skip
    for arch in (arch for archs in GENERATIONS for arch in archs):
        model = mmaprobe.model(arch, f16_form(arch, "f32"))
        for x, y, bits in cases:
            a, b = (np.array([[v] * model.instruction.k], np.uint16) for v in (x, y))
            assert model.dot(a, b, np.array([0x80000000], np.uint32))[0] == bits, (arch, x, y)
