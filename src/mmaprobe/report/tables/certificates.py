"""The certificate of a derivation as text: field by field what is refuted, what is the same function, what is open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from mmaprobe.derivation import Derivation
from mmaprobe.derivation.certificate import BEYOND, OTHERWISE, Coverage, NeighbourVerdict
from mmaprobe.equivalence.checker import Argument, span_of
from mmaprobe.equivalence.spans import FAR, Span
from mmaprobe.parameters.diff import in_words
from mmaprobe.parameters.table import fields
from mmaprobe.report.vectors import vector_text
from mmaprobe.showing import counted


def certificate_lines(derivation: Derivation) -> Iterator[str]:
    """The whole certificate: every neighbour once, under its field, and where open ones were searched."""
    certificate = derivation.certificate
    open_ = sum(map(len, certificate.open_fields.values()))
    yield (
        f"certificate of {derivation.instruction}: {counted(len(certificate.entries), 'neighbour')}, "
        f"{certificate.refuted} refuted, {certificate.equivalent} the same function, {open_} open"
    )
    own = dict(fields(derivation.datapath)) if derivation.datapath is not None else {}
    entries = sorted(certificate.entries, key=lambda entry: entry.field)
    for field, some in groupby(entries, key=lambda entry: entry.field):
        value = f" = {own[field]}" if field in own else ""
        yield f"{field}{value} ({in_words(field)})"
        yield from _field(list(some))
    for said, _ in certificate.otherwise:
        yield f"{OTHERWISE}, as many vectors agree, and nothing shows it to be the same function: {said}"
    if certificate.coverage.fresh:
        yield coverage_line(certificate.coverage)
    if open_ and certificate.pools:
        yield "open ones were searched in"
        yield from (
            f"  {counted(pool.vectors, 'vector')}, seed {pool.seed}: {', '.join(pool.generators)}"
            for pool in certificate.pools
        )


def coverage_line(coverage: Coverage) -> str:
    """What was right beyond the certificate, and which faults so many vectors cannot exclude."""
    return f"{BEYOND}: {coverage}"


def _field(entries: list[NeighbourVerdict]) -> Iterator[str]:
    for vector, values in _refuted(entries):
        yield f"  not {_listed(values)}: {vector}"
    for argument, values in _argued(entries):
        yield f"  the same with {_listed(values)}: {argument.text} ({argument.rule})"
        yield from (f"    {path}: {words}" for path, words in facts_in_words(argument))
    for entry in entries:
        if entry.verdict == "open":
            yield f"  open: {entry.value}: no difference in {counted(entry.searched, 'vector')}"


def _refuted(entries: Iterable[NeighbourVerdict]) -> Iterator[tuple[str, list[str]]]:
    """A vector, with the device's answer, once for all the values that it refutes."""
    found: dict[str, list[str]] = {}
    for entry in entries:
        if entry.witness is not None:
            text = f"{vector_text(entry.witness)} -> {entry.witness.d:#x}"
            found.setdefault(text, []).append(entry.value)
    yield from found.items()


def _argued(entries: Iterable[NeighbourVerdict]) -> Iterator[tuple[Argument, list[str]]]:
    """Arguments that hold of several values are said once."""
    found: dict[Argument, list[str]] = {}
    for entry in entries:
        if entry.argument is not None:
            found.setdefault(entry.argument, []).append(entry.value)
    yield from found.items()


def _listed(values: list[str]) -> str:
    return values[0] if len(values) == 1 else f"{', '.join(values[:-1])} or {values[-1]}"


def facts_in_words(argument: Argument) -> Iterator[tuple[str, str]]:
    """(path, what holds of every value there)."""
    for path, values in argument.facts:
        yield path, _span(span_of(values))


def _span(span: Span) -> str:
    sign = "may be -0" if span.minus_zero else "never -0"
    if span.top <= -FAR:
        return f"zero, {sign}"
    size = f"2^{span.least} <= |x| < 2^{span.top} if not 0"
    return (
        f"multiples of 2^{span.lowest}, {size}, at most {counted(span.width, 'bit')}, labels {span.label_low} to "
        f"{span.label_high}, {sign}"
    )
