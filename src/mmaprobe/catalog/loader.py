"""Read the catalog's data files: tables ``[[row]]``, each a product of axes (``row.py``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from typing import Any, TypeVar

from mmaprobe.catalog.architectures import Architectures, every
from mmaprobe.catalog.row import Row
from mmaprobe.catalog.supplements import KEPT, Supplement, added
from mmaprobe.catalog.toml import parsed, shipped
from mmaprobe.errors import MmaprobeError, UsageError

SCHEMA = 1
"""What a data file of instructions says its schema is."""
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class DataFile:
    """One data file, which names of these architectures."""

    file: str
    data: Mapping[str, Any]
    known: Architectures

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The rows, in the file's order."""
        tables = enumerate(self.data["row"])
        return tuple(self.checked(number, partial(Row, table, self.data, self.known)) for number, table in tables)

    def checked(self, number: int, make: Callable[[], T]) -> T:
        """What ``make`` gives; an error names the file and the row (counted from 0 here, from 1 in words)."""
        try:
            return make()
        except (MmaprobeError, LookupError, ValueError, TypeError, AttributeError) as error:
            reason = f"nothing binds {error}" if isinstance(error, KeyError) else error
            family = self.data["row"][number].get("family", "no family")
            raise UsageError(f"{self.file}, row {number + 1} ({family}): {reason}") from None


def data_files() -> tuple[DataFile, ...]:
    """The data files that ship with the package, by name, and then those that were added."""
    return _data_files(added(), every())


@lru_cache(maxsize=KEPT)
def _data_files(more: tuple[Supplement, ...], known: Architectures) -> tuple[DataFile, ...]:
    tables = (*_shipped().items(), *((each.origin, each.data) for each in more if "row" in each.data))
    return tuple(DataFile(file, data, known) for file, data in tables)


@cache
def _shipped() -> dict[str, dict[str, Any]]:
    texts = shipped("mmaprobe.catalog", "data")
    return {file: parsed(file, text, SCHEMA) for file, text in texts.items()}


def parse_rows(file: str, text: str, known: Architectures) -> DataFile:
    """The data file of a TOML text; UsageError naming it where it is wrong."""
    return DataFile(file, parsed(file, text, SCHEMA), known)
