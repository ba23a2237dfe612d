"""The NumPy reference: any family, any instruction, exactly what the native generator makes."""

from __future__ import annotations

import numpy as np

from mmaprobe.generators import families_circuit, families_float, families_other, families_stream, operands
from mmaprobe.generators.domain import Domain
from mmaprobe.generators.operands import Codes


def generate_codes(t: Domain, family: str, stream: int, seed: int, start: int, count: int) -> dict[str, Codes]:
    """Operand codes in one-vector shapes, as uint64; ``stream`` is counter word 3 (family number and version)."""
    streamed = {
        ("uniform", 1): families_stream.uniform,
        ("clustered", 2): families_stream.clustered,
        ("clustered", 3): families_stream.clustered,
    }
    rule = streamed.get((family, stream >> 16))
    if rule is not None:
        index = np.arange(count, dtype=np.uint64) + np.uint64(start)
        found = rule(t, seed, stream, index)
        if "c" in found:
            found["c"] = found["c"][:, 0]
        if t.space.chunk:
            found["metadata"] = operands.metadata(t, operands.Draws(seed, stream, index, [], []))[0]
        return found
    if family in families_circuit.CIRCUIT_FAMILIES:
        index = np.arange(count, dtype=np.uint64) + np.uint64(start)
        d = operands.Draws(seed, stream, index, [], [])
        return _whole(t, d, families_circuit.circuit(t, family, seed, stream, index))
    d = operands.draws(t, seed, stream, start, count)
    found = {}
    if t.a.is_float:
        lanes, aim = families_float.FLOAT_FAMILIES[family](t, d)
        scale_exponent: operands.Ints = np.zeros((1, 1), np.int64)
        if t.space.groups:
            found["scale_a"], found["scale_b"], scale_exponent = operands.scales(t, d, lanes)
        found["a"], found["b"] = operands.products(t, d, lanes, scale_exponent)
        if t.c.present:
            found["c"] = operands.addend(t, d, aim, found["a"], found["b"], scale_exponent)
        if family == "specials":
            families_other.overlay_specials(t, d, found)
    else:
        found = families_other.integers(t, d, 4 if family == "extremes" else 1)
    return _whole(t, d, found)


def _whole(t: Domain, d: operands.Draws, found: dict[str, Codes]) -> dict[str, Codes]:
    """With metadata and b of all K elements, where A is sparse."""
    if t.space.chunk:
        widen = operands.widen if t.b.is_float else families_other.widen_integer
        found["metadata"], where = operands.metadata(t, d)
        found["b"] = widen(t, d, found["b"], where)
    return found
