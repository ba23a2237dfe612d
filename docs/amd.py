"""Write the table of AMD's coverage into docs/amd.md: ``python docs/amd.py``.

Of each target: how many forms the catalog has of each kind, how many of them have an open layout, with how many claims,
and what their datapaths rest on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.layouts import claims, open_reason
from mmaprobe.catalog.lookup import architectures, instructions
from mmaprobe.errors import UsageError
from mmaprobe.parameters.lookup import basis_for

PAGE = Path(__file__).with_name("amd.md")
BEGIN, END = "<!-- written by docs/amd.py -->", "<!-- end -->"
KINDS = {"MFMA": ("mfma",), "scaled MFMA": ("mfma_scale",), "SMFMAC": ("smfmac",), "WMMA": ("wmma",),
         "scaled WMMA": ("wmma_scale", "wmma_scale16"), "SWMMAC": ("swmmac",),
         "V_DOT": ("dot2", "dot4", "dot8")}  # fmt: skip
BASES = ("recorded", "published", "predicted", "none")
COLUMNS = ("targets", "forms", *KINDS, "open", "claims", *BASES)


def row(home: str) -> tuple[int, ...]:
    """The numbers of one target."""
    found = instructions(home)
    families = Counter(made.family.partition(".")[0] for made in found)
    opened = [made for made in found if open_reason(made, home)]
    bases = Counter(_basis(home, made) for made in found)
    kinds = [sum(families[name] for name in names) for names in KINDS.values()]
    by_claim = sum(len(claims(made, home)) for made in opened)
    return (len(found), *kinds, len(opened), by_claim, *(bases[basis] for basis in BASES))


def _basis(home: str, made: Instruction) -> str:
    try:
        return basis_for(home, made)
    except UsageError:
        return "none"


def lines() -> Iterator[str]:
    """The table; targets with the same numbers share a line."""
    homes: dict[tuple[int, ...], list[str]] = {}
    for home in (name for name in architectures() if name.startswith("gfx")):
        homes.setdefault(row(home), []).append(home)
    yield f"| {' | '.join(COLUMNS)} |"
    yield "|" + "---|" * len(COLUMNS)
    for numbers, names in homes.items():
        yield f"| {' '.join(names)} | {' | '.join(str(number or '') for number in numbers)} |"
    totals = [sum(numbers[place] * len(names) for numbers, names in homes.items()) for place in range(len(COLUMNS) - 1)]
    yield f"| all | {' | '.join(map(str, totals))} |"


def page(text: str) -> str:
    """The page with its table made anew."""
    before, _, rest = text.partition(BEGIN)
    return before + "\n".join([BEGIN, "", *lines(), "", ""]) + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
