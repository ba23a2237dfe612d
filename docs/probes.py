"""Write the list of questions into docs/probes.md: ``python docs/probes.py``.

A row is what a file of ``src/mmaprobe/probing/questions`` states of its question.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mmaprobe.probing.questions import PROBES

PAGE = Path(__file__).with_name("probes.md")
BEGIN, END = "<!-- written by docs/probes.py -->", "<!-- end -->"


def lines() -> Iterator[str]:
    """The table, in the order in which the questions are asked."""
    yield "| question | asks | rivals |"
    yield "|---|---|---|"
    yield from (f"| `{name}` | {probe.asks} | {probe.rivals} |" for name, probe in PROBES.items())


def page(text: str) -> str:
    """The page with its list made anew."""
    before, _, rest = text.partition(BEGIN)
    return before + "\n".join([BEGIN, "", *lines(), "", ""]) + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
