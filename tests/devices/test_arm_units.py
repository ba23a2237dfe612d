"""The Arm units, run by the cross-compiled runner (under an emulator elsewhere) through ``process:``.

MMAPROBE_ARM_RUNNER is the path of the runner that tests/arm/build.sh makes, MMAPROBE_ARM_EMULATOR that of another
QEMU than the one installed: SME2 and FP8 need one of version 11 (``NEWER``), and are skipped without.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil

import numpy as np
import pytest

from mmaprobe.catalog.lookup import instruction, instructions
from mmaprobe.catalog.states import modes
from mmaprobe.devices.base import open_device, run_vectors
from mmaprobe.evidence import silicon
from mmaprobe.generators import families_for, generate
from mmaprobe.models import engine
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.lookup import datapath_for
from oracle import vendor

RUNNER = os.environ.get("MMAPROBE_ARM_RUNNER", "")
INSTALLED = os.environ.get("MMAPROBE_ARM_EMULATOR") or shutil.which("qemu-aarch64-static")
EMULATOR = "" if platform.machine() == "aarch64" else INSTALLED
NEWER = {"sme2", "fp8fma", "fp8dot2", "fp8dot4", "f8f16mm", "f8f32mm", "sme-f8f16", "sme-f8f32"}
EVERY = [mode for known in instructions("aarch64") for mode in modes(known)]
FAMILIES = {known.family: [each for each in EVERY if each.family == known.family] for known in EVERY}
pytestmark = pytest.mark.needs("arm")
COUNT = 2_001  # not a multiple of a register's lanes
OF_BYTES = ("arm.smopa", "arm.umopa", "arm.sumopa", "arm.usmopa")
FAULT = "this emulator computes one in four outputs of an outer product of bytes, as QEMU 7.2 does"


@pytest.fixture(scope="module")
def arm():
    words = [EMULATOR, "-cpu", "max", RUNNER] if EMULATOR else [RUNNER]
    device = open_device(f"process:{shlex.join(words)}")
    yield device
    device.close()


def bytes_tile(name, count=500):
    """Tiles of an outer product of bytes, and what they should give."""
    known = instruction(name)
    rng = np.random.default_rng(1)
    a, b = (rng.integers(0, 256, (count, 4, 4), dtype=np.uint8) for _ in "ab")
    c = rng.integers(0, 1 << 32, (count, 4, 4), dtype=np.uint32)
    signed = [x.view(np.int8) if fmt == "s8" else x for x, fmt in ((a, known.a), (b, known.b))]
    total = signed[0].astype(np.int64) @ signed[1].astype(np.int64) + c
    return known, Batch(a, b, c), (total & 0xFFFFFFFF).astype(np.uint32)


@pytest.fixture(scope="module")
def whole_tiles(arm):
    """Whether outer products of bytes have all their outputs."""
    known, batch, expected = bytes_tile("arm.umopa", 4)
    return bool((arm.run(known, batch) == expected).all())


def test_hello(arm):
    assert arm.info()["architecture"] == "aarch64"
    assert arm.info()["protocol"] == "1 binary"
    assert arm.info()["silicon"].startswith("no, emulated by qemu-" if EMULATOR else silicon.UNKNOWN)
    if EMULATOR:
        assert [known.id for known in EVERY if not arm.supports(known) and not NEWER & set(known.requires)] == []


@pytest.mark.parametrize("family", FAMILIES)
def test_against_pseudo_code_and_parameters(arm, whole_tiles, family):
    """Every form on every family of vectors, NaN payloads as bits; the pseudo-code is Arm's."""
    sound = [known for known in FAMILIES[family] if whole_tiles or known.opcode not in OF_BYTES]
    of_each(arm, sound, held_against_both)
    if len(sound) < len(FAMILIES[family]):
        pytest.skip(FAULT)


def of_each(arm, forms, check):
    """The check of every form that runs here; skipped, after that, where one does not."""
    lacking = [support.reason for known in forms if not (support := arm.supports(known))]
    for known in forms:
        if arm.supports(known):
            check(arm, known)
    if lacking:
        pytest.skip(lacking[0])


def held_against_both(arm, known):
    """A form's answers to every family of vectors are those of its parameters and of the pseudo-code."""
    datapath = datapath_for("aarch64", known)
    for family in families_for(known):
        v = generate(known, family, 3, 0, COUNT)
        d = run_vectors(arm, known, v)
        np.testing.assert_array_equal(d, engine.evaluate(datapath, v), f"{known.id}: {family}")
        expected = vendor.evaluate(known.opcode, known.modifier, v.a, v.b, v.c)
        np.testing.assert_array_equal(d, expected, f"{known.id}: {family}")


@pytest.mark.parametrize("name", ["arm.bfdot", "arm.bfmmla"])
def test_bf16_rounds_to_odd(arm, name):
    """1 + 2**-24 and 1 + .75u differ from every other rounding in one sign or the other."""
    known = instruction(name)
    one, small = 0x3F80, 0x3380  # 1, 2**-24
    rows = np.array([[one, one], [one | 0x8000, one | 0x8000], [one, one | 0x8000]], np.uint16)
    columns = np.array([[one, small]] * 3, np.uint16)
    a, b = (np.pad(x, ((0, 0), (0, known.k - 2))) for x in (rows, columns))
    d = run_vectors(arm, known, Batch(a, b, np.zeros(3, np.uint32)))
    assert [hex(x) for x in d] == ["0x3f800001", "0xbf800001", "0x3f7fffff"]


def test_every_output_of_a_tile(arm):
    """B is transposed on its way into the register: a full tile, all four outputs."""
    known = instruction("arm.smmla")
    rng = np.random.default_rng(1)
    a, b = (rng.integers(0, 256, shape, dtype=np.uint8) for shape in ((500, 2, 8), (500, 8, 2)))
    c = rng.integers(0, 1 << 32, (500, 2, 2), dtype=np.uint32)
    d = arm.run(known, Batch(a, b, c))
    total = a.view(np.int8).astype(np.int64) @ b.view(np.int8).astype(np.int64) + c
    np.testing.assert_array_equal(d, (total & 0xFFFFFFFF).astype(np.uint32))


@pytest.mark.parametrize("name", OF_BYTES)
def test_every_output_of_an_outer_product_of_bytes(arm, whole_tiles, name):
    """All sixteen outputs; of an emulator with the known fault those in rows and columns of even numbers."""
    known, batch, expected = bytes_tile(name)
    some = slice(None, None, 1 if whole_tiles else 2)
    np.testing.assert_array_equal(arm.run(known, batch)[:, some, some], expected[:, some, some])


@pytest.mark.parametrize("name", ["f16", "f32", "f64"])
def test_every_output_of_an_outer_product(arm, name):
    """Small integers, which every order and rounding gives alike; the sign of what is subtracted."""
    for way, sign in (("", 1), ("{neg_a}", -1)):
        known = instruction(f"arm.fmopa.{name}{way}")
        rng = np.random.default_rng(2)
        types = {"f16": (np.float16, np.float32), "f32": (np.float32,) * 2, "f64": (np.float64,) * 2}[name]
        shapes = [shape for key, shape in known.shapes(300).items() if key in "abc"]
        a, b, c = (
            rng.integers(-8, 9, shape).astype(to) for shape, to in zip(shapes, (*types[:1] * 2, types[1]), strict=True)
        )
        held = [x.view(f"u{x.itemsize}") for x in (a, b, c)]
        expected = c + sign * (a.astype(types[1]) @ b.astype(types[1]))
        np.testing.assert_array_equal(arm.run(known, Batch(*held)).view(types[1]), expected)


def test_every_output_of_an_outer_product_into_64_bits(arm):
    """All four outputs are those of their rows, columns and C."""
    names = ("smopa.s16", "umopa.u16", "sumopa.s16", "usmopa.u16")
    of_each(arm, [instruction(f"arm.{name}.s64") for name in names], as_its_vectors)


SCALED = [
    *(f"arm.{name}.e4m3.e5m2.f16" for name in ("fdot", "fmlalb", "fmlalt", "fmmla", "fdot.za", "fvdot", "fmopa")),
    *(f"arm.{name}.e5m2.e4m3.f32" for name in ("fdot", "fmlallbb", "fmlallbt", "fmlalltb", "fmlalltt", "fmmla")),
    *(f"arm.{name}.e5m2.e4m3.f32" for name in ("fdot.za", "fvdotb", "fvdott", "fmopa", "fmlall.za")),
    "arm.fmlal.za.e4m3.e5m2.f16",
]


def test_scaled_products(arm):
    """FPMR.LSCALE at its ends and between, of every kind of form, without and with {osm}."""
    ends = {name: (1, 8, 15 if name.endswith("f16") else 127) for name in SCALED}
    ids = [f"{name}{{lscale={scale}{osm}}}" for name in SCALED for scale in ends[name] for osm in ("", ",osm")]
    of_each(arm, list(map(instruction, ids)), held_against_both)


TILES = [
    *(f"arm.{name}" for name in ("fvdot.f16", "bfvdot.bf16", "svdot.s8", "uvdot.u8", "suvdot.s8", "usvdot.u8")),
    *(f"arm.{name}" for name in ("svdot.s16", "uvdot.u16", "fvdot.e4m3.e5m2.f16", "fmopa.e5m2.e4m3.f16{osm}")),
    *(f"arm.{name}" for name in ("fmopa.e4m3.e5m2.f32", "fmmla.e4m3.e5m2.f16", "fmmla.e5m2.e4m3.f32")),
    *(f"arm.{name}" for name in ("fvdotb.e4m3.e5m2.f32", "fvdott.e5m2.e4m3.f32", "svdot.s16.s64", "uvdot.u16.s64")),
    *(f"arm.{name}" for name in ("smopa.s16", "umopa.u16")),
]


def test_every_output_of_a_tile_as_its_vector(arm):
    """Random tiles of SME2 and FP8: each output is that of its row of A, its column of B and its C, in the oracle.

    QEMU 11.1 gives FVDOT of FP8 other elements than the manual but for the first row: that alone is compared there.
    """
    of_each(arm, list(map(instruction, TILES)), as_its_vectors)


@pytest.mark.parametrize("newer", [False, True])
def test_every_row_by_element(arm, newer):
    """Random tiles of all forms by element, those that old emulators run apart: all rows have the same items of B."""
    by_element = [known for known in EVERY if "b" in known.modifier]
    of_each(arm, [known for known in by_element if bool(NEWER & set(known.requires)) == newer], as_its_vectors)


def as_its_vectors(arm, known):
    """A tile of a form is what its rows, columns and C give in the oracle."""
    rng = np.random.default_rng(3)
    shapes, formed = known.shapes(60), known.formats()
    a, b, c = (
        rng.integers(0, 1 << formed[key].bits, shapes[key], np.uint64).astype(formed[key].dtype) for key in "abc"
    )
    rows, columns = np.broadcast_to(a[:, :, None], (*c.shape, known.k)), np.moveaxis(b, 1, 2)[:, None]
    vectors = (x.reshape(-1, known.k) for x in (rows, np.broadcast_to(columns, rows.shape)))
    expected = vendor.evaluate(known.opcode, known.modifier, *map(np.ascontiguousarray, vectors), c.reshape(-1))
    some = slice(1 if EMULATOR and known.id.startswith("arm.fvdot.e") else None)
    d = arm.run(known, Batch(a, b, c))
    np.testing.assert_array_equal(d[:, some], expected.reshape(c.shape)[:, some], known.id)
