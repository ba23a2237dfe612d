"""Re-verify an argument: that a datapath with one change is the same function, from the two datapaths alone.

An argument is a record: the rule it uses, the place of the change, and facts,
spans that all values at some path keep to.  The checker trusts none of it: the facts
must follow from the datapath, what changed must be what the rule is about, and
the rule must hold of every value that the facts allow.
"""

from __future__ import annotations

import re
from dataclasses import astuple, dataclass
from functools import lru_cache

from mmaprobe import formats
from mmaprobe.equivalence import encode_rules, record_rules
from mmaprobe.equivalence.bounds import highest, never_cuts, start_span, trace
from mmaprobe.equivalence.cases import Case
from mmaprobe.equivalence.spans import FAR, Span, operand_span
from mmaprobe.equivalence.zero_signs import complements, sign_is_hidden
from mmaprobe.parameters.datapath import Accumulator, Datapath, Fused, Products, Term, walk

Fact = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class Argument:
    """``rule`` is a name in ``RULES`` or ``IDENTITIES``; ``facts`` are (path, numbers of a Span)."""

    rule: str
    place: str
    facts: tuple[Fact, ...] = ()

    @property
    def text(self) -> str:
        """The argument as a sentence."""
        return RULES[self.rule][1] if self.rule in RULES else record_rules.IDENTITIES[self.rule][1]

    def form(self) -> dict[str, object]:
        """As evidence keeps it."""
        return {"rule": self.rule, "place": self.place, "facts": {path: list(span) for path, span in self.facts}}


def refute(datapath: Datapath, other: Datapath, argument: Argument) -> str:
    """Why an argument does not show that two datapaths are the same function; empty where it does."""
    if any(map(_is_rare, (datapath, other))):
        return "no rule reckons with sums of so many bits, limited shifts and stickies, truncated multipliers, or parts"
    if (datapath.most_random_bits or other.most_random_bits) and argument.rule not in WHATEVER_RANDOM_BITS:
        return f"{argument.rule} says nothing of roundings by random bits"
    if argument.rule in record_rules.IDENTITIES:
        holds = record_rules.IDENTITIES[argument.rule][0](datapath, other, argument.place)
        return "" if holds else f"{argument.rule} does not hold"
    if argument.rule not in RULES:
        return f"no rule {argument.rule!r}"
    rule, _, names = RULES[argument.rule]
    changed = record_rules.changed_fields(datapath, other)
    about = re.compile(rf"{re.escape(argument.place)}(\.terms\.\d+)?\.({'|'.join(names)})")
    if not changed or not all(map(about.fullmatch, changed)):
        return f"{argument.rule} says nothing of {', '.join(sorted(changed)) or 'no change'}"
    spans = _spans(argument.facts)
    if reason := _unfounded(datapath, argument.facts):
        return reason
    try:
        return "" if rule(Case(datapath, other, argument.place, spans)) else f"{argument.rule} does not hold"
    except KeyError as missing:
        return f"{argument.rule} needs a fact about {missing}"


@lru_cache(maxsize=8)
def _is_rare(path: Datapath) -> bool:
    """Whether a datapath has what the rules, and the spans that they rest on, say nothing about."""
    sums = [node for node in walk(path.tree) if isinstance(node, Fused)]
    rare = any((term.sticky_bits, term.shift_limit) != (None, None) for node in sums for term in node.terms)
    product = path.product.missing_columns > 0 or path.product.split is not None
    return rare or product or any(node.carry_bits is not None for node in sums)


@lru_cache(maxsize=8)
def _spans(facts: tuple[Fact, ...]) -> dict[str, Span]:
    """The spans that facts hold; nobody may change them."""
    return {path: span_of(values) for path, values in facts}


@lru_cache(maxsize=8)
def _unfounded(datapath: Datapath, facts: tuple[Fact, ...]) -> str:
    """The first fact that does not follow: c must hold of operand C and be kept by a step; the rest follows from c.
    Kept: of all neighbours of a datapath the facts are the same."""
    spans = _spans(facts)
    if "c" not in spans:
        return "a fact about c is missing"
    if not start_span(datapath).within(spans["c"]):
        return "operand c leaves its span"
    found = trace(datapath, spans["c"]).spans
    if len(datapath.steps) > 1 and not found["tree"].within(spans["c"]):
        return "a step's result leaves the span of c"
    return next((f"{path} leaves its span" for path, span in spans.items()
                 if path not in found or not found[path].within(span)), "")  # fmt: skip


# -- rules about the sign of a zero


def _sign_hidden(case: Case) -> bool:
    old, new = case.both()
    choices = {getattr(part, "subnormals", "") for part in (old, new)}
    if len(choices) > 1 and "keep" in choices:
        return False
    return sign_is_hidden(case.old, case.place, case.spans)


# -- rules about one alignment


def _alignment(path: Datapath, place: str, spans: dict[str, Span]) -> tuple[Fused, list[Span]]:
    node = record_rules.part_at(path, place)
    if not isinstance(node, Fused):
        raise KeyError(place)
    return node, [spans[f"{place}.terms.{i}.of"] for i in range(len(node.terms))]


def _node_place(case: Case) -> str:
    head, _, tail = case.place.rpartition(".terms.")
    return head if tail.isdecimal() else case.place


def _nothing_cut(case: Case) -> bool:
    return all(never_cuts(*_alignment(path, _node_place(case), case.spans)) for path in (case.old, case.new))


def _cuts_alike(case: Case) -> bool:
    """Only the rules of terms that are never cut changed; the others keep theirs."""
    (old, parts), (new, _) = (_alignment(path, _node_place(case), case.spans) for path in (case.old, case.new))
    if old.complement or new.complement:
        return False
    for before, after, part in zip(old.terms, new.terms, parts, strict=True):
        rules = [(term.fraction_bits, term.rounding, term.cutoff) for term in (before, after)]
        top = max(highest(node, parts) for node in (old, new))
        whole = all(bits is None or top - bits <= part.lowest for bits, _, _ in rules)
        near = all(cutoff is None or top - cutoff <= part.label_low + before.label_offset for _, _, cutoff in rules)
        if not ((rules[0][:2] == rules[1][:2] or whole) and (rules[0][2] == rules[1][2] or near)):
            return False
    return True


def _zeros_alike(case: Case) -> bool:
    """A zero's exponent that changed is, before and after, below the other terms' labels, or cuts nothing off those
    that it lies above."""
    (old, parts), (new, _) = (_alignment(path, _node_place(case), case.spans) for path in (case.old, case.new))
    if complements(case.old):
        return False
    single = [not (isinstance(term.of, Products) and len(term.of.lanes) > 1) for term in old.terms]
    for i, shows in enumerate(zip(old.terms, new.terms, strict=True)):
        zeros = [term.zero_exponent for term in shows]
        if zeros[0] == zeros[1]:
            continue
        if old.to is None and not _hidden_above(case, _node_place(case), zeros):
            return False
        for j, (term, part) in enumerate(zip(old.terms, parts, strict=True)):
            for zero in zeros:
                if zero is None or (i == j and single[i]) or _kept(term, part, zero):
                    continue
                return False
    return True


def _kept(term: Term, part: Span, label: int) -> bool:
    """Whether a term is above this label, or nothing is cut off it where that is the largest."""
    low, bits = part.label_low + term.label_offset, term.fraction_bits
    whole = bits is None or label - bits <= part.lowest
    return low >= label or (whole and (term.cutoff is None or label - term.cutoff <= low))


def _hidden_above(case: Case, place: str, zeros: list[int | None]) -> bool:
    """Whether the label of a handed-on sum of zeros, one of ``zeros`` or none, raises no exponent above: every term
    beside it has a label at least as high, up to a rounding or to a term that always shows one; or cuts nothing off
    those beside it where they are rounded."""
    while True:
        head, _, tail = place.rpartition(".terms.")
        node, own = record_rules.part_at(case.old, head), int(tail.partition(".")[0] or 0) if head else 0
        if not head or not isinstance(node, Fused):
            return False
        shown = [term.zero_exponent for term in node.terms]
        zeros = [zero if zero is None else zero + node.terms[own].label_offset for zero in zeros]
        worst = max([zero for zero in (*zeros, shown[own]) if zero is not None], default=-FAR)
        beside = [j for j in range(len(node.terms)) if j != own]
        parts = [(node.terms[j], case.spans[f"{head}.terms.{j}.of"]) for j in beside]
        if any(part.label_low + term.label_offset < worst for term, part in parts):
            return node.to is not None and all(_kept(term, part, worst) for term, part in parts)
        if node.to is not None or any((zero := shown[j]) is not None and zero >= worst for j in beside):
            return True
        place = head


def _labels_alike(case: Case) -> bool:
    """The label rules differ for products with a subnormal operand alone, which there are none, or too small to cut
    anything."""
    nodes = [node for node in walk(case.old.tree) if isinstance(node, Fused)]
    kinds = {case.old.product.label, case.new.product.label}
    if kinds != {"encoded", "operands"} or case.old.product.to is not None or case.old.scale is not None:
        return False
    operands = ((case.old.a, case.old.operand_a), (case.old.b, case.old.operand_b))
    if not any(formats.get(name).subnormal and operand.subnormals == "keep" for name, operand in operands):
        return True
    if complements(case.old) or shows_offsets(case.old):
        return False
    a, b = operand_span(case.old.a, case.old.operand_a), operand_span(case.old.b, case.old.operand_b)
    highest_subnormal = max(a.label_low + b.label_high, a.label_high + b.label_low)
    for node in nodes:
        for term in node.terms:
            if not isinstance(term.of, (Products, Accumulator)) or term.cutoff is not None:
                return False
            bits = term.fraction_bits
            part = case.spans["product" if isinstance(term.of, Products) else "c"]
            if bits is not None and highest_subnormal - bits > part.lowest:
                return False
    return True


def shows_offsets(path: Datapath) -> bool:
    """Whether a term shows another label than its own."""
    sums = [node for node in walk(path.tree) if isinstance(node, Fused)]
    return any(term.label_offset for node in sums for term in node.terms)


# -- rules about products


def _product_overflow(case: Case) -> bool:
    limits = [path.product.overflow_exponent for path in (case.old, case.new)]
    return all(limit is None or case.spans["product.exact"].top <= limit for limit in limits)


CUTS = frozenset({"fraction_bits", "rounding", "cutoff"})
RULES: dict[str, tuple[encode_rules.Rule, str, frozenset[str]]] = {
    **encode_rules.RULES,
    "sign hidden": (_sign_hidden, "what is added to this zero is never -0, so its sign does not show",
                    frozenset({"zero", "underflow", "subnormals"})),
    "nothing cut": (_nothing_cut, "no term has bits so far below the largest that the alignment cuts them", CUTS),
    "cuts alike": (_cuts_alike, "the terms to which the rule applies are never cut", CUTS),
    "zeros alike": (_zeros_alike, "a zero's exponent is below those of the terms beside it, or cuts nothing off them",
                    frozenset({"zero_exponent"})),
    "labels alike": (_labels_alike, "only products of a subnormal operand have another label, and there are none, or "
                     "too small to cut anything", frozenset({"label"})),
    "products stay finite": (_product_overflow, "no product reaches the bound", frozenset({"overflow_exponent"})),
}  # fmt: skip
"""By name: the check, the sentence, and the fields that it speaks of."""
WHATEVER_RANDOM_BITS = frozenset((
    "nothing cut", "cuts alike", "zeros alike", "labels alike", "products stay finite", "sign hidden", "never rounds",
    "never tiny", "tiny is exact", "never vanishes", "never overflows", "first is exact", "no negative zero",
    "commutes", "label unread", "same overflow", "priority unread", "same sum", "one operation", "products fit",
    "every kind of operand", "rounded alike", "same chain",
))  # fmt: skip
"""Rules that hold where roundings take random bits: the same values enter every rounding, or values that it does not
change; the spans that they rest on are those of any rounding."""


def span_of(values: tuple[int, ...]) -> Span:
    """The span that a fact holds."""
    lowest, least, top, width, label_low, label_high, minus_zero = values
    return Span(lowest, least, top, width, label_low, label_high, bool(minus_zero))


def numbers(span: Span) -> tuple[int, ...]:
    """A span as a fact holds it."""
    return tuple(int(value) for value in astuple(span))
