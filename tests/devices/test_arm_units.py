"""The Arm units, run by the cross-compiled runner (under an emulator elsewhere) through ``process:``.

MMAPROBE_ARM_RUNNER is the path of the runner that tests/arm/build.sh makes.
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
from mmaprobe.generators import families_for, generate
from mmaprobe.models import engine
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.lookup import datapath_for
from oracle import vendor

RUNNER = os.environ.get("MMAPROBE_ARM_RUNNER", "")
EMULATOR = "" if platform.machine() == "aarch64" else shutil.which("qemu-aarch64-static")
EVERY = [mode for known in instructions("aarch64") for mode in modes(known)]
pytestmark = pytest.mark.needs("arm")
COUNT = 2_001  # not a multiple of a register's lanes


@pytest.fixture(scope="module")
def arm():
    words = [EMULATOR, "-cpu", "max", RUNNER] if EMULATOR else [RUNNER]
    device = open_device(f"process:{shlex.join(words)}")
    yield device
    device.close()


def test_hello(arm):
    assert arm.info()["architecture"] == "aarch64"
    assert arm.info()["protocol"] == "1 binary"
    if EMULATOR:
        assert [known.id for known in EVERY if not arm.supports(known)] == []


@pytest.mark.parametrize("known", EVERY, ids=lambda known: known.id)
def test_against_pseudo_code_and_parameters(arm, known):
    """Every family of vectors, NaN payloads as bits; the pseudo-code is Arm's."""
    if not (support := arm.supports(known)):
        pytest.skip(support.reason)
    datapath = datapath_for("aarch64", known)
    for family in families_for(known):
        v = generate(known, family, 3, 0, COUNT)
        d = run_vectors(arm, known, v)
        np.testing.assert_array_equal(d, engine.evaluate(datapath, v), family)
        expected = vendor.evaluate(known.opcode, known.modifier, v.a, v.b, v.c)
        np.testing.assert_array_equal(d, expected, family)


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
