"""What came of holding one whole matrix product against another, as lines and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mmaprobe import formats
from mmaprobe.models.hexfloat import code_value
from mmaprobe.report.fitted import FittedTable
from mmaprobe.report.tables.listing import table
from mmaprobe.showing import counted
from mmaprobe.validation.products.comparing import ComparedCall, named, runs
from mmaprobe.validation.products.partial_sums import LanePlace, PartialSum
from mmaprobe.validation.products.smallest import Smallest
from mmaprobe.validation.products.verdict import ProductVerdict

MOST_RUNS = 4
"""Runs of rows or columns that are named."""
MOST_CHANGES = 12
"""Fields that two schedules say otherwise of which each is a line; all of them are in the JSON."""
MOST_LANES = 40
"""Live lanes of which each is a line."""

Printed = str | FittedTable


def verdict_lines(found: ProductVerdict) -> Iterator[Printed]:
    """For a person, line by line and table by table."""
    compared = found.comparison
    yield f"P  {_called(found.p.name, found.p.version)}"
    yield f"Q  {_called(found.q.name, found.q.version)}"
    equal = "equal" if compared.calls else "nothing was compared"
    yield (
        f"{'they differ' if compared.differing else equal}: {compared.differing:,} of {compared.elements:,} elements, "
        f"{counted(len(compared.calls), 'call')}, seed {compared.seed}"
    )
    yield table(_by_shape(compared.calls), ("shape", "elements", "differing", "values", "rows", "columns"))
    if compared.absent:
        yield f"not compared: {len(compared.absent)}, the first {compared.absent[0]}"
    yield from _change_lines(found)
    if found.least is not None:
        yield from _smallest_lines(found, found.least)


def verdict_line(found: ProductVerdict) -> str:
    """Whether one product is the other, in a line; where not, with the command that shows how they differ."""
    compared = found.comparison
    if not compared.calls:
        return f"nothing was compared: {compared.absent[0]}"
    wrong = f"{compared.differing:,} of {compared.elements:,} elements differ"
    if not compared.differing:
        return f"equal to {found.q.name}: {wrong}"
    return f"not {found.q.name}: {wrong}; see: mmaprobe gemm diff '{found.p.name}' {found.q.name}"


def _called(name: str, version: str) -> str:
    return f"{name} (version {version})" if version else name


def _by_shape(calls: Sequence[ComparedCall]) -> list[dict[str, Any]]:
    """A row a shape: of which values elements differ, and where."""
    rows = []
    for shape in dict.fromkeys(each.shape for each in calls):
        own = [each for each in calls if each.shape == shape]
        wrong = [each for each in own if each.differing]
        rows.append(
            {
                "shape": named(shape),
                "elements": sum(each.elements for each in own),
                "differing": sum(each.differing for each in own),
                "values": " ".join(dict.fromkeys(each.family for each in wrong)) or None,
                "rows": places([i for each in wrong for i in each.rows], shape[0]),
                "columns": places([j for each in wrong for j in each.columns], shape[1]),
            }
        )
    return rows


def places(found: Sequence[int], length: int) -> str | None:
    """Rows or columns as runs; None where there is none."""
    every = sorted(set(found))
    if len(every) == length:
        return "all"
    said = [str(each.start) if len(each) == 1 else f"{each.start} to {each.stop - 1}" for each in runs(every)]
    more = f" and {len(said) - MOST_RUNS} more" if len(said) > MOST_RUNS else ""
    return ", ".join(said[:MOST_RUNS]) + more or None


def _change_lines(found: ProductVerdict) -> Iterator[Printed]:
    if not found.changes:
        return
    fields = counted(len(found.changes), "field") if len(found.changes) > 1 else "one field"
    yield f"the schedules say {fields} otherwise" + (
        f", of which {MOST_CHANGES} are" if len(found.changes) > MOST_CHANGES else ""
    )
    rows = [{"field": each.field, "P": each.p, "Q": each.q} for each in found.changes[:MOST_CHANGES]]
    yield table(rows, ("field", "P", "Q"))


def _smallest_lines(found: ProductVerdict, least: Smallest) -> Iterator[Printed]:
    (i, j), live = least.at, least.live
    else_ = "so is all else" if least.beside is None else "other rows and columns are random: without them both agree"
    yield (
        f"smallest product found: {named(least.shape)}, D[{i}, {j}]; of row {i} of A and column {j} of B all but "
        f"{len(live)} of {len(least.x)} lanes are 0, and {else_}"
    )
    fmt = {name: formats.get(getattr(found.p, name)) for name in "abd"}
    first, second = (f"{each:#x} = {code_value(fmt['d'], each)}" for each in least.answers)
    rows = [
        {
            "lane": each.lane,
            "a": code_value(fmt["a"], each.a),
            "b": code_value(fmt["b"], each.b),
            "P so far": code_value(fmt["d"], each.sums[0]),
            "Q so far": code_value(fmt["d"], each.sums[1]),
            "": "<- differ" if each.differ else "",
        }
        for each in found.sums[:MOST_LANES]
    ]
    yield table(rows, ("lane", "a", "b", "P so far", "Q so far", ""))
    yield f"P gives {first}, Q gives {second}"
    yield from _where(found.sums)


def _where(sums: Sequence[PartialSum]) -> Iterator[str]:
    """What each schedule does with the first lane after which the sums are two."""
    wrong = next((each for each in sums if each.differ), None)
    if wrong is None:
        yield "up to each live lane alone both agree: what differs is what comes of the zeros between them"
        return
    yield f"the first partial sum that differs is that with lane {wrong.lane}"
    for name, place in zip("PQ", wrong.places, strict=True):
        if place is not None:
            yield f"  {name} adds it by kernel {place.kernel}: {place}"


def verdict_json(found: ProductVerdict) -> dict[str, Any]:
    """For a program: every call, every field that is said otherwise, the smallest product with its codes."""
    compared, least = found.comparison, found.least
    return {
        "p": found.p.name,
        "q": found.q.name,
        "versions": [found.p.version, found.q.version],
        "seed": compared.seed,
        "elements": compared.elements,
        "differing": compared.differing,
        "exit_code": found.exit_code,
        "rows": [
            {"shape": list(each.shape), "values": each.family, "elements": each.elements, "differing": each.differing,
             "rows": list(each.rows), "columns": list(each.columns)}
            for each in compared.calls
        ],
        "absent": compared.absent,
        "changes": [{"field": each.field, "p": each.p, "q": each.q} for each in found.changes],
        "smallest": None if least is None else _smallest_json(found, least),
    }  # fmt: skip


def _smallest_json(found: ProductVerdict, least: Smallest) -> dict[str, Any]:
    a, b = least.operands()
    if least.beside is None:
        a, b = a[least.at[0]][None], b[:, least.at[1]][:, None]
    return {
        "shape": list(least.shape),
        "at": list(least.at),
        "answers": [hex(each) for each in least.answers],
        "a": [list(map(hex, row)) for row in a.tolist()],
        "b": [list(map(hex, column)) for column in b.T.tolist()],
        "whole": least.beside is not None,
        "lanes": [
            {"lane": each.lane, "a": hex(each.a), "b": hex(each.b), "sums": list(map(hex, each.sums)),
             "differ": each.differ, "places": [_place_json(place) for place in each.places]}
            for each in found.sums
        ],
    }  # fmt: skip


def _place_json(place: LanePlace | None) -> dict[str, Any] | None:
    if place is None:
        return None
    first, last = place.lanes.start, place.lanes.stop - 1
    return {"kernel": place.kernel, "range": place.number, "first": first, "last": last,
            "accumulator": place.accumulator, "step": place.step}  # fmt: skip
