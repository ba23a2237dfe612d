"""A datapath in a few words: summation order, precision, rounding, subnormals, special values."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mmaprobe import formats
from mmaprobe.parameters.datapath import (
    Add,
    Datapath,
    Encode,
    Exact,
    Fma,
    Fused,
    walk,
)
from mmaprobe.parameters.described import value_in_words
from mmaprobe.report.datapath.naming import bits_taken, overflow
from mmaprobe.report.datapath.order import summation_order
from mmaprobe.showing import counted

COLUMNS = ("order", "precision", "rounding", "subnormals", "specials")


def describe(datapath: Datapath) -> dict[str, str]:
    """The phrases of ``COLUMNS`` for a datapath.

    ``order``: ``summation_order``, and which operands are negated.  ``precision``: how many bits are kept below the
    largest exponent, or the format that each operation rounds to.  ``specials``:
    which NaN operand a NaN result comes from (``local``: each operation chooses
    among its own), then the code of an invalid operation.
    """
    operands = {"a": datapath.operand_a, "b": datapath.operand_b, "c": datapath.operand_c}
    read = {name: value_in_words(operand, "sign").format(name) for name, operand in operands.items()}
    changed = "".join(f", {written}" for name, written in read.items() if written != name)
    integer = not formats.get(datapath.d).is_float
    return {
        "order": summation_order(datapath) + changed,
        "precision": _precision(datapath),
        "rounding": _rounding(datapath),
        "subnormals": "-" if integer else _subnormals(datapath),
        "specials": "-" if integer else _specials(datapath),
    }


def _encodes(datapath: Datapath) -> list[Encode]:
    found = [to for node in walk(datapath.tree) if (to := getattr(node, "to", None)) is not None]
    return [*found, *([datapath.result] if datapath.result else [])]


def _distinct(items: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(items))


def in_few_letters(precision: str) -> str:
    """``F=25`` for ``25 bits below the largest``, where a picture has no room."""
    return re.sub(r"(\d+) bits below the largest", r"F=\1", precision)


def _precision(datapath: Datapath) -> str:
    split = datapath.product.split
    parts = [f"{counted(len(split.pairs), 'product')} of parts in {split.format}"] if split else []
    parts += [f"products {datapath.product.to.format}"] if datapath.product.to else []
    for node in walk(datapath.tree):
        if isinstance(node, Fused):
            cuts = dict.fromkeys(term.fraction_bits for term in node.terms)
            parts += [f"{counted(bits, 'bit')} below the largest" if bits is not None else "every bit" for bits in cuts]
        elif isinstance(node, Exact):
            parts.append("every bit")
        elif isinstance(node, (Add, Fma)):
            parts.append(f"{node.to.format} each")
    return _distinct(parts)


def _rounding(datapath: Datapath) -> str:
    if not formats.get(datapath.d).is_float:
        limited = (to for to in _encodes(datapath) if to.overflow != "wrap")
        return overflow(next(limited, datapath.root))
    aligned = [term.rounding for node in walk(datapath.tree) if isinstance(node, Fused) for term in node.terms]
    results = list(dict.fromkeys(_one_rounding(to) for to in _encodes(datapath)))
    if datapath.product.to and _one_rounding(datapath.product.to) not in results:
        results.insert(0, f"products {_one_rounding(datapath.product.to)}")
    text = _distinct(results)
    return f"align {_distinct(aligned)}, result {text}" if aligned else text


def _one_rounding(to: Encode) -> str:
    first = f"{to.first[1]} at {counted(to.first[0], 'bit')} then " if to.first else ""
    by = f" + {bits_taken(to)}" if to.random_bits else ""
    return first + to.rounding + by + (f", {overflow(to)}" if to.overflow == "largest" else "")


def _subnormals(datapath: Datapath) -> str:
    operands = [datapath.operand_a, datapath.operand_b, *([datapath.operand_c] if datapath.c else [])]
    inputs = _distinct(value_in_words(operand, "subnormals") for operand in operands)
    of_results = list(dict.fromkeys(value_in_words(to, "subnormals") for to in _encodes(datapath)))
    results = of_results[0] if len(of_results) == 1 else ", ".join(f"some {each}" for each in of_results)
    if inputs == results:
        return inputs
    return f"inputs {inputs}; results {results}"


def _specials(datapath: Datapath) -> str:
    rule = datapath.special
    code, of_factors = (
        f"{each:#0{2 + formats.get(datapath.d).dtype.itemsize * 2}x}" for each in (rule.code, rule.factor_code)
    )
    if rule.nan == "canonical":
        return f"NaN {code}"
    if rule.nan == "cause":
        kept = f"that of c{'' if rule.quiet else ', not quieted'}"
        return f"NaN by its cause in a step: of a or b {of_factors}, invalid products {code}, then {kept}; {code}"
    names = list(rule.priority)
    listed = " ".join(names if len(names) <= 6 else [*names[:3], "..", names[-1]])
    where = f"first NaN of {listed}" if rule.nan == "global" else f"local NaN, {listed}"
    more = (", signalling first" if rule.signalling_first else "") + ("" if rule.quiet else ", not quieted")
    return f"{where}{more}; {code}"
