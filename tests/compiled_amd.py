"""Every AMD form compiled for every target that has it: ``python tests/compiled_amd.py``.

Each pair of a form and a target is rendered, compiled by clang and disassembled; opcode, registers and modifiers are
held against the catalog.  A pair whose layout is open must be refused with that word, and compile by every claim of
its layout.  ``--most N`` takes N pairs, of
each target the same share and others every day (``--turn``); ``--modified N`` compiles N forms with one modifier
besides; ``--refused N`` has the compiler refuse builtins for N
targets that lack them (none of V_DOT).  Exit status 1 where something differs, is refused that should compile, or
compiles that should not.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor

from mmaprobe.catalog.layouts import claims
from mmaprobe.catalog.lookup import architectures, forms, instruction
from mmaprobe.catalog.variants import variants
from mmaprobe.toolchain.build import Pair, build_all, refused
from mmaprobe.toolchain.render import render

STATUSES = ("compiled", "open", "refused", "changed")
_CALL = re.compile(r"__builtin_amdgcn_\w*(?:mfma|smfmac|wmma|swmmac)\w*|(?<=asm volatile\(\")v_\w+")


def targets() -> list[str]:
    """The catalog's AMD architectures."""
    return [name for name in architectures() if name.startswith("gfx")]


def every() -> list[Pair]:
    """Every form on every target that has it."""
    return [(form.first.id, home) for home in targets() for form in forms(home)]


def claims_of(pairs: list[Pair]) -> list[Pair]:
    """Those whose layout is open, by each claim of it."""
    return [(made.id, home) for name, home in pairs for made in claims(instruction(name, home), home)]


def modified() -> list[Pair]:
    """The same forms with each value of each modifier that they take."""
    found = [(made.id, home) for home in targets() for form in forms(home) for made in variants(form, home)[1:]]
    return [*found, *claims_of(found)]


def sample(pairs: list[Pair], most: int, turn: int) -> list[Pair]:
    """``most`` pairs, the targets in turns; all where it is 0."""
    shuffled = random.Random(turn).sample(pairs, len(pairs))
    seen: Counter[str] = Counter()
    ranks = {}
    for pair in shuffled:
        ranks[pair] = seen[pair[1]]
        seen[pair[1]] += 1
    return sorted(shuffled, key=ranks.__getitem__)[: most or None]


def called(pair: Pair) -> str:
    """The builtin that a form's kernel calls, or the opcode that stands in inline assembly."""
    name, home = pair
    (found,) = _CALL.findall(render(instruction(name, home), home).text)
    return str(found)


def lacking(pairs: list[Pair]) -> list[tuple[str, str, str]]:
    """(form, a target that has it, a target that lacks its builtin), each once; an open layout by its first claim."""
    homes: dict[str, list[Pair]] = defaultdict(list)
    for name, home in pairs:
        by = claims(instruction(name, home), home)
        pair = (by[0].id if by else name, home)
        homes[called(pair)].append(pair)
    return [
        (*having[0], target)
        for having in homes.values()
        for target in targets()
        if target not in {home for _, home in having}
    ]


def compile_all(pairs: list[Pair], jobs: int) -> dict[str, Counter[str]]:
    """How many pairs of each target came to which end; what differs is printed."""
    table: dict[str, Counter[str]] = {home: Counter() for home in targets()}
    for built in build_all(pairs, jobs):
        unrendered = built.status == "open" and " is open: " not in built.reason
        status = "changed" if unrendered else built.status
        table[built.architecture][status] += 1
        if status in ("changed", "refused"):
            print(f"{status}: {built.instruction} on {built.architecture}: {built.reason}", flush=True)
    return table


def accepted(cases: list[tuple[str, str, str]], jobs: int) -> int:
    """How many targets that lack a builtin compile it all the same; each is printed."""
    with ThreadPoolExecutor(jobs) as pool:
        refusals = list(pool.map(lambda case: refused(*case), cases))
    for (name, home, target), no in zip(cases, refusals, strict=True):
        if not no:
            print(f"accepted: the builtin of {name} on {home}, by {target}, which lacks it", flush=True)
    return refusals.count(False)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=0, help="at most so many pairs (all)")
    parser.add_argument("--turn", type=int, default=int(time.time()) // 86400, help="which sample (today's)")
    parser.add_argument("--modified", type=int, default=0, help="forms with one modifier (0)")
    parser.add_argument("--refused", type=int, default=0, help="builtins and targets that lack them (0)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at once (all cores)")
    given = parser.parse_args()
    pairs = every()
    others = sample(modified(), given.modified, given.turn) if given.modified else []
    plain = sample(pairs, given.most, given.turn)
    by_claim = claims_of(plain)
    table = compile_all([*plain, *by_claim, *others], given.jobs)
    absent = lacking([pair for pair in pairs if not pair[0].startswith("v_dot")])  # of which other targets have some
    chosen = random.Random(given.turn).sample(absent, min(given.refused, len(absent)))
    wrong = accepted(chosen, given.jobs)
    print(f"{'target':<16}" + "".join(f"{status:>10}" for status in STATUSES))
    for home, counts in table.items():
        print(f"{home:<16}" + "".join(f"{counts[status]:>10}" for status in STATUSES))
    total: Counter[str] = sum(table.values(), Counter())
    said = ", ".join(f"{total[status]} {status}" for status in STATUSES)
    also = f"{len(by_claim)} by a claim of an open layout, {len(others)} with a modifier"
    print(f"turn {given.turn}: {len(plain)} of {len(pairs)} pairs, {also}: {said}")
    print(
        f"{len(chosen) - wrong} of {len(chosen)} builtins, of {len(absent)} in all, refused by targets that lack them"
    )
    return int(bool(total["changed"] or total["refused"] or wrong))


if __name__ == "__main__":
    sys.exit(main())
