"""What was found of the schedule of a matrix product, as lines and as JSON."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmaprobe.parameters.integer_sums import NO_BIAS, IntegerSums
from mmaprobe.parameters.schedule import GemmKernel, to_text
from mmaprobe.showing import counted, of_which

if TYPE_CHECKING:
    from mmaprobe.derivation.schedules.identify import ElementClass, Identification

REST = {"first": "to the first", "before": "before the last addition", "after": "after them"}
"""Where steps are added that are not dealt out, in words."""
SCHEMA = 1
"""What the JSON says its schema is."""


def identified_lines(found: Identification, output: Path | None) -> list[str]:
    """For a person."""
    lines = [f"{found.product.name}: {found.status}, {counted(found.calls, 'call')}"]
    for kind in found.kinds:
        m, n = kind.shape
        lines.append(f"{int(kind.mask.sum()):,} of {m * n:,} elements at {m} x {n}: {_words(kind)}")
    if found.schedule is not None and found.schedule.integers is not None:
        lines.append(integer_words(found.schedule.integers, found.schedule.d))
    neighbours = [*found.neighbours, *(each for kind in found.kinds for each in kind.neighbours)]
    if neighbours:
        counts = Counter(each.verdict for each in neighbours)
        said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in ("refuted", "equal", "open") if counts[verdict])
        lines.append(f"neighbouring values of fields: {said}")
    if found.held:
        elements = sum(m * n for m, n, _ in (each.shape for each in found.held))
        wrong = sum(each.differ for each in found.held)
        asked = counted(len({each.shape for each in found.held}), "shape")
        lines.append(f"compared at {asked} not asked before: {of_which(wrong, elements, 'element', 'differ')}")
    lines += [f"{each.question}, {each.status}: {each.said}" for each in found.manners]
    lines += found.why
    if found.schedule is not None:
        scope = found.schedule.scope
        least = ", ".join(
            f"{axis.upper()} {getattr(scope, f'least_{axis}')} to {getattr(scope, f'most_{axis}')}" for axis in "mnk"
        )
        regions = counted(len(found.schedule.regions), "region")
        what = f"schedule with {regions}" if found.schedule.integers is None else "schedule of sums of integers"
        lines.append(f"{what}, for {least}")
        lines.append(f"written to {output}" if output else "write it to a file with --out FILE.toml")
    return lines


def integer_words(sums: IntegerSums, d: str) -> str:
    """How integers are added, and what becomes of the sum."""
    said = f"sums of {sums.format} that {sums.overflow}"
    said += f" every {counted(sums.every, 'lane')}" if sums.every else ""
    if sums.groups is not None:
        groups, apart = sums.groups, f", {sums.groups.stride} apart," if sums.groups.stride > 1 else ""
        said += f"; products of {counted(groups.lanes, 'lane')}{apart} are added in {groups.format} first, which "
        said += f"{groups.overflow}s"
    if sums.quantised is not None:
        said += f"; A becomes {sums.quantised.format} by the ends of its {sums.quantised.of}, {sums.quantised.by}"
        said += f", rounded {sums.quantised.rounding}"
    for name, offset in (("A", sums.offset_a), ("B", sums.offset_b)):
        said += f"; {name} enters as {name} + {offset}" if offset else ""
    for name, zero in (("A", sums.zero_a), ("B", sums.zero_b)):
        said += f"; zero point of {name} {' '.join(zero)}" if zero != ("0",) else ""
    said += f"; plus {_columns_words(sums.bias, 'biases')}" if sums.bias != ("0",) else ""
    rule = sums.rescale
    if rule is None:
        return said
    said += f"; times {_columns_words(rule.scale, 'scales')}, in {rule.by}"
    if rule.bias != NO_BIAS:
        said += f", {rule.bias_added} which {_columns_words(rule.bias, 'biases')} is added in f32"
    return said + ("" if d == "f32" else f", rounded {rule.rounding}, zero point {rule.zero}")


def _columns_words(words: tuple[str, ...], many: str) -> str:
    """One number, or how many there are."""
    return words[0] if len(words) == 1 else f"{len(words)} {many}, one a column"


def _words(kind: ElementClass) -> str:
    """An order in words."""
    if kind.kernel is None:
        return "an order that was not found"
    ks = ", ".join(str(reading.k) for reading in kind.readings)
    return f"{order_words(kind.kernel)}; asked at K = {ks}"


def order_words(kernel: GemmKernel) -> str:
    """How a kernel adds: how K is cut, what goes to which accumulator, and by which step."""
    own = kernel.accumulators
    dealt = "one accumulator" if own.count == 1 else f"{counted(own.count, 'accumulator')}, joined by {own.join}"
    if own.late:
        late = "step" if own.late == 1 else f"{own.late} steps"
        dealt += f", {REST[own.rest]} the last {late} of whole blocks of {own.block} and what is left"
    elif own.rest != "first":
        dealt += f", {REST[own.rest]} what is left of blocks of {own.block}"
    return f"{_ranges(kernel)}, {dealt}, {step_words(kernel)}"


def step_words(kernel: GemmKernel) -> str:
    """What is added to an accumulator at a time."""
    words = {"fma": "fused multiply-add", "multiply_add": "rounded product, rounded sum"}
    filled = f", filled up with zeros to whole {kernel.step.filled}s" if kernel.step.filled > 1 else ""
    return words.get(kernel.step.by, kernel.step.primitive) + filled


def _ranges(kernel: GemmKernel) -> str:
    rule = kernel.ranges
    if rule.cut == "given":
        return f"K in ranges of {', '.join(map(str, rule.lengths))}, {kernel.join.order}"
    said = {name: getattr(rule, name) for name in ("length", "parts", "unit") if getattr(rule, name) not in (None, 1)}
    said |= {"half": rule.half} if rule.half != "down" else {}
    text = ", ".join(f"{name} {value}" for name, value in said.items())
    return f"K {rule.cut}" + (f" ({text})" if text else "") + ("" if rule.cut == "whole" else f", {kernel.join.order}")


def identified_json(found: Identification) -> dict[str, Any]:
    """For a program: every neighbour with the answer that refutes it, every shape that was held."""
    return {
        "schema": SCHEMA,
        "product": found.product.name,
        "version": found.product.version,
        "status": found.status,
        "calls": found.calls,
        "why": found.why,
        "manners": [
            {"question": each.question, "status": each.status, "said": each.said} for each in found.manners
        ],
        "schedule": None if found.schedule is None else to_text(found.schedule),
        "orders": [
            {
                "shape": list(kind.shape),
                "elements": int(kind.mask.sum()),
                "asked_at_k": [reading.k for reading in kind.readings],
                "kernel": None if kind.kernel is None else kind.kernel.name,
                "neighbours": [
                    {"field": each.field, "value": each.value, "verdict": each.verdict, "why": each.why}
                    for each in kind.neighbours
                ],
            }
            for kind in found.kinds
        ],
        "neighbours": [
            {"field": each.field, "value": each.value, "verdict": each.verdict, "why": each.why}
            for each in found.neighbours
        ],
        "held": [
            {"shape": list(each.shape), "values": each.kind, "elements": each.shape[0] * each.shape[1],
             "differ": each.differ}
            for each in found.held
        ],
    }  # fmt: skip
