"""Cells of coverage: the counts are those of exact arithmetic; what is called reachable is, and none else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from cases.validated import FMA, GPU, MODEL, TILE
from mmaprobe import formats
from mmaprobe.catalog import lookup
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import architectures, instructions
from mmaprobe.catalog.sparsity import kept_positions
from mmaprobe.errors import UsageError
from mmaprobe.evidence.cell_counts import NO_CELLS, SPECIALS, CellCounts, cell_counts_from_json, coverage_of
from mmaprobe.evidence.files import FileValue
from mmaprobe.generators import families_for, generate, generate_tiles, plan
from mmaprobe.generators.families import VERSIONS
from mmaprobe.generators.tiles import tile_version, vector_at
from mmaprobe.operands.batch import Batch, join
from mmaprobe.report.coverage import MOST_DEAD, coverage_json, coverage_lines
from mmaprobe.validation import validate
from mmaprobe.validation.batches import compared_runs
from mmaprobe.validation.coverage.reach import reach_of
from mmaprobe.validation.coverage.rules import RULES, name_of
from mmaprobe.validation.coverage.sample import OF_A_TILE, SAMPLE, ComparedRun, cells_of, sampled
from mmaprobe.validation.coverage.sums import exact_sums
from mmaprobe.validation.coverage.terms import terms_of

MMA = "mma.sync.aligned."
IDS = [
    "arm.fmlalb.e5m2.e5m2.f16",
    "x86.vfmadd.f32", "x86.vfmadd.f64", "x86.vdpbf16ps", "x86.vpdpbusd", "x86.pmaddwd", "x86.dpps",
    f"{MMA}m16n8k16.row.col.f32.f16.f16.f32", f"{MMA}m16n8k16.row.col.f16.f16.f16.f16",
    f"{MMA}m16n8k32.row.col.f32.e4m3.e5m2.f32", f"{MMA}m16n8k8.row.col.f32.tf32.tf32.f32",
    f"{MMA}m8n8k128.row.col.s32.b1.b1.s32.and.popc", f"{MMA}m8n8k128.row.col.s32.b1.b1.s32.xor.popc",
    "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
    f"{MMA}m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
    "v_wmma_f32_16x16x16_f16{neg_hi=001,neg_lo=110}",
]  # fmt: skip
SPECIAL = ("nan", "inf", "-inf")


def known(name: str) -> Instruction:
    return lookup.instruction(name, "gfx1200" if name.startswith("v_") else None)


@dataclass(frozen=True)
class Number:
    """A code's value: a fraction, or a word; and its sign bit."""

    value: Fraction | str
    negative: bool

    def __mul__(self, other: Number) -> Number:
        negative = self.negative != other.negative
        words = {x for x in (self.value, other.value) if isinstance(x, str)}
        if "nan" in words or (words and 0 in (self.value, other.value)):
            return Number("nan", negative)
        if words:
            return Number("-inf" if negative else "inf", negative)
        return Number(self.value * other.value, negative)  # type: ignore[operator]


def number(fmt: formats.Format, code: int) -> Number:
    """What a code is."""
    found = formats.decode(fmt, np.array([code], fmt.dtype))
    negative = bool(found.negative[0])
    if found.kind[0] == formats.NAN:
        return Number("nan", negative)
    if found.kind[0] == formats.INFINITE:
        return Number("-inf" if negative else "inf", negative)
    value = Fraction(int(found.significand[0])) * Fraction(2) ** int(found.exponent[0])
    return Number(-value if negative else value, negative)


def log2(value: Fraction) -> int:
    """floor(log2 |value|)."""
    found = value.numerator.bit_length() - value.denominator.bit_length()
    return found if abs(value) >= Fraction(2) ** found else found - 1


def numbers_of(made: Instruction, vectors: Batch, i: int) -> tuple[list[Number], Number | None]:
    """The products of vector i, and its C."""
    known = made.formats()
    signs = {"a": made.modifier.get("neg_lo", "000")[0] == "1", "b": made.modifier.get("neg_lo", "000")[1] == "1"}
    rows = {name: value[i].reshape(-1).tolist() for name, value in vectors.items()}
    b = rows["b"]
    if vectors.metadata is not None:
        b = [b[lane] for lane in kept_positions(made, vectors.metadata[i]).tolist()]
    products = []
    for k, (x, y) in enumerate(zip(rows["a"], b, strict=True)):
        if made.multiply != "exact":
            products.append(Number(Fraction(x & y if made.multiply == "and" else x ^ y), False))
            continue
        factors = [number(known["a"], x), number(known["b"], y)]
        product = factors[0] * factors[1]
        product = Number(product.value, product.negative ^ signs["a"] ^ signs["b"])
        for name in ("scale_a", "scale_b"):
            if name in rows:
                product = product * number(known[name], rows[name][k * len(rows[name]) // len(b)])
        products.append(product)
    if "c" not in rows:
        return products, None
    c = number(known["c"], rows["c"][0])
    if made.modifier.get("neg_hi", "000")[2] == "1":
        c = Number(abs(c.value) if isinstance(c.value, Fraction) else c.value.lstrip("-"), False)
    return products, c


def holds(cell: str, value: int) -> bool:
    """Whether a cell's name is that of a number: ``+3 to +4``, ``-25 and further``, ``17 to 32``, ``7``."""
    words = cell.split()
    first = int(words[0])
    if words[1:] == ["and", "further"]:
        return value >= first if first > 0 else value <= first
    last = int(words[2]) if len(words) > 1 else first
    return min(first, last) <= value <= max(first, last)


def expected(made: Instruction, products: list[Number], c: Number | None) -> dict[str, str | int]:
    """The place of a vector by every rule: a word, or the number that its cell must hold."""
    terms = [*products, *([c] if c is not None else [])]
    nonzero = sum(p.value != 0 for p in products)
    found: dict[str, str | int] = {"live lanes": "every lane" if nonzero == len(products) else nonzero}
    floats = formats.get(made.a).is_float
    signs = {"-0" if p.negative and floats else "+0" for p in products if p.value == 0}
    found["zero lanes"] = " and ".join(sorted(signs)) or "no product is"
    if all(term.value == 0 for term in terms):
        found["zero lanes"] += "" if c is None else f", C is {'-' if c.negative else '+'}0"
        found["zero lanes"] += ", no other term"
    rest = ("exponent of C above the products'", "places that cancel", "below the last place")
    if any(term.value in SPECIAL for term in terms):
        return found | dict.fromkeys(rest, "a term is not finite")
    if all(term.value == 0 for term in terms):
        return found | dict.fromkeys(rest, "no term but zeros") | ({rest[0]: "C is zero"} if c is None else {})
    live = [log2(p.value) for p in products if p.value]  # type: ignore[arg-type]
    if c is None or c.value == 0:
        found[rest[0]] = "C is zero"
    else:
        found[rest[0]] = log2(c.value) - max(live) if live else "no product but zeros"  # type: ignore[arg-type]
    total = sum((term.value for term in terms), Fraction(0))  # type: ignore[misc]
    if total == 0:
        return found | dict.fromkeys(rest[1:], "to zero")
    found[rest[1]] = max(log2(term.value) for term in terms if term.value) - log2(total)  # type: ignore[arg-type]
    found[rest[2]] = below(formats.get(made.d), abs(total))
    return found


def below(fmt: formats.Format, total: Fraction) -> str:
    """Where a sum lies between two values of a format, written out bit by bit."""
    if not fmt.is_float:
        return "exact"
    unit = Fraction(2) ** max(log2(total) - fmt.fraction_bits, fmt.min_exponent - fmt.fraction_bits)
    rest = total / unit % 1
    if rest in (0, Fraction(1, 2)):
        return "a tie" if rest else "exact"
    bits = ""
    while len(bits) < 700:
        rest *= 2
        bits += "1" if rest >= 1 else "0"
        rest %= 1
    run = len(bits[1:]) - len(bits[1:].lstrip(bits[1]))
    return f"beside {'an exact sum' if bits[0] == bits[1] else 'a tie'}, a run of {run}"


def mixed(made: Instruction, each: int, seed: int = 1) -> Batch:
    """Vectors of every family."""
    return join([generate(made, family, seed, 0, each) for family in families_for(made)])


@pytest.mark.parametrize("name", IDS)
def test_the_cells_are_those_of_exact_arithmetic(name: str) -> None:
    """Vector by vector, in fractions and bit by bit."""
    made = known(name)
    vectors = mixed(made, 6 if made.k < 64 else 3)
    terms, reach = terms_of(made, vectors), reach_of(made)
    cells = {rule.name: [name_of(rule, n, reach) for n in rule.numbers(terms, reach).tolist()] for rule in RULES}
    for i in range(vectors.size):
        for rule, wanted in expected(made, *numbers_of(made, vectors, i)).items():
            cell = cells[rule][i]
            if isinstance(wanted, str) and " run of " in wanted:
                head, run = wanted.rsplit(" ", 1)
                span = cell.removeprefix(head + " ")
                assert cell.startswith(head), (i, rule)
                assert int(run) > int(span[5:]) if span.startswith("over") else holds(span, int(run)), (i, rule)
            else:
                assert holds(cell, wanted) if isinstance(wanted, int) else cell == wanted, (i, rule, cell, wanted)


def test_the_cells_of_special_values_and_of_the_ends_of_the_range() -> None:
    made, f32 = FMA, {"1": 0x3F800000, "-0": 0x80000000, "inf": 0x7F800000, "-inf": 0xFF800000, "nan": 0x7FC00000,
                      "top": 0x7F7FFFFF, "low": 1, "0": 0, "half": 0x3F000000, "least": 0x00800000}  # fmt: skip
    rows = {
        ("0", "inf", "1"): {"0 times infinity", "B infinite"},
        ("inf", "1", "-inf"): {"infinities of both signs", "A infinite", "C infinite"},
        ("1", "1", "nan"): {"C a NaN"},
        ("0", "inf", "-inf"): {"0 times infinity", "B infinite", "C infinite"},
        ("-0", "1", "1"): {"A -0"},
        ("top", "top", "0"): {"A the largest", "B the largest", "|S| of 2^128 or more"},
        ("low", "1", "0"): {"A subnormal", "|S| below 2^-126"},
        ("low", "half", "0"): {"A subnormal", "|S| below 2^-126", "|S| below 2^-149"},
        ("least", "1", "0"): set(),
    }
    for (a, b, c), wanted in rows.items():
        codes = [np.array([f32[x]], np.uint32) for x in (a, b, c)]
        found = cells_of(made, Batch(codes[0][None], codes[1][None], codes[2])).cells[SPECIALS]
        assert {cell for cell, count in found.items() if count} == wanted
    limits = cells_of(known("x86.vpdpbusd"), Batch(np.array([[255] * 4], np.uint8), np.array([[0x80] * 4], np.uint8),
                                                   np.array([0x80000000], np.uint32))).cells[SPECIALS]  # fmt: skip
    assert {cell for cell, count in limits.items() if count} == {
        "A the largest", "B the lowest", "C the lowest", "|S| of 2^31 or more"
    }  # fmt: skip


def structured(made: Instruction, count: int) -> Batch:
    """Vectors of few live lanes, whose codes are near powers of two or copies of one another, signs by chance."""
    random = np.random.default_rng(1)
    vectors = mixed(made, count // len(families_for(made)))
    parts = {name: value.copy() for name, value in vectors.items()}
    lanes = random.random(parts["a"].shape) < random.random((vectors.size, 1))
    parts["a"] *= lanes
    for name in ("a", "b"):
        same = random.random((vectors.size, 1)) < 0.5
        parts[name] = np.where(same, np.where(lanes, parts[name][:, :1], 0), parts[name]).astype(parts[name].dtype)
        flip = random.random(parts[name].shape) < 0.5
        parts[name] ^= (flip * made.formats()[name].sign_mask).astype(parts[name].dtype)
    if "c" in parts:
        parts["c"][random.random(vectors.size) < 0.2] = 0
    return Batch(**parts)


def deep() -> Batch:
    """(1 + 2^-10)^2 - (1 + 2^-9) = 2^-20: one product beside C cancels so far by its two last bits alone."""
    a = np.array([[0x3F802000]], np.uint32)
    return Batch(a, a, np.array([0xBF804000], np.uint32))


REACHED = [IDS[1], IDS[3], IDS[6], IDS[7], IDS[8], IDS[9]]


@pytest.mark.parametrize("name", REACHED)
def test_what_is_called_reachable_is_reached(name: str) -> None:
    """And nothing that is not: of families and of vectors built for it."""
    made = known(name)
    every = [mixed(made, 1_500), structured(made, 20_000), *[deep()] * (made == FMA)]
    reach = reach_of(made)
    claimed = {rule.name: {name_of(rule, n, reach) for n in rule.cells(reach)} for rule in RULES}
    found = cells_of(made, join(every)).cells
    for rule, cells in claimed.items():
        assert {cell for cell, count in found[rule].items() if count} == cells, rule


def test_no_vector_of_any_family_is_where_the_formats_cannot_be() -> None:
    for name in IDS:
        made, reach = known(name), reach_of(known(name))
        found = cells_of(made, mixed(made, 60)).cells
        for rule in RULES:
            claimed = {name_of(rule, n, reach) for n in rule.cells(reach)}
            assert {cell for cell, count in found[rule.name].items() if count} <= claimed, (name, rule.name)


@pytest.mark.long
def test_nor_is_one_of_any_form_that_ships() -> None:
    """Every combination of formats, K, scales and sparsity of the catalog, once."""
    seen: dict[tuple[object, ...], Instruction] = {}
    for architecture in architectures():
        for made in instructions(architecture):
            seen.setdefault((made.a, made.b, made.c, made.d, made.k, made.chunk, made.scale, made.multiply), made)
    for made in seen.values():
        found, reach = cells_of_a_sample(made), reach_of(made)
        for rule in RULES:
            claimed = {name_of(rule, n, reach) for n in rule.cells(reach)}
            assert {cell for cell, count in found.cells[rule.name].items() if count} <= claimed, (made.id, rule.name)


def cells_of_a_sample(made: Instruction) -> CellCounts:
    """The cells of a sample of 30,000 vectors."""
    vectors = sampled(made, 1, compared(made, 30_000))
    assert vectors is not None
    return cells_of(made, vectors)


def test_why_there_are_no_more_cells_is_said() -> None:
    found = cells_of(known("x86.vpdpbusd"), mixed(known("x86.vpdpbusd"), 10))
    assert found.unreachable["below the last place"] == "a sum of integers has no bits below the last place"
    assert found.unreachable["zero lanes"] == "an integer's zero has no sign"
    assert "a tie" not in found.cells["below the last place"]
    assert cells_of(known("x86.pmaddwd"), mixed(known("x86.pmaddwd"), 10)).unreachable[RULES[2].name] == (
        "the instruction has no C"
    )


def test_sums_longer_than_any_word_are_exact() -> None:
    random = np.random.default_rng(1)
    significand = random.integers(0, 1 << 62, (50, 7))
    exponent, negative = random.integers(-900, 900, (50, 7)), random.random((50, 7)) < 0.5
    significand[1] = 0
    significand[2, 1:], significand[3] = 0, significand[3, 0]
    exponent[3], negative[3] = 5, [True, False, True, False, True, False, False]
    significand[4], exponent[4], negative[4] = [(1 << 62) - 1, 1, 0, 0, 0, 0, 0], 0, False
    found = exact_sums(significand, exponent, negative)
    for i in range(50):
        terms = zip(significand[i].tolist(), exponent[i].tolist(), negative[i].tolist(), strict=True)
        total = sum(((-1) ** n * s * Fraction(2) ** e for s, e, n in terms), Fraction(0))
        assert bool(found.zero[i]) == (total == 0)
        assert found.top[i] == (found.base - 1 if total == 0 else log2(total))


def compared(made: Instruction, vectors: int, first: int = 0) -> Iterator[ComparedRun]:
    for family, start, count in plan(made, vectors, first=first):
        yield from compared_runs(made, family, start, count)


def test_a_sample_is_of_what_is_compared() -> None:
    """Outputs of the tiles that a validation makes, and its separate vectors, of every family."""
    runs = [run for run in compared(TILE, 40_000, 10_000) if run.family == "cancel"]
    assert [run.version for run in runs] == [tile_version(TILE, "cancel"), None]
    assert runs[0].version != VERSIONS["cancel"]
    found = sampled(TILE, 7, runs)
    assert found is not None
    assert 250 < found.size <= SAMPLE
    tiles = generate_tiles(TILE, "cancel", 7, runs[0].start, 60, runs[0].version)
    made = [vector_at(tiles, tile, row, column) for tile in range(60) for row in range(16) for column in range(8)]
    held = {(each.a.tobytes(), each.b.tobytes(), each.c.tobytes()) for each in made if each.c is not None}
    alone = generate(TILE, "cancel", 7, runs[1].start, 200)
    held |= {(a.tobytes(), b.tobytes(), c.tobytes()) for a, b, c in zip(alone.a, alone.b, alone.c, strict=True)}
    taken = [(a.tobytes(), b.tobytes(), c.tobytes()) for a, b, c in zip(found.a, found.b, found.c, strict=True)]
    assert set(taken) <= held
    assert len({a for a, _, _ in taken[:OF_A_TILE]}) == len({b for _, b, _ in taken[:OF_A_TILE]}) == OF_A_TILE


def test_a_validation_counts_a_sample_of_itself() -> None:
    found = validate(GPU, GPU, TILE, 30_000, 3)
    again = validate(GPU, GPU, TILE, 30_000, 3, threads=1)
    assert 250 < found.coverage.sampled <= SAMPLE
    assert found.coverage == again.coverage
    expected = sampled(TILE, 3, compared(TILE, 30_000))
    assert expected is not None
    assert found.coverage == cells_of(TILE, expected)
    assert validate(GPU, GPU, TILE, 30_000, 3, covered=False).coverage == NO_CELLS
    assert validate(GPU, GPU, TILE, 0, 3).coverage == NO_CELLS


def test_what_a_budget_did_not_reach_is_not_counted() -> None:
    asked: list[int] = []

    def stop() -> bool:
        asked.append(1)
        return len(asked) > 2

    found = validate(MODEL, MODEL, FMA, 2_000_000, 3, ["tie", "cancel"], stop=stop)
    assert found.stopped
    assert 0 < found.vectors < 2_000_000
    done = dict(found.families)
    order = [name for name, _, _ in plan(FMA, 2_000_000) if name in done]
    reached = sampled(FMA, 3, [ComparedRun(name, 0, done[name].vectors) for name in order])
    assert reached is not None
    assert found.coverage == cells_of(FMA, reached)


COUNTS = CellCounts(5, {"r": {"10": 0, "-3": 0, "2 to 4": 5}, "q": {"x": 5}}, {"r": "so"})


def test_counts_add_up() -> None:
    other = CellCounts(2, {"r": {"10": 2, "2 to 4": 0}, "p": {"y": 2}}, {"p": "no"})
    both = COUNTS + other
    assert both.cells == {"r": {"10": 2, "-3": 0, "2 to 4": 5}, "q": {"x": 5}, "p": {"y": 2}}
    assert (both.sampled, both.hit, both.reachable, both.unreachable) == (7, 4, 5, {"r": "so", "p": "no"})
    assert (COUNTS.dead, both.dead) == (("r: -3", "r: 10"), ("r: -3",))
    assert NO_CELLS + COUNTS == COUNTS


def test_counts_are_read_again() -> None:
    form = json.loads(json.dumps(COUNTS.form()))
    assert cell_counts_from_json(FileValue(Path("f"), "", form)) == COUNTS
    assert coverage_of({"coverage": form}) == COUNTS
    assert coverage_of({"vectors": 3}) == NO_CELLS


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 99}, "key version is 99; this package reads up to 1"),
        ({"sampled": 0}, "key sampled is no number of vectors"),
        ({"sampled": 6}, r"key cells\.r counts 5 vectors, but 6 were sampled"),
        ({"cells": {"r": {"x": 6}}}, r"key cells\.r\.x is 6, of 5 vectors"),
        ({"cells": {"specials": {"x": -1}}}, "is -1"),
        ({"cells": []}, "must be a table"),
        ({"unreachable": {"r": 3}}, "must be a text"),
    ],
)
def test_counts_that_do_not_add_up_are_refused(change: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        cell_counts_from_json(FileValue(Path("f"), "", COUNTS.form() | change))


def test_what_is_told_of_it() -> None:
    assert list(coverage_lines({"x": NO_CELLS})) == []
    assert coverage_json(NO_CELLS) == {}
    assert list(coverage_lines({"x": COUNTS})) == [
        "coverage: 2 of 4 cells that the formats can reach, by 5 sampled vectors",
        "dead cells, which no sampled vector reached: r: -3; r: 10",
    ]
    other = CellCounts(5, {"r": {"10": 0, "-3": 5}})
    assert list(coverage_lines({"x": COUNTS, "y": other, "z": NO_CELLS})) == [
        "coverage: 3 of 6 cells that the formats can reach, by 10 sampled vectors of 2 instructions and control states",
        "dead cells, which no sampled vector reached: r: 10 (in 2); r: -3 (in 1)",
    ]
    many = CellCounts(1, {"r": {str(n): 0 for n in range(20)}})
    assert list(coverage_lines({"x": many}))[1].endswith(f"; and {20 - MOST_DEAD} more (--json names all)")
    assert coverage_json(COUNTS)["dead"] == ["r: -3", "r: 10"]
