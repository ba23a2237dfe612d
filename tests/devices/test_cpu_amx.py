"""Intel AMX against the vendor's pseudo-code: whole tiles, every output."""

from __future__ import annotations

import numpy as np
import pytest

from mmaprobe import _native
from mmaprobe.catalog.lookup import instruction
from mmaprobe.devices import cpu
from mmaprobe.operands.batch import Batch
from oracle import vendor as pseudo

HERE = cpu.open_cpu("")
TILES = 12


def tile(name):
    known = instruction(f"x86.{name}")
    if not (support := HERE.supports(known)):
        pytest.skip(f"{known.id}: {support.reason}")
    return known


def narrow(rng, shape, fraction_bits, low, high, special=0.0):
    """16-bit floats with exponent fields in [low, high), a part of them zeros, infinities and NaNs."""
    sign, ones = rng.integers(0, 2, shape) << 15, 0x7FFF >> fraction_bits << fraction_bits
    plain = rng.integers(low, high, shape) << fraction_bits | rng.integers(0, 1 << fraction_bits, shape)
    nan = ones | rng.integers(1, 1 << fraction_bits, shape)
    odd = rng.choice([0, ones, ones], shape)
    odd = np.where(rng.random(shape) < 0.4, nan, odd)
    return (sign | np.where(rng.random(shape) < special, odd, plain)).astype(np.uint16)


def wide(rng, low, high, special=0.0):
    """float32 bits of C, made of the same pieces."""
    top = narrow(rng, (TILES, 16, 16), 7, low, high, special)
    return pseudo.widen(top) | rng.integers(0, 1 << 16, top.shape).astype(np.uint32)


# exponent fields of a and b, of c, and the share of specials: near one, tiny, subnormal, specials, huge
BF16 = [
    (121, 134, 121, 134, 0.0),
    (56, 66, 0, 4, 0.0),
    (0, 3, 0, 3, 0.0),
    (121, 134, 121, 134, 0.03),
    (184, 192, 250, 255, 0.0),
]
F16 = [
    (8, 22, 121, 134, 0.0),
    (0, 3, 100, 110, 0.0),
    (0, 1, 0, 3, 0.0),
    (8, 22, 121, 134, 0.03),
    (25, 31, 130, 160, 0.0),
]


@pytest.mark.parametrize(
    ("name", "fraction_bits", "family"),
    [("tdpbf16ps", 7, f) for f in BF16] + [("tdpfp16ps", 10, f) for f in F16],
)
def test_float_tiles(name, fraction_bits, family):
    """bf16 subnormals are read as zeros, f16 subnormals are kept; MXCSR does not matter."""
    known, rng = tile(name), np.random.default_rng(11)
    low, high, low_c, high_c, special = family
    a = narrow(rng, (TILES, 16, 32), fraction_bits, low, high, special)
    b = narrow(rng, (TILES, 32, 16), fraction_bits, low, high, special)
    c = wide(rng, low_c, high_c, special)
    d = HERE.run(known, Batch(a, b, c))
    x, y = (pseudo.daz(pseudo.widen(v)) if fraction_bits == 7 else pseudo.widen_f16(v) for v in (a, b))
    np.testing.assert_array_equal(d, pseudo.tile_dot(x, y, c))
    other = np.empty_like(d)
    _native.cpu_run(known.id, 0xFFC0, a, b, c, other)
    np.testing.assert_array_equal(d, other)


@pytest.mark.parametrize("name", ["tdpbssd", "tdpbsud", "tdpbusd", "tdpbuud"])
def test_integer_tiles_wrap(name):
    known, rng = tile(name), np.random.default_rng(12)
    a, b = (rng.integers(0, 256, shape, dtype=np.uint8) for shape in ((TILES, 16, 64), (TILES, 64, 16)))
    a[0], b[0] = 0x7F, 0x7F
    c = rng.choice(np.array([0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF], np.uint32), (TILES, 16, 16))
    x = a.view(np.int8 if name[4] == "s" else np.uint8).astype(np.int64)
    y = b.view(np.int8 if name[5] == "s" else np.uint8).astype(np.int64)
    d = HERE.run(known, Batch(a, b, c))
    np.testing.assert_array_equal(d, pseudo.int32(x @ y + c.view(np.int32)))
