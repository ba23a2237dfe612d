"""Whether a unit gets the same answer at every seed: ``python tests/recovery/same_answer.py --units 51000-51014``.

Each random architecture is derived at ten seeds, blind; its answer is how the derivation ended (exact, bounded, or
without a datapath), with a datapath that is the unit's own function.  Each derivation is a line of ``--out`` as soon as
it ends, and what is there is not derived again: remove the file after a change of the derivation.  ``--table`` derives
nothing.  Exit status 1 where an answer is wrong or left open, or fewer than ``--least`` units are answered alike.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from outcomes import BAD, LIMIT, BlackBox, recover
from random_architectures import case
from seeds import seeds_of, spread
from sweep import end

from mmaprobe.derivation.budget import ALLOWANCE

SEEDS = list(range(10))
"""Seeds at which each unit is derived where nothing is said."""
Asked = tuple[int, int]
"""A unit, and the seed of its derivation."""


@dataclass(frozen=True)
class Answer:
    """How the derivation of a unit at a seed ended; values that its certificate leaves ``open``, by field; fields in
    which what was found is ``written`` otherwise than the unit is; units of work it took."""

    unit: int
    seed: int
    ended: str
    open: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    work: int = 0
    vectors: int = 0
    seconds: float = 0.0
    reason: str = ""

    @property
    def line(self) -> str:
        return json.dumps(asdict(self))


def answer(asked: Asked, limit: float = LIMIT, allowance: int = ALLOWANCE) -> Answer:
    """Derive a unit at a seed, and judge what comes out."""
    unit, seed = asked
    drawn = case(unit)
    box = BlackBox(drawn.instruction, drawn.datapath)
    found, derivation = recover(
        drawn.name, drawn.kind, box, drawn.instruction, drawn.datapath, seed, limit=limit, allowance=allowance
    )
    entries = derivation.certificate.entries if derivation else ()
    left = tuple(f"{entry.field} {entry.value}" for entry in entries if entry.verdict == "open")
    work = derivation.spent.total if derivation else 0
    return Answer(unit, seed, end(found), left, found.changes, work, found.vectors, found.seconds, found.reason)


def read(path: Path) -> list[Answer]:
    """The answers in a file; a line that was cut off is none."""
    rows = [json.loads(line) for line in path.read_text().split("\n")[:-1]] if path.exists() else []
    return [Answer(**row | {name: tuple(row[name]) for name in ("open", "written")}) for row in rows]


def sit(out: Path, asked: Sequence[Asked], jobs: int, work: Callable[[Asked], Answer]) -> None:
    """Derive what the file does not hold yet, each answer a line of it when it ends."""
    out.parent.mkdir(parents=True, exist_ok=True)
    done = read(out)
    out.write_text("".join(f"{each.line}\n" for each in done))
    known = {_asked(each) for each in done}
    with out.open("a") as file:
        for each in spread(work, [each for each in asked if each not in known], jobs):
            print(each.line, file=file, flush=True)


def table(found: Sequence[Answer]) -> str:
    """How each unit ended and how often, its seeds by their ends, and how many units are answered alike."""
    lines = [f"{'unit':>7} {'kind':8}{'alike':>6}  answers"]
    for unit, mine in by_unit(found).items():
        counts = Counter(each.ended for each in mine)
        said = ", ".join(
            f"{count} {name}" + (f" ({_seeds(mine, name)})" if len(counts) > 1 else "")
            for name, count in counts.most_common()
        )
        lines.append(f"{unit:7} {case(unit).kind:8}{'yes' if len(counts) == 1 else 'no':>6}  {said}")
    bad = [f"{each.unit} at {each.seed} ({each.ended})" for each in found if each.ended in BAD]
    lines.append(f"{len(alike(found))} of {len(by_unit(found))} units: the same answer at every seed")
    return "\n".join([*lines, f"left open, wrong or broken: {', '.join(bad) or 'none'}"])


def _seeds(mine: Sequence[Answer], ended: str) -> str:
    return " ".join(str(each.seed) for each in mine if each.ended == ended)


def by_unit(found: Sequence[Answer]) -> dict[int, list[Answer]]:
    """The answers of each unit, by seed."""
    units: dict[int, list[Answer]] = {}
    for each in sorted(found, key=_asked):
        units.setdefault(each.unit, []).append(each)
    return units


def _asked(each: Answer) -> Asked:
    return each.unit, each.seed


def alike(found: Sequence[Answer]) -> list[int]:
    """The units that ended the same way at every seed."""
    return [unit for unit, mine in by_unit(found).items() if len({each.ended for each in mine}) == 1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=seeds_of, required=True, help="the units: 7,100-120")
    parser.add_argument("--seeds", type=seeds_of, default=SEEDS, help="the seeds of each derivation (0-9)")
    parser.add_argument("--out", type=Path, default=Path("recovery/same_answer.jsonl"), help="file of the answers "
                        "(recovery/same_answer.jsonl)")  # fmt: skip
    parser.add_argument("--limit", type=float, default=LIMIT, help=f"seconds of processor time for each ({LIMIT:g})")
    parser.add_argument("--allowance", type=int, default=ALLOWANCE, help=f"units of work for each ({ALLOWANCE})")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument("--least", type=int, default=0, help="fail where fewer units are answered alike (0)")
    parser.add_argument("--table", action="store_true", help="the table of what is there, and nothing derived")
    given = parser.parse_args()
    asked = [(unit, seed) for unit in given.units for seed in given.seeds]
    if not given.table:
        sit(given.out, asked, given.jobs, partial(answer, limit=given.limit, allowance=given.allowance))
    found = [each for each in read(given.out) if _asked(each) in set(asked)]
    print(table(found))
    return any(each.ended in BAD for each in found) or len(alike(found)) < given.least


if __name__ == "__main__":
    sys.exit(main())
