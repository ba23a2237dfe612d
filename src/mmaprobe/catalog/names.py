"""What an architecture is called: its own name, a product, a generation, another target of its compiler.

``sm_90a`` stays as it is, ``H200`` is ``sm_90a``, ``ampere`` is four parts, and
``sm_90`` is ``sm_90a`` without what that target does not accept.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from string import ascii_lowercase
from typing import Any, TypeVar

from mmaprobe.catalog.architectures import Architectures, every, ships, tables
from mmaprobe.catalog.supplements import KEPT
from mmaprobe.errors import UsageError, near
from mmaprobe.vendors import vendor_of

T = TypeVar("T")
LOG = logging.getLogger("mmaprobe")

ADDED = ", or name the file that has it: --catalog FILE"
"""What is said where nothing that ships has a name."""
ACCEPTS = {"all": ("all",), "family": ("all", "family")}
"""Which lowerings' ``targets`` another target of the compiler accepts."""


@dataclass(frozen=True)
class Target:
    """Another target of an architecture's compiler, and which lowerings' ``targets`` it accepts."""

    architecture: str
    accepts: tuple[str, ...]


@dataclass(frozen=True)
class Names:
    """Every other name of an architecture: by what people write, without spaces, hyphens and capitals."""

    targets: Mapping[str, Target]
    generations: Mapping[str, tuple[str, ...]]
    products: Mapping[str, str]
    driven: Mapping[str, str]
    spelled: Mapping[str, str]


def names() -> Names:
    """The names in ``architectures.toml``, and what was added by them."""
    return _names(every())


@lru_cache(maxsize=KEPT)
def _names(here: Architectures) -> Names:
    data = tables()
    lists: list[Mapping[str, Any]] = [{k: v for k, v in group.items() if k != "source"} for group in data["products"]]
    products = {_plain(name): arch for group in lists for arch, listed in group.items() for name in listed}
    spelled = {_plain(name): name for group in lists for listed in group.values() for name in listed}
    generations = {name: here.of(name) for name in data["generations"]}
    driven = {_bare(name): arch for group in lists for arch, listed in group.items() for name in listed}
    return Names(_targets(data["architectures"], here), generations, products, driven, spelled)


def _targets(table: Mapping[str, Mapping[str, Any]], here: Architectures) -> dict[str, Target]:
    """The other targets of each architecture, those of the one that it is like under its own name; of a name that two
    make it is the first one's."""
    letters = {name: entry["targets"] for name, entry in table.items() if "targets" in entry}
    return {
        name.rstrip(ascii_lowercase) + letter: Target(name, ACCEPTS[accepts])
        for name in reversed(here.names)
        for letter, accepts in here.pick(letters, name, {}).items()
    }


def is_taken(name: str) -> bool:
    """Whether a name is a product's, a generation's or another target's, however it is spelled."""
    other, plain = names(), _plain(name)
    return plain in other.products or plain in {*map(_plain, other.generations), *map(_plain, other.targets)}


def device_of(architecture: str) -> str:
    """The device that runs an architecture's instructions where it is: ``hip:0``; empty for an unknown one."""
    vendor = vendor_of(architecture)
    if vendor is not None:
        return vendor.first()
    line = every().line(architecture_of(architecture))
    if any(map(ships, line)):
        return "cpu"
    return "process:COMMAND" if line[0] in every().names else ""


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).lower()


def _bare(name: str) -> str:
    """A product's name without what drivers put around it: ``h100`` of ``NVIDIA H100 80GB HBM3``."""
    words = re.split(r"[\s_/()-]+", re.sub(r"(?i)\bMIG\b.*", "", name).lower())
    around = re.compile("|".join(tables()["around"]))
    return "".join(word for word in words if not around.fullmatch(word))


def parts(name: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """The architectures or targets that a name stands for; UsageError with near names for one that means nothing.

    Said once on standard error (the logger ``mmaprobe``) where it is not the
    architecture's own name.
    """
    if name.partition("+")[0] in known:
        return (name,)
    other = names()
    plain = _plain(name)
    targets = {_plain(target): target for target in other.targets}
    if plain in targets:
        say(f"{name} is {other.targets[targets[plain]].architecture}, less what only that target accepts")
        return (targets[plain],)
    if plain in other.generations:
        found = other.generations[plain]
    elif plain in other.products:
        found = (other.products[plain],)
    elif _bare(name) in other.driven:
        found = (other.driven[_bare(name)],)
    else:
        every = (*known, *other.generations, *other.spelled.values())
        raise UsageError(f"unknown architecture {name!r}{near(name, every)}; see `mmaprobe instructions`{ADDED}")
    say(f"{name} is {', '.join(found)}")
    return found


def architecture_of(part: str) -> str:
    """The architecture of a target, without what a vendor adds (``x86-64+intel`` is ``x86-64``)."""
    target = names().targets.get(part)
    return target.architecture if target else part.partition("+")[0]


def accepted(part: str, targets: str) -> bool:
    """Whether what a name stands for accepts a lowering that these targets do."""
    target = names().targets.get(part)
    return target is None or targets in target.accepts


def agreed(name: str, found: tuple[str, ...], ask: Callable[[str], T], what: str, key: Callable[[T], object]) -> T:
    """The answer of every part that a name stands for; UsageError listing the parts where they differ in ``key``."""
    first = ask(found[0])
    if len(found) > 1:
        groups: dict[object, list[str]] = {key(first): [found[0]]}
        for part in found[1:]:
            groups.setdefault(key(ask(part)), []).append(part)
        if len(groups) > 1:
            said = "; ".join(", ".join(group) for group in groups.values())
            raise UsageError(f"{name} is {', '.join(found)}, which differ in {what} ({said}): name one")
    return first


@cache
def say(text: str) -> None:
    """Tell once, on standard error, what a name was taken for."""
    LOG.warning("%s", text)
