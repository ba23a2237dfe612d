"""Look instructions up: by id, by architecture, by glob; their lowerings and their control states."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from heapq import nlargest

from mmaprobe.catalog.instruction import Instruction, spell
from mmaprobe.catalog.loader import Shelf, first_word, shelves
from mmaprobe.catalog.lowering import Lowering
from mmaprobe.catalog.modifiers import resolve, unmodified
from mmaprobe.errors import UsageError, near

CONTROL_VALUES = {"rounding": ("rn", "rd", "ru", "rz"), "ftz": ("off", ""), "daz": ("off", "")}
"""What each control may be; the first value is the default and is left out of the id."""

MOST_COMPARED = 1000
"""An unknown id is held against at most so many known ones."""


def short(identifier: str) -> str:
    """The short form of an id: without ``.sync``, ``.aligned`` and ``.row.col``."""
    return identifier.replace(".sync", "").replace(".aligned", "").replace(".row.col", "")


def _shelves_for(identifier: str) -> list[Shelf]:
    """The data files that may hold an id, by its first word."""
    word = first_word(identifier)
    return [shelf for shelf in shelves() if word in shelf.words]


@cache
def _short_forms(shelf: Shelf) -> dict[str, tuple[str, ...]]:
    forms: dict[str, list[str]] = defaultdict(list)
    for identifier in shelf.catalog.instructions:
        forms[short(identifier)].append(identifier)
    return {form: tuple(ids) for form, ids in forms.items()}


def _near(identifier: str, choices: Iterable[str]) -> str:
    """``near`` among the choices that begin most like the identifier: comparing thousands takes seconds."""

    def alike(choice: str) -> int:
        return next((i for i, (x, y) in enumerate(zip(identifier, choice, strict=False)) if x != y), len(identifier))

    options = list(choices)
    return near(identifier, options if len(options) <= MOST_COMPARED else nlargest(MOST_COMPARED, options, alike))


@cache
def architectures() -> tuple[str, ...]:
    """Every architecture the catalog knows, in its own spelling."""
    return tuple(dict.fromkeys(name for shelf in shelves() for name in shelf.architectures))


def architecture_base(name: str) -> str:
    """The catalog's name of an architecture: ``x86-64+intel`` is ``x86-64`` here; UsageError if unknown."""
    base = name.partition("+")[0]
    if base not in architectures():
        raise UsageError(f"unknown architecture {name!r}{near(base, architectures())}")
    return base


def instruction(identifier: str, architecture: str | None = None) -> Instruction:
    """The instruction called ``identifier``: its id, or the short form where that names one only.

    Control-state modifiers (``{daz,ftz,rounding=rz}``) are accepted on the
    instructions whose ``controls`` name them, modifiers that a row ``takes`` by
    rule at their legal values.  ``architecture`` decides where one id takes
    other formats on another architecture.  Raises UsageError with the near ids
    otherwise.
    """
    home = _shelves_for(identifier)
    if architecture is not None:
        base = architecture_base(architecture)
        home = [shelf for shelf in home if base in shelf.architectures] or home
    for name in dict.fromkeys((identifier, _canonical(identifier))):
        found = _agreed({shelf: shelf.catalog.instructions.get(name) for shelf in home})
        if found is not None:
            return found
    forms = {form: shelf for shelf in home for form in _short_forms(shelf).get(short(identifier), ())}
    if len(forms) == 1:
        ((name, shelf),) = forms.items()
        return shelf.catalog.instructions[name]
    if forms:
        raise UsageError(f"instruction {identifier!r} is ambiguous: {', '.join(forms)}")
    made = _with_state(identifier, architecture) or _by_rule(identifier, home)
    if made is not None:
        return made
    if architecture is not None:
        return instruction(identifier)  # of another architecture, or of none
    known = [name for shelf in home or shelves() for name in shelf.catalog.instructions]
    choices = dict.fromkeys([*known, *map(short, known)])
    raise UsageError(f"unknown instruction {identifier!r}{_near(identifier, choices)}; see `mmaprobe instructions`")


def _agreed(records: dict[Shelf, Instruction | None]) -> Instruction | None:
    """The record of one id on several shelves, the first where they compute alike; UsageError where they do not."""
    found = {shelf: record for shelf, record in records.items() if record is not None}
    kinds: dict[Instruction, list[str]] = defaultdict(list)
    for shelf, record in found.items():
        kinds[replace(record, takes=(), source="")] += shelf.catalog.homes(unmodified(record))
    if len(kinds) > 1:
        said = "; ".join(f"{made.a} and {made.b} on {', '.join(names)}" for made, names in kinds.items())
        raise UsageError(f"{next(iter(kinds)).id} takes {said}: say on which architecture")
    return next(iter(found.values()), None)


def _by_rule(identifier: str, home: list[Shelf]) -> Instruction | None:
    """The instruction of a row that takes the id's modifiers by rule; None where no row of the opcode takes any."""
    opcode, given = _split(identifier)
    made: dict[Shelf, Instruction | None] = {}
    refusals: list[UsageError] = []
    for shelf in home:
        rows = [row for row in shelf.catalog.instructions.values() if row.opcode == opcode and row.takes]
        fitting = [row for row in rows if set(row.modifiers) <= set(given)]
        if fitting:
            row = max(fitting, key=lambda row: len(row.modifiers))
            try:
                made[shelf] = resolve(row, dict(pair for pair in given if pair not in row.modifiers))
            except UsageError as error:
                refusals.append(error)
    if refusals and not made:
        raise refusals[0]
    return _agreed(made)


def _split(identifier: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    opcode, _, inside = identifier.partition("{")
    parts = [part.strip() for part in inside.rstrip("}").split(",") if part.strip()]
    return opcode, tuple(sorted((part.partition("=")[0], part.partition("=")[2]) for part in parts))


def _canonical(identifier: str) -> str:
    return spell(*_split(identifier))


def _with_state(identifier: str, architecture: str | None) -> Instruction | None:
    """The base instruction in the state its braces name, None where no such base exists."""
    opcode, modifiers = _split(identifier)
    own = tuple(pair for pair in modifiers if pair[0] not in CONTROL_VALUES)
    base_id = spell(opcode, own)
    if len(own) == len(modifiers) or base_id == identifier:
        return None
    base = instruction(base_id, architecture)
    for key, value in modifiers:
        if key not in CONTROL_VALUES:
            continue
        if key not in base.controls:
            raise UsageError(f"{base.id} does not obey {key}" + near(key, base.controls))
        if value not in CONTROL_VALUES[key]:
            choices = ", ".join(f"{key}={value}" if value else key for value in CONTROL_VALUES[key])
            raise UsageError(f"{identifier!r}: {key}={value!r}; it is one of {choices}")
    return in_state(base, dict(pair for pair in modifiers if pair[0] in CONTROL_VALUES))


def in_state(base: Instruction, state: dict[str, str]) -> Instruction:
    """``base`` (of any state) in the control state given; defaults are left out of the id."""
    kept = [pair for pair in base.modifiers if pair[0] not in CONTROL_VALUES]
    kept += [(key, value) for key, value in state.items() if value != CONTROL_VALUES[key][0]]
    modifiers = tuple(sorted(kept))
    return replace(base, id=spell(base.opcode, modifiers), modifiers=modifiers)


def modes(base: Instruction) -> tuple[Instruction, ...]:
    """Every control state of an instruction, the default first; the instruction alone where it has none."""
    names = [name for name in CONTROL_VALUES if name in base.controls]
    states = itertools.product(*(CONTROL_VALUES[name] for name in names))
    return tuple(in_state(base, dict(zip(names, state, strict=True))) for state in states)


def default_state(stateful: Instruction) -> Instruction:
    """The same instruction in the default control state."""
    return in_state(stateful, {}) if stateful.controls else stateful


def instructions(architecture: str) -> tuple[Instruction, ...]:
    """Every instruction of an architecture, in the catalog's order, each in its default state."""
    base = architecture_base(architecture)
    here = [shelf.catalog for shelf in shelves() if base in shelf.architectures]
    return tuple(known.instructions[name] for known in here for name in known.lowerings[base])


def lowering(wanted: Instruction, architecture: str) -> Lowering:
    """What an instruction becomes on an architecture; UsageError where it does not exist there."""
    here = architecture_base(architecture)
    base = unmodified(default_state(wanted))
    homes = {name: shelf for shelf in _shelves_for(base) for name in shelf.catalog.homes(base)}
    if here not in homes:
        raise UsageError(f"{wanted.id} does not exist on {architecture}; it exists on {', '.join(homes) or 'none'}")
    way, row = homes[here].catalog.lowerings[here][base], homes[here].catalog.instructions[base]
    return way if wanted is row else _retyped(way, row, wanted, architecture)


def _retyped(way: Lowering, row: Instruction, wanted: Instruction, architecture: str) -> Lowering:
    """A row's lowering for the formats that an id's modifiers choose: its primitives take those instead."""
    changed = dict(pair for pair in wanted.modifiers if pair not in row.modifiers and pair[0] not in CONTROL_VALUES)
    made = resolve(row, changed)
    if _types(made) != _types(wanted):
        raise UsageError(f"{wanted.id} takes {_types(made)} on {architecture}, not {_types(wanted)}")
    if _types(made) == _types(row):
        return way
    applications = tuple(
        replace(step, primitive=step.primitive.replace(f"[{_types(row)}->", f"[{_types(made)}->"))
        for step in way.applications
    )
    return replace(way, applications=applications)


def _types(made: Instruction) -> str:
    return ",".join(name for name in (made.a, made.b, made.scale) if name)


def match(architecture: str, glob: str) -> tuple[Instruction, ...]:
    """The instructions of an architecture whose id, or short form, matches a glob.

    Without ``*`` or ``?`` the glob is an id.  With a ``{`` it is matched
    against every control state, else against default states only.  Raises
    UsageError with the near ids where nothing matches.
    """
    here = instructions(architecture)
    if not any(mark in glob for mark in "*?"):
        named = instruction(glob, architecture)
        lowering(named, architecture)
        return (named,)
    candidates = [mode for base in here for mode in modes(base)] if "{" in glob else here
    found = tuple(c for c in candidates if fnmatchcase(c.id, glob) or fnmatchcase(short(c.id), glob))
    if not found:
        stem = glob.replace("*", "").replace("?", "")
        raise UsageError(f"no instruction of {architecture} matches {glob!r}{_near(stem, [c.id for c in here])}")
    return found
