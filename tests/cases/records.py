"""Random datapath records as TOML tables: the whole grammar of ``docs/datapath.md``, formats mixed, and broken ones.

Everything is drawn from a ``random.Random``, so that a seed names a record for ever.
"""

from __future__ import annotations

import copy
import datetime
import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from mmaprobe import formats
from mmaprobe.parameters.datapath import OVERFLOWS, Encode
from mmaprobe.parameters.described import descriptions

Table = dict[str, Any]

FLOATS = [name for name, fmt in formats.FORMATS.items() if fmt.is_float and fmt.signed]
WHOLE = [name for name, fmt in formats.FORMATS.items() if fmt.kind == "integer"]
RESULTS = [*FLOATS, *WHOLE]
SCALES = [name for name, fmt in formats.FORMATS.items() if fmt.is_float and not fmt.signed]


def table_of(rng: random.Random) -> Table:
    """A record that says something, most of them legal; what the checks refuse of them is refused in words."""
    style = rng.choice(["float", "float", "float", "integer", "mixed", "scaled"])
    names = {"float": FLOATS, "scaled": FLOATS, "integer": WHOLE, "mixed": list(formats.FORMATS)}[style]
    a = rng.choice(names)
    b = a if rng.random() < 0.5 else rng.choice(names)
    if style == "integer" and rng.random() < 0.2:
        a = b = "b1"
    d = rng.choice({"float": FLOATS, "scaled": FLOATS, "integer": WHOLE, "mixed": RESULTS}[style])
    inner = rng.choice([[d], [d], FLOATS, RESULTS]) if style != "integer" else [d]
    size, count = rng.choice([1, 2, 2, 3, 4, 5, 8]), rng.choice([1, 1, 2, 3])
    k = size * count
    table: Table = {
        "a": a, "b": b, "c": "none" if rng.random() < 0.2 else d if rng.random() < 0.7 else rng.choice(list(names)),
        "d": d, "k": k, "step": size if rng.random() < 0.8 or count > 1 else 0,
    }  # fmt: skip
    group = 0
    if style == "scaled":
        group = rng.choice([n for n in range(1, size + 1) if size % n == 0])
        where = rng.choice(["product", "group"])
        table["scale"] = {"format": rng.choice(SCALES), "size": group, "where": where}
        group = group if where == "group" else 0
    table["tree"] = _scaled_tree(rng, size, group, inner) if group else _root(rng, size, inner)
    if rng.random() < 0.2 and not group:
        table["order"] = _text(rng.sample(range(k), k))
    for name in ("a", "b", "c"):
        if rng.random() < 0.3 and table[name] != "none":
            table[f"operand_{name}"] = _operand(rng, table[name])
    if rng.random() < 0.5:
        table["product"] = _product(rng, a, b)
    if rng.random() < 0.2:
        table["result"] = _encode(rng, {"f32": ["f32", "e8m13", "tf32"], "tf32": ["tf32", "f32", "tf32"]}.get(d, [d]))
    table["special"] = _special(rng, table)
    if rng.random() < 0.25:
        table["random"] = rng.choice(["u8", "u16", "u32"])
        _draw_bits(rng, table, int(table["random"][1:]))
    return table


def _draw_bits(rng: random.Random, table: Any, most: int) -> None:
    """Roundings anywhere in a table that take random bits."""
    if isinstance(table, dict):
        if "rounding" in table and "format" in table and "pairs" not in table and rng.random() < 0.6:
            table["random_bits"] = rng.choice([1, 3, 8, most, rng.randint(1, most)])
        table = list(table.values())
    if isinstance(table, list):
        for each in table:
            _draw_bits(rng, each, most)


DECLARED = {
    "f16": "e5m10f", "bf16": "e5m6fn", "e5m2": "e5m2f", "e4m3": "e4m3b11fnuz", "e3m2": "e3m4ieee", "e2m3": "e2m3ieee",
    "ue4m3": "ue4m4f",
}  # fmt: skip
"""Formats that names declare, in the place of some of the catalog's."""


def declared(table: Any) -> Any:
    """The table with formats that their names declare."""
    if isinstance(table, dict):
        return {key: declared(value) for key, value in table.items()}
    if isinstance(table, list):
        return list(map(declared, table))
    return DECLARED.get(table, table) if isinstance(table, str) else table


def _text(lanes: list[int]) -> str:
    return ",".join(map(str, lanes))


def _encode(rng: random.Random, names: list[str]) -> Table:
    name = rng.choice(names)
    table: Table = {"format": name, "rounding": rng.choice(formats.ROUNDINGS)}
    if not formats.get(name).is_float:
        return table | {"overflow": rng.choice(["wrap", "largest"])}
    choices = {key: each.choices for key, each in descriptions(Encode).items() if each.choices and key != "rounding"}
    choices |= {"overflow": OVERFLOWS}
    table |= {key: rng.choice(some) for key, some in choices.items() if rng.random() < 0.5}
    if rng.random() < 0.2:
        table["first"] = f"{rng.choice([0, 1, 7, 24, 31, 60, 200])} {rng.choice(formats.ROUNDINGS)}"
    return table


def _shares(rng: random.Random, lanes: list[int], count: int) -> list[list[int]]:
    lanes = rng.sample(lanes, len(lanes))
    bounds = [0, *sorted(rng.randint(0, len(lanes)) for _ in range(count - 1)), len(lanes)]
    return [lanes[start:stop] for start, stop in pairwise(bounds)]


def _root(rng: random.Random, size: int, names: list[str]) -> Any:
    return _node(rng, list(range(size)), names, rng.choice([0, 1, 1, 2]), True)


def _node(rng: random.Random, lanes: list[int], names: list[str], depth: int, root: bool) -> Any:
    """A tree over exactly these lanes; the root (and whatever is an fma or an add) has an Encode."""
    if not root and not lanes and (depth == 0 or rng.random() < 0.6):
        return rng.choice(["c", "c", "zero"])
    if not root and len(lanes) == 1 and rng.random() < 0.5:
        return _text(lanes)
    kind = rng.choice(["fma", "add", "fused", "fused", "exact"] if lanes else ["add", "fused", "exact"])
    below = max(depth - 1, 0)
    own: Table = {"to": _encode(rng, names)} if root or kind in ("fma", "add") or rng.random() < 0.4 else {}
    if kind == "fma":
        mine, rest = _shares(rng, lanes, 2)
        mine, rest = (mine, rest) if mine else (rest, mine)
        return {"node": "fma", "acc": _node(rng, rest, names, below, False), "lanes": _text(mine), **own}
    if kind == "add":
        x, y = (_node(rng, share, names, below, False) for share in _shares(rng, lanes, 2))
        return {"node": "add", "x": x, "y": y, **own}
    terms: list[Any] = []
    for share in _shares(rng, lanes, rng.randint(1, 3) if depth else 1):
        if share and (depth == 0 or rng.random() < 0.5):
            terms.append(_text(share))
        elif depth and (share or rng.random() < 0.2):
            terms.append(_node(rng, share, names, below, False))
    if not terms or rng.random() < 0.7:
        terms.append(rng.choice(["c", "c", "c", "zero"]))
    rng.shuffle(terms)
    if kind == "exact":
        return {"node": "exact", "terms": terms, **own}
    return _fused(rng, [_term(rng, term) for term in terms], own)


def _fused(rng: random.Random, terms: list[Any], own: Table) -> Table:
    table: Table = {"node": "fused", "terms": terms, "fraction_bits": _bits(rng), **own}
    if rng.random() < 0.7:
        table["rounding"] = rng.choice(["RZ", *formats.ROUNDINGS])
    if rng.random() < 0.3:
        table["complement"] = True
    if rng.random() < 0.2:
        table |= {"carry_bits": rng.choice([0, 1, 2, 3, 40, 5000]), "carry": rng.choice(["wrap", "saturate"])}
    if rng.random() < 0.4:
        table["zero_exponent"] = rng.choice([-133, -21, 0, 20, -999, -8192, 8192])
    return table


def _bits(rng: random.Random) -> Any:
    return rng.choice(["none", 0, rng.randint(3, 40), rng.randint(3, 40), rng.randint(40, 200), 5000])


def _term(rng: random.Random, of: Any) -> Any:
    table: Table = {"of": of}
    if rng.random() < 0.15:
        table["fraction_bits"] = _bits(rng)
    if rng.random() < 0.15:
        table["rounding"] = rng.choice(formats.ROUNDINGS)
    if rng.random() < 0.15:
        table["zero_exponent"] = rng.randint(-160, 20)
    if rng.random() < 0.15:
        table["cutoff"] = rng.choice([0, 5, 25, 300])
    if rng.random() < 0.2:
        table["label_offset"] = rng.choice([-300, -2, 1, 5, 200])
    if rng.random() < 0.15:
        table["sticky_bits"] = rng.choice([0, 1, 2, 3, 300])
    if rng.random() < 0.15:
        table["shift_limit"] = rng.choice([0, 5, 31, 300])
    return table if len(table) > 1 else of


def _scaled_tree(rng: random.Random, size: int, group: int, names: list[str]) -> Table:
    parts: list[Any] = []
    for start in range(0, size, group):
        parts.append({"node": "exact", "terms": [_text(list(range(start, start + group)))], "scaled": True})
    parts.append(rng.choice(["c", "c", "zero"]))
    return _fused(rng, parts, {"to": _encode(rng, names)})


def _operand(rng: random.Random, name: str) -> Table:
    fmt = formats.get(name)
    table: Table = {}
    if fmt.is_float and rng.random() < 0.5:
        table["subnormals"] = rng.choice(["keep", "zero", "signed_zero"])
    if rng.random() < 0.5:
        table["mask"] = rng.randrange(1 << fmt.container_bits)
    if fmt.has_sign_bit and rng.random() < 0.5:
        table["sign"] = rng.choice(["keep", "flip", "clear", "set"])
    return table


def _product(rng: random.Random, a: str, b: str) -> Table:
    if a == b == "b1":
        return {"multiply": rng.choice(["exact", "and", "xor"])}
    table: Table = {"label": rng.choice(["encoded", "operands", "normalised"])}
    if rng.random() < 0.2:
        table["to"] = _encode(rng, FLOATS)
    if rng.random() < 0.2:
        table["overflow_exponent"] = rng.choice([128, 16, 4, -4, 600])
    if rng.random() < 0.2 and formats.get(a).is_float and formats.get(b).is_float:
        table["missing_columns"] = rng.choice([1, 2, 5, 10, 30, 106])
    if a in PARTS and b in PARTS and rng.random() < 0.4:
        table["split"] = _split(rng, rng.choice(PARTS[a]))
    return table


PARTS = {"f32": ["bf16", "tf32", "e8m13"], "tf32": ["bf16"], "bf16": ["bf16", "tf32"], "f16": ["e5m2"], "e5m2": ["f16"]}
"""Formats of the range of others, for their parts."""


def _split(rng: random.Random, name: str) -> Table:
    pairs = [f"{i}{j}" for i in range(3) for j in range(3) if i or j]
    some = ["00", *rng.sample(pairs, rng.choice([1, 2, 5, 8]))]
    return {
        "format": name, "rounding": rng.choice(["RNE", "RZ", "RNA", "RND", "RU"]),
        "infinities": rng.choice(["whole", "parts"]),
        "added": rng.choice(["together", "together", "apart"]), "pairs": " ".join(rng.sample(some, len(some))),
    }  # fmt: skip


def _special(rng: random.Random, table: Table) -> Table:
    d, k = formats.get(table["d"]), table["k"]
    code = rng.choice([d.nan_code or 0, d.code_limit - 1, rng.randrange(d.code_limit)])
    nan = rng.choice(["canonical", "global", "local", "cause"]) if d.nan_code is not None else "canonical"
    quiet = rng.random() < 0.5
    out: Table = {"nan": nan, "code": code | d.quiet_bit if nan == "local" and quiet else code, "quiet": quiet}
    if nan == "global":
        names = [f"{side}{lane}" for side in "ab" for lane in range(k)] + ["c"] * (table["c"] != "none")
        out["priority"] = " ".join(rng.sample(names, rng.randint(0, len(names))))
    if nan == "local":
        out["priority"] = " ".join(rng.sample(["a", "b", "acc"], rng.choice([0, 2, 3])))
    if nan == "cause":
        out["factor_code"] = rng.choice([d.nan_code, d.code_limit - 1, rng.randrange(d.code_limit)])
    return out | {"signalling_first": rng.random() < 0.5}


# --- broken records


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of everything in a table."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


HOSTILE: list[Any] = [
    None, True, False, 0, -1, 1, 2, 3, 7, 16, 63, 64, 65, 127, 128, 255, 1 << 31, 1 << 32, 1 << 40, (1 << 63) - 1,
    1 << 63, 1 << 64, -(1 << 63), 10**8, 10**5000, -(10**30), 0.0, 1.5, float("nan"), float("inf"), "", " ", "none",
    "c", "zero", "0", "1", "0..1", "1..0", "0,0", "0..4294967295", "0..99999999999999999999", "0..7:0", "a0", "b99",
    "a0 a0", "c c", "f32", "f64", "s8", "u4", "b1", "ti16", "ue8m0", "e4m3", "f33", "RNE", "RD", "rne", "RNX",
    "-1 RZ", "8 RNX", "100000000 RZ", "9" * 5000 + " RZ", "wrap", "ieee", "keep", "xor", "and", "group", "product",
    "global", "local", "canonical", "a\nb", "\x1b[31mred", "ä" * 100, "x" * 100000, [], [[]], {}, {"node": "fma"},
    {"node": "exact", "terms": []}, {"node": "fused", "terms": [], "fraction_bits": 3},
    {"node": "exact", "terms": ["c"], "to": {"format": "f32"}, "scaled": True}, {"of": "c"}, {"format": "s4"},
    datetime.date(2020, 1, 1),
]  # fmt: skip


ADDED = [
    "scaled",
    "to",
    "lanes",
    "terms",
    "cutoff",
    "label_offset",
    "complement",
    "carry_bits",
    "carry",
    "sticky_bits",
    "shift_limit",
    "missing_columns",
    "split",
    "pairs",
    "random",
    "random_bits",
    "factor_code",
    "extra",
    "k",
    "mask",
    "first",
    "\x1b[2J",
]


def broken(rng: random.Random, table: Table) -> Table:
    """The table with one to three things replaced, taken away, doubled or added."""
    table = copy.deepcopy(table)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        path = rng.choice(list(places(table)))
        holder: Any = table
        for key in path[:-1]:
            holder = holder[key]
        act = rng.random()
        if act < 0.65:
            holder[path[-1]] = copy.deepcopy(rng.choice(HOSTILE))
        elif act < 0.75:
            del holder[path[-1]]
        elif act < 0.85:
            holder[path[-1]] = _nudged(rng, holder[path[-1]])
        elif isinstance(holder, dict):
            holder[rng.choice(ADDED)] = copy.deepcopy(rng.choice(HOSTILE))
        else:
            holder.append(copy.deepcopy(holder[path[-1]]))
        if not table:
            break
    return table


def _nudged(rng: random.Random, value: Any) -> Any:
    """A value near by: a number off by one or doubled, a text shortened or doubled, another format."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice([value - 1, value + 1, 2 * value, -value, value << 32])
    if isinstance(value, str):
        return rng.choice([value[1:], value + value, value + ",0", rng.choice(list(formats.FORMATS)), value.upper()])
    if isinstance(value, list):
        return value + value
    return [value]
