"""What block scales do: which lanes they scale, special codes, before or after the alignment.

* one lane a block is 1, its scale 2, all else zero: D says which lanes a scale reaches;
* a NaN scale, a zero one, a subnormal one, one with a container bit that the format
  ignores, each beside ones;
* a lane of the largest power of two and its negative cancel beside C = 2**-t, then a lane
  of 1 and its negative: where C, which alone comes out whole, is lost at the same place although
  the products differ, an alignment sees the scales' exponents and not the products'.

Answer: ``{"lanes": "in order" | "other", "nan": w, "zero": w, "subnormal": w, "sign": w,
"where": "product" | "group" | None}`` with w None for a code that the format lacks,
else ``nan``, ``zero``, ``value`` (taken as what it says), ``ignored`` (for the sign: taken as without it),
``other``; the answer is None where there are no scales.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from mmaprobe.evidence.records import Finding
from mmaprobe.probing.experiments.invalid_operations import is_nan
from mmaprobe.probing.experiments.ladders import climb
from mmaprobe.probing.session.exact_values import code_of, power
from mmaprobe.probing.session.probe import Probe
from mmaprobe.probing.session.rounds import together
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.session.vectors import Vector


async def probe_block_scales(session: ProbeSession) -> Finding:
    """Block scales (see the module)."""
    fmt = session.formats["scale_a"]
    ignored = fmt.one | 1 << fmt.bits if fmt.ignored_high else None
    lowest = power(fmt.min_exponent - fmt.fraction_bits)
    codes = {
        "nan": fmt.nan_code, "zero": code_of(fmt, Fraction(0)), "sign": ignored,
        "subnormal": code_of(fmt, lowest) if fmt.subnormal else None,
    }  # fmt: skip
    expected = {"zero": Fraction(0), "sign": Fraction(1), "subnormal": lowest}
    words = await together(*(_special(session, code, expected.get(name)) for name, code in codes.items()))
    answer: dict[str, Any] = {"lanes": await _lanes(session)} | dict(zip(codes, words, strict=True))
    answer["where"] = await _where(session)
    text = ", ".join(f"{name} {word}" for name, word in answer.items() if word is not None)
    settled = answer["where"] is not None and "other" not in answer.values()
    return session.finding("exact" if settled else "bounded", answer, text)


def _blocks(session: ProbeSession) -> int:
    return session.instruction.k // session.instruction.scale_size


async def _lanes(session: ProbeSession) -> str:
    """Each lane 1 alone, with each block's scales 2 in turn: 4 in its own block, 1 in all others."""
    fmt, blocks = session.formats["scale_a"], _blocks(session)
    two = code_of(fmt, Fraction(2)) or 0
    each = session.k // blocks
    lanes = list(range(0, session.k, max(each // 4, 1)))
    vectors, expected = [], []
    for block in range(blocks):
        scales = tuple(two if block == other else fmt.one for other in range(blocks))
        for lane in lanes:
            vectors.append(replace(session.vector({lane: 1}), scale_a=scales, scale_b=scales))
            expected.append(Fraction(4 if lane // each == block else 1))
    codes = await session.ask(vectors)
    session.note(vectors[0], codes[0], "scales of 2 in block 0, lane 0 is 1")
    return "in order" if session.decode(codes) == expected else "other"


async def _special(session: ProbeSession, code: int | None, value: Fraction | None) -> str | None:
    """A scale code in block 0 of A (then of B), beside one lane of 1 in every block."""
    if code is None:
        return None
    blocks = _blocks(session)
    each = session.k // blocks
    base = session.vector(dict.fromkeys(range(0, session.k, each), 1))
    one = (session.formats["scale_a"].one,) * blocks
    odd = (code, *one[1:])
    vectors = [replace(base, scale_a=odd, scale_b=one), replace(base, scale_a=one, scale_b=odd)]
    codes = await session.ask(vectors)
    session.note(vectors[0], codes[0], f"a scale of {code:#x} in block 0")
    if all(is_nan(session.d, d) for d in codes):
        return "nan"
    return "value" if value is not None and session.decode(codes) == [blocks - 1 + value] * 2 else "other"


async def _where(session: ProbeSession) -> str | None:
    """Beside +-P on two lanes of one block, C's last place: does it follow P, or the scales alone?"""
    if not session.instruction.c:
        return None
    a, b = session.formats["a"], session.formats["b"]
    tops = [a.max_exponent + b.max_exponent, 0]
    kept = [await _kept(session, top) for top in tops]
    if None in kept:
        return None
    places = [top - bits for top, bits in zip(tops, kept, strict=True) if bits is not None]
    below = power(places[0] - 1)
    if await session.sums([{"c": below}]) != [below]:
        return None  # C is lost without any product beside it
    return "group" if places[0] == places[1] else "product" if kept[0] == kept[1] else None


async def _kept(session: ProbeSession, top: int) -> int | None:
    """Fraction bits of C beside 2**top and its negative in lanes 0 and 1."""

    def at(t: int) -> dict[Any, Fraction]:
        return {0: power(top), 1: -power(top), "c": power(top - t)}

    if session.try_vector(at(1)) is None:
        return None
    last = top - session.formats["c"].min_exponent
    bits = await climb(session, 1, last, at, lambda t, value: value == power(top - t))
    shown: Vector = session.vector(at(max(bits, 1)))
    session.note(shown, (await session.ask([shown]))[0], f"C = 2^{top - bits} beside 2^{top} and its negative")
    return bits if 0 < bits < last else None


PROBE = Probe(
    order=240,
    asks="which lanes a scale reaches, its special codes, whether before or after the alignment",
    rivals="per product, per group",
    experiment=probe_block_scales,
    applies=lambda made: made.scale is not None,
    otherwise=(None, "no block scales"),
    sound=lambda answer: answer is None or answer["lanes"] == "in order",
)
