"""Every field of a datapath on its own or with another: the groups in which a wide search varies them.

The grids of the narrow search tie fields together (one precision and one
rounding for all terms, one policy for all results).  Here each part has its own,
too many for one grid.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from mmaprobe import formats
from mmaprobe.derivation.hypotheses import field_choices, roles
from mmaprobe.parameters.datapath import Datapath, Encode

Group = tuple[Datapath, list[roles.Axis]]


def groups(path: Datapath, plain: bool) -> Iterator[Group]:
    """Groups of fields to vary together, those that matter most first; ``plain``: only numbers and roundings."""
    terms, parts = roles.term_roles(path), roles.parts_of(path)
    if not plain:
        yield from _ends(path, terms, parts)
    for role in terms:
        yield path, [roles.widths(role, field_choices.may_be_uncut(path)), roles.modes(role)]
    for part in parts:
        yield path, [roles.roundings(part)]
    for first, second in combinations(terms, 2):
        yield path, [roles.widths(first, False), roles.widths(second, False)]
        yield path, [roles.modes(first), roles.modes(second)]
    for role in (role for role in terms if role[0] == "group"):
        yield path, [roles.widths(role, field_choices.may_be_uncut(path)), roles.first_cuts(path, "root")]
    for part in parts:
        for role in terms:
            yield path, [roles.modes(role), roles.roundings(part)]
        yield path, [roles.first_cuts(path, part), roles.roundings(part)]
    yield from _conversions(path)
    yield path, list(roles.products(path))


def _ends(path: Datapath, terms: list[tuple[str, bool]], parts: list[str]) -> Iterator[Group]:
    operands = [field_choices.operand(name) for name in ("a", "b", "c") if name != "c" or path.c is not None]
    values = field_choices.zero_exponents(path)
    for part in parts:
        yield path, [*operands, *roles.endings(part)]
        yield path, [*roles.endings(part), roles.roundings(part)]
    for role in terms:
        yield path, [roles.zeros(role, values)]
        yield path, [roles.zeros(role, values), roles.widths(role, False)]
    for role in terms:
        yield path, [roles.cutoffs(role), roles.widths(role, False)]


def _conversions(path: Datapath) -> Iterator[Group]:
    """Another format between the steps, and none."""
    if path.result is not None:
        yield replace(path, result=None), [roles.roundings("root")]
    for name in formats.FORMATS:
        fmt = formats.get(name)
        if fmt.is_float and fmt.nan == "ieee" and fmt.container_bits >= 16:
            wide = roles.encodes("sums", lambda to, n=name: replace(to, format=n))(path)  # type: ignore[misc]
            yield (
                replace(wide, result=path.result or Encode(path.d)),
                [roles.roundings("sums"), roles.roundings("result")],
            )
