"""The table of seeded faults: rows of ``*.toml`` beside this file, checked where they are read."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLES = Path(__file__).resolve().parent


class BadTable(Exception):
    """A row that no longer applies, or that is not a row."""


@dataclass(frozen=True)
class Fault:
    """One fault: the text ``old``, which stands exactly once in ``file``, becomes ``new``, and a killer must fail.

    ``killers`` are pytest node ids of the bare selection, or of the whole one where ``long``.  ``needs`` names what a
    machine must have for the killers to run: programs, or variables that begin with MMAPROBE_.  ``host``: the killers
    compile a header of the engine by themselves, so that the native module need not be built with the fault.
    """

    name: str
    file: str
    old: str
    new: str
    killers: tuple[str, ...]
    why: str
    long: bool = False
    needs: tuple[str, ...] = ()
    host: bool = False

    @property
    def kind(self) -> str:
        """``c++``, ``data``, ``ci`` (packaging included) or ``python``."""
        if self.file.startswith("csrc/"):
            return "c++" if self.file.endswith((".hpp", ".cpp", ".cuh")) else "ci"
        if self.file.startswith("src/") or self.file.startswith("probes/") or self.file.startswith("validation/"):
            return "python" if self.file.endswith(".py") else "data"
        return "ci"

    @property
    def built(self) -> bool:
        """Whether the native module must be built with the fault."""
        return self.kind == "c++" and not self.host and self.file.startswith(("csrc/cpu/", "csrc/model/"))

    def applied(self, root: Path) -> str:
        """The file's text with the fault in it; BadTable where the old text does not stand there exactly once."""
        path = root / self.file
        if not path.is_file():
            raise BadTable(f"{self.name}: there is no {self.file}")
        text = path.read_text(encoding="utf-8")
        found = text.count(self.old)
        if found != 1:
            raise BadTable(f"{self.name}: its old text stands {found} times in {self.file}, not once")
        return text.replace(self.old, self.new)


def faults(folder: Path = TABLES) -> list[Fault]:
    """Every row of every table, in order of table and row; BadTable names what is wrong with one."""
    found: list[Fault] = []
    for path in sorted(folder.glob("*.toml")):
        for row in tomllib.loads(path.read_text(encoding="utf-8")).get("fault", []):
            name = f"{path.name}: {row.get('name', 'a row without a name')}"
            try:
                lists = {key: tuple(row.pop(key)) for key in ("killers", "needs") if key in row}
                found.append(Fault(**row, **lists))
            except TypeError as error:
                raise BadTable(f"{name}: {error}") from None
            if found[-1].old == found[-1].new or not found[-1].old or not found[-1].killers:
                raise BadTable(f"{name}: it changes nothing, or names no test")
    twice = {f.name for f in found if sum(f.name == other.name for other in found) > 1}
    if twice:
        raise BadTable(f"two rows are named {', '.join(sorted(twice))}")
    return found
