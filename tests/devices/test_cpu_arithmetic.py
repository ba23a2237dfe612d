"""What the x86-64 instructions of this machine compute, against the vendors' pseudo-code."""

from __future__ import annotations

import numpy as np
import pytest

from mmaprobe import _native
from mmaprobe.catalog.lookup import instruction
from mmaprobe.catalog.states import modes
from mmaprobe.devices import cpu
from mmaprobe.devices.base import run_vectors
from mmaprobe.operands.batch import Batch
from oracle import vendor as pseudo
from oracle.exact import Exact, scalar_families

HERE = cpu.open_cpu("")
pytestmark = pytest.mark.skipif(not HERE.architecture.startswith("x86-64"), reason="x86-64 instructions")
VENDOR = HERE.architecture.partition("+")[2] or "intel"
PAYLOADS = HERE.architecture in ("x86-64+intel", "x86-64+amd")  # whose NaN wins was measured there
COUNT = 20_001  # not a multiple of any register's lanes
SPECIALS = [0x7FC00000, 0x7F800000, 0xFF800000, 0xFFC00000, 0, 0x80000000, 1, 0x80000001, 0x7F7FFFFF, 0x3F800000]
STATES = [(known.id.partition("{")[2], known.modifier) for known in modes(instruction("x86.dpps"))]


def run(known, a, b, c=None):
    """d of shape (n,); the test is skipped where this machine lacks the instruction."""
    known = instruction(known) if isinstance(known, str) else known
    if not (support := HERE.supports(known)):
        pytest.skip(f"{known.id}: {support.reason}")
    return run_vectors(HERE, known, Batch(a, b, c))


def clustered(rng, shape, low, high):
    """Float32 bits with exponent fields in [low, high)."""
    sign = rng.integers(0, 2, shape) << 31
    return (sign | rng.integers(low, high, shape) << 23 | rng.integers(0, 1 << 23, shape)).astype(np.uint32)


def mixed(rng, shape):
    """Float32 bits, half of them special; every NaN has a payload of its own, half of them signalling."""
    chosen = rng.choice(np.array([*SPECIALS, 0x7F800000, 0xFF800000], np.uint32), shape)
    payload = rng.integers(1, 1 << 22, shape).astype(np.uint32)
    signalling = (chosen & 0x7FFFFFFF == 0x7F800000) & (rng.random(shape) < 0.3)
    chosen = np.where(pseudo.is_nan(chosen) | signalling, chosen | payload, chosen)
    return np.where(rng.random(shape) < 0.5, chosen, clustered(rng, shape, 120, 134)).astype(np.uint32)


def samples(shape):
    """Named families of float32 operands a, b and c."""
    rng = np.random.default_rng(7)
    uniform = [rng.integers(0, 1 << 32, shape, dtype=np.uint32) for _ in "abc"]
    near = [clustered(rng, shape, 121, 134) for _ in "abc"]
    tiny = [clustered(rng, shape, 56, 66), clustered(rng, shape, 56, 66), clustered(rng, shape, 0, 4)]
    low = [clustered(rng, shape, 0, 3), clustered(rng, shape, 125, 130), clustered(rng, shape, 0, 3)]
    huge = [clustered(rng, shape, 185, 193), clustered(rng, shape, 185, 193), clustered(rng, shape, 250, 255)]
    return [uniform, near, tiny, low, huge, [mixed(rng, shape) for _ in "abc"]]


def assert_same(d, expected, nan_bits=True):
    if not nan_bits:
        nan = [np.isnan(x.view(f"f{x.itemsize}")) for x in (d, expected)]
        d, expected = (np.where(flag, x.dtype.type(1), x) for flag, x in zip(nan, (d, expected), strict=True))
    bad = np.flatnonzero(d != expected)
    assert not bad.size, f"{bad.size} differ, first at {bad[0]}: {d[bad[0]]:#x}, expected {expected[bad[0]]:#x}"


@pytest.mark.parametrize("width", ["", "{width=256}", "{width=512}"])
def test_vdpbf16ps(width):
    """fma(a0, b0, fma(a1, b1, c)), flushing; the first NaN of a0 b0 a1 b1 c, quieted (AMD Zen 4 and Intel agree)."""
    for a, b, c in samples((COUNT, 2)):
        narrow = [(x >> np.uint32(16)).astype(np.uint16) for x in (a, b)]
        d = run(f"x86.vdpbf16ps{width}", *narrow, c[:, 0])
        assert_same(d, pseudo.vdpbf16ps(*narrow, c[:, 0]))


@pytest.mark.parametrize(("name", "state"), STATES, ids=[name or "default" for name, _ in STATES])
def test_dpps(name, state):
    for a, b, _ in samples((COUNT // 4, 4)):
        d = run("x86.dpps" + ("{" + name if name else ""), a, b)
        expected = pseudo.dpps(a, b, state.get("rounding", "rn"), "ftz" in state, "daz" in state, VENDOR)
        assert_same(d, expected, nan_bits=PAYLOADS)


@pytest.mark.parametrize(("name", "state"), STATES, ids=[name or "default" for name, _ in STATES])
def test_vfmadd_f32(name, state):
    """Form 231: the first NaN of a, b, c."""
    for a, b, c in samples(COUNT // 4):
        d = run("x86.vfmadd.f32" + ("{" + name if name else ""), a[:, None], b[:, None], c)
        read = [pseudo.daz(x) if "daz" in state else x for x in (a, b, c)]
        expected = pseudo.fma(*read, state.get("rounding", "rn"), "ftz" in state)
        assert_same(d, pseudo.first_nan(expected, (a, b, c)), PAYLOADS)


def widths(name):
    return [name, f"{name}{{width=256}}", f"{name}{{width=512}}"]


@pytest.mark.parametrize("name", [*widths("x86.vpdpbusd"), *widths("x86.vpdpbusds")])
def test_vpdpbusd(name):
    rng = np.random.default_rng(3)
    a, b = (rng.choice(np.array([0, 1, 127, 128, 255, 77], np.uint8), (COUNT, 4)) for _ in "ab")
    c = rng.choice(np.array([0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7FFF0000], np.uint32), COUNT)
    total = (a.astype(np.int64) * b.view(np.int8)).sum(1) + c.view(np.int32)
    assert_same(run(name, a, b, c), pseudo.int32(total, saturate="busds" in name))


@pytest.mark.parametrize("name", [*widths("x86.vpdpwssd"), *widths("x86.vpdpwssds")])
def test_vpdpwssd(name):
    rng = np.random.default_rng(4)
    a, b = (rng.choice(np.array([0, 1, 0x7FFF, 0x8000, 0xFFFF, 777], np.uint16), (COUNT, 2)) for _ in "ab")
    c = rng.choice(np.array([0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7FFF0000], np.uint32), COUNT)
    total = (a.view(np.int16).astype(np.int64) * b.view(np.int16)).sum(1) + c.view(np.int32)
    assert_same(run(name, a, b, c), pseudo.int32(total, saturate="wssds" in name))


def test_pmaddubsw_saturates():
    rng = np.random.default_rng(5)
    a, b = (rng.choice(np.array([0, 1, 127, 128, 255, 77], np.uint8), (COUNT, 2)) for _ in "ab")
    total = (a.astype(np.int64) * b.view(np.int8)).sum(1)
    assert_same(run("x86.pmaddubsw", a, b), np.clip(total, -32768, 32767).astype(np.int16).view(np.uint16))


def test_pmaddwd_wraps():
    rng = np.random.default_rng(6)
    a, b = (rng.choice(np.array([0, 1, 0x7FFF, 0x8000, 0xFFFF, 777], np.uint16), (COUNT, 2)) for _ in "ab")
    total = (a.view(np.int16).astype(np.int64) * b.view(np.int16)).sum(1)
    assert_same(run("x86.pmaddwd", a, b), pseudo.int32(total))


@pytest.mark.parametrize(
    ("name", "exponent_bits", "fraction_bits"),
    [("x86.vfmadd.f64", 11, 52), ("x86.vfmadd.f16", 5, 10), ("x86.vfmadd.f32", 8, 23)],
)
def test_vfmadd_by_fractions(name, exponent_bits, fraction_bits):
    """Every control state the instruction obeys; f16 obeys the rounding mode alone."""
    families = scalar_families(np.random.default_rng(5), exponent_bits, fraction_bits, 60)
    rows = [[x for row in order for x in families[row]()] for order in FMA_FAMILIES]
    dtype = instruction(name).formats()["d"].dtype
    a, b, c = (np.array(row, dtype) for row in rows)
    for known in modes(instruction(name)):
        state = known.modifier
        scalar = Exact(exponent_bits, fraction_bits, state.get("rounding", "rn"), "ftz" in state, "daz" in state)
        expected = np.array([scalar.fma(*xyz) for xyz in zip(*rows, strict=True)], dtype)
        assert_same(run(known, a[:, None], b[:, None], c), expected, PAYLOADS)


FMA_FAMILIES = (
    ["near", "tiny", "low", "ends", "any", "near", "low", "any"],
    ["near", "tiny", "near", "ends", "any", "any", "near", "ends"],
    ["near", "low", "low", "ends", "any", "ends", "near", "near"],
)


def test_vfmadd_f16_ignores_flushing():
    """MXCSR.FTZ and DAZ do not reach FP16: 0x8268 * 0x8800 + 0x0040 (subnormals) is the same with both set."""
    known = instruction("x86.vfmadd.f16")
    a, b, c = (np.array([[[x]]], np.uint16) for x in (0x8268, 0x8800, 0x0040))
    if not (support := HERE.supports(known)):
        pytest.skip(f"{known.id}: {support.reason}")
    d = np.zeros_like(c)
    for control in (0x1F80, 0x1F80 | 0x8040):
        _native.cpu_run(known.id, control, a, b, c, d)
        assert d.item() == 0x0040


@pytest.mark.parametrize(("name", "state"), STATES, ids=[name or "default" for name, _ in STATES])
def test_dppd(name, state):
    """p0 + p1, each product and the sum rounded, each with its own flushing."""
    families = scalar_families(np.random.default_rng(6), 11, 52, 20)
    columns = [[x for row in order for x in families[row]()] for order in (*FMA_FAMILIES, FMA_FAMILIES[1])]
    a, b = (np.array(pair, np.uint64).T for pair in (columns[:2], columns[2:]))
    scalar = Exact(11, 52, state.get("rounding", "rn"), "ftz" in state, "daz" in state)
    expected = [
        scalar.add(scalar.multiply(a0, b0), scalar.multiply(a1, b1)) for a0, a1, b0, b1 in zip(*columns, strict=True)
    ]
    assert_same(run("x86.dppd" + ("{" + name if name else ""), a, b), np.array(expected, np.uint64), PAYLOADS)


@pytest.mark.skipif(not PAYLOADS, reason="measured on Intel and AMD")
def test_dppd_takes_the_first_nan():
    """Not as DPPS of Intel, whose pairs take the odd product first."""
    one, nan = 0x3FF0000000000000, 0x7FF8000000000001
    d = run("x86.dppd", np.array([[nan, nan + 1]], np.uint64), np.array([[one, one]], np.uint64))
    assert d.tolist() == [nan]
    wide = np.array([[0x7FC00001, 0x7FC00002, 0x7FC00003, 0x7FC00004]], np.uint32)
    first = {"intel": 0x7FC00002, "amd": 0x7FC00001}[VENDOR]
    assert run("x86.dpps", wide, np.full_like(wide, 0x3F800000)).tolist() == [first]


@pytest.mark.parametrize("name", ["x86.vdpbf16ps", "x86.vpdpbusd", "x86.pmaddwd"])
def test_control_register_is_ignored(name):
    known = instruction(name)
    rng = np.random.default_rng(8)
    formats = known.formats()
    operands = {
        role: rng.integers(0, formats[role].code_limit, shape).astype(formats[role].dtype)
        for role, shape in known.shapes(COUNT).items()
    }
    if not (support := HERE.supports(known)):
        pytest.skip(f"{known.id}: {support.reason}")
    answers = []
    for control in (0x1F80, 0xFFC0):
        d = np.empty((COUNT, 1, 1), formats["d"].dtype)
        _native.cpu_run(name, control, operands["a"], operands["b"], operands.get("c"), d)
        answers.append(d)
    np.testing.assert_array_equal(*answers)
