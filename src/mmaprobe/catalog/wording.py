"""A form in words: its ids as one text with their ranges, and what else an id of it may say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mmaprobe.catalog import modifiers
from mmaprobe.catalog.catalog import Form
from mmaprobe.catalog.lanes import format_lanes
from mmaprobe.catalog.row import Segment


def text(form: Form) -> str:
    """The ids of a form: ``m64n{8..256:8}k16``; what may be left out of an id is left out (``options`` names it)."""
    opcode = "".join(_part(form, part) for part in form.row.segments if not (isinstance(part, Segment) and part.key))
    listed = {part.key for part in form.row.segments if isinstance(part, Segment) and part.axis < form.row.listed}
    kept = [f"{key}={value}" if value else key for key, value in form.first.modifiers if key in listed]
    return f"{opcode}{{{','.join(kept)}}}" if kept else opcode


def _part(form: Form, part: str | Segment) -> str:
    if isinstance(part, str):
        return part
    values = _values(form, part)
    if len(values) == 1 or "" in values:
        return part.texts[form.picks[part.axis]] if len(values) == 1 else ""
    return f"{{{_listed(values)}}}"


def options(form: Form) -> tuple[str, ...]:
    """What an id of the form may say beside its text: parts of the opcode, modifiers, control state."""
    opcode = [_values(form, part) for part in form.row.segments if isinstance(part, Segment) and part.key is None]
    optional = [word for values in opcode if "" in values and len(values) > 1 for word in _grouped(values)]
    found = [
        f"{part.key}={_listed(said)}" if said != [""] else part.key
        for part in form.row.segments
        if isinstance(part, Segment) and part.key and part.axis >= form.row.listed
        for said in [[value for value in _values(form, part) if value != part.default]]
        if said
    ]
    return (*optional, *found, *sorted(modifiers.keys(form.first)), *form.first.controls)


def shape(form: Form) -> str:
    """M, N and K with their ranges: ``m64 n8..256:8 k16``."""
    return " ".join(f"{name}{_listed(_numbers(form, name))}" for name in "mnk")


def _values(form: Form, part: Segment) -> list[str]:
    """The texts that an axis gives a part of the ids of a form, each once."""
    if part.axis < form.row.listed:
        return [part.texts[form.picks[part.axis]] if part.axis >= 0 else part.texts[0]]
    return list(dict.fromkeys(part.texts[number] for number in form.row.allowed(part.axis, form.way.architecture)))


def _numbers(form: Form, name: str) -> list[str]:
    for axis in range(form.row.listed, len(form.row.axes)):
        if name in form.row.axes[axis][0]:
            allowed = form.row.allowed(axis, form.way.architecture)
            return list(dict.fromkeys(str(form.row.axes[axis][number][name]) for number in allowed))
    return [str(getattr(form.first, name))]


def _listed(values: Iterable[str]) -> str:
    found = list(values)
    if all(value.isdecimal() for value in found):
        return format_lanes(tuple(sorted(map(int, found))))
    return ",".join(found)


def _grouped(values: Iterable[str]) -> Iterator[str]:
    """Parts of the opcode that may be absent, those with the same beginning together: ``collector::a::{fill,use}``."""
    groups: dict[str, list[str]] = {}
    for value in filter(None, values):
        head, mark, last = value.removeprefix(".").rpartition("::")
        groups.setdefault(head + mark, []).append(last)
    for head, ends in groups.items():
        yield head + (f"{{{','.join(ends)}}}" if len(ends) > 1 else ends[0])
