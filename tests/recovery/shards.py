"""Recovery of random architectures at length, in resumable shards: ``python tests/recovery/shards.py --out FOLDER``.

A shard is 500 seeds; its outcomes are written to ``FOLDER/shard-NNN.jsonl`` when
it is finished, and a finished shard is not run again.  The tables at the end are
those of all shards there.  ``--seeds 7,100-120`` runs some seeds and writes nothing.
Exit status 1 where an answer was wrong, a derivation broke down, or fewer than ``--least`` were recovered.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from outcomes import LIMIT, VERDICTS, Outcome, outcome
from random_architectures import KINDS

from mmaprobe.derivation.budget import ALLOWANCE

SHARD = 500
CASES = 10_000
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


def run(seeds: Iterable[int], jobs: int, limit: float, allowance: int) -> Iterator[Outcome]:
    """The outcome of each seed, in order, from ``jobs`` processes."""
    judge = partial(outcome, limit=limit, allowance=allowance)
    if jobs == 1:
        yield from map(judge, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(judge, seeds, chunksize=4)


def shards(out: Path, cases: int, jobs: int, only: int | None, limit: float, allowance: int) -> Iterator[Outcome]:
    """Every outcome of the shards asked for, running those that have no file yet."""
    out.mkdir(parents=True, exist_ok=True)
    for number in range(-(-cases // SHARD)):
        path = out / f"shard-{number:03}.jsonl"
        if not path.exists() and only in (None, number):
            found = []
            for each in run(range(number * SHARD, min((number + 1) * SHARD, cases)), jobs, limit, allowance):
                found.append(each)
                if each.verdict in ("wrong", "error"):
                    print(each.line, flush=True)
            part = path.with_suffix(".part")
            part.write_text("".join(each.line + "\n" for each in found))
            part.rename(path)
            print(f"shard {number}: {counted(found)}", flush=True)
        if path.exists():
            yield from read(path)


def counted(found: list[Outcome]) -> str:
    """``480 recovered, 20 inconclusive, 0 wrong, 0 error``."""
    counts = Counter(each.verdict for each in found)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS)


def costs(found: list[Outcome]) -> str:
    """Median and maximum of what each cost, below ``COSTS``."""
    line = ""
    for name, places in (("tiles", 0), ("launches", 0), ("seconds", 2)):
        values = [getattr(each, name) for each in found]
        line += f"{statistics.median(values):9.{places}f}{max(values):8.{places}f}"
    return line


def table(found: list[Outcome]) -> str:
    """Counts and costs by kind of sum: medians and maxima of tiles, launches and seconds of processor time."""
    lines = [f"{'kind':10}{'cases':>7}" + "".join(f"{verdict:>14}" for verdict in VERDICTS) + COSTS]
    for kind in (*KINDS, "all"):
        mine = [each for each in found if kind in (each.kind, "all")]
        if not mine:
            continue
        counts = Counter(each.verdict for each in mine)
        lines.append(f"{kind:10}{len(mine):7}" + "".join(f"{counts[verdict]:14}" for verdict in VERDICTS) + costs(mine))
    bad = [each.name for each in found if each.verdict in ("wrong", "error")]
    return "\n".join([*lines, f"wrong or broken: {', '.join(map(str, bad)) or 'none'}"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("recovery"), help="folder of the shards' files (recovery)")
    parser.add_argument("--cases", type=int, default=CASES, help=f"seeds 0 to this, less one ({CASES})")
    parser.add_argument("--shard", type=int, help="run this shard only")
    parser.add_argument("--seeds", type=seeds_of, help="run these seeds only and write nothing: 7,100-120")
    parser.add_argument("--limit", type=float, default=LIMIT, help=f"seconds of processor time for each ({LIMIT:g})")
    parser.add_argument("--allowance", type=int, default=ALLOWANCE, help=f"units of work for each ({ALLOWANCE})")
    parser.add_argument("--quiet", action="store_true", help="of the seeds, print those that fail and the table only")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument("--least", type=int, default=0, help="fail where fewer are recovered (0)")
    given = parser.parse_args()
    if given.seeds is None:
        found = list(shards(given.out, given.cases, given.jobs, given.shard, given.limit, given.allowance))
    else:
        found = []
        for each in run(given.seeds, given.jobs, given.limit, given.allowance):
            if not given.quiet or each.verdict in ("wrong", "error"):
                print(each.line, flush=True)
            found.append(each)
    print(table(found))
    counts = Counter(each.verdict for each in found)
    if counts["recovered"] < given.least:
        print(f"{counts['recovered']} recovered, fewer than {given.least}")
    return bool(counts["wrong"] or counts["error"] or counts["recovered"] < given.least)


if __name__ == "__main__":
    sys.exit(main())
