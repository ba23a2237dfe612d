"""NaN experiments: operands with payloads, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from mmaprobe import formats
from mmaprobe.formats import Format
from mmaprobe.probing.session import Session, Vector


@dataclass(frozen=True)
class Position:
    """An operand of a vector: ``a3``, ``b0``, ``c``."""

    operand: str
    lane: int = 0

    @property
    def name(self) -> str:
        return self.operand if self.operand == "c" else f"{self.operand}{self.lane}"

    def put(self, session: Session, code: int, base: Vector | None = None) -> Vector:
        """``base`` (every operand 1 where None) with this operand's code replaced."""
        base = base or ones(session)
        if self.operand == "c":
            return replace(base, c=code)
        codes = list(base.a if self.operand == "a" else base.b)
        codes[self.lane] = code
        return replace(base, a=tuple(codes)) if self.operand == "a" else replace(base, b=tuple(codes))


def ones(session: Session) -> Vector:
    """Every operand 1."""
    return session.vector({}, 1)


def positions(session: Session, infinite: bool = False) -> list[Position]:
    """Every operand whose format has a NaN (or an infinity)."""
    found = [Position(name, lane) for lane in range(session.instruction.k) for name in ("a", "b")]
    found += [Position("c")] if session.instruction.c else []
    has = {n: (f.infinity_code if infinite else f.nan_code) is not None for n, f in session.formats.items()}
    return [place for place in found if has[place.operand]]


def nans(fmt: Format) -> dict[str, int]:
    """NaNs of a format: quiet and signalling, of both signs, where it has them."""
    if fmt.nan != "ieee" or fmt.infinity_code is None or fmt.nan_code is None:
        return {"quiet": fmt.nan_code or 0}
    low = 1 << max(fmt.padding + fmt.fraction_bits - 2, fmt.padding)  # below the quiet bit
    found = {"quiet": fmt.nan_code, "negative": fmt.nan_code | fmt.sign_mask}
    if low != fmt.quiet_bit:
        found |= {"payload": fmt.nan_code | low, "signalling": fmt.infinity_code | low}
    return found


def single(session: Session, place: Position) -> dict[str, int]:
    """The result of each kind of NaN alone in one position."""
    kinds = nans(session.formats[place.operand])
    vectors = [place.put(session, code) for code in kinds.values()]
    codes = session.ask(vectors)
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


def kept_payload(session: Session, place: Position) -> bool | None:
    """True where the result is the operand's payload, quieted; False where it is as it was; None where neither."""
    fmt, d = session.formats[place.operand], session.d
    found = single(session, place)
    kinds = nans(fmt)
    for quiet in (True, False):
        if all(found[kind] == moved(fmt, d, code, quiet) for kind, code in kinds.items()):
            return quiet
    return None


def _two(session: Session, x: Position, y: Position, kinds: tuple[str, str]) -> Vector | None:
    """NaNs of two kinds in two positions."""
    first = nans(session.formats[x.operand]).get(kinds[0])
    second = nans(session.formats[y.operand]).get(kinds[1])
    return None if first is None or second is None else y.put(session, second, x.put(session, first))


def order(session: Session, places: list[Position]) -> tuple[list[str], bool, bool | None]:
    """Positions from winner to loser, whether one order explains every pair, and whether signalling wins first."""
    pairs = list(combinations(places, 2))
    # the two of a pair differ in sign, which every format with NaNs of two signs can say
    vectors = [_two(session, x, y, ("quiet", "negative")) for x, y in pairs]
    ready = [v for v in vectors if v is not None]
    if len(ready) < len(pairs):
        return [], False, None
    codes = session.ask(ready)
    sign = session.d.sign_mask
    wins = {(x.name, y.name): not code & sign for (x, y), code in zip(pairs, codes, strict=True)}
    wins |= {(y, x): not won for (x, y), won in list(wins.items())}
    ranked = sorted(places, key=lambda p: -sum(wins[p.name, q.name] for q in places if q != p))
    names = [place.name for place in ranked]
    consistent = all(wins[x, y] for x, y in combinations(names, 2))
    for (x, y), vector, code in list(zip(pairs, ready, codes, strict=True))[:3]:
        session.note(vector, code, f"a positive NaN in {x.name}, a negative one in {y.name}")
    return names, consistent, _signalling_first(session, ranked)


def _signalling_first(session: Session, ranked: list[Position]) -> bool | None:
    """Whether a signalling NaN in the last position beats a quiet one (of the other sign) in the first."""
    if len(ranked) < 2:
        return None
    winner, loser = ranked[0], ranked[-1]
    signalling = nans(session.formats[loser.operand]).get("signalling")
    negative = nans(session.formats[winner.operand]).get("negative")
    if signalling is None or negative is None:
        return None
    vector = loser.put(session, signalling, winner.put(session, negative))
    code = session.ask([vector])[0]
    session.note(vector, code, f"quiet negative in {winner.name}, signalling positive in {loser.name}")
    return not code & session.d.sign_mask


def invalid_vectors(session: Session) -> dict[str, tuple[Vector, set[str]]]:
    """Invalid operations: infinity times zero in each lane, infinities of both signs; with the operands they use."""
    a, b = session.formats["a"], session.formats["b"]
    out: dict[str, tuple[Vector, set[str]]] = {}
    for lane in range(session.instruction.k):
        for x, y in (("a", "b"), ("b", "a")):
            infinity = session.formats[x].infinity_code
            if infinity is not None:
                vector = Position(y, lane).put(session, 0, Position(x, lane).put(session, infinity))
                out[f"{x}{lane} infinite, {y}{lane} zero"] = vector, {f"a{lane}", f"b{lane}"}
    if a.infinity_code is None:
        return out
    first = Position("a", 0).put(session, a.infinity_code)
    if session.instruction.c and (infinity := session.formats["c"].infinity_code) is not None:
        minus = Position("c").put(session, infinity | session.formats["c"].sign_mask, first)
        out["a0 and c infinite"] = minus, {"a0", "b0", "c"}
    if session.instruction.k > 1:
        minus = Position("a", 1).put(session, a.infinity_code | a.sign_mask, first)
        out["a0 and a1 infinite"] = minus, {"a0", "b0", "a1", "b1"}
    return out if b.is_float else {}


def invalid_codes(session: Session) -> dict[str, int]:
    """The result of each invalid operation."""
    cases = invalid_vectors(session)
    vectors = [vector for vector, _ in cases.values()]
    codes = session.ask(vectors)
    for (name, (vector, _)), code in (
        list(zip(cases.items(), codes, strict=True))[:1] + list(zip(cases.items(), codes, strict=True))[-1:]
    ):
        session.note(vector, code, name)
    return {name: code for name, code in zip(cases, codes, strict=True) if is_nan(session.d, code)}


def is_nan(fmt: Format, code: int) -> bool:
    """Whether a code is a NaN."""
    return bool(formats.decode(fmt, np.array([code], fmt.dtype)).kind[0] == formats.NAN)


def code_wins(session: Session, places: list[Position]) -> dict[str, str]:
    """For an invalid operation beside a NaN in each other position: which of the two the result shows."""
    out: dict[str, str] = {}
    for name, (vector, used) in invalid_vectors(session).items():
        alone = session.ask([vector])[0]
        others = [place for place in places if place.name not in used]
        kinds = [nans(session.formats[place.operand]) for place in others]
        marks = [kind.get("payload", kind["quiet"]) for kind in kinds]
        asked = [place.put(session, mark, vector) for place, mark in zip(others, marks, strict=True)]
        for place, code in zip(others, session.ask(asked), strict=True):
            out[f"{name}; NaN in {place.name}"] = "invalid" if code == alone else "nan"
    return out
