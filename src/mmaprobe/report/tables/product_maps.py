"""Which orders a product adds in at which shape, as lines and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mmaprobe.derivation.schedules.mapping import (
    AxisChange,
    MappedOrder,
    MappedShape,
    ProductMap,
    RowWitness,
    axis_changes,
    row_witness,
)
from mmaprobe.report.fitted import FittedTable
from mmaprobe.report.tables.listing import table
from mmaprobe.report.tables.schedules import order_words
from mmaprobe.showing import counted
from mmaprobe.validation.products.comparing import named

PARTS = 3
"""Orders of one shape that are named with their shares."""


def letters(found: ProductMap) -> dict[int, str]:
    """A letter for each order, in the order of the shapes: a, ..., z, a1, ..."""
    seen = list(dict.fromkeys(number for row in found.rows for number in row.elements()))
    return {number: chr(ord("a") + i % 26) + (str(i // 26) if i >= 26 else "") for i, number in enumerate(seen)}


def map_lines(found: ProductMap) -> Iterator[str | FittedTable]:
    """For a person."""
    called = letters(found)
    counts = (counted(len(found.rows), "shape"), counted(len(called), "order"), counted(found.calls, "call"))
    yield f"{found.product}: {', '.join(counts)}, seed {found.seed}"
    rows = [_row(row, called) for row in found.rows]
    threads = ["threads"] if any(row.threads for row in found.rows) else []
    yield table(rows, (*threads, "shape", "orders", "rows", "schedule"))
    for number, letter in called.items():
        yield f"{letter}: {_order(found.orders[number])}"
    yield from (_change(each, called) for each in axis_changes(found))
    yield from _batches(found)
    if found.absent:
        yield f"not asked: {len(found.absent)}, the first {found.absent[0]}"
    if found.unread:
        yield f"not every order was read: {found.unread}"


def _row(row: MappedShape, called: dict[int, str]) -> dict[str, Any]:
    total, parts = row.number.size, row.elements()
    said = [f"{called[each]} {100 * count / total:.3g} %" for each, count in list(parts.items())[:PARTS]]
    more = f" and {len(parts) - PARTS} more" if len(parts) > PARTS else ""
    kinds = len(row.rows)
    return {
        "threads": row.threads or None,
        "shape": named(row.shape),
        "orders": ", ".join(said) + more,
        "rows": "all alike" if kinds == 1 else f"{kinds} kinds",
        "schedule": " ".join(row.schedules) or None,
    }


def _order(order: MappedOrder) -> str:
    ks = ", ".join(map(str, sorted(order.seen)))
    if not order.read:
        return f"not read; seen at K = {ks}"
    if not order.kernels:
        return f"an order that no rule tried gives; seen at K = {ks}; mmaprobe tree reads it"
    more = f", or one of {len(order.kernels) - 1} rules that are alike there" if len(order.kernels) > 1 else ""
    return f"{order_words(order.kernels[0])}{more}; seen at K = {ks}"


def _change(change: AxisChange, called: dict[int, str]) -> str:
    if change.at is None:
        return f"{change.axis} changes no order here"
    before, after = change.at
    return f"{change.axis} changes orders: {_at(before, called)}, {_at(after, called)}"


def _at(row: MappedShape, called: dict[int, str]) -> str:
    return f"{', '.join(sorted(called[each] for each in row.elements()))} at {named(row.shape)}{_threads(row.threads)}"


def _threads(count: int) -> str:
    return f" on {counted(count, 'thread')}" if count else ""


def _batches(found: ProductMap) -> Iterator[str]:
    """Whether a row has the same bits whatever M is and wherever it stands."""
    for (threads, n, k), rows in found.batches():
        where = f"N = {n}, K = {k}{_threads(threads)}"
        witness = row_witness(rows)
        if witness is None:
            every = ", ".join(str(row.shape[0]) for row in rows)
            yield f"{where}: a row has the same bits at every place of M = {every}"
            continue
        (shape, i, j), (other, row, column) = witness.places
        yield (
            f"{where}: not batch-invariant: the same row and column give {witness.answers[0]:#x} as D[{i}, {j}] of "
            f"{named(shape)} and {witness.answers[1]:#x} as D[{row}, {column}] of {named(other)}"
        )


def map_json(found: ProductMap) -> dict[str, Any]:
    """For a program: a row a shape, every order with the plainest rule, every batch with its witness."""
    called = letters(found)
    return {
        "product": found.product,
        "seed": found.seed,
        "calls": found.calls,
        "rows": [
            {"threads": row.threads or None, "m": row.shape[0], "n": row.shape[1], "k": row.shape[2],
             "orders": {called[each]: count for each, count in row.elements().items()},
             "kinds_of_rows": len(row.rows), "schedules": list(row.schedules)}
            for row in found.rows
        ],
        "orders": [
            {"order": letter, "k": sorted(found.orders[number].seen), "read": found.orders[number].read,
             "rule": order_words(found.orders[number].kernels[0]) if found.orders[number].kernels else None,
             "rules_alike": len(found.orders[number].kernels)}
            for number, letter in called.items()
        ],
        "batches": [
            {"threads": threads or None, "n": n, "k": k, "m": [row.shape[0] for row in rows],
             "witness": _witness_json(row_witness(rows))}
            for (threads, n, k), rows in found.batches()
        ],
        "absent": found.absent,
        "unread": found.unread,
    }  # fmt: skip


def _witness_json(witness: RowWitness | None) -> dict[str, Any] | None:
    """None: batch-invariant, as far as was asked."""
    if witness is None:
        return None
    return {
        "places": [{"shape": list(shape), "row": i, "column": j} for shape, i, j in witness.places],
        "answers": list(map(hex, witness.answers)),
        "x": " ".join(map(hex, witness.x)),
        "y": " ".join(map(hex, witness.y)),
    }
