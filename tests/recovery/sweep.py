"""Blind recovery of everything shipped, resumable: ``python tests/recovery/sweep.py --out FILE``.

Every distinct datapath is derived from the model that computes it; its outcome is a line of
FILE as soon as it ends, and what FILE holds is not derived again: remove FILE after a change
of the derivation.  Then come the tables, by architecture and by kind of form.  ``--only
REGEX`` chooses, ``--families`` takes the first of each family, ``--table`` derives nothing.
Exit status 1 where an answer was wrong or left open, or a derivation broke down.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path

from outcomes import BAD, LIMIT, Outcome, recover
from seeds import COSTS, costs, read
from shipped import SEED, Shipped, distinct, files, representatives

from mmaprobe.devices.base import open_device

ENDS = ("exact", "bounded", "left open", "inconclusive", "stopped", "wrong", "error", "not run")
"""What became of a datapath: how exactly it was recovered, else the verdict."""


def recovered(shipped: Shipped, limit: float) -> Outcome:
    """Its blind derivation from the model of its architecture, judged."""
    device = open_device(f"model:{shipped.architecture}")
    return recover(shipped.name, shipped.kind, device, shipped.instruction, shipped.datapath, SEED, limit)[0]


def sweep(chosen: Iterable[Shipped], out: Path, jobs: int, limit: float) -> None:
    """Derive what ``out`` does not hold yet, each outcome a line of it when it ends."""
    out.parent.mkdir(parents=True, exist_ok=True)
    text = out.read_text() if out.exists() else ""
    out.write_text(text[: text.rfind("\n") + 1])  # an interrupted write leaves half a line
    done = {outcome.name for outcome in read(out)}
    with out.open("a") as file:
        for outcome in run([shipped for shipped in chosen if shipped.name not in done], jobs, limit):
            file.write(outcome.line + "\n")
            file.flush()
            print(outcome.line, flush=True)


def run(chosen: list[Shipped], jobs: int, limit: float) -> Iterator[Outcome]:
    """The outcome of each, as they end."""
    judge = partial(recovered, limit=limit)
    if jobs == 1:
        yield from map(judge, chosen)
        return
    with ProcessPoolExecutor(jobs) as pool:
        for job in as_completed([pool.submit(judge, shipped) for shipped in chosen]):
            yield job.result()


def end(outcome: Outcome | None) -> str:
    """One of ``ENDS``."""
    if outcome is None:
        return "not run"
    return outcome.status if outcome.verdict == "recovered" else outcome.verdict


def table(chosen: list[Shipped], found: dict[str, Outcome]) -> str:
    """Ends and costs by architecture and by kind; a datapath counts once for each architecture that computes it."""
    kinds = dict.fromkeys(shipped.kind for shipped in chosen)
    lines = [f"{'':18}{'datapaths':>10}" + "".join(f"{name:>13}" for name in ENDS) + COSTS]
    parts: list[tuple[str, Callable[[Shipped], bool]]] = [
        *((name, lambda shipped, name=name: name in shipped.also) for name in files()),
        *((kind, lambda shipped, kind=kind: shipped.kind == kind) for kind in kinds),
        ("all, each once", lambda shipped: True),
    ]
    for name, belongs in parts:
        mine = [shipped.name for shipped in chosen if belongs(shipped)]
        if mine:
            lines.append(row(name, mine, found))
    return "\n".join([*lines, *rest(chosen, found)])


def row(title: str, names: list[str], found: dict[str, Outcome]) -> str:
    counts = Counter(end(found.get(name)) for name in names)
    ran = [found[name] for name in names if name in found]
    line = f"{title:18}{len(names):10}" + "".join(f"{counts[each]:13}" for each in ENDS)
    return line + (costs(ran) if ran else "")


def rest(chosen: list[Shipped], found: dict[str, Outcome]) -> Iterator[str]:
    """What is not recovered, and why."""
    for shipped in chosen:
        outcome = found.get(shipped.name)
        if outcome is not None and outcome.verdict != "recovered":
            yield f"{outcome.verdict}: {shipped.name} ({shipped.kind}): {outcome.reason or outcome.changes}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("recovery/shipped.jsonl"), help="file of the outcomes "
                        "(recovery/shipped.jsonl)")  # fmt: skip
    parser.add_argument("--only", default="", help="a regular expression on ARCHITECTURE-INSTRUCTION (kind)")
    parser.add_argument("--families", action="store_true", help="the first of each family only")
    parser.add_argument("--limit", type=float, default=LIMIT, help=f"seconds of processor time for each ({LIMIT:g})")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument("--table", action="store_true", help="print the tables of what is there")
    given = parser.parse_args()
    among = representatives() if given.families else distinct()
    chosen = [shipped for shipped in among if re.search(given.only, f"{shipped.name} ({shipped.kind})")]
    if given.table and not given.out.exists():
        parser.error(f"{given.out} is not there: run without --table first")
    if not given.table:
        sweep(chosen, given.out, given.jobs, given.limit)
    found = {outcome.name: outcome for outcome in read(given.out)}
    print(table(chosen, found))
    return any(end(found.get(shipped.name)) in BAD for shipped in chosen)


if __name__ == "__main__":
    sys.exit(main())
