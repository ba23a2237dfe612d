"""Options of the public calls held against what they may be, before anything is opened or begun."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path

from mmaprobe.errors import UsageError, brief, near


@dataclass(frozen=True)
class Rule:
    """What an option may be: in words, and as a test of a value."""

    words: str
    holds: Callable[[object], bool]


def checked(call: str, given: Mapping[str, object], rules: Mapping[str, Rule]) -> None:
    """UsageError that names the first option which the call does not take or whose value is none of those allowed."""
    for name, value in given.items():
        if name not in rules:
            raise UsageError(f"{call} takes no option {name!r}{near(name, rules)}")
        if not rules[name].holds(value):
            raise UsageError(f"{name} is {brief(value)}; it must be {rules[name].words}")


def whole(least: int, most: int | None = None) -> Rule:
    """A whole number, Python's or NumPy's; True and False are none."""
    words = f"of {least:,} or more" if most is None else f"of {least:,} to {most:,}"

    def holds(value: object) -> bool:
        return _is_whole(value) and least <= int(value) and (most is None or int(value) <= most)  # type: ignore[call-overload]

    return Rule(f"a whole number {words}", holds)


def one_of(*words: str) -> Rule:
    """One of a few words."""
    return Rule(" or ".join(words), lambda value: isinstance(value, str) and value in words)


def of_type(words: str, *types: type) -> Rule:
    """An instance of one of the types."""
    return Rule(words, lambda value: isinstance(value, types))


def or_none(rule: Rule) -> Rule:
    """The same, or nothing."""
    return Rule(f"{rule.words}, or None", lambda value: value is None or rule.holds(value))


def with_methods(*names: str) -> Rule:
    """Anything that has these methods."""
    return Rule(
        f"something with the methods {', '.join(names)}",
        lambda value: all(callable(getattr(value, name, None)) for name in names),
    )


def _is_list_of_names(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(each, str) for each in value)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


ANY = Rule("anything", lambda value: True)
"""Of an option that is checked where it is used."""
FLAG = of_type("True or False", bool)
TEXT = of_type("a text", str)
PATH = of_type("a path", str, Path)
FUNCTION = Rule("a function", callable)
NAMES = Rule("a list of names", _is_list_of_names)
NUMBER = Rule("a number", _is_number)
ANY_WHOLE = Rule("a whole number", _is_whole)
