"""Look instructions up: by id, by architecture, by glob; their lowerings and their control states."""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.loader import catalog, spell
from mmaprobe.catalog.lowering import Lowering
from mmaprobe.errors import UsageError, near

CONTROL_VALUES = {"rounding": ("rn", "rd", "ru", "rz"), "ftz": ("off", ""), "daz": ("off", "")}
"""What each control may be; the first value is the default and is left out of the id."""


def short(identifier: str) -> str:
    """The short form of an id: without ``.sync``, ``.aligned`` and ``.row.col``."""
    return identifier.replace(".sync", "").replace(".aligned", "").replace(".row.col", "")


@cache
def _short_forms() -> dict[str, tuple[str, ...]]:
    forms: dict[str, list[str]] = defaultdict(list)
    for identifier in catalog().instructions:
        forms[short(identifier)].append(identifier)
    return {form: tuple(ids) for form, ids in forms.items()}


def architectures() -> tuple[str, ...]:
    """Every architecture the catalog knows, in its own spelling."""
    return tuple(catalog().lowerings)


def architecture_base(name: str) -> str:
    """The catalog's name of an architecture: ``x86-64+intel`` is ``x86-64`` here; UsageError if unknown."""
    base = name.partition("+")[0]
    if base not in catalog().lowerings:
        raise UsageError(f"unknown architecture {name!r}{near(base, architectures())}")
    return base


def instruction(identifier: str) -> Instruction:
    """The instruction called ``identifier``: its id, or the short form where that names one only.

    Control-state modifiers (``{daz,ftz,rounding=rz}``) are accepted on the
    instructions whose ``controls`` name them.  Raises UsageError with the near
    ids otherwise.
    """
    known = catalog().instructions
    exact = known.get(identifier) or known.get(_canonical(identifier))
    if exact is not None:
        return exact
    forms = _short_forms().get(short(identifier), ())
    if len(forms) == 1:
        return known[forms[0]]
    if forms:
        raise UsageError(f"instruction {identifier!r} is ambiguous: {', '.join(forms)}")
    stateful = _with_state(identifier)
    if stateful is not None:
        return stateful
    choices = dict.fromkeys([*known, *_short_forms()])
    raise UsageError(f"unknown instruction {identifier!r}{near(identifier, choices)}; see `mmaprobe instructions`")


def _split(identifier: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    opcode, _, inside = identifier.partition("{")
    parts = [part.strip() for part in inside.rstrip("}").split(",") if part.strip()]
    return opcode, tuple(sorted((part.partition("=")[0], part.partition("=")[2]) for part in parts))


def _canonical(identifier: str) -> str:
    return spell(*_split(identifier))


def _with_state(identifier: str) -> Instruction | None:
    """The base instruction in the state its braces name, None where no such base exists."""
    opcode, modifiers = _split(identifier)
    own = tuple(pair for pair in modifiers if pair[0] not in CONTROL_VALUES)
    base_id = spell(opcode, own)
    if len(own) == len(modifiers) or base_id == identifier:
        return None
    base = instruction(base_id)
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
    return in_state(stateful, {})


def instructions(architecture: str) -> tuple[Instruction, ...]:
    """Every instruction of an architecture, in the catalog's order, each in its default state."""
    known = catalog()
    return tuple(known.instructions[name] for name in known.lowerings[architecture_base(architecture)])


def lowering(wanted: Instruction, architecture: str) -> Lowering:
    """What an instruction becomes on an architecture; UsageError where it does not exist there."""
    table = catalog().lowerings[architecture_base(architecture)]
    base = default_state(wanted).id
    if base not in table:
        homes = [name for name, ids in catalog().lowerings.items() if base in ids]
        raise UsageError(f"{wanted.id} does not exist on {architecture}; it exists on {', '.join(homes) or 'none'}")
    return table[base]


def match(architecture: str, glob: str) -> tuple[Instruction, ...]:
    """The instructions of an architecture whose id, or short form, matches a glob.

    Without ``*`` or ``?`` the glob is an id.  With a ``{`` it is matched
    against every control state, else against default states only.  Raises
    UsageError with the near ids where nothing matches.
    """
    here = instructions(architecture)
    if not any(mark in glob for mark in "*?"):
        named = instruction(glob)
        lowering(named, architecture)
        return (named,)
    candidates = [mode for base in here for mode in modes(base)] if "{" in glob else here
    found = tuple(c for c in candidates if fnmatchcase(c.id, glob) or fnmatchcase(short(c.id), glob))
    if not found:
        stem = glob.replace("*", "").replace("?", "")
        raise UsageError(f"no instruction of {architecture} matches {glob!r}{near(stem, [c.id for c in here])}")
    return found
