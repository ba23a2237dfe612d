"""Of a form, which stands for very many instructions: a few that show all of its sizes, placements and modifiers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mmaprobe.catalog.catalog import Form
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import forms, matches
from mmaprobe.catalog.modifiers import legal, moves_operands, resolve
from mmaprobe.catalog.row import Choice, Picks, Row
from mmaprobe.errors import UsageError

MIDDLE = 64
"""The N asked beside the smallest and the largest, which every family has."""
BETWEEN = ("lscale",)
"""Modifiers that are numbers, of which the smallest and the largest stand for those between."""


def variants(form: Form, architecture: str) -> tuple[Instruction, ...]:
    """The form's first instruction, then those that differ from it in one choice, each choice once.

    Of an axis that binds N: the smallest, ``MIDDLE`` and the largest N of each M (and CTA count); of any other axis
    every choice that the architecture has; of the modifiers taken by rule every value, of ``BETWEEN`` the two ends.
    """
    found = dict.fromkeys((form.first, *_by_axis(form, architecture), *_by_rule(form.first)))
    return tuple(found)


def asked(architecture: str, pattern: str) -> dict[str, tuple[Instruction, ...]]:
    """Of every form of an architecture the variants that match a glob, by the id of its first instruction that does.

    Without those whose modifiers feed one place of the tile from another: no layout is a product of matrices then.
    """
    return {
        form.first.id: tuple(
            made for made in variants(form, architecture) if matches(made, pattern) and not moves_operands(made)
        )
        for form in forms(architecture, pattern)
    }


def _by_axis(form: Form, architecture: str) -> Iterator[Instruction]:
    row: Row = form.row
    for axis in range(row.listed, len(row.axes)):
        allowed = row.allowed(axis, architecture)
        if form.picks[axis] not in allowed:
            continue
        for number in _chosen(row.axes[axis], allowed):
            picks: Picks = (*form.picks[:axis], number, *form.picks[axis + 1 :])
            made = row.instruction(picks)
            if row.ways(picks, made, architecture):
                yield made


def _chosen(axis: Sequence[Choice], allowed: Picks) -> Picks:
    """All choices of an axis; of one that binds N the smallest, the middle and the largest of each size besides."""
    if not any("n" in axis[number] for number in allowed):
        return allowed
    sizes: dict[object, list[int]] = {}
    for number in allowed:
        rest = {key: value for key, value in axis[number].items() if key != "n"}
        sizes.setdefault(repr(sorted(rest.items())), []).append(number)
    kept = set()
    for numbers in sizes.values():
        by_n = sorted(numbers, key=lambda number: int(axis[number]["n"]))
        kept |= {by_n[0], by_n[-1], *(number for number in by_n if int(axis[number]["n"]) == MIDDLE)}
    return tuple(number for number in allowed if number in kept)


def _by_rule(made: Instruction) -> Iterator[Instruction]:
    for key, values in legal(made, {}).items() if made.takes else ():
        for value in (values[1], values[-1]) if key in BETWEEN else values[1:]:
            try:
                yield resolve(made, {key: value})
            except UsageError:
                continue  # legal only together with another modifier
