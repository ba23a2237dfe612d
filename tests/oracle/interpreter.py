"""The tree of a datapath, walked with Fractions (``docs/datapath.md``, sections 3 and 4).

The datapath is a dict of the TOML form: a node is a table with ``node``, a leaf
is ``"c"``, ``"zero"`` or a list of lanes such as ``"0..6:2,1"``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from typing import Any

from oracle.numbers import Inf, Nan, Num, power, round_to_multiple
from oracle.rules import (
    NanRule,
    Table,
    Value,
    code_in,
    conditioned,
    encode,
    multiply,
    option,
    pairs_in,
    parts_of,
    product,
    read,
)


def lanes_in(text: str | Sequence[int]) -> list[int]:
    """The lanes of ``0..3``, ``3..0``, ``0..6:2,1``."""
    if not isinstance(text, str):
        return list(text)
    lanes: list[int] = []
    for part in text.split(","):
        bounds, _, stride = part.partition(":")
        first, _, last = bounds.partition("..")
        low, high, by = int(first), int(last or first), int(stride or 1)
        lanes += range(low, high + 1, by) if low <= high else range(low, high - 1, -by)
    return lanes


@dataclass
class Step:
    """The factors of the products of one step, and these, each a list for every lane of the step; the accumulator."""

    a: list[list[Value]]
    b: list[list[Value]]
    products: list[list[Value]]
    accumulator: Value
    scale_of: list[tuple[Value, Value]]
    rule: NanRule


def evaluate(
    datapath: Table,
    a: Sequence[int],
    b: Sequence[int],
    c: int | None = None,
    scales: tuple[Sequence[int], Sequence[int]] | None = None,
    random: int | None = None,
) -> int:
    """d as a bit pattern for one vector of bit patterns."""
    rule = NanRule(datapath.get("special", {}), datapath["d"])
    if random is not None:
        rule.random = format(random, f"0{int(datapath['random'][1:])}b")
    k = datapath["k"]
    policy_a, policy_b, policy_c = (datapath.get(f"operand_{name}", {}) for name in "abc")
    values_a = [read(datapath["a"], code, policy_a, rule) for code in a]
    values_b = [read(datapath["b"], code, policy_b, rule) for code in b]
    c_format = option(datapath, "c", None)
    accumulator: Value = Num(Fraction(0), False)
    if c_format is not None:
        assert c is not None
        accumulator = read(c_format, c, policy_c, rule)
    scale_of = read_scales(datapath, scales, rule)
    order = option(datapath, "order", None)
    lanes = list(range(k)) if order is None else lanes_in(order)
    size = datapath.get("step", 0) or k
    policy = datapath.get("product", {})
    split = option(policy, "split", None)
    pairs = pairs_in(split)
    rounds = [[pair] for pair in pairs] if split and split.get("added", "together") == "apart" else [pairs]
    formats = (datapath["a"], datapath["b"]) if split is None else (split["format"],) * 2
    in_product = bool(scale_of) and datapath["scale"].get("where", "product") == "product"
    for chosen, some in [(lanes[start : start + size], some) for start in range(0, k, size) for some in rounds]:
        factors = [[parts_of(values_a[lane], values_b[lane], pair, split, rule) for pair in some] for lane in chosen]
        step = Step(
            [[x for x, _ in lane] for lane in factors], [[y for _, y in lane] for lane in factors], [], accumulator,
            [scale_of[lane] for lane in chosen] if scale_of else [], rule,
        )  # fmt: skip
        step.products = [
            [product(x, y, list(step.scale_of[i]) if in_product else [], policy, rule, formats) for x, y in lane]
            for i, lane in enumerate(factors)
        ]
        before = accumulator
        accumulator = run(datapath["tree"], step, datapath["tree"]["to"])
        if isinstance(accumulator, Nan) and rule.kind == "cause":
            accumulator = rule.caused(
                list(chain.from_iterable(step.a + step.b)), list(chain.from_iterable(step.products)), before
            )
    last = option(datapath, "result", None) or {"format": datapath["d"]}
    value = encode(accumulator, last, rule)
    if isinstance(value, Nan):
        operands = {f"a{i}": (datapath["a"], conditioned(datapath["a"], policy_a, code)) for i, code in enumerate(a)}
        operands |= {f"b{i}": (datapath["b"], conditioned(datapath["b"], policy_b, code)) for i, code in enumerate(b)}
        if c_format is not None and c is not None:
            operands["c"] = (c_format, conditioned(c_format, policy_c, c))
        return rule.result(value, operands)
    return code_in(datapath["d"], value)


def read_scales(
    datapath: Table, scales: tuple[Sequence[int], Sequence[int]] | None, rule: NanRule
) -> list[tuple[Value, Value]]:
    """The two scales of every lane."""
    table = option(datapath, "scale", None)
    if table is None:
        return []
    assert scales is not None
    first, second = ([read(table["format"], code, {}, rule) for code in side] for side in scales)
    return [(first[lane // table["size"]], second[lane // table["size"]]) for lane in range(datapath["k"])]


def run(node: Any, step: Step, outer: Table) -> Value:
    """The value of one node (of a list of lanes only where it is one); ``outer`` is the nearest enclosing Encode."""
    if node == "c":
        return step.accumulator
    if node == "zero":
        return Num(Fraction(0), False)
    if not isinstance(node, dict):
        (lane,) = lanes_in(node)
        values = step.products[lane]
        return values[0] if len(values) == 1 else run_exact({"terms": [node]}, step, outer)
    return {"fma": run_fma, "add": run_add, "exact": run_exact, "fused": run_fused}[node["node"]](node, step, outer)


def values_of(node: Any, step: Step, outer: Table) -> list[Value]:
    """The terms that a node contributes: its products one by one, or its one value."""
    leaf = not isinstance(node, dict) and node not in ("c", "zero")
    return [value for lane in lanes_in(node) for value in step.products[lane]] if leaf else [run(node, step, outer)]


def specials(terms: Sequence[Value], rule: NanRule, order: list[Nan] | None = None) -> Value | None:
    """NaN or an infinity where the terms make one; ``order``: the NaNs in order of precedence."""
    nans = [term for term in terms if isinstance(term, Nan)] if order is None else order
    signs = {term.negative for term in terms if isinstance(term, Inf)}
    if any(isinstance(term, Nan) for term in terms) or len(signs) == 2:
        return rule.first(nans)
    return Inf(signs.pop()) if signs else None


def exact_sum(terms: Sequence[Num], to: Table) -> Num:
    """The sum with the sign of a zero: all zeros of one sign, else RD decides."""
    whole = max((term.value.denominator for term in terms), default=1)  # all are powers of two
    total = Fraction(sum(term.value.numerator * (whole // term.value.denominator) for term in terms), whole)
    if total:
        return Num(total, total.numerator < 0)
    signs = {term.negative for term in terms}
    if all(not term.value for term in terms) and len(signs) == 1:
        return Num(total, signs.pop())
    return Num(total, to.get("rounding", "RNE") == "RD")


def numbers_in(terms: Sequence[Value]) -> list[Num]:
    return [term for term in terms if isinstance(term, Num)]


def run_fma(node: Table, step: Step, outer: Table) -> Value:
    acc = run(node["acc"], step, node["to"])
    lanes = [zip(step.a[lane], step.b[lane], step.products[lane], strict=True) for lane in lanes_in(node["lanes"])]
    for a, b, p in chain.from_iterable(lanes):
        terms = [p, acc]
        order = step.rule.operands(a=a, b=b, acc=acc)
        special = specials(terms, step.rule, order)
        acc = encode(special or exact_sum(numbers_in(terms), node["to"]), node["to"], step.rule)
    return acc


def run_add(node: Table, step: Step, outer: Table) -> Value:
    terms = [run(node["x"], step, node["to"]), run(node["y"], step, node["to"])]
    special = specials(terms, step.rule)
    return encode(special or exact_sum(numbers_in(terms), node["to"]), node["to"], step.rule)


def run_exact(node: Table, step: Step, outer: Table) -> Value:
    to = option(node, "to", None)
    terms = [value for term in node["terms"] for value in values_of(term, step, to or outer)]
    special = specials(terms, step.rule)
    numbers = numbers_in(terms)
    labels = [term.label for term in numbers if term.label is not None]
    value = special or replace(exact_sum(numbers, to or outer), label=max(labels, default=None))
    if node.get("scaled", False):
        value = scale_sum(value, bool(labels), step.scale_of[first_lane(node)], step.rule)
    return value if to is None else encode(value, to, step.rule)


def scale_sum(value: Value, any_product: bool, scales: tuple[Value, Value], rule: NanRule) -> Value:
    """The sum of a scale block times its two scales, labelled with the scales' exponents alone."""
    scale = multiply(*scales)
    scaled = multiply(value, scale)
    if isinstance(scaled, Nan):
        return rule.first([value] if isinstance(value, Nan) else [])
    if isinstance(scaled, Num):
        assert isinstance(scale, Num)
        return replace(scaled, label=scale.label if any_product else None)
    return scaled


def first_lane(node: Any) -> int:
    """A lane of the step that the node multiplies (a scaled sum lies in one block)."""
    if isinstance(node, dict):
        children = node.get("terms", []) if node["node"] == "exact" else [term_of(term) for term in node["terms"]]
        return next(lane for child in children for lane in [first_lane(child)] if lane >= 0)
    return -1 if node in ("c", "zero") else lanes_in(node)[0]


def term_of(term: Any) -> Any:
    return term["of"] if isinstance(term, dict) and "of" in term else term


def run_fused(node: Table, step: Step, outer: Table) -> Value:
    to = option(node, "to", None)
    terms: list[tuple[Value, Table]] = []
    for term in node["terms"]:
        rules = term if isinstance(term, dict) and "of" in term else {}
        terms += [(labelled(value, rules, node), rules) for value in values_of(term_of(term), step, to or outer)]
    special = specials([value for value, _ in terms], step.rule)
    if special is not None:
        return special if to is None else encode(special, to, step.rule)
    labels = [value.label for value, _ in terms if isinstance(value, Num) and value.label is not None]
    top = max(labels, default=None)
    cut = [align(shifted(value, top, rules), top, rules, node) for value, rules in terms if isinstance(value, Num)]
    bits = [fraction_bits(rules, node) for _, rules in terms]
    if node.get("complement", False) and top is not None and None not in bits:
        frame = isinstance(step.accumulator, (Num, Inf)) and step.accumulator.negative
        unit = power(top - max(n for n in bits if n is not None))
        cut = [complemented(value, unit) if value.negative != frame else value for value in cut]
    total = replace(exact_sum(cut, to or outer), label=top)
    carry_bits = option(node, "carry_bits", None)
    if carry_bits is not None and top is not None and None not in bits:
        last = power(top - max(n for n in bits if n is not None))
        total = carried(total, power(top + 1 + carry_bits), last, node.get("carry", "wrap"), to or outer)
    return total if to is None else encode(total, to, step.rule)


def labelled(value: Value, rules: Table, node: Table) -> Value:
    """The value with the exponent that it shows to the maximum."""
    zero = option(rules, "zero_exponent", None)
    zero = option(node, "zero_exponent", None) if zero is None else zero
    if not isinstance(value, Num):
        return value
    return replace(value, label=zero if value.label is None else value.label + rules.get("label_offset", 0))


def shifted(value: Num, top: int | None, rules: Table) -> Num:
    """A term that would be shifted too far, as much larger as its shift falls short."""
    limit = option(rules, "shift_limit", None)
    if limit is None or top is None or value.label is None or value.label >= top - limit:
        return value
    cutoff = option(rules, "cutoff", None)
    if cutoff is not None and value.label < top - cutoff:
        return value  # dropped
    return replace(value, value=value.value * power(top - limit - value.label))


def carried(total: Num, limit: Fraction, last: Fraction, how: str, to: Table) -> Num:
    """The sum brought into [-limit, limit - last]: by its nearest end, or by as many turns as that takes."""
    value = total.value
    if how == "saturate":
        value = max(-limit, min(value, limit - last))
    while value >= limit:
        value -= 2 * limit * max(1, int((value - limit) / (2 * limit)))
    while value < -limit:
        value += 2 * limit * max(1, int((-limit - value) / (2 * limit)))
    if value:
        return replace(total, value=value, negative=value < 0)
    return total if not total.value else replace(total, value=value, negative=to.get("rounding", "RNE") == "RD")


def complemented(value: Num, unit: Fraction) -> Num:
    """A term one unit larger."""
    return replace(value, value=value.value + (-unit if value.negative else unit))


def fraction_bits(rules: Table, node: Table) -> int | None:
    """At how many bits a term is cut; None where every bit is kept."""
    own = option(rules, "fraction_bits", None)
    bits = option(node, "fraction_bits", None) if own is None else own
    return None if bits == "uncut" else bits


def align(value: Num, top: int | None, rules: Table, node: Table) -> Num:
    """A term dropped by its cutoff or cut at its fraction bits below the maximum; it keeps its sign."""
    if not value.value or top is None:
        return value
    assert value.label is not None
    cutoff = option(rules, "cutoff", None)
    if cutoff is not None and value.label < top - cutoff:
        return replace(value, value=Fraction(0))
    bits = fraction_bits(rules, node)
    if bits is None:
        return value
    mode = option(rules, "rounding", None) or node.get("rounding", "RZ")
    seen = option(rules, "sticky_bits", None)
    if seen is not None:
        value = replace(value, value=round_to_multiple(value.value, top - bits - seen, "RZ"))
        if not value.value:
            return value
    return replace(value, value=round_to_multiple(value.value, top - bits, mode))
