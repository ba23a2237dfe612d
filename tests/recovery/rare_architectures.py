"""Random architectures with what few units have: ``python tests/recovery/rare_architectures.py --seeds 0-99``.

The sums, formats, orders and roundings are those of ``random_architectures``; one feature is drawn into them, at every
place where it can stand or at one kind of term, and drawn again until it shows in the judge's vectors.  Exit status 1
where an answer was wrong or a derivation broke down.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count

import numpy as np
from outcomes import BAD, LIMIT, BlackBox, Outcome, judged, recover
from random_architectures import Case, Draw, draw_case
from seeds import seeds_of, spread, table

from mmaprobe import formats
from mmaprobe.derivation.budget import ALLOWANCE
from mmaprobe.models.bit_budget import bit_budget
from mmaprobe.models.engine import evaluate_many
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Fused, Special, Split, Term, same_range, walk
from mmaprobe.parameters.rewrite import encodes, map_encodes, map_fused, map_terms

TELLING = 20
"""Of the judge's vectors so many, at least, tell a feature from its absence: one in a few thousand."""
Change = Callable[[Datapath], Datapath]


def _at_terms(draw: Draw, **fields: object) -> Change:
    """These fields at all terms, at C's or at those that are not C."""
    where = draw.of("all", "all", "c", "others")

    def at(term: Term) -> Term:
        chosen = where == "all" or (where == "c") == isinstance(term.of, Accumulator)
        return replace(term, **fields) if chosen else term  # type: ignore[arg-type]

    return lambda path: map_terms(path, at)


def _sticky(draw: Draw, path: Datapath) -> Change:
    mode = draw.of("RNE", "RNA", "RU", "RD", "RO", "RA")
    return _at_terms(draw, sticky_bits=draw.whole(1, 4), rounding=mode)


def _carry(draw: Draw, path: Datapath) -> Change:
    fields = {"carry_bits": draw.whole(0, 3), "carry": draw.of("wrap", "saturate")}
    return lambda path: map_fused(path, lambda node: replace(node, **fields))  # type: ignore[arg-type]


def _shift(draw: Draw, path: Datapath) -> Change:
    return _at_terms(draw, shift_limit=draw.of(15, 16, 31, 32, draw.whole(4, 40)))


def _columns(draw: Draw, path: Datapath) -> Change:
    most = formats.get(path.a).fraction_bits + formats.get(path.b).fraction_bits
    return lambda path: replace(path, product=replace(path.product, missing_columns=draw.whole(1, max(most, 1))))


def _parts(draw: Draw, path: Datapath) -> Change:
    """Operands in parts of a narrower format of their range, where two or three hold one."""
    of = [formats.get(name) for name in (path.a, path.b)]
    some = [fmt for fmt in formats.FORMATS.values() if fmt.nan == "ieee" and all(same_range(each, fmt) for each in of)]
    wide = 1 + max(each.fraction_bits for each in of)
    names = [fmt.name for fmt in some if fmt.fraction_bits + 1 < wide <= 3 * (fmt.fraction_bits + 1)]
    if not names or path.scale is not None:
        return lambda path: path
    count = draw.of(2, 2, 3)
    reach = draw.of(count, 2 * count - 1)
    pairs = [f"{i}{j}" for i in range(count) for j in range(count) if i + j < reach]
    ordered = tuple(sorted(pairs, key=lambda pair: sum(map(int, pair)), reverse=draw.of(True, False)))
    made = Split(draw.of(*names), ordered, draw.of("RNE", "RNE", "RZ", "RNA"), draw.of("together", "apart"))
    return lambda path: replace(path, product=replace(path.product, split=made))


def _random(draw: Draw, path: Datapath) -> Change:
    """Random bits taken at all roundings, at the last of the sum or at any one; most of these truncate."""
    name, places = draw.of("u8", "u16", "u32"), len(encodes(path))
    held = formats.get(name).bits
    bits, end = draw.of(held, draw.whole(1, held)), draw.of("lowest", "highest")
    chosen = draw.of(range(places), [places - 1], [draw.whole(0, places - 1)])
    fields = {"random_bits": bits, "random_from": end if bits < held else "lowest"}
    fields |= {} if draw.chance(20) else {"rounding": "RZ"}

    def at(number: int, to: Encode) -> Encode:
        return replace(to, **fields) if number in chosen else to  # type: ignore[arg-type]

    def change(path: Datapath) -> Datapath:
        numbers = count()
        return map_encodes(replace(path, random=name), lambda to: at(next(numbers), to))

    return change


def _complement(draw: Draw, path: Datapath) -> Change:
    """Ones' complement in the aligned sums that C enters, whose sign is the frame."""

    def at(node: Fused) -> Fused:
        with_c = any(isinstance(term.of, Accumulator) for term in node.terms)
        return replace(node, complement=True) if with_c else node

    return lambda path: map_fused(path, at)


def _offset(draw: Draw, path: Datapath) -> Change:
    by, of_c = draw.of(-3, -2, -2, -1, 1, 2, 3), draw.of(True, True, False)

    def at(term: Term) -> Term:
        return replace(term, label_offset=by) if isinstance(term.of, Accumulator) == of_c else term

    return lambda path: map_terms(path, at)


def _cause(draw: Draw, path: Datapath) -> Change:
    """Codes of NaNs by what caused them: two quiet ones of any payload."""
    fmt = formats.get(path.d)
    assert fmt.nan_code is not None
    codes = [fmt.nan_code | draw.whole(0, (1 << fmt.fraction_bits - 1) - 1) | draw.of(0, fmt.sign_mask) for _ in "ab"]
    made = Special("cause", codes[0], quiet=draw.chance(70), factor_code=codes[1])
    return lambda path: replace(path, special=made)


FEATURES = {"sticky": _sticky, "carry": _carry, "shift": _shift, "columns": _columns}
LATER = {"parts": _parts}
"""What seeds from ``FROM`` on have, so that those before it stay what they were."""
FROM = 10_000
DRAWN = {"random": _random}
"""What seeds from ``DRAWN_FROM`` on have."""
DRAWN_FROM = 100_000
SHORT = {"complement": _complement, "offset": _offset, "cause": _cause}
"""What seeds from ``SHORT_FROM`` on have: the rules of short sums that were measured on silicon."""
SHORT_FROM = 200_000
ERAS = ((SHORT_FROM, SHORT), (DRAWN_FROM, DRAWN), (FROM, LATER), (0, FEATURES))
IN_SUMS = ("sticky", "carry", "shift", "complement", "offset")
"""Features of aligned sums."""


def without(path: Datapath) -> Datapath:
    """The datapath without what few units have; the roundings that were drawn with it stay."""
    if path.special.nan == "cause":
        path = replace(path, special=Special("canonical", path.special.code))
    path = replace(path, product=replace(path.product, missing_columns=0, split=None))
    path = map_encodes(path, lambda to: replace(to, random_bits=0))
    path = map_terms(path, lambda term: replace(term, sticky_bits=None, shift_limit=None, label_offset=0))
    return map_fused(path, lambda node: replace(node, carry_bits=None, carry="wrap", complement=False))


def rare_case(seed: int) -> Case:
    """The random architecture of a seed, with a feature."""
    source = random.Random(f"rare {seed}")
    draw = Draw(source)
    features = next(features for first, features in ERAS if seed >= first)
    name = draw.of(*features)
    while True:
        plain = draw_case(source, seed)
        fused = any(isinstance(node, Fused) for node in walk(plain.datapath.tree))
        if plain.kind == "integer" or (name in IN_SUMS and not fused):
            continue
        path = features[name](draw, plain.datapath)(plain.datapath)
        if bit_budget(path).width is None or path == plain.datapath:
            continue
        made = replace(plain, kind=name, datapath=path, instruction=replace(plain.instruction, random=path.random))
        if bit_budget(without(path)).width is None:
            continue
        d, other = evaluate_many([path, without(path)], judged(made.instruction, path))
        if np.count_nonzero(d != other) >= TELLING:
            return made


def outcome(seed: int, limit: float = LIMIT, allowance: int = ALLOWANCE) -> Outcome:
    """Derive it blind, and judge what comes out."""
    drawn = rare_case(seed)
    box = BlackBox(drawn.instruction, drawn.datapath)
    return recover(drawn.name, drawn.kind, box, drawn.instruction, drawn.datapath, seed, limit, allowance)[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=seeds_of, required=True, help="the seeds: 7,100-120")
    parser.add_argument("--limit", type=float, default=LIMIT, help=f"seconds of processor time for each ({LIMIT:g})")
    parser.add_argument("--allowance", type=int, default=ALLOWANCE, help=f"units of work for each ({ALLOWANCE})")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    given = parser.parse_args()
    judge = partial(outcome, limit=given.limit, allowance=given.allowance)
    found = []
    for each in spread(judge, given.seeds, given.jobs):
        print(each.line, flush=True)
        found.append(each)
    print(table(found, [name for _, features in reversed(ERAS) for name in features]))
    counts = Counter(each.verdict for each in found)
    return any(map(counts.get, BAD))


if __name__ == "__main__":
    sys.exit(main())
