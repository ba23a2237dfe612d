"""Codes of all lanes held as those that differ, and vectors placed many at a time: the same as written out."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmaprobe.catalog.lookup import instruction
from mmaprobe.devices.base import open_device
from mmaprobe.probing.session.bench import Bench
from mmaprobe.probing.session.codes import Codes, rows
from mmaprobe.probing.session.exact_values import UnrepresentableError
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.session.vectors import pack

LANES = st.lists(st.integers(0, 2), min_size=1, max_size=9)
PLACED = ["mma.m16n8k16.f32.f16.f16.f32", "mma.m8n8k4.f64.f64.f64.f64", "mma.sp.m16n8k32.f32.f16.f16.f32"]


@given(LANES, st.integers(0, 3), st.integers(0, 8), st.integers(0, 3))
def test_codes_are_equal_where_every_lane_is(lanes: list[int], rest: int, lane: int, code: int) -> None:
    """However they were made: listed, by what differs from any code, or one lane at a time."""
    listed = Codes.listed(lanes)
    assert list(listed) == lanes
    assert [listed[i] for i in range(len(listed))] == lanes
    assert Codes.of(len(lanes), rest, dict(enumerate(lanes))) == listed
    put, lane = listed.put(lane % len(lanes), code), lane % len(lanes)
    assert put == Codes.listed([*lanes[:lane], code, *lanes[lane + 1 :]])
    assert hash(put) == hash(Codes.listed(list(put)))


def test_rows_hold_codes_of_64_bits() -> None:
    most = (1 << 64) - 1
    made = [Codes.of(5, 0, {3: most}), Codes(5, most), Codes.listed([1, 2, 3, 4, 5])]
    np.testing.assert_array_equal(rows(made, np.uint64), np.array([list(each) for each in made], np.uint64))


@pytest.mark.parametrize("name", PLACED)
def test_vectors_placed_are_those_of_their_terms(name: str) -> None:
    """At c and at lanes, with zeros or ones elsewhere."""
    session = asking("sm_80", name)
    values = (Fraction(8), Fraction(-8), Fraction(1, 2))
    places = [("c", 0, 1), (1, "c", 3), (3, 2, 0)]
    for rest in (0, 1):
        placed = session.placed(values, places, rest)
        assert placed == [session.vector(dict(zip(place, values, strict=True)), rest) for place in places]
        np.testing.assert_array_equal(pack(session.instruction, placed).a[0], list(placed[0].a))


def test_a_value_that_c_lacks_is_named_where_it_is_placed_there() -> None:
    session = asking("sm_90a", "mma.m16n8k16.f16.f16.f16.f16")
    fine = Fraction(1, 1 << 30)
    assert session.placed((fine,), [(0,)])
    with pytest.raises(UnrepresentableError, match="f16 has no"):
        session.placed((fine,), [("c",)])


def test_scales_say_what_operands_cannot() -> None:
    session = asking("sm_120a", "mma.m16n8k64.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0")
    value = Fraction(1 << 20)
    assert session.placed((value,), [(5,)]) == [session.vector({5: value})]


def asking(architecture: str, name: str) -> ProbeSession:
    made = instruction(name, architecture)
    return ProbeSession(Bench(open_device(f"model:{architecture}"), made), "summation_tree")
