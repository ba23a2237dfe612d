"""The comparison as a page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from peer_reasons import REASONS

from mmaprobe.showing import counted

HEAD = """# The models beside MMA-Sim

Written by `python benchmarks/compare_peer.py --out docs/peer.md`. The peer is `mmasim` 2.1.1, the vectorised models of
the paper from which much of what is published here comes: it is a second reading of the same facts, not hardware.

Bits: {vectors:,} vectors of every generator family through {forms} forms, {differing:,} results differ, each for a
reason below. One of the peer's names stands for all M and N of the asynchronous instructions (`m64n8k16` for 32).

Speed: both on the same tiles of clustered exponents, one thread, thread processor time, the best of several calls;
million outputs a second. The peer works on whole batches of tiles broadcast through its own `dpa`, at the best of
several batch sizes. `native` is the engine on its own layout, decode included (on rows of single vectors where the
datapath has no kernel); `Python` is the call on row-major arrays. Forms with one datapath were measured once, mixed
operand formats not at all. {machine}
"""


def rate(value: float) -> str:
    return f"{value:.2f}" if 0 < value < 10 else f"{value:.0f}" if value else ""


def ratio(ours: float, theirs: float) -> str:
    return f"{ours / theirs:.0f}" if ours and theirs else ""


def table(results: Iterable[Any]) -> list[str]:
    lines = [
        "| architecture | form (the peer's name) | vectors | differing"
        " | peer M/s | native M/s | ratio | Python M/s | ratio |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for r in results:
        lines.append(
            f"| {r.form.arch} | {r.form.name} | {r.vectors:,} | {r.differing:,} | {rate(r.peer_rate)} |"
            f" {rate(r.native_rate)} | {ratio(r.native_rate, r.peer_rate)} | {rate(r.python_rate)} |"
            f" {ratio(r.python_rate, r.peer_rate)} |"
        )
    return lines


def differences(results: Iterable[Any]) -> list[str]:
    """By reason: how many, where, the first vector of each architecture."""
    lines = []
    for why, text in REASONS.items():
        of = [(r, *r.reasons[why]) for r in results if why in r.reasons]
        if not of:
            continue
        lines += ["", f"**{why[0].upper()}{why[1:]}**, {sum(n for _, n, _ in of):,} results. {text}", ""]
        first: dict[str, tuple[str, int, int]] = {}
        for r, n, vector in of:
            seen, total, forms = first.get(r.form.arch, (vector, 0, 0))
            first[r.form.arch] = (seen, total + n, forms + 1)
        lines += [f"- {arch}, {counted(forms, 'form')}, {n:,}: {vector}" for arch, (vector, n, forms) in first.items()]
    return lines


def document(results: list[Any], missing: list[str], machine: str) -> str:
    """The whole page as Markdown."""
    vectors, differing = sum(r.vectors for r in results), sum(r.differing for r in results)
    lines = [HEAD.format(vectors=vectors, forms=len(results), differing=differing, machine=machine)]
    lines += ["## Differences", *differences(results), "", "## Forms", "", *table(results)]
    if missing:
        lines += ["", "## Forms of the peer that no model of ours covers", "", *(f"- {line}" for line in missing)]
    return "\n".join(lines) + "\n"
