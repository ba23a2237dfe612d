"""Every small change to a datapath that makes sense: its neighbours, by field."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from functools import lru_cache
from itertools import pairwise, product
from typing import Any, NamedTuple

from mmaprobe import formats
from mmaprobe.catalog.lanes import format_lanes, parse_lanes
from mmaprobe.errors import UsageError
from mmaprobe.parameters.datapath import FIELDS, MOST_PARTS, OVERFLOWS, Datapath, Fused, same_range, walk
from mmaprobe.parameters.described import Described, Kind, Where
from mmaprobe.parameters.moves import moves
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.table import Table, spelt_out_table, to_table


class Neighbour(NamedTuple):
    """A datapath that differs in one field; ``mutate(original, field, value)`` makes it again."""

    field: str
    value: str
    datapath: Datapath


@lru_cache(maxsize=4)
def neighbours(datapath: Datapath) -> tuple[Neighbour, ...]:
    """Every datapath one change away, each once.

    Numbers (fraction bits, zero exponent, cut-off, product overflow) move by
    one and vanish; each rounding becomes each other one; every choice becomes
    each other choice where it can matter in the formats; the NaN code changes
    sign, a payload bit, or becomes the format's plain one; a label that is shown elsewhere moves by one, or not
    at all, and a sum that complements does not; operands in parts are whole, or have other parts; steps halve and
    double; lanes, steps and operands change places; a rounding takes a random bit more or less, none, or where it
    takes none as many as others.
    """
    found: dict[Datapath, Neighbour] = {}
    for field, value in _changes(datapath):
        try:
            changed = mutate(datapath, field, value)
        except UsageError:
            continue  # the tree has no such step length, or the record refuses the combination
        if changed != datapath:
            found.setdefault(changed, Neighbour(field, value, changed))
    return tuple(found.values())


def neighbourhood(datapath: Datapath) -> list[Neighbour]:
    """The neighbours and every structural change (``moves``), each datapath once."""
    found = {near.datapath: near for near in neighbours(datapath)}
    for field, value, changed in moves(datapath):
        found.setdefault(changed, Neighbour(field, value, changed))
    return list(found.values())


NUMBERS = tuple(name for name, each in FIELDS.items() if each.kind in ("number", "fraction_bits", "zero_exponent"))
"""Fields that hold a whole number, or none."""


def numbers(datapath: Datapath) -> dict[str, int | None]:
    """The value of every field that holds a whole number or none, by dotted path."""
    return _numbers(to_table(datapath, full=True))


def every_number(datapath: Datapath) -> dict[str, int]:
    """The value of every field that holds a whole number, of the terms of a sum together and of each alone."""
    every = _numbers(spelt_out_table(datapath)) | {k: v for k, v in numbers(datapath).items() if v is not None}
    return {field: value for field, value in every.items() if value is not None}


def _numbers(table: Table) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for path, holder in _tables(table, ""):
        for key in NUMBERS:
            if key in holder:
                found[f"{path}{key}"] = None if holder[key] == "none" else int(holder[key])
    return found


def with_numbers(datapath: Datapath, distance: int, among: Container[str] | None = None) -> list[Datapath]:
    """Every datapath in which one of the numbers (``among`` those of these fields) lies 2 to ``distance`` away, the
    nearest first."""
    steps = [sign * size for size in range(2, distance + 1) for sign in (-1, 1)]
    held = [(field, value) for field, value in every_number(datapath).items() if among is None or field in among]
    found = [_mutated(datapath, field, value + step) for step in steps for field, value in held]
    return [path for path in dict.fromkeys(found) if path is not None and path != datapath]


def _mutated(datapath: Datapath, field: str, value: int) -> Datapath | None:
    try:
        return mutate(datapath, field, str(value))
    except UsageError:
        return None


FieldChange = tuple[str, str]


def _changes(datapath: Datapath) -> Iterator[FieldChange]:
    table = to_table(datapath, full=True)
    for path, holder in _tables(table, ""):
        if path == "operand_c." and datapath.c is None:
            continue
        for key, value in holder.items():
            if key in FIELDS and not isinstance(value, (dict, list)):
                yield from ((f"{path}{key}", text) for text in _others(FIELDS[key], value, holder, datapath))
        if holder.get("node") == "add":
            yield f"{path}swap", "true"
    yield from _steps(datapath)
    if datapath.product.to is None and _products_are_wider(datapath):
        yield "product.to", f'{{ format = "{datapath.d}" }}'
    if datapath.product.split is not None:
        part = formats.get(datapath.product.split.format)
        yield "product.split", "none"
        yield from (("product.split.format", name) for name, fmt in formats.FORMATS.items() if same_range(fmt, part))


def _tables(table: Table, path: str) -> Iterator[tuple[str, Table]]:
    """Every table of a table with the path before its keys; of an aligned sum and its terms also whether it is cut, and
    of a term whether its rounding looks at what is cut off."""
    if table.get("node") == "fused":
        whole = table["fraction_bits"]
        cuts = [whole if term["fraction_bits"] == "none" else term["fraction_bits"] for term in table["terms"]]
        terms = [term | {"cut": cut != "none"} for term, cut in zip(table["terms"], cuts, strict=True)]
        for term in terms:
            rounding = table["rounding"] if term["rounding"] == "none" else term["rounding"]
            term["looks"] = term["cut"] and rounding != "RZ"
        table = table | {"terms": terms, "cut": set(cuts) != {"none"}}
    yield path, table
    for key, value in table.items():
        items = {f"{key}.{i}": item for i, item in enumerate(value)} if isinstance(value, list) else {key: value}
        for name, item in items.items():
            if isinstance(item, dict):
                yield from _tables(item, f"{path}{name}.")


def _steps(datapath: Datapath) -> Iterator[FieldChange]:
    size = datapath.step_length
    yield from (("step", str(step)) for step in (size // 2, size * 2) if step)
    pieces = datapath.steps
    if len(pieces) > 1:
        yield "order", _lanes(lane for piece in reversed(pieces) for lane in piece)
        strided = range(len(pieces))
        yield "order", _lanes(lane for start in strided for lane in range(start, datapath.k, len(pieces)))
        yield (
            "order",
            _lanes(lane for first, second in pairwise((*pieces, pieces[0])) for lane in (*second[:1], *first[1:])),
        )


def _products_are_wider(datapath: Datapath) -> bool:
    a, b, d = (formats.get(name) for name in (datapath.a, datapath.b, datapath.d))
    return d.is_float and a.fraction_bits + b.fraction_bits + 2 > d.fraction_bits + 1


def _lanes(lanes: Any) -> str:
    return format_lanes(tuple(lanes))


Rule = Callable[[Any, Table, Datapath], Iterator[str]]


def _others(field: Described, value: Any, holder: Table, datapath: Datapath) -> Iterator[str]:
    """The other values of a field, where it means something."""
    if not _MEANS[field.where](holder, datapath):
        return
    if field.kind in ("word", "rounding"):
        yield from (choice for choice in field.choices if choice != value)
    elif field.kind != "fixed":
        yield from _RULES[field.kind](value, holder, datapath)


def _in_a_float(holder: Table, datapath: Datapath) -> bool:
    return formats.get(holder.get("format", datapath.a)).is_float


def _rounds(holder: Table, datapath: Datapath) -> bool:
    """Where something is cut, or rounded to a float."""
    return holder["rounding"] != "none" and holder.get("cut", True) and _in_a_float(holder, datapath)


def _aligns(holder: Table, datapath: Datapath) -> bool:
    return _in_a_float(holder, datapath) and any(isinstance(node, Fused) for node in walk(datapath.tree))


def _propagates(holder: Table, datapath: Datapath) -> bool:
    """Where NaN payloads travel; a canonical NaN has none."""
    return holder["nan"] != "canonical" and formats.get(datapath.d).is_float


def held_bits(datapath: Datapath) -> int:
    """Bits of the random operand: where a rounding takes all of them, they are its lowest and its highest."""
    return 0 if datapath.random is None else formats.get(datapath.random).bits


def _chooses(holder: Table, datapath: Datapath) -> bool:
    """Where one NaN payload of several is chosen by an order."""
    return holder["nan"] in ("global", "local") and formats.get(datapath.d).is_float


_MEANS: dict[Where, Callable[[Table, Datapath], bool]] = {
    "always": lambda holder, datapath: True,
    "float": _in_a_float,
    "cut": _rounds,
    "flushed": lambda holder, datapath: holder["subnormals"] != "keep",
    "aligned": _aligns,
    "payloads": _propagates,
    "choices": _chooses,
    "causes": lambda holder, datapath: bool(holder["nan"] == "cause"),
    "looked": lambda holder, datapath: bool(holder["looks"]),
    "carried": lambda holder, datapath: holder["carry_bits"] != "none" and bool(holder["cut"]),
    "random_bits": lambda holder, datapath: 0 < holder["random_bits"] < held_bits(datapath),
}


def means_something(datapath: Datapath, path: str) -> bool:
    """Whether a field, by its dotted path, is read where it stands: the code of a cause only where NaNs have causes."""
    for place, holder in _tables(to_table(datapath, full=True), ""):
        key = path.removeprefix(place)
        if key in holder and key in FIELDS:
            return _MEANS[FIELDS[key].where](holder, datapath)
    return True


def _by_one(value: Any, holder: Table, datapath: Datapath) -> Iterator[str]:
    if value != "none":
        yield from (str(value - 1), str(value + 1), "none")


def _fraction_bits(value: Any, holder: Table, datapath: Datapath) -> Iterator[str]:
    """One more, one less, and none: of a term with a number of its own that of the node, and every bit."""
    yield from _by_one(value, holder, datapath)
    if value != "none" and "of" in holder:
        yield "uncut"


ABOVE_LAST = (16, 8, 4, 2, 1)
"""Places above the result's last place in range at which a zero that shows no exponent is tried with one: the lower,
the fewer terms are cut by it."""


def _zero_exponent(value: Any, holder: Table, datapath: Datapath) -> Iterator[str]:
    if value == "none" and "terms" in holder:
        for fmt in dict.fromkeys(map(formats.get, (datapath.c or datapath.d, datapath.d))):
            last = fmt.min_exponent - fmt.fraction_bits
            yield str(fmt.min_exponent)
            yield from (str(last + above) for above in ABOVE_LAST if last + above < fmt.min_exponent)
    yield from _by_one(value, holder, datapath)


def _overflow(value: Any, holder: Table, datapath: Datapath) -> Iterator[str]:
    fmt = formats.get(holder["format"])
    if not fmt.is_float:
        yield from (choice for choice in ("wrap", "largest") if choice != value)
        return
    if fmt.infinity_code is None and fmt.nan_code is None:
        return  # the largest is all there is
    nearest_or_away = holder["rounding"].startswith("RN") or holder["rounding"] == "RA"
    inward = holder["rounding"] in ("RZ", "RO")
    same = {"ieee": "infinity" if nearest_or_away else "largest" if inward else "ieee"}
    for choice in (*OVERFLOWS[1:], OVERFLOWS[0]):
        if same.get(choice, choice) != same.get(value, value) and same.get(choice, choice) == choice:
            yield choice


def _first(value: Any, holder: Table, datapath: Datapath) -> Iterator[str]:
    if value != "none":
        bits, _, rounding = value.partition(" ")
        yield from (f"{int(bits) - 1} {rounding}", f"{int(bits) + 1} {rounding}", "none")
        yield from (f"{bits} {other}" for other in formats.ROUNDINGS if other != rounding)


def _fma_lanes(value: Any, holder: Table, datapath: Datapath) -> Iterator[str]:
    if holder.get("node") == "fma":
        lanes = parse_lanes(value)
        yield _lanes(reversed(lanes))
        for i in range(len(lanes) - 1):
            yield _lanes((*lanes[:i], lanes[i + 1], lanes[i], *lanes[i + 2 :]))


def _code(value: Any, holder: Table, datapath: Datapath) -> Iterator[str]:
    d = formats.get(datapath.d)
    if d.nan_code is not None:
        codes = (d.nan_code, d.nan_code | d.sign_mask, value ^ d.sign_mask, value ^ 1 << d.padding)
        yield from (hex(code) for code in codes)


def _priority(value: Any, holder: Table, datapath: Datapath) -> Iterator[str]:
    names = value.split()
    for i in range(len(names) - 1):
        yield " ".join((*names[:i], names[i + 1], names[i], *names[i + 2 :]))


def _multiply(value: Any, holder: Table, datapath: Datapath) -> Iterator[str]:
    """The other way to multiply bits; their exact product is their AND."""
    if value != "exact":
        yield "xor" if value == "and" else "and"


def _sign(value: Any, holder: Table, datapath: Datapath) -> Iterator[str]:
    yield {"keep": "flip", "flip": "keep", "clear": "set", "set": "clear"}[value]


def _flip(value: Any, holder: Table, datapath: Datapath) -> Iterator[str]:
    yield str(not value).lower()


def _offset(value: Any, holder: Table, datapath: Datapath) -> Iterator[str]:
    """Where a term shows another exponent than its own: one higher, one lower, and its own."""
    if value:
        yield from (str(other) for other in dict.fromkeys((value - 1, value + 1, 0)))


def _rare(value: Any, holder: Table, datapath: Datapath) -> Iterator[str]:
    if value:
        yield "false"


def _pairs(value: Any, holder: Table, datapath: Datapath) -> Iterator[str]:
    """One product of parts less, one more of those whose parts are the next and not always zero; neighbours in order
    exchanged."""
    pairs, held = value.split(), formats.get(holder["format"]).fraction_bits + 1
    last = [formats.get(name).fraction_bits // held for name in (datapath.a, datapath.b)]
    yield from (" ".join(pair for pair in pairs if pair != less) for less in pairs)
    for pair in [f"{i}{j}" for i, j in product(range(MOST_PARTS), repeat=2) if i <= last[0] and j <= last[1]]:
        before = [f"{int(pair[0]) - 1}{pair[1]}", f"{pair[0]}{int(pair[1]) - 1}"]
        if pair not in pairs and any(each in pairs for each in before):
            yield " ".join((pair, *pairs))
    for i in range(len(pairs) - 1):
        yield " ".join((*pairs[:i], pairs[i + 1], pairs[i], *pairs[i + 2 :]))


def _random_bits(value: Any, holder: Table, datapath: Datapath) -> Iterator[str]:
    """One random bit more, one less, none; where none is taken of those that there are, as many as elsewhere."""
    if value:
        yield from (str(other) for other in dict.fromkeys((value - 1, value + 1, 0)))
    elif datapath.random is not None:
        yield str(datapath.most_random_bits or held_bits(datapath))


_RULES: dict[Kind, Rule] = {
    "number": _by_one,
    "fraction_bits": _fraction_bits,
    "zero_exponent": _zero_exponent,
    "first": _first,
    "overflow": _overflow,
    "sign": _sign,
    "multiply": _multiply,
    "lanes": _fma_lanes,
    "code": _code,
    "priority": _priority,
    "flag": _flip,
    "offset": _offset,
    "rare": _rare,
    "pairs": _pairs,
    "random_bits": _random_bits,
}
"""By kind of field: its other values."""
