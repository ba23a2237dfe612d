"""How far below a rounded result the smallest term still counts: the reach of the sticky bit.

C holds 1.5 * 2**m, another leaf half a last place: a tie.  A tiny term on a third leaf breaks
it down to some place below the last one; with nothing beside C the tiny term may
borrow from it instead (roundings toward zero).

Answer: ``{"tie": bits or None, "borrow": bits or None, "at_least": bool}``: fraction bits below C's
exponent at which the term still counted, None where it never shows.
"""

from __future__ import annotations

from typing import Any

from mmaprobe.evidence.records import Finding
from mmaprobe.probing.experiments.tipping import tipped_by
from mmaprobe.probing.questions.summation_tree import tree_of
from mmaprobe.probing.session.probe import Probe, floats
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.showing import counted

DOES = {"tie": "breaks a tie", "borrow": "lowers it when it is subtracted"}
"""What the smallest term that counts does."""


async def probe_sticky_reach(session: ProbeSession) -> Finding:
    """The lowest place that still tips a result (see the module)."""
    tree = await tree_of(session)
    if tree is None:
        return session.finding("inconclusive", None, "needs a summation tree of two leaves or more")
    found = await tipped_by(session, tree)
    names = {True: "tie", False: "borrow"}
    answer: dict[str, Any] = {"tie": None, "borrow": None, "at_least": False}
    for (half, _), tipped in found.items():
        if tipped is not None and (not half or tipped.bits > session.d.fraction_bits + 1):
            name = names[bool(half)]
            answer[name] = max(tipped.bits, answer[name] or 0)
            answer["at_least"] |= tipped.bounded
            code = (await session.ask([tipped.shown]))[0]
            session.note(tipped.shown, code, f"a {name} tipped by a term {counted(tipped.bits, 'bit')} down")
    shown = {name: bits for name, bits in answer.items() if name != "at_least" and bits is not None}
    if not shown:
        return session.finding("inconclusive", answer, "no tiny term changes a result in these formats")
    text = ", ".join(
        f"a term {counted(bits, 'bit')} below the result still {DOES[name]}" for name, bits in shown.items()
    )
    more = " or further" if answer["at_least"] else ""
    return session.finding("bounded" if answer["at_least"] else "exact", answer, text + more)


PROBE = Probe(
    order=160,
    asks="how far below the result the smallest term counts",
    rivals="a distance",
    experiment=probe_sticky_reach,
    applies=floats,
    otherwise=(None, "integers: nothing is rounded"),
    sound=lambda answer: answer is None or bool(answer["tie"] or answer["borrow"]),
)
