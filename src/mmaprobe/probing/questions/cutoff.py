"""How far below the largest term another one leaves no trace at all, C and products apart.

Beside +-1.5 * 2**m that cancel, a term of +-2**(m - t): a cut toward zero or to nearest
loses it just below the last place kept, a cut downward (upward) leaves a last place
of every negative (positive) term, however small, unless the unit drops terms that lie too far below.

Answer: ``{"products": t | None, "c": t | None}``: the smallest t from which on neither sign leaves
a trace; None where one always does, within the window.
"""

from __future__ import annotations

from typing import Any

from mmaprobe.evidence.records import Finding
from mmaprobe.probing.experiments.anchor_places import inner_place
from mmaprobe.probing.experiments.rounding import anchor_of
from mmaprobe.probing.questions.accumulator_precision import kept_bits
from mmaprobe.probing.questions.summation_tree import tree_of
from mmaprobe.probing.session.exact_values import power
from mmaprobe.probing.session.probe import Probe, floats
from mmaprobe.probing.session.rounds import together
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.tree import Leaf, Node
from mmaprobe.showing import counted

REACH = 12
"""Places below the last one kept that are tried one by one, and then the lowest."""


async def probe_cutoff(session: ProbeSession) -> Finding:
    """Terms that leave no trace (see the module)."""
    none: dict[str, Any] = {"products": None, "c": None}
    tree = await tree_of(session)
    if tree is None:
        return session.finding("inconclusive", none, "needs a summation tree of two leaves or more")
    kept = await kept_bits(session)
    lane = next((leaf for leaf in kept if leaf != "c"), None)
    leaves = {"products": lane, "c": "c" if "c" in kept else None}
    asked = {
        name: leaf for name, leaf in leaves.items() if leaf is not None and kept[leaf] + 1 < session.window_of(leaf)
    }
    if not asked:
        return session.finding("bounded", none, "no cut within the window")
    found = await together(*(_vanishes(session, tree, leaf, kept[leaf]) for leaf in asked.values()))
    answer = none | dict(zip(asked, found, strict=True))
    whence = {name: "never" if t is None else f"from {counted(t, 'bit')} down" for name, t in answer.items()}
    text = ", ".join(f"{name} {whence[name]}" for name in answer if name in asked)
    return session.finding("exact", answer, f"no trace: {text}")


async def _vanishes(session: ProbeSession, tree: Node, leaf: Leaf, bits: int) -> int | None:
    place = inner_place(tree, leaf)
    if place is None:
        return None
    anchor, m = anchor_of(session, place)
    window = session.window_of(leaf)
    steps = [*range(bits + 1, min(bits + REACH, window) + 1)]
    steps += [window] if window not in steps else []
    cases = [(t, sign) for t in steps for sign in (1, -1) if session.try_vector(place.terms(anchor, power(m - t)))]
    vectors = [session.vector(place.terms(anchor, sign * power(m - t))) for t, sign in cases]
    codes = await session.ask(vectors)
    traces = {t for (t, _), value in zip(cases, session.decode(codes), strict=True) if place.rest(value, anchor) != 0}
    last = max(traces, default=bits)
    at = next((n for n, (t, _) in enumerate(cases) if t > last), len(cases) - 1)
    session.note(vectors[at], codes[at], f"a term {counted(cases[at][0], 'bit')} below the anchor")
    return None if last >= steps[-1] else last + 1


PROBE = Probe(
    order=90,
    asks="how far below the largest term another leaves no trace",
    rivals="a distance, never",
    experiment=probe_cutoff,
    applies=floats,
    otherwise=({"products": None, "c": None}, "integers: nothing is aligned"),
    sound=lambda answer: set(answer) == {"products", "c"},
)
