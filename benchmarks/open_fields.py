"""The certificates of all shipped datapaths, judged against their own model: docs/open_fields.md.

Every neighbour of each distinct dense datapath is refuted by a vector, the same function by an argument that the
checker accepts, or open: then it stands in the table, with the vectors that did not tell it apart.

    python benchmarks/open_fields.py [--check] [ARCH ...]
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instructions, lowering
from mmaprobe.catalog.states import modes
from mmaprobe.derivation.vectors.mixtures import mixed_vectors
from mmaprobe.derivation.vectors.rivals import attack_vectors, can_attack
from mmaprobe.equivalence.arguments import argument
from mmaprobe.errors import UsageError
from mmaprobe.models.engine import evaluate_many
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.neighbours import Neighbour, neighbourhood

PAGE = Path(__file__).parents[1] / "docs" / "open_fields.md"
ARCHITECTURES = (
    "sm_70", "sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_107a", "sm_120a", "gfx908", "gfx90a",
    "gfx942", "gfx950", "gfx1100", "gfx1200", "gfx1250", "x86-64", "x86-64+amd", "x86-64+intel", "aarch64",
)  # fmt: skip
POOLS = ((200, 5), (1500, 6), (6000, 7), (6000, 8), (24_000, 9), (24_000, 10), (96_000, 11))
"""Vectors and seed: two pools of every family, then of the attack's shapes; of every family where those do not fit."""
MIXED = 2
LEAST = 24_000
"""Vectors of a last pool of every family."""


@dataclass
class Judged:
    """One architecture: verdicts of the neighbours of its datapaths that no earlier one has."""

    datapaths: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    open: list[tuple[str, str, str, int]] = field(default_factory=list)


def forms(architecture: str) -> Iterator[tuple[Instruction, Datapath]]:
    """The instructions that are one primitive as it is, with their datapaths."""
    for state in (state for base in instructions(architecture) for state in modes(base)):
        try:
            way = lowering(state, architecture)
            if way.kind == "emulated" or way.convert_c or way.convert_d or state.chunk:
                continue
            yield state, datapath_for(architecture, state)
        except UsageError:
            continue


def pools(made: Instruction, path: Datapath, rivals: list[Neighbour]) -> Iterator[Batch]:
    """The pools one after the other; ``rivals`` may shrink meanwhile."""
    for number, (count, seed) in enumerate(POOLS):
        if number < MIXED or not can_attack(made):
            yield mixed_vectors(made, seed, min(count, LEAST))
        else:
            yield attack_vectors(made, path, [near.datapath for near in rivals], seed, count)
    yield mixed_vectors(made, 12, LEAST)


def judge(made: Instruction, path: Datapath, into: Judged) -> None:
    """The verdicts of one datapath's neighbours."""
    near = neighbourhood(path)
    left, searched = [], 0
    for each in near:
        found = argument(path, each)
        if found is None:
            left.append(each)
        else:
            into.rules[found.rule] += 1
    into.counts["equivalent"] += len(near) - len(left)
    into.counts["neighbours"] += len(near)
    for pool in pools(made, path, left):
        if not left:
            break
        searched += pool.size
        table = evaluate_many([path, *(each.datapath for each in left)], pool)
        told = (table[1:] != table[0]).any(axis=1)
        into.counts["refuted"] += int(told.sum())
        left[:] = [each for each, differs in zip(left, told, strict=True) if not differs]
    into.counts["open"] += len(left)
    into.open += [(made.id, each.field, each.value, searched) for each in left]
    into.datapaths += 1


def judged(architectures: tuple[str, ...]) -> dict[str, Judged]:
    """Every architecture with the datapaths that are new in it."""
    seen: set[Datapath] = set()
    found: dict[str, Judged] = {}
    for architecture in architectures:
        into = found.setdefault(architecture, Judged())
        for made, path in forms(architecture):
            if path not in seen:
                seen.add(path)
                judge(made, path, into)
        print(architecture, into.datapaths, dict(into.counts), file=sys.stderr)
    return found


def page(found: dict[str, Judged]) -> str:
    """The page in Markdown."""
    total: Counter[str] = sum((each.counts for each in found.values()), Counter())
    rules: Counter[str] = sum((each.rules for each in found.values()), Counter())
    share = 100 * total["open"] / total["neighbours"]
    lines = [
        "# What stays open", "",
        "Written by `benchmarks/open_fields.py`. Every neighbour of each distinct dense datapath that is shipped",
        "(values of fields; the structural ones of `parameters/moves.py`), held against the model of the datapath:",
        "refuted by a vector, the same function by an argument that `equivalence/checker.py` verifies, or open.",
        f"Open: {total['open']} of {total['neighbours']:,} ({share:.2f} %).", "",
        "| architecture | datapaths | neighbours | refuted | same function | open |", "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, each in found.items():
        if each.datapaths:
            counts = " | ".join(f"{each.counts[key]:,}" for key in ("neighbours", "refuted", "equivalent", "open"))
            lines.append(f"| {name} | {each.datapaths} | {counts} |")
    lines += ["", "A datapath counts for the first architecture that has it.", "", "## Arguments", ""]
    lines += ["| rule | neighbours |", "|---|---|", *(f"| {rule} | {count} |" for rule, count in rules.most_common())]
    lines += ["", "## Open fields", ""]
    lines += [
        "Searched: two pools of every generator family and the derivation's own kinds (seeds 5 and 6), five of the",
        "shapes of `derivation/vectors/rivals.py` aimed at what was left (seeds 7 to 11; families where operands are",
        f"integers) and {LEAST:,} vectors of every family (seed 12).", "",
    ]  # fmt: skip
    lines += ["| architecture | instruction | field | could also be | vectors |", "|---|---|---|---|---|"]
    for name, each in found.items():
        lines += [f"| {name} | `{made}` | {field} | {value} | {n:,} |" for made, field, value, n in each.open]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("architectures", nargs="*", help="only these, printed and not written")
    parser.add_argument("--check", action="store_true", help="exit 1 where the page would change")
    options = parser.parse_args()
    text = page(judged(tuple(options.architectures) or ARCHITECTURES))
    if options.architectures:
        print(text)
    elif not options.check:
        PAGE.write_text(text, "utf-8")
    return int(options.check and text != PAGE.read_text("utf-8"))


if __name__ == "__main__":
    sys.exit(main())
