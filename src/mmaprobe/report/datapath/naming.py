"""What the nodes and terms of a datapath are called in pictures and explanations."""

from __future__ import annotations

from dataclasses import replace

from mmaprobe import formats
from mmaprobe.catalog.lanes import format_lanes
from mmaprobe.parameters.datapath import (
    Accumulator,
    Add,
    Datapath,
    Encode,
    Exact,
    Fma,
    Fused,
    Node,
    Products,
    Term,
    Zero,
    lanes_of,
    walk,
)
from mmaprobe.parameters.described import value_in_words
from mmaprobe.showing import counted


def product(lane: int) -> str:
    """The product of one lane of the vector."""
    return f"a{lane}·b{lane}"


def part_product(a: str, b: str, i: int, j: int) -> str:
    """The product of part i of a and part j of b."""
    return f"{a}.{i}·{b}.{j}"


def product_name(datapath: Datapath, number: int) -> str:
    """The product of a number (``Datapath.products``): of a lane, or of parts there."""
    lane, which = divmod(number, datapath.product.count)
    split = datapath.product.split
    return product(lane) if split is None else part_product(f"a{lane}", f"b{lane}", *split.parts[which])


def splitting(datapath: Datapath) -> str:
    """``parts in bf16 RNE: 10 01 00``; nothing where operands are whole."""
    split = datapath.product.split
    if split is None:
        return ""
    return (
        f"parts in {split.format} {split.rounding}: {' '.join(split.pairs)}{', a step each' * (split.added == 'apart')}"
    )


def lanes_below(node: Node, lanes: tuple[int, ...]) -> tuple[int, ...]:
    """The vector's lanes that a node multiplies; ``lanes`` are those of the step."""
    return tuple(sorted(lanes[k] for part in walk(node) for k in lanes_of(part)))


def term_names(datapath: Datapath, node: Node, numbers: tuple[int, ...], accumulator: str = "c") -> list[str]:
    """What each column of a term is called; ``numbers`` are those of the step's products."""
    if isinstance(node, Products):
        return [product_name(datapath, numbers[k]) for k in datapath.product.places(node.lanes)]
    if isinstance(node, Accumulator):
        return [accumulator]
    if isinstance(node, Zero):
        return ["0"]
    lanes = tuple(number // datapath.product.count for number in numbers[:: datapath.product.together])
    return [f"{kind(node)}({format_lanes(lanes_below(node, lanes))})"]


def kind(node: Node) -> str:
    """The node's name in a parameter file."""
    return type(node).__name__.lower()


def encoding(to: Encode) -> str:
    """``f32 RZ``, with what is out of the ordinary."""
    rounding = to.rounding if formats.get(to.format).is_float else ""
    parts = [to.format, f"first {to.first[0]} bits {to.first[1]}, then" if to.first else "", rounding]
    parts += [f"+ {bits_taken(to)}"] if to.random_bits else []
    if to.overflow == "largest" or not formats.get(to.format).is_float:
        parts.append(overflow(to))
    if to.subnormals != "keep":
        parts.append("flushed")
    return " ".join(part for part in parts if part)


def bits_taken(to: Encode) -> str:
    """Which random bits a rounding takes."""
    return f"{to.random_bits} {value_in_words(to, 'random_from')} {'bits' if to.random_bits > 1 else 'bit'} of r"


def overflow(to: Encode) -> str:
    """What becomes of a value beyond the range of a result; an integer saturates under every rule but ``wrap``."""
    saturates = not formats.get(to.format).is_float and to.overflow != "wrap"
    return value_in_words(replace(to, overflow="largest") if saturates else to, "overflow")


def node_line(node: Node) -> str:
    """One line about a node: what it adds, how many bits it keeps, how it rounds."""
    to = getattr(node, "to", None)
    result = f" → {encoding(to)}" if to is not None else ""
    if isinstance(node, Fused):
        return " ".join(("fused", *alike(node), *negation(node))) + result
    if isinstance(node, Exact):
        return f"exact{' × scales' if node.scaled else ''}{result}"
    if isinstance(node, (Fma, Add)):
        return f"{kind(node)}{result}"
    return {"accumulator": "c", "zero": "0"}.get(kind(node), "products")


def _cut(term: Term) -> list[str]:
    """``25 bits RZ``; nothing where every bit is kept."""
    seen = "" if term.sticky_bits is None else f" by {term.sticky_bits} bits"
    return [] if term.fraction_bits is None else [f"{term.fraction_bits} bits {term.rounding}{seen}"]


def alike(node: Fused) -> list[str]:
    """The cut of a fused node's terms where all are cut alike; else each term has its note."""
    cuts = [_cut(term) for term in node.terms]
    return cuts[0] if all(cut == cuts[0] for cut in cuts) else []


def term_notes(node: Fused) -> list[str]:
    """What holds of single terms of a fused node."""
    own = not alike(node)
    return [" ".join((*(_cut(term) if own else []), *_shown(term))) for term in node.terms]


def _shown(term: Term) -> list[str]:
    """How a term shows its exponent, how far it is shifted, and from where on it is dropped."""
    offset = term.label_offset
    parts = [f"shown {abs(offset)} {'higher' if offset > 0 else 'lower'}"] if offset else []
    parts += [] if term.shift_limit is None else [f"shifted {term.shift_limit} at most"]
    return parts + ([] if term.cutoff is None else [f"dropped {term.cutoff} below"])


def negation(node: Fused) -> list[str]:
    """How a fused node negates and what it holds, where that is out of the ordinary."""
    return ["ones' complement"] * node.complement + ([held_in(node)] if node.carry_bits is not None else [])


def held_in(node: Fused) -> str:
    """``1 carry bit, wraps``: the bits above the largest exponent, and what becomes of what they do not hold."""
    return f"{counted(node.carry_bits or 0, 'carry bit')}, {value_in_words(node, 'carry')}"


def headline(datapath: Datapath) -> str:
    """``f16 · f16 + f32 → f32, K = 16, 2 steps of 8 lanes``; a negated operand has a minus sign."""
    a, b, c = (
        value_in_words(operand, "sign").format(name)
        for operand, name in ((datapath.operand_a, datapath.a), (datapath.operand_b, datapath.b),
                              (datapath.operand_c, datapath.c))
    )  # fmt: skip
    c = f" + {c}" if datapath.c else ""
    scale = f", {datapath.scale.format} scales every {datapath.scale.size} lanes" if datapath.scale else ""
    steps = len(datapath.steps)
    many = f", {steps} steps of {counted(datapath.step_length, 'lane')}" if steps > 1 else ""
    random = f", r in {datapath.random}" if datapath.random else ""
    return f"{a} · {b}{c} → {datapath.d}, K = {datapath.k}{scale}{random}{many}"
