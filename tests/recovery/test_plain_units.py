"""Units in plain integers, derived blind and judged by vectors of their own."""

from __future__ import annotations

import numpy as np
import pytest
from plain_units import INSIDE, OUTSIDE, PlainUnit

from mmaprobe.derivation import derive
from mmaprobe.models.engine import evaluate
from mmaprobe.operands.batch import Batch

FRESH = 4000
"""Fresh vectors of a derivation: a unit in plain integers answers 40,000 a second."""
JUDGED = 3000
"""Vectors of each kind by which a unit and what was derived from it are judged."""
BITS = {"f16": 16, "bf16": 16, "f32": 32, "e5m2": 8, "e4m3": 8, "u8": 8, "s8": 8, "s32": 32}
BITS |= {"e5m10f": 16, "e5m2f": 8}
FIELDS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "e5m2": (5, 2), "e4m3": (4, 3)}
FIELDS |= {"e5m10f": FIELDS["f16"], "e5m2f": FIELDS["e5m2"]}


def judged(of: tuple[str, str, int], seed: int = 77) -> Batch:
    """Any codes; exponents near one another; products that cancel in pairs beside a small c; the ends of the range."""
    operand, result, k = of
    rng = np.random.default_rng(seed)
    kinds = [_codes(rng, operand, result, k, way) for way in ("any", "near", "cancel", "low", "high")]
    parts = [np.concatenate(each) for each in zip(*kinds, strict=True)]
    types = [np.dtype(f"u{BITS[name] // 8}") for name in (operand, operand, result)]
    return Batch(**{name: part.astype(to) for name, part, to in zip("abc", parts, types, strict=True)})


def _codes(rng: np.random.Generator, operand: str, result: str, k: int, way: str) -> list[np.ndarray]:  # type: ignore[type-arg]
    made = []
    for name, shape in ((operand, (JUDGED, k)), (operand, (JUDGED, k)), (result, (JUDGED,))):
        code = rng.integers(0, 1 << BITS[name], shape)
        if way != "any" and name in FIELDS:
            exponent, fraction = FIELDS[name]
            bias = (1 << (exponent - 1)) - 1
            spread = rng.integers(-3, 4, shape)
            at = {"near": bias, "cancel": bias, "low": 2, "high": (1 << exponent) - 5}[way]
            if name == result and way == "cancel" and k > 1:
                at = 0
            field = np.clip(at + spread, 0, (1 << exponent) - 2)
            code = code & ~(((1 << exponent) - 1) << fraction) | field << fraction
        made.append(code)
    if way == "cancel":
        sign = 1 << (BITS[operand] - 1)
        for i in range(0, k - 1, 2):
            made[0][:, i + 1], made[1][:, i + 1] = made[0][:, i] ^ sign, made[1][:, i]
    return made


@pytest.mark.long
@pytest.mark.parametrize("name", INSIDE)
def test_a_unit_inside_the_grammar_is_recovered(name: str) -> None:
    unit, of = INSIDE[name]
    device = PlainUnit(unit, of)
    found = derive(device, device.instruction, fresh=FRESH)
    assert found.status in ("exact", "bounded"), found.reason
    assert found.datapath is not None
    vectors = judged(of)
    wrong = evaluate(found.datapath, vectors) != device.run_vectors(device.instruction, vectors)
    assert not wrong.any(), (wrong.sum(), found.datapath)


SAID = {"deaf_to_tiny_c": "c is a subnormal", "short_lane": "lane 2 is negative"}
"""Words that an oddity is said with; one that is half of a rounding is only recognised."""


@pytest.mark.long
@pytest.mark.parametrize("name", OUTSIDE)
def test_a_unit_outside_the_grammar_is_recognised_and_its_oddity_said(name: str) -> None:
    unit, of = OUTSIDE[name]
    device = PlainUnit(unit, of)
    found = derive(device, device.instruction, fresh=FRESH)
    assert found.status == "inconclusive"
    assert found.closest is not None
    assert found.counterexample is not None
    assert found.kinds
    assert name not in SAID or any(SAID[name] in str(kind) for kind in found.kinds), list(map(str, found.kinds))
