"""The stages after structure and numbers on their own: ``python tests/recovery/stages.py --seeds 0-99``.

A random architecture is handed over as a search of structure would leave it (no operand
flushed, nothing said of the ends of a range, of zeros, of NaNs, of the order of operands
where sums do not show it), and the stages that find those are judged.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from outcomes import LIMIT, BlackBox, LateError, Outcome, compared, limited
from random_architectures import case
from seeds import seeds_of

from mmaprobe.derivation.budget import SpentError
from mmaprobe.derivation.certify import Settlement
from mmaprobe.derivation.search.stages import Search
from mmaprobe.derivation.session import Ended, Session, State
from mmaprobe.parameters.datapath import (
    Add,
    Datapath,
    Encode,
    Exact,
    Fused,
    Node,
    Operand,
    Products,
    Special,
    Term,
    walk,
)
from mmaprobe.parameters.diff import datapath_changes
from mmaprobe.parameters.rewrite import map_node, with_encode


def handed_over(path: Datapath, seed: int) -> Datapath:
    """What structure and numbers alone say of a datapath."""
    path = reordered(path, seed)
    return replace(
        path, operand_a=Operand(), operand_b=Operand(), operand_c=Operand(), special=Special(),
        tree=map_node(path.tree, _bare), result=path.result and _plain(path.result),
        product=replace(path.product, to=path.product.to and _plain(path.product.to), overflow_exponent=None),
    )  # fmt: skip


def _plain(to: Encode) -> Encode:
    return Encode(to.format, to.rounding, first=to.first)


def _bare(node: Node) -> Node:
    """The node with nothing said of ends and zeros."""
    if isinstance(node, Fused):
        node = replace(node, terms=tuple(replace(term, zero_exponent=None) for term in node.terms))
    return with_encode(node, _plain)


def reordered(path: Datapath, seed: int) -> Datapath:
    """The same sums with their operands in another order, and lanes ascending where they meet in one sum."""
    source = random.Random(f"reordered {seed}")

    def change(node: Node) -> Node:
        if isinstance(node, Add):
            x, y = source.sample((node.x, node.y), 2)
            return replace(node, x=x, y=y)
        if isinstance(node, (Fused, Exact)):
            return replace(node, terms=tuple(source.sample(node.terms, len(node.terms))))  # type: ignore[arg-type]
        return node

    return replace(path, tree=map_node(path.tree, change), order=_order(path))


def _order(path: Datapath) -> tuple[int, ...] | None:
    """The lanes of a step ascending where they meet in one sum without regard to order."""
    whole = list(path.order or range(path.k))
    for node in walk(path.tree):
        inner = [term.of if isinstance(term, Term) else term for term in getattr(node, "terms", ())]
        for part in inner:
            if isinstance(part, Products):
                for start in range(0, path.k, path.step_length):
                    mine = sorted(whole[start + lane] for lane in part.lanes)
                    for lane, value in zip(sorted(part.lanes), mine, strict=True):
                        whole[start + lane] = value
    return None if whole == sorted(whole) else tuple(whole)


def stages(seed: int, limit: float = LIMIT, settled: bool = False) -> Outcome:
    """What the stages after structure and numbers make of an architecture; ``settled``: what is reported in the end."""
    drawn = case(seed)
    truth, instruction = drawn.datapath, drawn.instruction
    state = State(Session(BlackBox(instruction, truth), instruction, seed))
    search = Search(state)
    began, reason, status, size, differing = time.thread_time(), "", "", 0, 0
    changes: tuple[str, ...] = ()
    try:
        with limited(limit):
            start = replace(handed_over(truth, seed), special=Special())
            found = search.mended(start)
            certificate = Settlement(search).run(found, 20_000) if settled and found is not None else None
        if found is None or isinstance(certificate, Ended):
            verdict, reason = "inconclusive", certificate.stage if certificate else "the ends of the range"
        else:
            if certificate is not None:
                found, status = state.current, "bounded" if certificate.open_fields else "exact"
            size, differing = compared(instruction, truth, found)
            changes = tuple(f"{path}: {true} -> {got}" for path, true, got in datapath_changes(truth, found))
            verdict = "wrong" if differing else "recovered"
    except SpentError as spent:
        verdict, reason = "inconclusive", str(spent)
    except LateError as late:
        verdict, reason = "stopped", str(late)
    seconds = round(time.thread_time() - began, 3)
    seen = state.session
    cost = (status, seen.tiles, seen.launches, seen.all.count, seconds)
    return Outcome(drawn.name, drawn.kind, verdict, *cost, size, differing, reason, changes if differing else ())


def run(seeds: list[int], limit: float, settled: bool) -> Iterator[Outcome]:
    for seed in seeds:
        if case(seed).kind != "integer":
            yield stages(seed, limit, settled)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=seeds_of, default=list(range(100)), help="seeds (0-99)")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds of processor time for each (20)")
    parser.add_argument("--settled", action="store_true", help="settle what was found, as a derivation does")
    given = parser.parse_args()
    found = []
    for each in run(given.seeds, given.limit, given.settled):
        print(each.line, flush=True)
        found.append(each)
    print(dict(Counter(each.verdict for each in found)))
    for name in ("tiles", "launches", "seconds"):
        values = [getattr(each, name) for each in found]
        print(name, "median", statistics.median(values), "mean", round(statistics.mean(values), 3), "most", max(values))
    return 0


if __name__ == "__main__":
    sys.exit(main())
