"""All 10,000 random architectures once, in as many sittings as it takes: ``python tests/recovery/whole.py RECORD``.

Seeds are taken a hundred at a time, from ``--first`` on and then those before it; a finished hundred is a line of
RECORD, and is not run again.  A line holds how each seed ended, the seconds of processor time (median and most), and
what was wrong or left open, whole; and a digest of the sources that decide: a record is only continued by the sources
that began it (of another commit: ``git worktree add``).
Exit status 1 where an answer was wrong or left open, or a derivation broke down.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from outcomes import BAD, LIMIT, Outcome
from random_architectures import KINDS, case
from seeds import run

from mmaprobe.derivation.budget import ALLOWANCE

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (
    "src/mmaprobe/**/*.py", "src/mmaprobe/**/*.toml", "csrc/**/*",
    *(f"tests/recovery/{name}.py" for name in ("random_architectures", "outcomes", "judge", "aims")),
)  # fmt: skip
CASES, HUNDRED = 10_000, 100
ENDS = {"E": "exact", "B": "bounded", "O": "left open", ".": "inconclusive", "S": "stopped", "W": "wrong", "X": "error"}
"""Letters of a line: recovered exactly or with open fields, or the verdict."""
WIDTHS = ((1, 1), (2, 2), (3, 7), (8, 15), (16, 31), (32, 63), (64, 64))
"""Lanes, from and to, that are counted together."""


@dataclass(frozen=True)
class Hundred:
    """A line of the record: the first seed, how each ended, (median, most) seconds, what was wrong or left open."""

    search: str
    first: int
    ends: str
    seconds: tuple[float, float]
    bad: tuple[dict[str, Any], ...] = ()

    @classmethod
    def of(cls, search: str, first: int, found: list[Outcome]) -> Hundred:
        seconds = [each.seconds for each in found]
        bad = tuple(asdict(each) for each in found if each.verdict in BAD)
        cost = (round(statistics.median(seconds), 2), round(max(seconds), 2))
        return cls(search, first, "".join(map(letter, found)), cost, bad)


def letter(outcome: Outcome) -> str:
    """How a derivation ended."""
    end = outcome.status if outcome.verdict == "recovered" else outcome.verdict
    return next(key for key, name in ENDS.items() if name == end)


def digest() -> str:
    """Of every source that decides how a derivation ends."""
    found = hashlib.sha256()
    for path in sorted(path for pattern in SOURCES for path in ROOT.glob(pattern) if path.is_file()):
        found.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return found.hexdigest()[:16]


def read(record: Path) -> list[Hundred]:
    """The finished hundreds; a line that was cut off is none."""
    lines = record.read_text().split("\n")[:-1] if record.exists() else []
    rows = [json.loads(line) for line in lines]
    return [Hundred(**row | {"seconds": tuple(row["seconds"]), "bad": tuple(row["bad"])}) for row in rows]


def write(record: Path, hundreds: list[Hundred]) -> None:
    """The record anew, by way of a temporary name."""
    record.parent.mkdir(parents=True, exist_ok=True)
    part = record.with_name(record.name + ".part")
    part.write_text("".join(json.dumps(asdict(each)) + "\n" for each in hundreds))
    part.rename(record)


def sit(
    record: Path, cases: int, search: str, derive: Callable[[range], list[Outcome]], until: float, start: int = 0
) -> Iterator[str]:
    """Run the hundreds that the record lacks, those from ``start`` on first, and say each, until the clock shows
    ``until``."""
    done = read(record)
    if others := {each.search for each in done} - {search}:
        raise SystemExit(
            f"{record} was begun by other sources ({', '.join(sorted(others))}; these are {search}): continue it in a "
            "work tree of its commit (git worktree add), or name another record"
        )
    for first in sorted(range(0, cases, HUNDRED), key=lambda first: (first < start, first)):
        if first in {each.first for each in done} or time.monotonic() >= until:
            continue
        done.append(Hundred.of(search, first, derive(range(first, min(first + HUNDRED, cases)))))
        write(record, sorted(done, key=attrgetter("first")))
        counts = Counter(done[-1].ends)
        yield f"{first}-{first + len(done[-1].ends) - 1}: " + ", ".join(
            f"{counts[end]} {name}" for end, name in ENDS.items() if counts[end]
        )


def table(done: list[Hundred]) -> str:
    """Counts by kind of sum and by lanes, the seconds, and what was wrong."""
    ends = {each.first + number: end for each in done for number, end in enumerate(each.ends)}
    drawn = {seed: case(seed) for seed in ends}
    groups: dict[str, Callable[[int], bool]] = {
        kind: lambda seed, kind=kind: drawn[seed].kind == kind for kind in KINDS
    }
    for low, high in WIDTHS:
        name = f"K = {low}" if low == high else f"K = {low}-{high}"
        groups[name] = lambda seed, low=low, high=high: low <= drawn[seed].instruction.k <= high
    groups["all"] = lambda seed: True
    lines = [f"{'':10}{'cases':>7}" + "".join(f"{name:>14}" for name in ENDS.values())]
    for name, among in groups.items():
        counts = Counter(end for seed, end in ends.items() if among(seed))
        if counts:
            lines.append(f"{name:10}{counts.total():7}" + "".join(f"{counts[end]:14}" for end in ENDS))
    if done:
        medians = [each.seconds[0] for each in done]
        lines.append(f"seconds: median {statistics.median(medians):.2f}, most {max(e.seconds[1] for e in done):.2f}")
    bad = [f"{row['name']} ({row['verdict']})" for each in done for row in each.bad]
    return "\n".join([*lines, f"left open, wrong or broken: {', '.join(bad) or 'none'}"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", type=Path, help="file of the finished hundreds")
    parser.add_argument("--cases", type=int, default=CASES, help=f"seeds 0 to this, less one ({CASES})")
    parser.add_argument("--first", type=int, default=0, help="seed to begin with: those before it come last (0)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no hundred after so long (no end)")
    parser.add_argument("--limit", type=float, default=LIMIT, help=f"seconds of processor time for each ({LIMIT:g})")
    parser.add_argument("--allowance", type=int, default=ALLOWANCE, help=f"units of work for each ({ALLOWANCE})")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument("--table", action="store_true", help="the tables of what is there, and nothing run")
    given = parser.parse_args()
    until = 0.0 if given.table else time.monotonic() + 60 * given.minutes

    def derive(seeds: range) -> list[Outcome]:
        return list(run(seeds, given.jobs, given.limit, given.allowance))

    search = next((each.search for each in read(given.record)), "") if given.table else digest()
    for line in sit(given.record, given.cases, search, derive, until, given.first):
        print(line, flush=True)
    done = read(given.record)
    print(table(done))
    return any(each.bad for each in done)


if __name__ == "__main__":
    sys.exit(main())
