"""Schedules that ship are told apart by stored witnesses, from each other and from every neighbour of every field.

``tests/find_schedule_witnesses.py`` finds them.
"""

from __future__ import annotations

from itertools import combinations

import pytest

from cases.schedule_neighbours import moved, shown_equal
from cases.schedule_witnesses import read, witness
from mmaprobe.parameters.schedule import known_schedules, schedule_named

HELD = read()


def test_two_schedules_count_as_two_where_a_witness_separates_them() -> None:
    shipped = {name: schedule_named(name) for name in known_schedules()}
    alike = [
        (p, q)
        for p, q in combinations(shipped, 2)
        if (shipped[p].a, shipped[p].b, shipped[p].d) == (shipped[q].a, shipped[q].b, shipped[q].d)
    ]
    assert [tuple(row[:2]) for row in HELD["pairs"]] == alike
    for p, q, *row, other in HELD["pairs"]:
        one = witness(row)
        for name in (p, q):
            shipped[name].scope.check(*one.shape)
        assert (one.answer(shipped[p]), one.answer(shipped[q])) == (one.d, other), (p, q)
        assert one.d != other, (p, q)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", known_schedules())
def test_every_neighbour_of_every_field_dies_or_is_equal(name: str) -> None:
    schedule = schedule_named(name)
    held = [witness(row) for row in HELD["witnesses"][name]]
    assert [each.answer(schedule) for each in held] == [each.d for each in held]
    left = [
        (path, value)
        for path, value, other in moved(schedule)
        if all(each.answer(other) == each.d for each in held) and not shown_equal(schedule, other)
    ]
    assert left == []
