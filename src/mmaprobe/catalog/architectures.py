"""Which architectures there are, which is like which, and what names in data files mean: ``architectures.toml``.

An architecture that is ``like`` another is wherever the other one is named: in groups, in rows of instructions, layouts
and shared parameters.  A group has one meaning, whatever file names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, TypeVar

from mmaprobe.catalog.supplements import KEPT, Supplement, added
from mmaprobe.catalog.toml import parsed, shipped
from mmaprobe.errors import UsageError, near

T = TypeVar("T")

FILE = "architectures.toml"
SCHEMA = 2
"""What ``architectures.toml`` says its schema is."""


@dataclass(frozen=True, eq=False)
class Architectures:
    """Every architecture in order, each with the one that it is ``like`` or ``""``; the groups, by name.

    UsageError, naming the ``file`` that says so, where one is like none that is there before it, or a group names what
    is not.
    """

    like: Mapping[str, str]
    groups: Mapping[str, tuple[str, ...]]
    file: str = FILE

    def __post_init__(self) -> None:
        before: list[str] = []
        for name, other in self.like.items():
            if other and other not in before:
                raise UsageError(
                    f"{self.file}: {name} is like {other!r}, which is not there before it{near(other, before)}"
                )
            before.append(name)
        for name in self.groups:
            if name in self.like:
                raise UsageError(f"{self.file}: group {name} has the name of an architecture")
            self.of(name)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All of them, in order."""
        return tuple(self.like)

    def line(self, architecture: str) -> tuple[str, ...]:
        """An architecture, the one that it is like, the one that that is like, ..."""
        found = [architecture]
        while other := self.like.get(found[-1], ""):
            found.append(other)
        return tuple(found)

    def of(self, name: str) -> tuple[str, ...]:
        """The architectures that a name stands for, in order: those of a group, or one with all that are like it."""
        if name not in self._members:
            known = (*self.like, *self.groups)
            raise UsageError(f"unknown architecture {name!r}{near(name, known)}")
        return self._members[name]

    def knows(self, name: str) -> bool:
        """Whether a name stands for architectures at all."""
        return name in self._members

    def among(self, architecture: str, names: Iterable[str]) -> bool:
        """Whether one of the names stands for this architecture."""
        return any(architecture in self.of(name) for name in names)

    def pick(self, table: Mapping[str, T], architecture: str, otherwise: T) -> T:
        """What a table says of an architecture, else of the next that it is like."""
        return next((table[each] for each in self.line(architecture) if each in table), otherwise)

    @cached_property
    def _members(self) -> Mapping[str, tuple[str, ...]]:
        found = {name: tuple(each for each in self.like if name in self.line(each)) for name in self.like}
        for group, listed in self.groups.items():
            for name in listed:
                if name not in found:
                    raise UsageError(f"{self.file}: group {group}: {name!r} is not there before it{near(name, found)}")
            inside = {each for name in listed for each in found[name]}
            found[group] = tuple(each for each in self.like if each in inside)
        return found


@cache
def tables() -> Mapping[str, Any]:
    """What ``architectures.toml`` holds."""
    return parsed(FILE, shipped("mmaprobe.catalog")[FILE], SCHEMA)


def every() -> Architectures:
    """The architectures that ship, and those that were added."""
    return _every(added())


@lru_cache(maxsize=KEPT)
def _every(more: tuple[Supplement, ...]) -> Architectures:
    found = read_architectures(tables())
    for supplement in more:
        found = extended(found, supplement)
    return found


def extended(here: Architectures, supplement: Supplement) -> Architectures:
    """These architectures with those of a supplement; UsageError as of ``Architectures``."""
    like = {name: entry.get("like", "") for name, entry in supplement.part("architectures").items()}
    groups = {name: tuple(listed) for name, listed in supplement.part("groups").items()}
    return Architectures({**here.like, **like}, {**here.groups, **groups}, supplement.origin)


def ships(architecture: str) -> bool:
    """Whether an architecture is one of the package's own."""
    return architecture.partition("+")[0] in tables()["architectures"]


def read_architectures(data: Mapping[str, Any]) -> Architectures:
    """The architectures of a file's tables."""
    like = {name: entry.get("like", "") for name, entry in data["architectures"].items()}
    return Architectures(like, {name: tuple(listed) for name, listed in data["groups"].items()})
