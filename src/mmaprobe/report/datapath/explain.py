"""One dot product, step by step: operands, products, alignment, sum, rounding."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lanes import format_lanes
from mmaprobe.catalog.sparsity import kept_positions
from mmaprobe.models.hexfloat import code_value, difference, shown
from mmaprobe.models.model import Model
from mmaprobe.models.numbers import ABSENT, Numbers
from mmaprobe.models.rounding import first_cut
from mmaprobe.models.stages import evaluate
from mmaprobe.models.trace import Event, Trace
from mmaprobe.operands.batch import Batch, Bits, Witness
from mmaprobe.parameters.classes import classes_of
from mmaprobe.parameters.datapath import Datapath, Encode, Fused
from mmaprobe.parameters.diff import in_words
from mmaprobe.report.console import Folded, PlainConsole
from mmaprobe.report.datapath.naming import alike, encoding, headline, node_line, product_name, term_names, term_notes
from mmaprobe.report.fitted import RuledTable
from mmaprobe.report.vectors import vector_text
from mmaprobe.showing import counted


def text(datapath: Datapath, vector: Batch, width: int = 120) -> str:
    """The explanation as plain text."""
    out = io.StringIO()
    PlainConsole(file=out, width=width, color_system=None).print(render(datapath, vector))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def render(datapath: Datapath, vector: Batch) -> Group:
    """The evaluation of one vector (a batch of one), for a terminal.

    Values are exact hexadecimal floats, bit patterns plain hexadecimal.
    """
    trace = Trace()
    evaluate(datapath, vector, trace)
    parts: list[RenderableType] = [Text(headline(datapath), style="bold")]
    steps, count = datapath.products, datapath.product.count
    for number, events in groupby(trace.events, key=lambda event: event.step):
        products = steps[number]
        if len(steps) > 1:
            lanes = tuple(product // count for product in products[:: datapath.product.together])
            parts.append(Text(f"── step {number + 1} of {len(steps)}: lanes {format_lanes(lanes)} ──"))
        parts += _step(datapath, vector, products, number, list(events))
    same = "; ".join(f"{in_words(field)}: {text}" for field, text in classes_of(datapath).items())
    return Group(*parts, *([Folded(f"no bit of any result depends on this: {same}", style="dim")] if same else []))


def as_json(model: Model, vector: Batch) -> dict[str, Any]:
    """The vector, its result, and the explanation's lines."""
    d = int(model.run_vectors(vector)[0])
    witness = Witness.of(vector, d)
    value = code_value(formats.get(model.instruction.d), d)
    lines = text(model.datapath, model.dense(vector)).splitlines()
    return {"instruction": model.instruction.id, "of": model.owner, "vector": vector_text(witness), "d": d,
            "value": value, "lines": lines}  # fmt: skip


def selection(instruction: Instruction, metadata: Bits) -> RuledTable:
    """What legal metadata (1, K/chunk) of one sparse vector selects: the lane of b that each element of a meets."""
    lanes = kept_positions(instruction, metadata)[0].reshape(metadata.shape[1], -1)
    width = lanes.shape[1]
    title = "selected by the metadata; below, lane j is a_j and the b beside it here"
    table = RuledTable(title, "chunk", "item", "a with b")
    for chunk, (item, kept) in enumerate(zip(metadata[0].tolist(), lanes.tolist(), strict=True)):
        pairs = " ".join(f"a{chunk * width + i}·b{lane}" for i, lane in enumerate(kept))
        table.add_row(str(chunk), f"{item:#x}", pairs)
    return table


def _step(
    datapath: Datapath, vector: Batch, products: tuple[int, ...], number: int, events: Sequence[Event]
) -> Iterator[RenderableType]:
    accumulator = "c" if number == 0 else f"step {number}"
    for what, run in groupby(events, key=lambda e: "chain" if e.what in ("fma", "encode") and _chained(e) else e.what):
        group = list(run)
        if what == "chain":
            yield _chain(datapath, group)
            continue
        for event in group:
            if what == "operands":
                yield _operands(datapath, vector, event, accumulator)
            elif what == "fused":
                yield from _fused(datapath, event, products, accumulator)
            elif what in ("add", "exact"):
                yield from _sum(datapath, event, products, accumulator)
            elif what == "encode":
                yield _encode(event, _decimal(datapath))
            else:
                yield _result(datapath, event)


def _decimal(datapath: Datapath) -> bool:
    """Whether everything is an integer and is shown as one."""
    names = (datapath.a, datapath.b, datapath.c or datapath.d, datapath.d)
    return not any(formats.get(name).is_float for name in names)


def _chained(event: Event) -> bool:
    return type(event.node).__name__ == "Fma"


def _rows(table: RuledTable, names: Sequence[str], rows: Sequence[tuple[str, ...]]) -> None:
    """Add the rows; three or more neighbours that say the same become one."""
    for content, run in groupby(zip(names, rows, strict=True), key=lambda pair: pair[1]):
        same = [name for name, _ in run]
        if len(same) > 2:
            table.add_row(f"{same[0]} … {same[-1]}", *content)
        else:
            for name in same:
                table.add_row(name, *content)


def _code(bits: Any, width: int) -> str:
    return f"{int(bits):0{width // 4}x}"


def _label(x: Numbers, labels: Any, at: tuple[int, ...]) -> str:
    """The exponent an alignment sees; NaNs and infinities have none."""
    if x.nan.flag[at] or x.infinite[at]:
        return ""
    return "zero" if labels[at] == ABSENT else str(labels[at])


def _operands(datapath: Datapath, vector: Batch, event: Event, accumulator: str) -> RuledTable:
    """What was read, and the products."""
    values = event.values
    a, b, products = values["a"], values["b"], values["products"]
    widths = [formats.get(name).container_bits for name in (datapath.a, datapath.b)]
    scaled, decimal = datapath.scale is not None, _decimal(datapath)
    table = RuledTable(
        "operands and products", "lane", "a", "", "b", "", *(["scales"] if scaled else []), "a·b", "exponent"
    )
    rows = []
    for column, number in enumerate(values["numbers"]):
        at, lane = (0, column), number // datapath.product.count
        row = [_code(vector.a[0, lane], widths[0]), shown(a, at, decimal)]
        row += [_code(vector.b[0, lane], widths[1]), shown(b, at, decimal)]
        if datapath.scale is not None:
            block = (0, lane // datapath.scale.size)
            row.append(" ".join(shown(scale, block) for scale in values["scales"]))
        rows.append((*row, shown(products, at, decimal), _label(products, products.label, at)))
    _rows(table, [_which(datapath, number) for number in values["numbers"]], rows)
    c: Numbers = values["accumulator"]
    if datapath.c is not None or accumulator != "c":
        width = formats.get(datapath.c).container_bits if datapath.c else 0
        code = _code(vector.c[0], width) if accumulator == "c" and vector.c is not None else ""
        blank = [""] * (3 if scaled else 2)
        table.add_row(accumulator, code, shown(c, (0,), decimal), *blank, "", _label(c, c.label, (0,)))
    if datapath.random is not None and vector.random is not None:
        table.add_row("r", _code(vector.random[0], formats.get(datapath.random).container_bits))
    return table


def _which(datapath: Datapath, number: int) -> str:
    """The lane of a product, where it has one."""
    return str(number) if datapath.product.split is None else product_name(datapath, number)


def _fused(datapath: Datapath, event: Event, products: tuple[int, ...], accumulator: str) -> Iterator[RenderableType]:
    """Alignment to the largest exponent: what is kept of each term and what is cut off."""
    node = event.node
    assert isinstance(node, Fused)
    top = int(event.values["maximum"][0])
    notes = term_notes(node)
    own = any(notes)
    table = RuledTable(node_line(node), "term", "value", "exponent", "kept", "cut off", *(["rule"] if own else []))
    for term, note, value, labels, kept in zip(
        node.terms, notes, *(event.values[name] for name in ("terms", "labels", "aligned")), strict=True
    ):
        rows = [
            (shown(value, at), _label(value, labels, at), shown(kept, at), difference(value, kept, at), note)
            for at in np.ndindex(value.negative.shape)
        ]
        _rows(table, term_names(datapath, term.of, products, accumulator), rows if own else [row[:-1] for row in rows])
    yield table
    if top == ABSENT:
        yield Text("only zeros: nothing is aligned")
    elif not alike(node):
        yield Text(f"largest exponent {top}; {'each term is cut as its rule says' if own else 'no term is cut'}")
    else:
        bits = node.terms[0].fraction_bits
        assert bits is not None
        quantum = top - bits
        yield Text(f"largest exponent {top}, {counted(bits, 'bit')} below it: multiples of 2^{quantum}")
    yield Text.assemble(
        "sum, as its bits hold it  " if node.is_carried else "exact sum  ", (shown(event.values["sum"]), "bold")
    )


def _sum(datapath: Datapath, event: Event, products: tuple[int, ...], accumulator: str) -> Iterator[RenderableType]:
    """The terms of an exact or binary sum."""
    node, terms, decimal = event.node, event.values["terms"], _decimal(datapath)
    assert node is not None
    of = getattr(node, "terms", None) or (node.x, node.y)  # type: ignore[union-attr]
    names = [name for term in of for name in term_names(datapath, term, products, accumulator)]
    table = RuledTable(node_line(node), "term", "value")
    _rows(table, names, [(shown(terms, at, decimal),) for at in np.ndindex(terms.negative.shape)])
    yield table
    yield Text.assemble("exact sum  ", (shown(event.values["sum"], (0,), decimal), "bold"))


def _chain(datapath: Datapath, events: Sequence[Event]) -> RuledTable:
    """Fused multiply-adds, one a row."""
    node = events[0].node
    assert node is not None
    table = RuledTable(node_line(node), "lane", "a·b", "+ accumulator", "= exact sum", "rounded", "bits", "")
    for fma, rounding in zip(events[::2], events[1::2], strict=True):
        terms, to = fma.values["terms"], rounding.values["to"]
        bits = _code(rounding.values["bits"][0], formats.get(to.format).container_bits)
        before, after = rounding.values["exact"], rounding.values["rounded"]
        row = [shown(terms, (0, 0)), shown(terms, (0, 1)), shown(before), shown(after), bits]
        table.add_row(_which(datapath, fma.values["number"]), *row, _what_happened(rounding))
    return table


def _encode(event: Event, decimal: bool) -> Text:
    """One rounding: what it did and what is left."""
    values = event.values
    to: Encode = values["to"]
    exact: Numbers = values["exact"]
    line = Text(f"{encoding(to)}: ")
    if to.first is not None and not (exact.infinite[0] or exact.nan.flag[0]):
        line.append(f"first {shown(first_cut(exact, formats.get(to.format), *to.first))}, then ")
    code = _code(values["bits"][0], formats.get(to.format).container_bits)
    done: Numbers = values["rounded"]
    line.append(shown(done, (0,), decimal), "bold")
    if not done.nan.flag[0]:
        line.append(f"  {code}", "bold")
    return line.append(f"  {_what_happened(event)}", "dim")


def _what_happened(event: Event) -> str:
    """exact, or what was lost and how."""
    exact, done = event.values["exact"], event.values["rounded"]
    if exact.nan.flag[0] or exact.infinite[0]:
        return ""
    if done.nan.flag[0] or done.infinite[0]:
        return "overflow"
    if event.values["tiny"][0]:
        return "tiny, flushed"
    lost = difference(exact, done)
    if lost and not formats.get(event.values["to"].format).is_float:
        return "overflow"
    return f"off by {lost}" if lost else "exact"


def _result(datapath: Datapath, event: Event) -> Text:
    """d, and where a NaN comes from."""
    code = _code(event.values["bits"][0], formats.get(datapath.d).container_bits)
    line = Text.assemble("d = ", (code, "bold green"), f"  {shown(event.values['value'], (0,), _decimal(datapath))}")
    if event.values["nan"][0]:
        line.append(f"  ({datapath.special.nan} NaN rule)", "dim")
    if datapath.result is not None:
        line.append(f"  after {encoding(datapath.result)}", "dim")
    return line
