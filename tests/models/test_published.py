"""Published results of matrix units against the models: each test names whose they are.

The tables are the suites of ``mmaprobe.probing``; here is what is no table: trees, counts, special values.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

import mmaprobe
from mmaprobe.catalog.lookup import lowering
from second_source.by_hand import code, exact, p
from second_source.published import COLUMNS, Row, chain, chains, rows

ROWS = list(rows())
F16 = {column: [tuple(unit.split("/", 1)) for unit in units] for column, units in COLUMNS["f16"].items()}
LANES = {"volta": 4, "ampere": 8, "hopper": 16}
"""Products that each generation fuses in a step: 5-, 9- and 17-way sums with C."""
EACH = [(column, arch, form) for column, units in F16.items() for arch, form in units]


def run(arch: str, form: str, a: list[float], b: list[float], c: float = 0.0) -> int:
    return chain(arch, form, [Fraction(x) for x in a], [Fraction(x) for x in b], Fraction(c))


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_tables(row: Row) -> None:
    for unit in row.on:
        arch, form = unit.split("/", 1)
        digits = f"{chain(arch, form, row.a, row.b, row.c):0{len(row.d)}x}"
        assert digits == row.d, unit


def answers(program: str, column: str) -> dict[str, list[tuple[Fraction, str]]]:
    """By experiment of Fasi et al.'s f16 program: (C, result) of its rows on a column."""
    out: dict[str, list[tuple[Fraction, str]]] = defaultdict(list)
    for row in ROWS:
        table = row.source.startswith("Fasi") and "f32 results" in row.source and row.column == column
        if table and row.program in ("", program):
            out[row.name.split()[0]].append((row.c, row.d))
    return out


@pytest.mark.parametrize(
    ("program", "own", "other", "fails"),
    [("V100", "volta", "ampere", {"B3", "B4", "D1", "D3", "D5"}), ("A100", "ampere", "hopper", {"B3", "B4", "D5"})],
)
def test_a_program_fails_on_the_next_generation(program: str, own: str, other: str, fails: set[str]) -> None:
    """Recorded on RTX3080 and A10 for the V100 edition; a prediction for the A100 edition on Hopper."""
    first, second = answers(program, own), answers(program, other)
    assert {name for name in first if first[name] != second[name]} == fails


def test_the_fingerprint_of_a_kernel_that_never_ran() -> None:
    """lookup1980: where C comes back as the result, A3 and B3 pass and no other experiment does.

    (Its third pass, A4, reads the buffer of another test: line 202 of the program.)"""
    passed = set()
    for name, pairs in answers("A100", "ampere").items():
        words = [f"{np.float32(float(c)).view(np.uint32):08x}" == d for c, d in pairs]
        if all(words):
            passed.add(name)
    assert passed == {"A3", "B3"}


@pytest.mark.parametrize(("column", "arch", "form"), EACH)
def test_products_fused_in_a_step(column: str, arch: str, form: str) -> None:
    """Khattak and Mikaitis, G2 and G3: C = 1 + 2^-23, 1 in the first lane and 2^-23 in lane k - 1, and negated."""
    for k in range(2, 24):
        for sign, word in ((1, 0x40000000), (-1, 0xC0000000)):
            a = [sign, *[0.0] * (k - 2), sign * p(-23)]
            found = run(arch, form.format(d="f32"), a, [1.0] * k, sign * (1 + p(-23)))
            assert found == word + (k <= LANES[column]), (k, sign)


@pytest.mark.parametrize(("column", "arch", "form"), EACH)
def test_trees(column: str, arch: str, form: str) -> None:
    """FPRev: +2^14, -2^14 and units of 2^-18 elsewhere; the units left over are those added after the two have met.

    A step sums 5, 9 or 17 terms: the units of its own and of every step before it are lost."""
    k, lanes, unit = 32, LANES[column], Fraction(2) ** -9
    a, b, c, left = [], [], [], []
    for i in range(-1, k):
        for j in range(i + 1, k):
            row_a, row_b = [unit] * k, [unit] * k
            row_a[j], row_b[j] = Fraction(128), Fraction(-128)
            if i >= 0:
                row_a[i] = row_b[i] = Fraction(128)
            a.append(row_a)
            b.append(row_b)
            c.append(Fraction(2**14) if i < 0 else unit * unit)
            left.append(k - (j // lanes + 1) * lanes)
    found = chains(arch, form.format(d="f32"), a, b, c)
    assert (found.view(np.float32) * 2.0**18 == left).all()


@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_89"])
@pytest.mark.parametrize("operands", ["bf16", "tf32"])
def test_other_operand_formats_pass_as_f16_does(arch: str, operands: str) -> None:
    """Recorded on RTX3080, A10 and RTX4090 (lookup1980): the experiments of the A100 edition pass in bf16 and tf32."""
    form = f"mma.m16n8k8.f32.{operands}.{operands}.f32"
    passed = 0
    for row in ROWS:
        if "f16 operands and f32 results" in row.source and row.column == "ampere" and "V100" not in row.program:
            try:
                found = chain(arch, form, row.a, row.b, row.c)
            except AssertionError:  # a value that this format does not hold
                continue
            assert f"{found:08x}" == row.d, row
            passed += 1
    assert passed >= 15


BITS = {"volta": 23, "ampere": 24, "hopper": 25}
CUT = {0.25: 0, 0.5: 0, 0.75: 0, 1.5: 1, -0.25: 0, -0.5: 0, -0.75: 0, -1.5: -1}
NEAREST_EVEN = {0.25: 0, 0.5: 0, 0.75: 1, 1.5: 2}


@pytest.mark.parametrize(("column", "arch", "form"), EACH)
def test_the_worked_example_of_turing(column: str, arch: str, form: str) -> None:
    """MMA-Sim's probes with 2^14, printed for Turing's m16n8k8 with f16 results; a prediction on the others.

    Bits kept of C and of a product, RZ in the alignment, products that are not normalised, RNE at the end, and how
    far below a tie is seen."""
    form, bits, unit = form.format(d="f16"), BITS[column], p(14 - BITS[column])

    def answer(terms: list[tuple[float, float]], c: float = 0.0) -> Fraction:
        return exact("f16", run(arch, form, [x for x, _ in terms], [y for _, y in terms], c))

    pair = [(p(7), p(7)), (p(7), -p(7))]
    wide = [(1.5 * p(7), 1.5 * p(7)), (1.5 * p(7), -1.5 * p(7))]
    for e in range(20, 29):
        kept = Fraction(p(14 - e) if e <= bits else 0)
        assert answer(pair, p(14 - e)) == answer([*pair, (p(7 - e // 2 - e % 2), p(7 - e // 2))]) == kept
        assert answer([*wide, (p(7 - e // 2 - e % 2), p(7 - e // 2))]) == kept
    for x, units in CUT.items():
        assert answer([*pair, (x * p(2), unit * p(-2))]) == Fraction(units * unit), x
    for x, units in NEAREST_EVEN.items():
        for sign in (1, -1):
            assert answer([(sign * p(7), p(7)), (sign * x * p(4), 1)]) == sign * Fraction(p(14) + units * p(4)), x
    for e in range(18, 29):
        above = answer([(p(7), p(7)), (p(3), 1), (p(7 - e // 2 - e % 2), p(7 - e // 2))])
        assert above == Fraction(p(14) + (p(4) if e <= bits else 0)), e


EQUATION_10: dict[str, list[tuple[str, str]]] = {
    "-0.875": [("sm_80", "mma.m8n8k4.f64.f64.f64.f64"), ("sm_90a", "mma.m16n8k16.f64.f64.f64.f64")],
    "0": [("sm_89", "mma.m16n8k32.f32.e5m2.e5m2.f32"), ("sm_90a", "wgmma.mma_async.m64n8k32.f32.e5m2.e5m2")],
    "-0.5": [("sm_80", "mma.m16n8k8.f32.tf32.tf32.f32"), ("sm_89", "mma.m16n8k8.f32.tf32.tf32.f32"),
             ("sm_80", "mma.m16n8k16.f32.bf16.bf16.f32"), ("sm_89", "mma.m16n8k16.f32.bf16.bf16.f32")],
    "-0.75": [("sm_120a", "mma.m16n8k32.kind::f8f6f4.f32.e5m2.e5m2.f32"),
              ("sm_100a", "tcgen05.mma.cta_group::1.kind::f8f6f4.m64n8k32.f32.e5m2.e5m2"),
              ("sm_120a", "mma.m16n8k32.kind::mxf8f6f4.block_scale.f32.e5m2.e5m2.f32.ue8m0"),
              ("sm_100a", "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.m128n8k32.f32.e5m2.e5m2.ue8m0")],
}  # fmt: skip
"""MMA-Sim, equation 10 and table 8 beside the f16 column; AMD's part is in ``test_amd``, nvfp4 below."""
EQUATION_10["0"] += F16["volta"]
EQUATION_10["-0.5"] += F16["ampere"]
EQUATION_10["-0.75"] += F16["hopper"]


@pytest.mark.parametrize("result", EQUATION_10)
def test_the_founding_papers_sum(result: str) -> None:
    """2^23 - 2^13 2^10 - 0.5 - 0.25 - 0.125, exactly -0.875."""
    for arch, form in EQUATION_10[result]:
        made = mmaprobe.instruction(form.format(d="f32"))
        a, b = ([Fraction(x) for x in row] for row in ([-p(13), -0.5, -0.25, -0.125], [p(10), 1, 1, 1]))
        ones = {"scale_a": [127], "scale_b": [127]} if made.scale else {}
        found = chain(arch, made.id, a, b, Fraction(p(23)), **ones)
        assert exact(made.d, found) == Fraction(result), (arch, form)


@pytest.mark.parametrize(
    ("arch", "form"),
    [("sm_120a", "mma.m16n8k64.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"),
     ("sm_100a", "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16.m128n8k64.f32.e2m1.e2m1.ue4m3")],
)  # fmt: skip
def test_the_founding_papers_sum_in_nvfp4(arch: str, form: str) -> None:
    """Table 8: all of -0.875. Its -2^23 is eight products of 16 times two scales of 256, in a group of their own."""
    a = [Fraction(x) for x in (*[-4] * 8, *[0] * 8, -0.5, *[0] * 15, -0.5, *[0] * 15, -0.5)]
    b = [Fraction(x) for x in (*[4] * 8, *[0] * 8, 1, *[0] * 15, 0.5, *[0] * 15, 0.5)]
    scale_a, scale_b = ([code("ue4m3", x) for x in row] for row in ([256, 1, 1, 0.5], [256, 1, 1, 1]))
    found = chain(arch, form, a, b, Fraction(p(23)), scale_a=scale_a, scale_b=scale_b)
    assert exact("f32", found) == Fraction(-7, 8)


@pytest.mark.parametrize("arch", ["sm_89", "sm_90a", "sm_100a", "sm_120a"])
def test_the_directed_vector_of_emulated_fp8(arch: str) -> None:
    """A sum that two interleaved halves alone keep: a prediction, derived from recordings of H200 and B200."""
    e4m3, e5m2 = ("mma.m16n8k32.f32.e4m3.e4m3.f32", "mma.m16n8k32.f32.e5m2.e5m2.f32")
    emulated = lowering(mmaprobe.instruction(e4m3), arch).kind == "emulated"
    large = run(arch, e5m2, [p(15), -p(15), 1], [p(15), p(15), 1])
    small = run(arch, e4m3, [p(8), -p(8), p(-6)], [p(8), p(8), p(-6)])
    assert (large, small) == ((0x3F800000, 0x39800000) if emulated else (0, 0))


NAN, INFINITY = 0x7FFFFFFF, 0x7F800000
SPECIAL = [
    ("0 inf", [0], [0x7C00], 0x80000000, NAN), ("inf 0", [0x7C00], [0], 0x80000000, NAN),
    ("-0 inf", [0x8000], [0x7C00], 0x80000000, NAN), ("-0 2", [0x8000], [0x4000], 0x80000000, 0),
    ("-0 0 - 0", [0x8000], [0], 0x80000000, 0), ("1 - 1", [0x3C00, 0xBC00], [0x3C00, 0x3C00], 0x80000000, 0),
    ("inf 2", [0x7C00], [0x4000], 0x80000000, INFINITY), ("-inf 2", [0xFC00], [0x4000], 0x80000000, 0xFF800000),
    ("inf - inf", [0x7C00, 0xFC00], [0x3C00, 0x3C00], 0, NAN), ("inf - C", [0x7C00], [0x3C00], 0xFF800000, NAN),
    ("C is inf", [0x3C00], [0x3C00], INFINITY, INFINITY), ("C is NaN", [0x3C00], [0x3C00], 0x7F812345, NAN),
    ("signalling NaN", [0x7C01], [0x4000], 0, NAN), ("negative NaN", [0xFE00], [0x4000], 0, NAN),
    ("largest subnormal C beside a sum that cancels", [0x3C00, 0xBC00], [0x3C00, 0x3C00], 0x007FFFFF, 0),
    ("largest subnormal C alone", [0], [0], 0x007FFFFF, 0x007FFFFF),
]  # fmt: skip


@pytest.mark.parametrize(("column", "arch", "form"), EACH)
def test_special_values(column: str, arch: str, form: str) -> None:
    """The list of Valpey et al. (no results printed) by MMA-Sim's rules: never -0, one NaN. A prediction."""
    model = mmaprobe.model(arch, form.format(d="f32"))
    k = model.instruction.k
    for name, a, b, c, bits in SPECIAL:
        rows = [np.array([x + [0] * (k - len(x))], np.uint16) for x in (a, b)]
        assert model.dot(*rows, np.array([c], np.uint32))[0] == bits, name
    narrow = mmaprobe.model(arch, form.format(d="f16"))
    a, b = np.zeros((2, 1, k), np.uint16)
    a[0, 0], b[0, 0] = 0x8200, 0x0200  # -2^-15 times 2^-15
    assert narrow.dot(a, b, np.zeros(1, np.uint16))[0] == 0


@pytest.mark.parametrize(("column", "arch", "form"), EACH)
def test_every_nan_operand_makes_the_one_nan(column: str, arch: str, form: str) -> None:
    """Valpey et al.: all 2 x 1023 NaNs of f16, and every 997th of f32 as C."""
    for d in ("f32", "f16"):
        model = mmaprobe.model(arch, form.format(d=d))
        payloads = np.array([sign | 0x7C00 | x for sign in (0, 0x8000) for x in range(1, 1024)], np.uint16)
        a = np.full((payloads.size, model.instruction.k), 0x3C00, np.uint16)
        a[np.arange(payloads.size), payloads % model.instruction.k] = payloads
        ones = np.full_like(a, 0x3C00)
        zero = np.zeros(payloads.size, mmaprobe.formats.get(d).dtype)
        canonical = NAN if d == "f32" else 0x7FFF
        assert (model.dot(a, ones, zero) == canonical).all()
        assert (model.dot(ones, a, zero) == canonical).all()
    model = mmaprobe.model(arch, form.format(d="f32"))
    payload = np.arange(1, 1 << 23, 997, dtype=np.uint32)
    c = np.concatenate([payload | 0x7F800000, payload | 0xFF800000])
    ones = np.full((c.size, model.instruction.k), 0x3C00, np.uint16)
    assert (model.dot(ones, ones, c) == NAN).all()


def test_the_recorded_run_of_a30() -> None:
    """Khattak and Mikaitis' README: one extra bit, not two; 3 carry bits; 8 products a step; RZ, and RNE for f16."""
    named = {row.name: row for row in ROWS if row.source.startswith("Khattak") and row.column == "ampere"}
    assert (named["G1 one extra bit"].d, named["G1b two extra bits"].d) == ("3f800001", "3f800000")
    largest = 2 - p(-10)  # eight of them need a third bit before the point beside the product's own
    full = run("sm_80", "mma.m16n8k16.f32.f16.f16.f32", [largest] * 8, [1.0] * 8, largest)
    assert exact("f32", full) == 9 * Fraction(largest)
