"""The open questions as data (``data/questions.toml``): what is asked, of which instructions, who claims what.

A claim is one of: a change of the shipped datapath (``changes``: ``FIELD=VALUE`` as
``parameters.mutate`` reads it; ``set``: whole parts of its TOML form), a word that is
answered whatever the operands (``word``), or what a probe (``answer``, by the keys of
its answer) or an experiment (``outcome``) finds.  Which of them holds is never in the
file: a device says it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from mmaprobe.catalog.architectures import every
from mmaprobe.catalog.toml import parsed
from mmaprobe.errors import UsageError, near
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.table import from_table, to_table

FILE = "questions.toml"
SCHEMA = 1
"""What the file of questions says its schema is."""
ANY = "*"
"""Every architecture, whatever it is called."""
OF_A_TREE = ("step", "order", "result")
"""Parts of a datapath that say how its tree is applied."""


@dataclass(frozen=True)
class Claim:
    """What somebody says the answer is; ``architectures``: those it speaks of."""

    name: str
    sources: tuple[str, ...]
    architectures: tuple[str, ...] = (ANY,)
    changes: tuple[str, ...] = ()
    set: Mapping[str, Any] = field(default_factory=dict)
    word: int | None = None
    answer: Mapping[str, Any] | None = None
    outcome: str | None = None

    def datapath(self, shipped: Datapath) -> Datapath:
        """What the claim makes of the shipped datapath; a tree of its own comes with its own steps and order."""
        left_out = OF_A_TREE if "tree" in self.set else ()
        table = {key: value for key, value in to_table(shipped).items() if key not in left_out}
        made = from_table(table | _for_lanes(dict(self.set), shipped.k)) if self.set else shipped
        for change in self.changes:
            made = _changed(made, _for_lanes(change, shipped.k))
        return made

    def answers(self, found: Any) -> bool:
        """Whether a probe's answer is what the claim says, key by key."""
        if self.answer is None or not isinstance(found, Mapping):
            return False
        return all(key in found and found[key] == value for key, value in self.answer.items())


@dataclass(frozen=True)
class WrittenVector:
    """A vector as values: ``a``, ``b`` lane by lane, ``c``; and what it is for."""

    a: str
    b: str
    c: str
    note: str = ""


@dataclass(frozen=True)
class Question:
    """One question; ``others``: fields and ranges (``tree.fraction_bits=8..40``) whose values are rivals, too."""

    name: str
    topic: str
    asks: str
    matters: str
    architectures: tuple[str, ...]
    instructions: Mapping[str, tuple[str, ...]]
    claims: tuple[Claim, ...]
    vectors: tuple[WrittenVector, ...] = ()
    others: tuple[str, ...] = ()
    probe: str | None = None
    experiment: str | None = None
    search: bool = True
    specials: bool = False

    def concerns(self, architecture: str) -> bool:
        """Whether it is a question about this architecture."""
        return _among(architecture, self.architectures)

    def instructions_on(self, architecture: str) -> tuple[str, ...]:
        """The ids and globs of instructions that it names for this architecture."""
        named = (some for name, some in self.instructions.items() if _among(architecture, (name,)))
        return tuple(dict.fromkeys(pattern for some in named for pattern in some))

    def claims_on(self, architecture: str) -> tuple[Claim, ...]:
        """The claims that speak of this architecture."""
        return tuple(claim for claim in self.claims if _among(architecture, claim.architectures))

    def values(self, shipped: Datapath) -> dict[str, Datapath]:
        """The datapath of every value of ``others`` that the shipped one can have, by what is changed."""
        found: dict[str, Datapath] = {}
        for text in self.others:
            name, _, values = text.partition("=")
            for value in _spread(values):
                try:
                    found[f"{name}={value}"] = _changed(shipped, f"{name}={value}")
                except UsageError:  # steps that do not divide K
                    continue
        return found


def _among(architecture: str, named: Iterable[str]) -> bool:
    return any(name in (ANY, architecture) for name in named)


def _for_lanes(value: Any, k: int) -> Any:
    """The value with ``{k}``, ``{lanes}`` and ``{descending}`` filled in."""
    if isinstance(value, dict):
        return {key: _for_lanes(item, k) for key, item in value.items()}
    if isinstance(value, list):
        return [_for_lanes(item, k) for item in value]
    if not isinstance(value, str):
        return value
    return value.replace("{k}", str(k)).replace("{lanes}", f"0..{k - 1}").replace("{descending}", f"{k - 1}..0")


def _changed(datapath: Datapath, change: str) -> Datapath:
    """One change; a structural one that the datapath has already is none."""
    name, _, value = change.partition("=")
    if (name, value) == ("nan_rule", "canonical") and datapath.special.nan == "canonical":
        return datapath
    return mutate(datapath, name, value)


def _spread(values: str) -> list[str]:
    """``-40..-8`` as numbers, and words as they are: ``1..4 none``."""
    found: list[str] = []
    for word in values.split():
        first, dots, last = word.partition("..")
        found += map(str, range(int(first), int(last) + 1)) if dots else [word]
    return found


@cache
def open_questions() -> tuple[Question, ...]:
    """Every question that ships, in the order in which they are asked; UsageError where the file is wrong."""
    text = (resources.files("mmaprobe.runs.open_questions") / "data" / FILE).read_text("utf-8")
    return from_text(text)


def from_text(text: str, file: str = FILE) -> tuple[Question, ...]:
    """The questions of a file's text."""
    data = parsed(file, text, SCHEMA)
    common = data.get("common", {})
    tables = [_filled(table, common) for table in data["question"]]
    found = tuple(_question(table, f"{file}: question {n}") for n, table in enumerate(tables, 1))
    names = [question.name for question in found]
    if len(set(names)) < len(names):
        raise UsageError(f"{file}: two questions of one name")
    return found


def named(names: tuple[str, ...]) -> tuple[Question, ...]:
    """The questions of these names, all where none is given; UsageError with the near ones for another."""
    known = {question.name: question for question in open_questions()}
    for name in names:
        if name not in known:
            raise UsageError(f"unknown open question {name!r}{near(name, known)}")
    return tuple(known[name] for name in names) if names else open_questions()


def _question(table: dict[str, Any], where: str) -> Question:
    given = dict(table)
    claims = tuple(_claim(claim, where) for claim in given.pop("claim", []))
    forms = tuple(_read(WrittenVector, {"c": "0", **form}, where) for form in given.pop("vectors", []))
    given["architectures"] = _architectures(given.get("architectures", []), where)
    named = given.get("instructions", {})
    some = named if isinstance(named, dict) else {ANY: named}
    given["instructions"] = {home: tuple(ids) for key, ids in some.items() for home in _architectures([key], where)}
    made: Question = _read(Question, {**given, "claims": claims, "vectors": forms}, where)
    kinds = {_kind(claim) for claim in claims}
    asked = {"answer": made.probe, "outcome": made.experiment}
    if len(claims) < 2 or len(kinds) > 1 or (kinds & asked.keys() and not asked[next(iter(kinds))]):
        raise UsageError(f"{where} ({made.name}): it needs two claims or more, all of one kind, and what finds them")
    return made


def _filled(value: Any, common: Mapping[str, Any]) -> Any:
    """The value with every text ``{name}`` that names a part of [common] replaced by that part."""
    if isinstance(value, dict):
        return {key: _filled(item, common) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, common) for item in value]
    if isinstance(value, str) and value.startswith("{") and value[1:-1] in common:
        return _filled(common[value[1:-1]], common)
    return value


def _kind(claim: Claim) -> str:
    if claim.answer is not None:
        return "answer"
    return "outcome" if claim.outcome is not None else "datapath"


def _claim(table: dict[str, Any], where: str) -> Claim:
    given = {**table, "architectures": _architectures(table.get("architectures", [ANY]), where)}
    if "word" in given:
        given["word"] = int(given["word"], 16)
    made: Claim = _read(Claim, given, where)
    return made


def _architectures(names: list[str], where: str) -> list[str]:
    try:
        return [home for name in names for home in ((ANY,) if name == ANY else every().of(name))]
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def _read(kind: type[Any], table: dict[str, Any], where: str) -> Any:
    """A record of a table's values; lists become tuples."""
    known = kind.__dataclass_fields__
    for key in table:
        if key not in known:
            raise UsageError(f"{where}.{key}: unknown key{near(key, known)}")
    try:
        return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in table.items()})
    except TypeError as error:
        raise UsageError(f"{where}: {error}") from None
