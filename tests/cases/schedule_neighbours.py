"""Every field of a schedule moved to its neighbours: of kernels those of the certificate, of regions those of here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cache
from typing import Any

import numpy as np

from mmaprobe.derivation.schedules.certificate import EQUAL, certify, neighbours
from mmaprobe.derivation.schedules.integer_hypotheses import beside_sums
from mmaprobe.derivation.schedules.values import Formats
from mmaprobe.errors import UsageError
from mmaprobe.parameters.described import choices
from mmaprobe.parameters.schedule import Bands, GemmKernel, Ranges, Region, Schedule

TO_SIDE = 700
"""Lengths of an axis up to which all are compared."""
TO_LENGTHS = 6
"""Lengths of a range up to which all K are compared."""


def moved(schedule: Schedule) -> Iterator[tuple[str, str, Schedule]]:
    """Field, value, and the schedule with that field moved; what the record refuses is left out."""
    for path, value, sums in () if schedule.integers is None else beside_sums(schedule.integers):
        try:
            yield f"integers.{path}", value, replace(schedule, integers=sums)
        except UsageError:
            continue
    for number, kernel in enumerate(schedule.kernels):
        for place, name, value, other in neighbours(kernel, _formats(schedule).sums):
            kernels = (*schedule.kernels[:number], other, *schedule.kernels[number + 1 :])
            yield f"{kernel.name}.{place}.{name}", str(value), replace(schedule, kernels=kernels)
        for value in _near(kernel.ranges, "tile", kernel.ranges.tile):
            try:
                other = replace(kernel, ranges=replace(kernel.ranges, tile=value))
            except UsageError:
                continue
            kernels = (*schedule.kernels[:number], other, *schedule.kernels[number + 1 :])
            yield f"{kernel.name}.ranges.tile", str(value), replace(schedule, kernels=kernels)
    for number, region in enumerate(schedule.regions):
        for path, value, other in _of_record(region):
            regions = (*schedule.regions[:number], other, *schedule.regions[number + 1 :])
            try:
                yield f"regions.{number}.{path}", str(value), replace(schedule, regions=regions)
            except UsageError:
                continue


def _of_record(record: Any) -> Iterator[tuple[str, Any, Any]]:
    """Fields of rows, columns and blocks, moved."""
    for each in fields(record):
        value = getattr(record, each.name)
        if hasattr(value, "__dataclass_fields__"):
            below = _of_record(value)
        else:
            below = (("", new, new) for new in _near(record, each.name, value))
        for path, new, made in below:
            try:
                changed = replace(record, **{each.name: made})
            except UsageError:
                continue
            yield f"{each.name}.{path}".rstrip("."), new, changed


def _near(record: Any, name: str, value: Any) -> list[Any]:
    if isinstance(value, bool) or value is None or name == "kernel":
        return []
    if isinstance(value, int):
        return [each for each in (value - 1, value + 1) if each >= 0]
    if isinstance(value, tuple):
        shorter = [value[:i] + value[i + 1 :] for i in range(len(value))] if len(value) > 1 else []
        return shorter + [
            (*value[:i], value[i] + step, *value[i + 1 :])
            for i in range(len(value))
            for step in (-1, 1)
            if value[i] + step >= 0 and value[i] + step not in value
        ]
    return [each for each in choices(record.__class__, name) if each != value]


def shown_equal(p: Schedule, q: Schedule) -> str:
    """Why two schedules that differ in one field give the same bits; empty where that is not shown."""
    for one, two in zip(p.kernels, q.kernels, strict=True):
        if one != two:
            return _equal_kernels(one, two, _formats(p))
    bands = [(x, y) for one, two in zip(p.regions, q.regions, strict=True) for x, y in _axes(one, two) if x != y]
    if (
        len(p.regions) != len(q.regions)
        or not bands
        or any((x.of(n) != y.of(n)).any() for x, y in bands for n in range(TO_SIDE))
    ):
        return ""
    return f"the same places of every axis up to {TO_SIDE - 1}"


def _axes(one: Region, two: Region) -> list[tuple[Bands, Bands]]:
    return (
        [(one.rows, two.rows), (one.columns, two.columns)] if (one.kernel, one.rest) == (two.kernel, two.rest) else []
    )


def _formats(schedule: Schedule) -> Formats:
    return Formats(schedule.a, schedule.b, schedule.d)


@cache
def _said(kernel: GemmKernel, formats: Formats) -> list[str]:
    """What the certificate says of each neighbour without an answer."""
    return [each.why for each, _ in certify(kernel, (), (), np.ones((1, 1), bool), formats)]


def _equal_kernels(one: GemmKernel, two: GemmKernel, formats: Formats) -> str:
    if one.ranges.cut == "stream_k":  # how K is cut is no reason why another field is without effect
        plain = Ranges("uniform", 8)
        same = one.ranges == two.ranges
        return _equal_kernels(replace(one, ranges=plain), replace(two, ranges=plain), formats) if same else ""
    for (place, name, _, other), why in zip(neighbours(one, formats.sums), _said(one, formats), strict=True):
        if other == two and why == EQUAL.get((place, name)):
            return why
    same = replace(two, ranges=one.ranges) == one
    if same and all(one.ranges.of(k) == two.ranges.of(k) for k in range(TO_LENGTHS * (one.ranges.length or 1))):
        return f"the same ranges of every K below {TO_LENGTHS} lengths"
    return ""
