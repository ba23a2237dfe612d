"""Look instructions up: by id, by architecture, by glob; their lowerings and their control states."""

from __future__ import annotations

import itertools
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from heapq import nlargest
from typing import TypeVar

from mmaprobe.catalog import names, spellings
from mmaprobe.catalog.architectures import Architectures, every
from mmaprobe.catalog.catalog import Catalog, CatalogEntry, Form
from mmaprobe.catalog.instruction import Instruction, spell, split
from mmaprobe.catalog.layout_claims import KEY, claimed, unclaimed
from mmaprobe.catalog.layouts import claims
from mmaprobe.catalog.loader import DataFile, data_files
from mmaprobe.catalog.lowering import Lowering
from mmaprobe.catalog.modifiers import resolve, retyped, unmodified
from mmaprobe.catalog.search import glob as glob_pattern
from mmaprobe.catalog.search import short as short
from mmaprobe.catalog.states import CONTROL_VALUES, default_state, in_state, modes
from mmaprobe.catalog.supplements import KEPT
from mmaprobe.errors import UsageError, near

T = TypeVar("T")

MOST_NAMED = 6
"""Instructions that an error names where a name may mean several."""
MOST_COMPARED = 1000
"""Known ids that an unknown one is held against, the likest ones: an error must not keep a person waiting."""


def catalog() -> Catalog:
    """The catalog that ships with the package, and what was added to it."""
    return _catalog(data_files(), every())


@lru_cache(maxsize=KEPT)
def _catalog(files: tuple[DataFile, ...], known: Architectures) -> Catalog:
    return Catalog(files, known)


def _near(identifier: str, choices: Iterable[str]) -> str:
    """``near`` among the choices that begin most like the identifier: comparing thousands takes seconds."""

    def alike(choice: str) -> int:
        return next((i for i, (x, y) in enumerate(zip(identifier, choice, strict=False)) if x != y), len(identifier))

    options = list(choices)
    return near(identifier, options if len(options) <= MOST_COMPARED else nlargest(MOST_COMPARED, options, alike))


def architectures() -> tuple[str, ...]:
    """Every architecture the catalog knows, in its own spelling."""
    return catalog().architectures


def parts(name: str) -> tuple[str, ...]:
    """What a name of an architecture stands for: ``catalog.names.parts`` among those of the catalog."""
    return names.parts(name, architectures())


def architecture_base(name: str) -> str:
    """The catalog's name of an architecture: ``x86-64+intel`` is ``x86-64`` here, ``H200`` is ``sm_90a``.

    UsageError for an unknown name, and for a generation of several.
    """
    found = tuple(dict.fromkeys(map(names.architecture_of, parts(name))))
    if len(found) > 1:
        raise UsageError(f"{name} is {', '.join(found)}: name one")
    return found[0]


def agreed(name: str, ask: Callable[[str], T], what: str, key: Callable[[T], object] = lambda answer: answer) -> T:
    """The answer of the architecture that a name stands for; of a generation where its parts agree in ``key``."""
    return names.agreed(name, parts(name), ask, what, key)


def instruction(identifier: str, architecture: str | None = None) -> Instruction:
    """The instruction called ``identifier``: its id, or the short form where that names one only.

    Control-state modifiers (``{daz,ftz,rounding=rz}``) are accepted on the
    instructions whose ``controls`` name them, modifiers that a row ``takes`` by
    rule at their legal values.  ``architecture`` decides where one id takes
    other formats on another architecture.  Raises UsageError with the near ids
    otherwise.
    """
    for name in dict.fromkeys((identifier, _canonical(identifier))):
        if catalog().named(name):
            return _agreed(_home(catalog().named(name), architecture), architecture)
    ids = catalog().shortened(_canonical(identifier))
    if len(ids) == 1:
        return _agreed(_home(catalog().named(ids[0]), architecture), architecture)
    if ids:
        raise UsageError(f"instruction {identifier!r} is ambiguous: {', '.join(ids)}")
    made = (
        _by_claim(identifier, architecture)
        or _with_state(identifier, architecture)
        or _by_rule(identifier, architecture)
    )
    if made is not None:
        return made
    meant = _meant(identifier, architecture)
    if meant is not None:
        return meant
    if is_glob(identifier):
        listed = f"mmaprobe instructions ARCH --instruction {shlex.quote(identifier)}"
        raise UsageError(
            f"unknown instruction {identifier!r}: a glob names many, and one is wanted; {listed} lists them"
        )
    known = [form.first.id for name in architectures() for form in catalog().forms(name)]
    choices = dict.fromkeys([*known, *map(short, known)])
    raise UsageError(
        f"unknown instruction {identifier!r}{_near(identifier, choices)}; see `mmaprobe instructions`{names.ADDED}"
    )


@dataclass(frozen=True)
class Meaning:
    """An instruction that a name may stand for, the architectures that have it, and as what the name was read."""

    instruction: Instruction
    architectures: tuple[str, ...]
    what: str


def meanings(name: str, architecture: str | None = None) -> tuple[Meaning, ...]:
    """The instructions that a name of somebody else's may stand for (``spellings``), on an architecture or on any."""
    homes = architectures() if architecture is None else tuple(map(names.architecture_of, parts(architecture)))
    found: dict[Instruction, tuple[list[str], str]] = {}
    for reading in spellings.readings(name):
        own: dict[Instruction, list[str]] = {}
        for home in homes:
            for made in _read(reading, home):
                own.setdefault(made, []).append(home)
        chosen: Sequence[Instruction] = list(own)
        if reading.lowers:
            chosen = spellings.of_size(chosen, reading.lowers)
        elif reading.what == spellings.LOOSE:
            chosen = spellings.least(chosen)
        for made in chosen:
            found.setdefault(made, (own[made], reading.what))
    return tuple(Meaning(made, tuple(where), what) for made, (where, what) in found.items())


def _read(reading: spellings.NameReading, home: str) -> Iterator[Instruction]:
    """The first instruction of every form of an architecture that a reading means; ids without a glob by themselves."""
    glob, lowers = reading.glob, reading.lowers
    if not is_glob(glob):
        found = [entry for entry in catalog().named(glob) if home in entry.ways]
        yield from (entry.instruction for entry in found)
        return
    native = [form for form in _forms(home, glob) if not lowers or form.way.kind == "native"]
    alone = [form for form in native if not lowers or len(form.way.primitives) == 1]
    heads = [(form, form.way.primitives[0].partition("[")[0].upper() if lowers else "") for form in alone]
    exact = [form for form, head in heads if head == lowers]
    begun = [form for form, head in heads if head.startswith(f"{lowers}.")]
    yield from (form.first for form in exact or begun if spellings.fits(reading, form.first))


def _meant(identifier: str, architecture: str | None) -> Instruction | None:
    """The one instruction that a name of somebody else's stands for; None where there is none, UsageError where there
    are several."""
    try:
        found = meanings(identifier, architecture)
    except UsageError:  # an architecture that the catalog does not know
        found = meanings(identifier)
    if architecture is not None and not found:
        found = tuple(filter(None, (_there(each, architecture) for each in meanings(identifier))))
    ids = list(dict.fromkeys(each.instruction.id for each in found))
    if len(ids) > 1:
        more = f" and {len(ids) - MOST_NAMED} more" if len(ids) > MOST_NAMED else ""
        raise UsageError(
            f"{identifier!r} may be {', '.join(ids[:MOST_NAMED])}{more}: name one; all of them: "
            f"mmaprobe instructions --find {shlex.quote(identifier)}"
        )
    if not ids:
        return None
    names.say(f"{identifier} is {ids[0]}")
    return _agreed(_home(catalog().named(ids[0]), architecture), architecture)


def _there(meaning: Meaning, architecture: str) -> Meaning | None:
    """The same on another architecture, under the name that its own compiler has for it; None where it has none."""
    made = meaning.instruction
    for form in forms(architecture):
        one = form.first
        if one.family == made.family and _same_work(one) == _same_work(made):
            return Meaning(one, (architecture,), meaning.what)
    return None


def _same_work(made: Instruction) -> object:
    return made.m, made.n, made.k, made.blocks, made.a, made.b, made.c, made.d, made.modifiers, made.chunk


def _home(entries: tuple[CatalogEntry, ...], architecture: str | None) -> list[CatalogEntry]:
    """The entries on an architecture, all where it has none of them."""
    try:
        bases = set(map(names.architecture_of, parts(architecture or "")))
    except UsageError:  # none, or one that the catalog does not know
        bases = set()
    return [entry for entry in entries if bases & entry.ways.keys()] or list(entries)


def _agreed(entries: Iterable[CatalogEntry], architecture: str | None) -> Instruction:
    """The one instruction of these entries, the first where they compute alike; UsageError where they do not."""
    found = list(entries)
    kinds: dict[Instruction, list[str]] = defaultdict(list)
    for entry in found:
        kinds[replace(entry.instruction, takes=(), source="")] += entry.ways
    if len(kinds) > 1:
        said = "; ".join(f"{_taken(made)} on {', '.join(names)}" for made, names in kinds.items())
        what = f"; {architecture} is none of these" if architecture else ": name the architecture too"
        raise UsageError(f"{found[0].instruction.id} takes {said}{what}")
    return found[0].instruction


def _taken(made: Instruction) -> str:
    """The formats of A and B, and in how many blocks where there are several: ``s8 and s8 in 64 blocks``."""
    return f"{made.a} and {made.b}" + (f" in {made.blocks} blocks" if made.blocks > 1 else "")


def _by_rule(identifier: str, architecture: str | None) -> Instruction | None:
    """The instruction of a row that takes the id's modifiers by rule; None where no row of the opcode takes any."""
    opcode, given = split(identifier)
    for size in range(len(given) - 1, -1, -1):
        own = [catalog().named(spell(opcode, pairs)) for pairs in itertools.combinations(given, size)]
        rows = [row for entries in own for row in entries if row.instruction.takes]
        if rows:
            return _resolved(_home(tuple(rows), architecture), given, architecture)
    return None


def _resolved(rows: list[CatalogEntry], given: tuple[tuple[str, str], ...], architecture: str | None) -> Instruction:
    """The rows' instruction with these modifiers, of those that take them; UsageError where none does."""
    made: list[CatalogEntry] = []
    refusals: list[UsageError] = []
    for row in rows:
        base = row.instruction
        try:
            found = resolve(base, dict(pair for pair in given if pair not in base.modifiers))
            made.append(CatalogEntry(found, row.ways))
        except UsageError as error:
            refusals.append(error)
    if not made:
        raise UsageError(f"{refusals[0]}{_siblings(rows[0])}")
    return _agreed(made, architecture)


def _siblings(row: CatalogEntry) -> str:
    """The other forms of a row's opcode, which differ in modifiers that are no matter of rules."""
    here = catalog().forms(next(iter(row.ways)))
    ids = [form.first.id for form in here if form.first.opcode == row.instruction.opcode]
    return f"; forms: {', '.join(ids)}" if len(ids) > 1 else ""


def _canonical(identifier: str) -> str:
    return spell(*split(identifier))


def _by_claim(identifier: str, architecture: str | None) -> Instruction | None:
    """The instruction by the claim of its layout that the id names; None where it names none."""
    opcode, modifiers = split(identifier)
    given = dict(modifiers)
    name = given.pop(KEY, "")
    if not name:
        return None
    base = instruction(spell(opcode, tuple(given.items())), architecture)
    homes = [architecture] if architecture else [home for row in catalog().named(unmodified(base)) for home in row.ways]
    known = {each: each.modifier[KEY] for home in homes for each in claims(base, architecture_base(home))}
    made = claimed(base, name)
    if made not in known:
        listed = ", ".join(known.values()) or "no source claims one"
        raise UsageError(f"{base.id}: layout={name} is no claim of an open layout here; known: {listed}")
    return made


def _with_state(identifier: str, architecture: str | None) -> Instruction | None:
    """The base instruction in the state its braces name, None where no such base exists."""
    opcode, modifiers = split(identifier)
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


def forms(architecture: str, glob: str = "*") -> tuple[Form, ...]:
    """The forms of an architecture with an id, or short form, that matches a glob, in the catalog's order.

    A form stands for all instructions that differ in what its row's ranges
    bind; its first is the first that matches, its count how many match.
    """
    return agreed(architecture, partial(_forms, glob=glob), "their instructions", _alike)


def _forms(part: str, glob: str) -> tuple[Form, ...]:
    base = names.architecture_of(part)
    found = catalog().forms(base) if glob == "*" else tuple(catalog().matching(base, glob_pattern(glob)))
    return tuple(form for form in found if names.accepted(part, form.way.targets))


def _alike(found: tuple[Form, ...]) -> object:
    return tuple((form.first.id, form.count, _said(form.way)) for form in found)


def _said(way: Lowering) -> Lowering:
    """A lowering apart from where and with what it was compiled."""
    return replace(way, architecture="", toolchain="")


def instructions(architecture: str) -> tuple[Instruction, ...]:
    """The first instruction of every form of an architecture, in the catalog's order, in its default state."""
    return tuple(form.first for form in forms(architecture))


def lowering(wanted: Instruction, architecture: str) -> Lowering:
    """What an instruction becomes on an architecture; UsageError naming those that have it where it does not."""
    return agreed(architecture, partial(_lowering, wanted), f"what {wanted.id} becomes", _said)


def _lowering(wanted: Instruction, part: str) -> Lowering:
    here = names.architecture_of(part)
    base = default_state(unclaimed(wanted))
    listed = catalog().listed_way(base, here)
    if listed is not None and names.accepted(part, listed.targets):
        return listed
    entries = catalog().named(unmodified(base))
    for entry in entries:
        way = entry.ways.get(here)
        if way is not None and names.accepted(part, way.targets):
            return way if base == entry.instruction else retyped(way, entry.instruction, base)
    raise UsageError(_lacking(wanted, part, [name for entry in entries for name in entry.ways]))


def homes(wanted: Instruction) -> tuple[str, ...]:
    """The architectures that have an instruction."""
    entries = catalog().named(unmodified(default_state(unclaimed(wanted))))
    return tuple(name for name in architectures() if any(name in entry.ways for entry in entries))


def _lacking(wanted: Instruction, part: str, homes: list[str]) -> str:
    """``sm_80 has no wgmma; sm_90a has``: the family where the architecture has nothing of it, else the id."""
    family = wanted.family.partition(".")[0]
    held = {form.first.family.partition(".")[0] for form in _forms(part, "*")}
    subject = wanted.id if wanted.requires or family in held else family
    return f"{part} has no {subject}; {_have(homes)}"


def _have(homes: Iterable[str]) -> str:
    found = sorted(set(homes), key=architectures().index)
    return f"{', '.join(found)} {'has' if len(found) == 1 else 'have'}" if found else "no architecture has"


def is_glob(text: str) -> bool:
    """Whether a text is a glob; without ``*`` and ``?`` it is an id, whose bit lists may have brackets."""
    return "*" in text or "?" in text


def match(architecture: str, glob: str) -> tuple[Instruction, ...]:
    """The instructions of an architecture whose id, or short form, matches a glob: of each form the first.

    Without ``*`` or ``?`` the glob is an id.  With a ``{`` it is matched
    against every control state, else against default states only.  Raises
    UsageError with the near ids, or the architectures that have such, where
    nothing matches.
    """
    if not is_glob(glob):
        named = instruction(glob, architecture)
        lowering(named, architecture)
        return (named,)
    found = [form.first for form in forms(architecture, glob) if not ("{" in glob and form.first.controls)]
    if "{" in glob:
        stateful = [base for base in instructions(architecture) if base.controls]
        found += [mode for base in stateful for mode in modes(base) if matches(mode, glob)]
    if not found:
        raise UsageError(_unmatched(architecture, glob))
    return tuple(found)


def _unmatched(architecture: str, glob: str) -> str:
    """Why a glob matches nothing: other architectures have it, or none has."""
    homes = catalog().homes(glob_pattern(glob))
    if homes:
        return f"{architecture} has no {glob!r}; {_have(homes)}"
    stem = glob.replace("*", "").replace("?", "")
    said = _near(stem, [made.id for made in instructions(architecture)])
    said = said or f"; mmaprobe instructions {architecture} lists them"
    return f"no instruction of {architecture} matches {glob!r}{said}"


def matches(made: Instruction, glob: str) -> bool:
    """Whether an instruction's id or short form is what a glob says."""
    return matches_text(made.id, glob)


def matches_text(identifier: str, glob: str) -> bool:
    """Whether an id or its short form is what a glob says."""
    return fnmatchcase(identifier, glob) or fnmatchcase(short(identifier), glob)
