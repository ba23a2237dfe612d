"""Every NVIDIA form compiled for every architecture that has it: ``python tests/compiled.py --out FILE``.

A pair is a form and an architecture that accepts it.  Each is rendered, compiled, disassembled, and its matrix
instructions are held against the catalog's lowering; the outcomes go to FILE line by line, and a pair that is there
is not compiled again.  ``--most N`` takes N of them: every family, architecture and type pair first, the others in
turns (``--turn``).  ``--refused N`` has the compiler refuse N forms for architectures that lack them.  Exit status 1
where a lowering differs, a kernel is refused that should compile, or one compiles that should not.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mmaprobe.catalog.catalog import Form
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import architectures, forms, instruction, lowering
from mmaprobe.errors import UsageError
from mmaprobe.toolchain.build import Built, Pair, build_all, refused
from mmaprobe.toolchain.nvidia.nvrtc import architectures as compiled_for
from mmaprobe.toolchain.render import render

Kind = tuple[str, ...]
MOST_CHOICES = 6
"""Of a range with more choices four are taken."""


def homes() -> list[str]:
    """The architectures that the compiler here knows."""
    known = compiled_for()
    return [name for name in architectures() if name.startswith("sm_") and name.rstrip("af") in known]


def every() -> dict[Pair, Form]:
    """Every pair: of each form the first instruction, and others that its ranges (N, modifiers, options) bind."""
    return {(name, home): form for home in homes() for form in forms(home) for name in others(form, home)}


def others(form: Form, home: str) -> list[str]:
    """The form's first instruction; of each of its ranges a few choices, the rest as in the first.

    Of the forms of tcgen05 with the same family and architecture the first alone: their ranges are in the descriptor.
    The others there stand for themselves with the first shape whose layouts are known.
    """
    first = next(each for each in forms(home) if each.first.family == form.first.family)
    found = list(varied(form, home))
    if form.first.opcode.startswith("tcgen05") and form.first != first.first:
        return [next((name for name in found if renders(name, home)), found[0])]
    return list(dict.fromkeys(found))


def varied(form: Form, home: str) -> Iterator[str]:
    """The first instruction of a form, then others that differ in one choice."""
    yield form.first.id
    for axis in range(form.row.listed, len(form.row.axes)):
        choices = form.row.allowed(axis, home)
        few = choices if len(choices) <= MOST_CHOICES else [*choices[:2], choices[len(choices) // 2], choices[-1]]
        for choice in few:
            picks = (*form.picks[:axis], choice, *form.picks[axis + 1 :])
            yield form.row.instruction(picks).id


def renders(name: str, home: str) -> bool:
    """Whether all layouts of an instruction are known."""
    try:
        render(instruction(name, home), home)
    except UsageError:
        return False
    return True


def kind(pair: Pair, form: Form) -> Kind:
    """What a sample covers: family, architecture and formats."""
    made = form.first
    return made.family, pair[1], made.a, made.b, made.c or "", made.d


def sample(pairs: dict[Pair, Form], most: int, turn: int) -> list[Pair]:
    """One pair of every family and architecture, then of every kind, then others; another set each turn."""
    groups: dict[Kind, list[Pair]] = defaultdict(list)
    for pair, form in pairs.items():
        groups[kind(pair, form)].append(pair)
    chooser = random.Random(turn)
    for group in groups.values():
        chooser.shuffle(group)
    kinds = list(groups)
    chooser.shuffle(kinds)
    first = {(each[0], each[1]): each for each in kinds}.values()
    ordered = [*first, *(each for each in kinds if each not in set(first))]
    rest = [pair for each in ordered for pair in groups[each][1:]]
    chooser.shuffle(rest)
    return [*(groups[each][0] for each in ordered), *rest][:most]


def lacking(pairs: dict[Pair, Form], most: int, turn: int) -> list[tuple[str, str, str]]:
    """(id, an architecture that has it, one that lacks it): so many, another set each turn.

    Of tcgen05 the architecture lacks the whole family: what only the instruction descriptor says (shape, types) the
    compiler cannot refuse.
    """
    having: dict[str, str] = {}
    for name, home in pairs:
        having.setdefault(name, home)
    families = {home: {form.first.family for form in forms(home)} for home in homes()}
    every_other = [(name, had, home) for name, had in having.items() for home in homes() if home != had]
    random.Random(turn).shuffle(every_other)
    chosen = (row for row in every_other if renders(*row[:2]) and lacks(row[2], instruction(*row[:2]), families))
    return list(itertools.islice(chosen, most))


def lacks(home: str, made: Instruction, families: dict[str, set[str]]) -> bool:
    """Whether the compiler must refuse an instruction for an architecture."""
    if made.family.startswith("tcgen05"):
        return made.family not in families[home]
    try:
        lowering(made, home)
    except UsageError:
        return True
    return False


def line(built: Built) -> str:
    row = {"instruction": built.instruction, "architecture": built.architecture, "status": built.status}
    size = len(built.kernel.binary) if built.kernel else 0
    return json.dumps({**row, "reason": built.reason, "opcodes": built.opcodes, "code": built.code, "bytes": size})


def done(path: Path | None) -> dict[Pair, str]:
    """The outcomes that a file holds already."""
    rows = map(json.loads, path.read_text().splitlines()) if path and path.exists() else []
    return {(row["instruction"], row["architecture"]): row["status"] for row in rows}


def run(todo: list[Pair], jobs: int, out: Path | None) -> Iterator[tuple[Pair, str]]:
    """The status of each pair, printed where it is not compiled, appended to a file."""
    file = out.open("a") if out else None
    for built in build_all(todo, jobs):
        if built.status in ("changed", "refused"):
            print(f"{built.status}: {built.architecture}: {built.instruction}: {built.reason}", flush=True)
        if file:
            print(line(built), file=file, flush=True)
        yield (built.instruction, built.architecture), built.status


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="file of outcomes, a line each; pairs in it are not run again")
    parser.add_argument("--most", type=int, default=0, help="at most so many pairs (all)")
    parser.add_argument("--only", default="", help="this architecture only")
    parser.add_argument("--turn", type=int, default=int(time.time()) // 86400, help="which sample (today's)")
    parser.add_argument("--refused", type=int, default=0, help="forms and architectures that lack them (0)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at once (all cores)")
    given = parser.parse_args()
    pairs = {pair: form for pair, form in every().items() if given.only in ("", pair[1])}
    chosen = sample(pairs, given.most, given.turn) if given.most else list(pairs)
    statuses = {pair: status for pair, status in done(given.out).items() if pair in pairs}
    statuses |= run([pair for pair in chosen if pair not in statuses], given.jobs, given.out)
    missing = lacking(pairs, given.refused, given.turn)
    with ThreadPoolExecutor(given.jobs) as pool:
        accepted = [
            row for row, no in zip(missing, pool.map(lambda row: refused(*row), missing), strict=True) if not no
        ]
    for name, _, home in accepted:
        print(f"{home} lacks {name}, and the compiler accepts it")
    counts = Counter(statuses.values())
    said = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    print(f"turn {given.turn}: {len(statuses)} of {len(pairs)} pairs: {said}; {len(missing)} refused elsewhere")
    return int(bool(counts["changed"] or counts["refused"] or accepted))


if __name__ == "__main__":
    sys.exit(main())
