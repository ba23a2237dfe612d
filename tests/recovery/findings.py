"""What the probes say of every family of shipped datapaths: ``python tests/recovery/findings.py``.

One instruction of each family (``shipped.representatives``) is asked all questions on its model, and every
finding is held against its datapath (``second_source.findings``).  Prints the table of ``docs/probes.md``, and each
finding that is not exact with the number of families that it is of; ``--write`` writes the table.  Exit status 1 where
one is wrong.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from shipped import Shipped, representatives

from mmaprobe.devices.base import open_device
from mmaprobe.evidence.records import Finding
from mmaprobe.probing import QUESTIONS, probe
from second_source.findings import contradiction

PAGE = Path(__file__).parents[2] / "docs" / "probes.md"
BEGIN, END = "<!-- written by tests/recovery/findings.py -->", "<!-- end -->"
COLUMNS = ("exact", "bounded", "inconclusive", "contradictory", "wrong")


def findings() -> Iterator[tuple[Shipped, dict[str, Finding]]]:
    """Each family's first datapath, and what the probes found of it."""
    for shipped in representatives():
        yield shipped, probe(open_device(f"model:{shipped.architecture}"), shipped.instruction)


def judged(shipped: Shipped, finding: Finding) -> str:
    """The status of a finding, or ``wrong``."""
    return "wrong" if contradiction(shipped.datapath, finding) else finding.status


def table(found: list[tuple[Shipped, dict[str, Finding]]]) -> str:
    """Families by question and what became of it."""
    lines = [f"| question | {' | '.join(COLUMNS)} |", "|---|" + "---|" * len(COLUMNS)]
    for question in QUESTIONS:
        counts = Counter(judged(shipped, answers[question]) for shipped, answers in found)
        lines.append(f"| `{question}` | {' | '.join(str(counts[column]) for column in COLUMNS)} |")
    return "\n".join(lines)


def main() -> int:
    found = list(findings())
    print(table(found))
    if "--write" in sys.argv:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        page = f"{before}{BEGIN}\n\n{table(found)}\n\n{END}{rest.partition(END)[2]}"
        PAGE.write_text(page, encoding="utf-8")
    for question in QUESTIONS:
        texts = Counter((judged(s, answers[question]), answers[question].text) for s, answers in found)
        for (status, text), count in texts.most_common():
            if status != "exact":
                print(f"{question}: {status} in {count}: {text}")
    return any(judged(shipped, finding) == "wrong" for shipped, answers in found for finding in answers.values())


if __name__ == "__main__":
    sys.exit(main())
