"""Recovery of random architectures, some seeds: ``python tests/recovery/seeds.py --seeds 7,100-120``.

Exit status 1 where an answer was wrong or left open, a derivation broke down, or fewer than ``--least`` were recovered.
All 10,000 are run by ``whole.py``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from outcomes import BAD, LIMIT, VERDICTS, Outcome, outcome
from random_architectures import KINDS

from mmaprobe.derivation.budget import ALLOWANCE

Asked, Found = TypeVar("Asked"), TypeVar("Found")
COSTS = "".join(f"{what:>9}{'max':>8}" for what in ("tiles", "launches", "seconds"))


def seeds_of(text: str) -> list[int]:
    """``7,100-120``: seed 7, and 100 to 120."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def read(path: Path) -> list[Outcome]:
    """The outcomes in a shard's file."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [Outcome(**{**row, "changes": tuple(row["changes"])}) for row in rows]


def spread(work: Callable[[Asked], Found], seeds: Iterable[Asked], jobs: int) -> Iterator[Found]:
    """What the work finds of each seed, in order, from ``jobs`` processes."""
    if jobs == 1:
        yield from map(work, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(work, seeds, chunksize=4)


def run(seeds: Iterable[int], jobs: int, limit: float, allowance: int) -> Iterator[Outcome]:
    """The outcome of each seed, in order, from ``jobs`` processes."""
    return spread(partial(outcome, limit=limit, allowance=allowance), seeds, jobs)


def costs(found: list[Outcome]) -> str:
    """Median and maximum of what each cost, below ``COSTS``."""
    line = ""
    for name, places in (("tiles", 0), ("launches", 0), ("seconds", 2)):
        values = [getattr(each, name) for each in found]
        line += f"{statistics.median(values):9.{places}f}{max(values):8.{places}f}"
    return line


def table(found: list[Outcome], kinds: Iterable[str] = tuple(KINDS)) -> str:
    """Counts and costs by kind of sum: medians and maxima of tiles, launches and seconds of processor time."""
    lines = [f"{'kind':10}{'cases':>7}" + "".join(f"{verdict:>14}" for verdict in VERDICTS) + COSTS]
    for kind in (*kinds, "all"):
        mine = [each for each in found if kind in (each.kind, "all")]
        if not mine:
            continue
        counts = Counter(each.verdict for each in mine)
        lines.append(f"{kind:10}{len(mine):7}" + "".join(f"{counts[verdict]:14}" for verdict in VERDICTS) + costs(mine))
    bad = [each.name for each in found if each.verdict in BAD]
    return "\n".join([*lines, f"left open, wrong or broken: {', '.join(map(str, bad)) or 'none'}"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=seeds_of, required=True, help="the seeds: 7,100-120")
    parser.add_argument("--limit", type=float, default=LIMIT, help=f"seconds of processor time for each ({LIMIT:g})")
    parser.add_argument("--allowance", type=int, default=ALLOWANCE, help=f"units of work for each ({ALLOWANCE})")
    parser.add_argument("--quiet", action="store_true", help="of the seeds, print those that fail and the table only")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument("--least", type=int, default=0, help="fail where fewer are recovered (0)")
    given = parser.parse_args()
    found = []
    for each in run(given.seeds, given.jobs, given.limit, given.allowance):
        if not given.quiet or each.verdict in BAD:
            print(each.line, flush=True)
        found.append(each)
    print(table(found))
    counts = Counter(each.verdict for each in found)
    if counts["recovered"] < given.least:
        print(f"{counts['recovered']} recovered, fewer than {given.least}")
    return any(map(counts.get, BAD)) or counts["recovered"] < given.least


if __name__ == "__main__":
    sys.exit(main())
