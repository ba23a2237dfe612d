"""Schedules are told apart by stored witnesses: those that ship, and each from every neighbour of every field.

``tests/find_schedule_witnesses.py`` finds them.
"""

from __future__ import annotations

from itertools import combinations

import pytest

from cases.schedule_neighbours import moved, shown_equal
from cases.schedule_witnesses import held, read, witness
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
@pytest.mark.parametrize("name", held())
def test_every_neighbour_of_every_field_dies_or_is_equal(name: str) -> None:
    schedule = held()[name]
    stored = [witness(row) for row in HELD["witnesses"][name]]
    assert [each.answer(schedule) for each in stored] == [each.d for each in stored]
    left = [
        (path, value)
        for path, value, other in moved(schedule)
        if all(each.answer(other) == each.d for each in stored) and not shown_equal(schedule, other)
    ]
    assert left == []
