"""The algebra of layouts: its laws on random layouts, and what CuTe's headers print.

``cute_layouts/layouts.json`` is the output of ``cute_layouts/print_layouts.py`` (CUTLASS 7107b0553, on a CPU).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st

from mmaprobe.catalog import layout_algebra as algebra
from mmaprobe.catalog import layouts as catalog
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.layout_algebra import (
    Composed,
    Layout,
    Swizzle,
    coalesce,
    collision,
    compact,
    complement,
    compose,
    composition,
    coordinate,
    fit,
    is_bijection,
    is_injective,
    left_inverse,
    logical_divide,
    logical_product,
    parse,
    right_inverse,
)  # fmt: skip
from mmaprobe.catalog.shared_memory import shared_matrix
from mmaprobe.errors import UsageError

SIZES = (1, 2, 2, 3, 4, 6)
laws = settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.filter_too_much])


@st.composite
def made(draw: Any, most: int = 4, kinds: tuple[str, ...] = ("compact", "gaps", "any"), least: int = 1) -> Layout:
    """A layout: strides of a permuted array, the same with gaps, or any; its leaves bracketed somehow."""
    sizes = draw(st.lists(st.sampled_from(SIZES), min_size=least, max_size=most))
    kind, strides, step = draw(st.sampled_from(kinds)), [0] * len(sizes), 1
    for place in draw(st.permutations(range(len(sizes)))):
        step *= draw(st.sampled_from((1, 2, 3))) if kind == "gaps" else 1
        strides[place] = draw(st.sampled_from((0, 1, 2, 3, 4, 6, 12))) if kind == "any" else step
        step *= sizes[place]
    cut = draw(st.integers(0, len(sizes)))
    if cut < 2:
        return Layout(tuple(sizes), tuple(strides)) if len(sizes) > 1 else Layout(sizes[0], strides[0])
    return Layout((tuple(sizes[:cut]), *sizes[cut:]), (tuple(strides[:cut]), *strides[cut:]))


def offsets(layout: Layout | Composed) -> list[int]:
    plain = layout.layout if isinstance(layout, Composed) else layout
    return list(map(int, layout(np.arange(plain.size))))


def possible(operation: Callable[..., Any], *arguments: Any) -> Any:
    """What an operation gives; where it refuses, the example does not count, and the error names every layout."""
    try:
        return operation(*arguments)
    except UsageError as error:
        said = str(error)
    assert [each for each in arguments if isinstance(each, Layout) and str(each) not in said] == []
    return reject()


@laws
@given(made())
def test_coordinates_and_sizes(layout: Layout) -> None:
    every = [layout(number) for number in range(layout.size)]
    assert [layout(coordinate(layout.shape, number)) for number in range(layout.size)] == every == offsets(layout)
    assert layout.cosize == max(every) + 1
    assert layout.rank == len(layout.modes)
    assert layout.depth == (0 if isinstance(layout.shape, int) else 1 + max(mode.depth for mode in layout.modes))
    assert parse(str(layout)) == layout


@laws
@given(made(), st.integers(1, 3))
def test_coalesce_keeps_the_function_and_is_idempotent(layout: Layout, modes: int) -> None:
    once = coalesce(layout)
    assert offsets(once) == offsets(layout)
    assert coalesce(once) == once == fit(offsets(layout))
    assert all(size > 1 for size, _ in once.leaves) or once == Layout(1, 0)
    assume(modes <= layout.rank)
    by_mode = coalesce(layout, (1,) * modes)
    assert [offsets(mode) for mode in by_mode.modes] == [offsets(mode) for mode in layout.modes]


@laws
@given(made(), made(2))
def test_composition_is_one_after_the_other(outer: Layout, inner: Layout) -> None:
    result = possible(compose, outer, inner)
    assert offsets(result) == [outer(offset) for offset in offsets(inner)]
    assert inner.rank == 1 or [mode.size for mode in result.modes] == [mode.size for mode in inner.modes]
    assert compose(outer, compact(outer.size)) == coalesce(outer)
    assert offsets(compose(compact(inner.cosize), inner)) == offsets(inner)


def test_composition_refuses_where_modes_carry() -> None:
    """(2,2):(1,1) has the offset 2 twice over 1 + 1, which is the other mode of (2,2):(2,1); CuTe gives (2,2):(2,2)."""
    with pytest.raises(UsageError, match=re.escape("(2,2):(2,1) with (2,2):(1,1): its modes add up to index 2 of")):
        compose(Layout((2, 2), (2, 1)), Layout((2, 2), (1, 1)))


@laws
@given(made(4, ("compact", "gaps")), made(3, ("compact",)), made(2, ("compact",)))
def test_composition_is_associative(first: Layout, second: Layout, third: Layout) -> None:
    inside = possible(compose, second, third)
    outside = possible(compose, first, second)
    assert offsets(possible(compose, outside, third)) == offsets(possible(compose, first, inside))


@laws
@given(made(3), st.integers(1, 100))
def test_a_complement_fills_the_rest_without_overlap(layout: Layout, target: int) -> None:
    rest = possible(complement, layout, target)
    real = Layout(*zip(*([leaf for leaf in layout.leaves if leaf[1]] or [(1, 0)]), strict=True))
    every = sorted(one + other for one in offsets(real) for other in offsets(rest))
    assert every == list(range(len(every))), "disjoint, and no gap"
    period = max([size * step for size, step in layout.leaves if size > 1 and step], default=1)
    assert len(every) == -(-target // period) * period
    assert all(one < other for one, other in zip(offsets(rest), offsets(rest)[1:], strict=False)), "ordered"
    assert rest.cosize <= len(every)
    assert len(every) <= rest.size * layout.size


@laws
@given(made(), made(2))
def test_a_division_holds_each_offset_once_more(layout: Layout, tile: Layout) -> None:
    parts = possible(logical_divide, layout, tile)
    rest = complement(tile, layout.size)
    assert [parts(i, j) for j in range(rest.size) for i in range(tile.size)] == [
        layout(tile(i) + rest(j)) for j in range(rest.size) for i in range(tile.size)
    ]
    if is_injective(tile):
        assert sorted(offsets(parts)) == sorted(offsets(layout))


@laws
@given(made(3, ("compact", "gaps")), made(2, ("compact", "gaps")))
def test_a_product_is_copies_where_the_complement_has_room(block: Layout, tiler: Layout) -> None:
    result = possible(logical_product, block, tiler)
    places = [result(0, j) for j in range(tiler.size)]
    assert offsets(result) == [one + place for place in places for one in offsets(block)]
    room = complement(block, block.size * tiler.cosize)
    assert places == [room(tiler(j)) for j in range(tiler.size)]
    assert is_injective(result)


@pytest.mark.parametrize("kind", ["divide", "product"])
@laws
@given(
    rows=made(2, ("compact",)), columns=made(2, ("compact",)), one=made(1, ("compact",)), other=made(1, ("compact",))
)
def test_zipped_tiled_and_flat_are_one_function(
    kind: str, rows: Layout, columns: Layout, one: Layout, other: Layout
) -> None:
    layout = algebra.joined(rows, Layout(columns.shape, algebra.compose(Layout(64, 64), columns).stride))
    tiler = (one, other.size)
    forms = {name: getattr(algebra, f"{name}_{kind}") for name in ("logical", "zipped", "tiled", "flat")}
    first = possible(lambda: forms["logical"](layout, tiler))
    assert [str(mode) for mode in first.modes] == [
        str(forms["logical"](mode, by)) for mode, by in zip(layout.modes, tiler, strict=True)
    ]
    zipped = forms["zipped"](layout, tiler)
    (a, b), (p, q) = zipped.modes[0].modes, zipped.modes[1].modes
    assert first == algebra.joined(algebra.joined(a, p), algebra.joined(b, q))
    assert forms["tiled"](layout, tiler) == algebra.joined(algebra.joined(a, b), p, q)
    assert forms["flat"](layout, tiler) == algebra.joined(a, b, p, q)


@laws
@given(*[made(2, ("compact",), 2).filter(lambda layout: layout.rank == 2)] * 2)
def test_blocked_and_raked_differ_in_which_runs_faster(block: Layout, tiler: Layout) -> None:
    blocked, raked = (possible(f, block, tiler) for f in (algebra.blocked_product, algebra.raked_product))
    one, place = logical_product(block, tiler).modes
    i0, i1, j0, j1 = np.indices((*block.shape, *tiler.shape))  # type: ignore[misc]
    wanted = one(i0, i1) + place(j0, j1)
    assert (blocked((i0, j0), (i1, j1)) == wanted).all()
    assert (raked((j0, i0), (j1, i1)) == wanted).all()


@laws
@given(made())
def test_inverses(layout: Layout) -> None:
    right = right_inverse(layout)
    assert [layout(offset) for offset in offsets(right)] == list(range(right.size))
    if is_bijection(layout):
        assert right.size == layout.size
        assert left_inverse(layout) == right
    left = possible(left_inverse, layout)
    assert [left(offset) for offset in offsets(layout)] == list(range(layout.size))


@laws
@given(made(), st.sampled_from([None, Swizzle(1, 0, 1), Swizzle(2, 1, -2), Swizzle(2, 0, 3)]))
def test_proofs_agree_with_counting(layout: Layout, swizzle: Swizzle | None) -> None:
    whole = Composed(swizzle, 0, layout) if swizzle else layout
    every = offsets(whole)
    assert is_bijection(whole) == (sorted(every) == list(range(layout.size)))
    pair = collision(whole)
    assert (pair is None) == (len(set(every)) == len(every)) == is_injective(whole)
    if pair:
        assert pair[0] != pair[1]
        assert whole(pair[0]) == whole(pair[1])


def test_large_layouts_are_proved_without_counting() -> None:
    huge = parse("((1048576,1024),1048576):((1024,1),1073741824)")
    assert isinstance(huge, Layout)
    assert is_bijection(huge)
    assert is_injective(huge)
    assert collision(parse("(1048576,1048576):(1,1048575)")) == ((1048575, 0), (0, 1))  # type: ignore[arg-type]
    assert collision(parse("(1048576,1048576):(1,0)")) == ((0, 0), (0, 1))  # type: ignore[arg-type]


@laws
@given(st.integers(0, 3), st.integers(0, 3), st.integers(-4, 4), st.integers(1, 300))
def test_a_swizzle_is_its_own_inverse(bits: int, base: int, shift: int, count: int) -> None:
    assume(abs(shift) >= bits)
    swizzle = Swizzle(bits, base, shift)
    every = [swizzle(offset) for offset in range(1 << base + bits + abs(shift))]
    assert [swizzle(offset) for offset in every] == list(range(len(every)))
    assert list(swizzle(np.arange(len(every)))) == every
    if swizzle.keeps(count):
        assert sorted(map(swizzle, range(count))) == list(range(count))
    assert parse(str(swizzle)) == swizzle
    assert parse(str(Composed(swizzle, 3, compact((2, 4))))) == Composed(swizzle, 3, compact((2, 4)))


def test_a_founding_table_of_a_swizzle_breaks_its_own_definition() -> None:
    """It says of bits 2, base 0, shift 2: bits [3:2] are XORed into bits [1:0]; five of its rows do not."""
    table = {0: 0, 1: 1, 4: 4, 5: 5, 8: 10, 9: 11, 12: 14, 16: 20, 20: 16}
    defined = {offset: offset ^ (offset >> 2 & 3) for offset in table}
    assert [offset for offset in table if table[offset] != defined[offset]] == [4, 5, 12, 16, 20]
    assert {offset: Swizzle(2, 0, 2)(offset) for offset in table} == defined


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: compose(parse("(6,2):(1,100)"), parse("4:4")), "(6,2):(1,100) with 4:4: its offset 12 is outside"),
        (lambda: compose(parse("(4,6):(6,1)"), parse("(2,3):(1,2)")), "(4,6):(6,1) with (2,3):(1,2): 3:2 does not"),
        (lambda: compose(parse("(6,4):(1,100)"), parse("4:4")), "(6,4):(1,100) with 4:4: 4:4 does not divide"),
        (lambda: complement(parse("(2,2):(1,3)"), 12), "(2,2):(1,3) in 12:1: stride 3 is no multiple of 2"),
        (lambda: logical_divide(parse("7:1"), 4), "7:1 divided by 4:1: composition of 7:1 with (4,2):(1,4)"),
        (lambda: logical_divide(parse("(8,7):(7,1)"), (4, 2)), "7:1 divided by 2:1"),
        (lambda: logical_divide(parse("8:1"), (4, 2)), "division of 8:1 by mode with <4, 2>: it has 1 mode"),
        (lambda: logical_product(parse("(2,2):(1,3)"), 2), "(2,2):(1,3) times 2:1"),
        (lambda: left_inverse(parse("(4,3):(1,2)")), "(2,0) and (0,1) have one offset"),
        (lambda: left_inverse(parse("(2,2):(2,5)")), "stride 5 is no multiple of 2"),
        (lambda: coalesce(parse("8:1"), (1, 1)), "8:1 has 1 mode, fewer than (1,1)"),
        (lambda: composition(Swizzle(1, 0, 1), 4), "Sw<1,0,1> has no modes; 4"),
        (lambda: parse("(4,3):(1,2)")(12), "(4,3):(1,2) has coordinates 0 to 11; 12 came"),
        (lambda: parse("(4,3):(1,2)")(4, 0), "4:1 has coordinates 0 to 3; 4 came"),
        (lambda: parse("(4,3):(1,2)")(1, 2, 0), "[1, 2, 0] is no coordinate of (4,3):(1,2)"),
        (lambda: Layout((2, 3), (1,)), "(2,3):(1): shape and stride are no tuples of one profile"),
        (lambda: Layout((), ()), "():(): shape and stride"),
        (lambda: parse("(0,2):(1,1)"), "sizes are at least 1"),
        (lambda: Swizzle(3, 0, 2), "Sw<3,0,2>: bits and base are at least 0"),
    ],
)
def test_what_there_is_not(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        call()


@laws
@given(st.text("()0123,: SwoL<>_", max_size=14))
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        found = parse(text)
    except UsageError:
        return
    assert parse(str(found)) == found


@pytest.mark.parametrize(
    "text", ["", "8", "8:", ":8", "(8:1", "8):1", "(8,):(1,)", "(,8):(1,1)", "(8 8):(1,1)", "8:1:1"]
)
def test_what_is_no_layout(text: str) -> None:
    with pytest.raises(UsageError, match="is no layout" if text != "(8 8):(1,1)" else "one profile"):
        parse(text)


# Numbers that CuTe prints

ROWS = json.loads((Path(__file__).parent / "cute_layouts" / "layouts.json").read_text(encoding="utf-8"))
OPERATIONS = sorted({row[0] for row in ROWS} - {"atom", "ALayout", "BLayout", "CLayout"})


def argument(of: Any) -> Any:
    return tuple(map(argument, of)) if isinstance(of, list) else int(of) if of.isdecimal() else parse(of)


def answer(name: str, arguments: list[Any]) -> str:
    """Ours, as CuTe prints it."""
    first = arguments[0]
    if name in ("size", "cosize", "rank", "depth"):
        return str(getattr(first, name))
    if name == "offsets":
        count = 256 if isinstance(first, Swizzle) else len(offsets(first))
        return " ".join(str(first(number)) for number in range(count))
    return str(getattr(algebra, name)(*arguments))


def breaks_its_rule(name: str, arguments: list[Any], said: Layout) -> bool:
    """Whether CuTe's answer, where we refuse, leaves the domain of a layout or is not what the operation means."""
    first, other = arguments[0], arguments[-1]
    if name == "composition":
        return other.cosize > first.size or offsets(said) != [first(offset) for offset in offsets(other)]
    if name == "complement":
        return {one + two for one in offsets(first) for two in offsets(said)} != set(range(other))
    if name == "left_inverse":
        return not is_injective(first)
    assert name.endswith("_divide")
    return sorted(offsets(said)) != sorted(offsets(first))


@pytest.mark.parametrize("name", OPERATIONS)
def test_equals_cute(name: str) -> None:
    """As text; where we refuse, CuTe rounded up or went outside, and its answer does not hold the rule."""
    rows = [row for row in ROWS if row[0] == name]
    equal = 0
    for _, arguments, said in rows:
        read = [argument(each) for each in arguments]
        try:
            assert answer(name, read) == said, arguments
            equal += 1
        except UsageError:
            found = parse(said)
            assert isinstance(found, Layout)
            assert breaks_its_rule(name, read, found), arguments
    assert equal >= 6


def test_there_are_enough_numbers() -> None:
    assert len(ROWS) >= 400
    assert len(OPERATIONS) == 20


OPERANDS = {"A": "a", "B": "b", "C": "d"}
OPCODES = {"SM7": "mma.sync.aligned", "SM8": "mma.sync.aligned", "SM9": "wgmma.mma_async.sync.aligned"}
FORMATS = {"F16F16": ("f16", "f16"), "TF32TF32": ("tf32", "tf32"), "F64F64": ("f64", "f64"), "S8S8": ("s8", "s8"),
           "S4S4": ("s4", "s4"), "U1U1": ("b1", "b1")}  # fmt: skip


IN_REGISTERS = [row for row in ROWS if row[0] in ("ALayout", "BLayout", "CLayout") and "SM70" not in row[1][0]
                and (row[0] != "BLayout" or "GMMA" not in row[1][0])]  # fmt: skip
"""Without Volta's, whose lanes are those of a quad pair, and the B of wgmma, which lies in shared memory."""


@pytest.mark.parametrize("row", IN_REGISTERS, ids=lambda row: f"{row[1][0]}.{row[0]}")
def test_fragments_are_the_layouts_that_cute_prints(row: tuple[str, list[str], str]) -> None:
    operand, (trait,), said = row
    m, n, k, d, ab = re.search(
        r"_(\d+)x(\d+)x(\d+)_(F32|F64|S32)([A-Z]+\d+[A-Z]+\d+?)(?:[FS](?:32|64))?_", trait
    ).groups()
    a, b = FORMATS[ab]
    opcode = OPCODES[trait[:3]]
    made = Instruction(
        opcode, opcode, "", int(m), int(n), int(k), a, b, d.lower(), d.lower(), modifiers=(("a", "regs"),)
    )
    found = catalog.layout(made, "", OPERANDS[operand[0]]).as_layout()
    theirs = parse(said)
    assert isinstance(theirs, Layout)
    assert str(found) == str(coalesce(theirs, (1, 1)))


@pytest.mark.parametrize("row", [row for row in ROWS if row[0] == "atom"], ids=lambda row: row[1][0])
def test_atoms_of_shared_memory_are_those_that_cute_prints(row: tuple[str, list[str], str]) -> None:
    """Of bytes: eight lines of the swizzle's width, along K or along MN."""
    along, width = re.search(r"Layout_(K|MN)_(?:SW)?(INTER|\d+)", row[1][0]).groups()  # type: ignore[union-attr]
    wide = 16 if width == "INTER" else int(width)
    lines = (8, wide) if along == "K" else (wide, 8)
    found = shared_matrix(*lines, 8, wide, major=f"{along.lower()}_major").layout
    theirs = parse(row[2])
    assert isinstance(theirs, Composed)
    assert (found.swizzle.bits and found.swizzle) == (theirs.swizzle.bits and theirs.swizzle)
    assert coalesce(found.layout, (1, 1)) == theirs.layout
    assert is_bijection(found)


def test_matrices_of_shared_memory_have_no_overlap() -> None:
    for major, width in [("k_major", 128), ("mn_major", 16), ("mn_major", 64), ("mn_major_32b", 128)]:
        assert is_bijection(shared_matrix(64, 64, 16, width, major=major).layout)
    assert not is_injective(shared_matrix(64, 64, 16, 128, sbo=512).layout)


@pytest.mark.parametrize(("text", "said"), [
    ("(" * 3000 + "1" + ")" * 3000 + ":" + "(" * 3000 + "1" + ")" * 3000, "is no layout"),
    ("Sw<3,99999999999,3> o 0 o (8,8):(8,1)", "reaches bits beyond the 64 of an offset"),
    ("Sw<0,0,-99999999999>", "reaches bits beyond the 64 of an offset"),
])  # fmt: skip
def test_a_hostile_text_costs_nothing(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse(text)
