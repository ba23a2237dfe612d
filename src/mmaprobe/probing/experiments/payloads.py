"""NaN experiments: operands with payloads, and what became of them."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from itertools import combinations

from mmaprobe.formats import Format
from mmaprobe.probing.session.session import ProbeSession
from mmaprobe.probing.session.vectors import Vector

MANY = 24
"""Positions above which not all pairs are asked, and as many at random."""


@dataclass(frozen=True)
class Position:
    """An operand of a vector: ``a3``, ``b0``, ``c``."""

    operand: str
    lane: int = 0

    @property
    def name(self) -> str:
        return self.operand if self.operand == "c" else f"{self.operand}{self.lane}"

    def put(self, session: ProbeSession, code: int, base: Vector | None = None) -> Vector:
        """``base`` (every operand 1 where None) with this operand's code replaced."""
        base = base or ones(session)
        if self.operand == "c":
            return replace(base, c=code)
        if self.operand == "a":
            return replace(base, a=base.a.put(self.lane, code))
        return replace(base, b=base.b.put(self.lane, code))


def ones(session: ProbeSession) -> Vector:
    """Every operand 1."""
    return session.vector({}, 1)


def positions(session: ProbeSession, infinite: bool = False) -> list[Position]:
    """Every operand whose format has a NaN (or an infinity)."""
    found = [Position(name, lane) for lane in range(session.k) for name in ("a", "b")]
    found += [Position("c")] if session.instruction.c else []
    has = {n: (f.infinity_code if infinite else f.nan_code) is not None for n, f in session.formats.items()}
    return [place for place in found if has[place.operand]]


def nans(fmt: Format) -> dict[str, int]:
    """NaNs of a format: quiet and signalling, of both signs, where it has them."""
    if fmt.nan != "ieee" or fmt.infinity_code is None or fmt.nan_code is None:
        quiet = fmt.nan_code or 0
        return {"quiet": quiet, **({"negative": quiet | fmt.sign_mask} if fmt.sign_mask & ~quiet else {})}
    low = 1 << max(fmt.padding + fmt.fraction_bits - 2, fmt.padding)  # below the quiet bit
    found = {"quiet": fmt.nan_code, "negative": fmt.nan_code | fmt.sign_mask}
    if low != fmt.quiet_bit:
        found |= {"payload": fmt.nan_code | low, "signalling": fmt.infinity_code | low}
    return found


async def single(session: ProbeSession, place: Position) -> dict[str, int]:
    """The result of each kind of NaN alone in one position."""
    kinds = nans(session.formats[place.operand])
    codes = await session.ask(vectors := [place.put(session, code) for code in kinds.values()])
    if place.name in ("a0", "c"):
        session.note(vectors[-1], codes[-1], f"a {list(kinds)[-1]} NaN in {place.name}")
    return dict(zip(kinds, codes, strict=True))


def moved(source: Format, target: Format, code: int, quiet: bool) -> int:
    """A NaN carried into another format: payload left-aligned, sign kept, quiet bit set where ``quiet``."""
    payload = (code >> source.padding) & ((1 << source.fraction_bits) - 1)
    shift = target.fraction_bits - source.fraction_bits
    payload = payload << shift if shift >= 0 else payload >> -shift
    sign = target.sign_mask if code & source.sign_mask else 0
    infinity = target.infinity_code or 0
    return infinity | sign | payload << target.padding | (target.quiet_bit if quiet else 0)


def kept_payload(session: ProbeSession, place: Position, found: dict[str, int]) -> bool | None:
    """True where the results of ``single`` are payloads, quieted; False where as they were; None where neither."""
    fmt, d = session.formats[place.operand], session.d
    kinds = nans(fmt)
    for quiet in (True, False):
        if all(found[kind] == moved(fmt, d, code, quiet) for kind, code in kinds.items()):
            return quiet
    return None


def _two(session: ProbeSession, x: Position, y: Position, kinds: tuple[str, str]) -> Vector | None:
    """NaNs of two kinds in two positions."""
    first = nans(session.formats[x.operand]).get(kinds[0])
    second = nans(session.formats[y.operand]).get(kinds[1])
    return None if first is None or second is None else y.put(session, second, x.put(session, first))


async def order(session: ProbeSession, places: list[Position]) -> tuple[list[str], bool, bool | None]:
    """Positions from winner to loser, whether one order explains every pair asked, and whether signalling wins first.

    All pairs are asked; of many positions every eighth one against all, those that these do not
    tell apart in pairs, and as many pairs at random as the order must then explain.
    """
    many = len(places) > MANY
    stakes = places[::8] if many else places
    wins = await _duels(session, [(x, y) for x in stakes for y in places if x != y])
    if wins is None:
        return [], False, None
    rank = {place: sum(wins[place, stake] for stake in stakes if stake != place) for place in places}
    if many:
        alike = [(x, y) for x, y in combinations(places, 2) if rank[x] == rank[y] and (x, y) not in wins]
        source = random.Random(session.bench.seed)
        chance = [(x, y) for x, y in (source.sample(places, 2) for _ in places)]
        wins |= await _duels(session, alike + chance) or {}
    closer = {x: sum(won for (x_, y), won in wins.items() if x_ == x and rank[y] == rank[x]) for x in places}
    ranked = sorted(places, key=lambda place: (-rank[place], -closer[place]))
    at = {place: number for number, place in enumerate(ranked)}
    consistent = all(won == (at[x] < at[y]) for (x, y), won in wins.items())
    return [place.name for place in ranked], consistent, await _signalling_first(session, ranked)


async def _duels(
    session: ProbeSession, pairs: list[tuple[Position, Position]]
) -> dict[tuple[Position, Position], bool] | None:
    """Who wins of each pair, a positive NaN in one and a negative one in the other; None where NaNs have no sign."""
    once = list(dict.fromkeys((x, y) if (x.lane, x.operand) < (y.lane, y.operand) else (y, x) for x, y in pairs))
    vectors = [v for x, y in once if (v := _two(session, x, y, ("quiet", "negative"))) is not None]
    if len(vectors) < len(once):
        return None
    codes = await session.ask(vectors)
    for (x, y), vector, code in list(zip(once, vectors, codes, strict=True))[:3]:
        session.note(vector, code, f"a positive NaN in {x.name}, a negative one in {y.name}")
    wins = {pair: not code & session.d.sign_mask for pair, code in zip(once, codes, strict=True)}
    return wins | {(y, x): not won for (x, y), won in wins.items()}


async def _signalling_first(session: ProbeSession, ranked: list[Position]) -> bool | None:
    """Whether a signalling NaN in the last position beats a quiet one (of the other sign) in the first."""
    if len(ranked) < 2:
        return None
    winner, loser = ranked[0], ranked[-1]
    signalling = nans(session.formats[loser.operand]).get("signalling")
    negative = nans(session.formats[winner.operand]).get("negative")
    if signalling is None or negative is None:
        return None
    vector = loser.put(session, signalling, winner.put(session, negative))
    code = (await session.ask([vector]))[0]
    session.note(vector, code, f"quiet negative in {winner.name}, signalling positive in {loser.name}")
    return not code & session.d.sign_mask
