"""The device ``cpu``: what it lists, how it packs and refuses, and what it says when a unit fails."""

from __future__ import annotations

import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from mmaprobe import _native
from mmaprobe.catalog.lookup import instruction, instructions
from mmaprobe.devices import cpu
from mmaprobe.devices.base import is_device, open_device, run_vectors
from mmaprobe.errors import DeviceError, NotHereError, UsageError
from mmaprobe.operands.batch import Batch

HERE = cpu.open_cpu("")
X86 = HERE.architecture.startswith("x86-64")
x86_only = pytest.mark.skipif(not X86, reason=f"x86-64 instructions; this machine is {HERE.architecture}")


def test_an_instruction_is_no_device():
    with pytest.raises(UsageError, match=r"^x86\.vdpbf16ps is an instruction, no device: devices are named first"):
        open_device("x86.vdpbf16ps")
    with pytest.raises(UsageError, match=r"^unknown device 'x86\.vdpbf16pz'"):
        open_device("x86.vdpbf16pz")


def test_is_a_device():
    assert is_device(open_device("cpu"))
    info = HERE.info()
    assert info["architecture"] == HERE.architecture
    assert all(isinstance(value, str) and value for value in info.values())
    assert {"kernel", "microcode", "features", "control"} <= info.keys()


def test_takes_no_argument():
    with pytest.raises(UsageError, match="takes no argument"):
        open_device("cpu:0")


def test_catalog_and_native_units_agree():
    assert {name for name, *_ in _native.cpu_units()} == {known.id for known in HERE.instructions()}


@pytest.mark.parametrize("known", HERE.instructions(), ids=lambda known: known.id)
def test_shapes_and_zero(known):
    if not (support := HERE.supports(known)):
        pytest.skip(support.reason)
    formats = known.formats()
    operands = {name: np.zeros(shape, formats[name].dtype) for name, shape in known.shapes(3).items()}
    d = HERE.run(known, Batch(**operands))
    assert d.shape == (3, known.m, known.n)
    assert d.dtype == formats["d"].dtype
    assert not d.any()


@pytest.mark.parametrize("known", HERE.instructions(), ids=lambda known: known.id)
def test_lacking_features_are_named(known, monkeypatch):
    units = [(name, False, "needs some-feature", "some-feature") for name, *_ in _native.cpu_units()]
    monkeypatch.setattr(_native, "cpu_units", lambda: units)
    bare = cpu.Cpu()
    assert bare.supports(known).reason == "needs some-feature"
    formats = known.formats()
    operands = {name: np.zeros(shape, formats[name].dtype) for name, shape in known.shapes(1).items()}
    with pytest.raises(NotHereError, match="not here: needs some-feature"):
        bare.run(known, Batch(**operands))


def test_other_architectures_are_not_here():
    other = "aarch64" if X86 else "x86-64"
    assert {HERE.supports(known).reason for known in instructions(other)} == {f"needs {other}"}


def test_gpu_instructions_are_not_here():
    from mmaprobe.catalog.instruction import Instruction

    foreign = Instruction("mma.x", "mma.x", "mma", 1, 1, 1, "f32", "f32", "f32", "f32")
    assert HERE.supports(foreign).reason == "not a CPU instruction"


@x86_only
def test_masked_instruction_is_a_device_error(monkeypatch):
    known = instruction("x86.pmaddwd")
    cpu._trial.cache_clear()
    monkeypatch.setattr(_native, "cpu_trial", lambda unit: int(signal.SIGILL))
    a = np.zeros((1, 1, 2), np.uint16)
    with pytest.raises(DeviceError, match=r"x86.pmaddwd: illegal instruction although the CPU reports sse2") as caught:
        HERE.run(known, Batch(a, a.reshape(1, 2, 1)))
    assert caught.value.exit_code == 5


def test_trials():
    """Every unit that is here runs in a child.  Of the others each ends its child by SIGILL, and this process goes on;
    or it runs although the CPU does not report it, as TDPFP16PS does under a hypervisor that hides it."""
    for name, here, reason, _ in _native.cpu_units():
        if here:
            assert _native.cpu_trial(name) == 0
        elif "needs" in reason:
            assert _native.cpu_trial(name) in (0, signal.SIGILL)


UNITS_OF_A_TEST = """
#include <cstdio>
#include "cpu/units/unit.hpp"
namespace mmaprobe::cpu {
std::vector<Unit> x86_units() { return {}; }
std::vector<Unit> amx_units() { return {}; }
std::vector<Unit> arm_units() { return {}; }
std::string missing_feature(const std::string&) { return ""; }
}
void good(const void*, const void*, const void*, void*) {}
void bad_address(const void*, const void*, const void*, void*) { *static_cast<volatile int*>(nullptr) = 1; }
void illegal(const void*, const void*, const void*, void*) {
#if defined(__x86_64__)
    asm volatile("ud2");
#else
    asm volatile(".inst 0");
#endif
}
int main() {
    for (auto step : {good, illegal, bad_address}) {
        std::printf("%d ", mmaprobe::cpu::trial({"one", "", 1, 4, 4, 4, 4, step}));
        std::fflush(stdout);
    }
}
"""


@pytest.mark.needs("g++")
def test_trial_reports_the_signal(tmp_path):
    """0 of a unit that runs; SIGILL and SIGSEGV of one that is masked, or fails otherwise: their parent goes on."""
    source, program, csrc = tmp_path / "units.cpp", tmp_path / "units", Path(__file__).parents[2] / "csrc"
    source.write_text(UNITS_OF_A_TEST)
    words = ["g++", "-std=c++17", f"-I{csrc}", "-o", program, source, csrc / "cpu/units/unit.cpp"]
    subprocess.run(words, check=True)
    said = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    assert said.split() == ["0", str(int(signal.SIGILL)), str(int(signal.SIGSEGV))]


@x86_only
@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 8, 15, 17, 33])
@pytest.mark.parametrize("width", ["", "{width=256}", "{width=512}"])
def test_every_lane_and_the_padded_tail(count, width):
    known = instruction(f"x86.vpdpwssd{width}")
    if not (support := HERE.supports(known)):
        pytest.skip(support.reason)
    a = np.arange(2 * count, dtype=np.uint16).reshape(count, 2)
    c = np.arange(count, dtype=np.uint32)
    d = run_vectors(HERE, known, Batch(a, a, c))
    assert d.tolist() == [(2 * i) ** 2 + (2 * i + 1) ** 2 + i for i in range(count)]


@x86_only
def test_operands_of_any_layout():
    known = instruction("x86.pmaddwd")
    a = np.arange(64, dtype=np.uint16).reshape(32, 1, 2)
    b = np.arange(64, dtype=">u2").reshape(32, 2, 1)[::-1]
    expected = [4 * i * (31 - i) + (2 * i + 1) * (63 - 2 * i) for i in range(32)]
    assert HERE.run(known, Batch(a, b)).ravel().tolist() == expected


@x86_only
def test_control_register_is_restored():
    known = instruction("x86.vfmadd.f32{daz,ftz,rounding=rz}")
    assert cpu.control_register(known) == 0xFFC0
    assert cpu.unit_id(known) == "x86.vfmadd.f32"
    tiny = np.float32(1e-40)
    if HERE.supports(known):
        one = np.full((1, 1, 1), 0x3F800000, np.uint32)
        HERE.run(known, Batch(one, one, one))
    assert tiny * np.float32(0.5) != 0


@x86_only
def test_threads_have_control_registers_of_their_own():
    known = [instruction(f"x86.vfmadd.f32{state}") for state in ("", "{rounding=ru}", "{daz,ftz}", "{rounding=rz}")]
    if not (support := HERE.supports(known[0])):
        pytest.skip(support.reason)
    rng = np.random.default_rng(9)
    a, b, c = (rng.integers(0, 1 << 32, (100_000, 1, 1), dtype=np.uint32) for _ in "abc")
    alone = [HERE.run(each, Batch(a, b, c)) for each in known]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda each: HERE.run(each, Batch(a, b, c)), known * 4))
    for one, again in zip(alone * 4, together, strict=True):
        np.testing.assert_array_equal(one, again)


@x86_only
def test_native_sizes_are_checked():
    a = np.zeros(4, np.uint32)
    with pytest.raises(ValueError, match="b has 12 bytes, expected 4 times 4"):
        _native.cpu_run("x86.vfmadd.f32", 0x1F80, a, a[:3].copy(), a, a.copy())
    with pytest.raises(ValueError, match="c is missing"):
        _native.cpu_run("x86.vfmadd.f32", 0x1F80, a, a, None, a.copy())
    with pytest.raises(ValueError, match="no CPU instruction"):
        _native.cpu_trial("x86.nothing")
