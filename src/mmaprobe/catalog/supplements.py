"""What was added to the catalog from outside of the package: tables as in its data files, each with its origin.

``outside.py`` reads and checks them; whatever is made of the catalog is kept by what had been added then, so that a
supplement changes the next answer and no earlier one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Supplement:
    """Tables that hold together: ``[architectures]``, ``[groups]``, ``[[row]]``, layouts (docs/data_files.md).

    ``origin``: the file or the device that says so, as errors call it.
    """

    origin: str
    data: Mapping[str, Any]

    def part(self, name: str) -> Mapping[str, Any]:
        """One of its tables by names, empty where it has none."""
        found: Mapping[str, Any] = self.data.get(name, {})
        return found


KEPT = 8
"""What is made of the catalog as it was before so many supplements is forgotten."""
_ADDED: list[Supplement] = []


def added() -> tuple[Supplement, ...]:
    """Everything added so far, in order; the same objects as long as nothing more is."""
    return tuple(_ADDED)


@contextmanager
def all_or_nothing() -> Iterator[None]:
    """What is added inside stays if all of it goes well."""
    before = added()
    try:
        yield
    except BaseException:
        _ADDED[:] = before
        raise


def keep(supplement: Supplement) -> None:
    """Add what was checked (``outside.add``) for as long as the process lives."""
    _ADDED.append(supplement)
