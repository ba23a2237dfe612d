"""The device ``cpu``: this machine's own dot-product instructions, executed as they are.

An instruction runs where the CPU announces it (CPUID, HWCAP) and the operating
system saves its registers; before its first use it is executed once in a child
process, since a virtual machine may mask what the feature bits announce.

Control state: an instruction with the modifiers ``daz``, ``ftz`` or
``rounding=rd|ru|rz`` runs with MXCSR = 0x1f80 (all exceptions masked) plus bit
6, bit 15 or 1, 2, 3 in bits 13-14; on aarch64 ``rounding=ru|rd|rz`` with FPCR =
1, 2, 3 in bits 22-23, ``lscale=N`` with N in bits 16-22 of FPMR.  The register is restored after the batch.
"""

from __future__ import annotations

import functools
import platform
import signal
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mmaprobe import _native
from mmaprobe.catalog.instruction import Instruction, spell
from mmaprobe.catalog.lookup import instructions
from mmaprobe.devices.base import Support
from mmaprobe.devices.emulators import of_processor
from mmaprobe.errors import DeviceError, NotHereError, UsageError
from mmaprobe.evidence import silicon
from mmaprobe.operands.batch import Batch, Bits, check_batch

_VENDORS = {"AuthenticAMD": "+amd", "GenuineIntel": "+intel"}
_HOMES = {"x86": "x86-64", "arm": "aarch64"}
_CONTROL = {
    "x86": {
        ("daz", ""): 1 << 6,
        ("ftz", ""): 1 << 15,
        ("rounding", "rd"): 1 << 13,
        ("rounding", "ru"): 2 << 13,
        ("rounding", "rz"): 3 << 13,
    },
    "arm": {
        ("rounding", "ru"): 1 << 22,
        ("rounding", "rd"): 2 << 22,
        ("rounding", "rz"): 3 << 22,
        **{("lscale", str(n)): n << 48 for n in range(128)},
    },
}


def open_cpu(argument: str) -> Cpu:
    """The CPU of this machine; the name ``cpu`` takes no argument."""
    if argument:
        raise UsageError(f"device cpu takes no argument, got {argument!r}; type cpu")
    return Cpu()


class Cpu:
    """Device protocol over the native module's units; lanes are consecutive items of the batch."""

    name = "cpu"
    concurrent = True
    in_thread = True

    def __init__(self) -> None:
        self._units = {unit: Support(here, reason) for unit, here, reason, _ in _native.cpu_units()}
        self._identity = dict(_native.cpu_identity())
        machine = platform.machine().replace("x86_64", "x86-64")
        self.architecture = machine + _VENDORS.get(self._identity.get("vendor", ""), "")

    def info(self) -> dict[str, str]:
        """Architecture, whether it is silicon, vendor, family, model, stepping, microcode, kernel, features, control
        register."""
        return {
            "architecture": self.architecture,
            silicon.KEY: of_processor(self._identity.get("model_name", ""), _cpuinfo("CPU implementer")),
            **self._identity,
            "microcode": _cpuinfo("microcode"),
            "kernel": platform.release(),
            "features": " ".join(_native.cpu_features()),
            "control": f"{_native.cpu_default_control:#x}",
        }

    def instructions(self) -> Sequence[Instruction]:
        """Every instruction the catalog has for this architecture, each in its default control state."""
        return instructions(self.architecture)

    def supports(self, instruction: Instruction) -> Support:
        """Whether CPU and operating system have it, else ``needs <feature>`` in the compiler's spelling."""
        home = _HOMES.get(_family(instruction))
        if home is None:
            return Support(False, "not a CPU instruction")
        if home != self.architecture.partition("+")[0]:
            return Support(False, f"needs {home}")
        return self._units.get(unit_id(instruction), Support(False, "not in this build of mmaprobe"))

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        """D of shape (batch, M, N); NotHereError without the feature, DeviceError where it is masked."""
        ready = check_batch(instruction, batch)
        unit, control = self.unit(instruction)
        d = np.empty((ready.size, instruction.m, instruction.n), instruction.formats()["d"].dtype)
        _native.cpu_run(unit, control, ready.a, ready.b, ready.c, d)
        return d

    def unit(self, instruction: Instruction) -> tuple[str, int]:
        """The native unit and the control register's value that compute an instruction, after a trial in a child.

        NotHereError without the feature, DeviceError where it is masked.
        """
        support = self.supports(instruction)
        if not support:
            raise NotHereError(f"{instruction.id}: not here: {support.reason}; see `mmaprobe instructions`")
        unit = unit_id(instruction)
        _trial(unit)
        return unit, control_register(instruction)


def _family(instruction: Instruction) -> str:
    return instruction.opcode.partition(".")[0]


def unit_id(instruction: Instruction) -> str:
    """The id without the control state, which is the name of the native unit."""
    control = _CONTROL[_family(instruction)]
    return spell(instruction.opcode, tuple(pair for pair in instruction.modifiers if pair not in control))


def control_register(instruction: Instruction) -> int:
    """The control register's value for the instruction's state, on aarch64 with FPMR's bits in the high half of 64."""
    default: int = _native.cpu_default_control
    control = _CONTROL[_family(instruction)]
    return default | sum(control.get(pair, 0) for pair in instruction.modifiers)


@functools.cache
def _trial(unit: str) -> None:
    """Execute the unit once in a child process; DeviceError if that ends by a signal."""
    number = _native.cpu_trial(unit)
    if number == 0:
        return
    features = next(needs for name, _, _, needs in _native.cpu_units() if name == unit)
    if number == signal.SIGILL:
        raise DeviceError(
            f"{unit}: illegal instruction although the CPU reports {features}; a virtual machine masks it"
        )
    ended = f"ended by {signal.Signals(number).name}" if number > 0 else "could not be started"
    raise DeviceError(f"{unit}: the trial run in a child process {ended}; it needs {features}")


def _cpuinfo(key: str) -> str:
    """The first value of a key in /proc/cpuinfo, ``unknown`` where there is none."""
    for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
        name, colon, value = line.partition(":")
        if colon and name.strip() == key:
            return value.strip()
    return "unknown"
