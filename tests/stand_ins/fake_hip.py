"""A stand-in for ROCm's ``libamdhip64`` and for a machine with an AMD GPU, under the device ``hip:N``.

A binary is an ELF magic, its target's name and the kernel's source (``kernel_source``); a launch runs the source's own
data movement on emulated waves.  ``fault``: what goes wrong in launches; ``faults``: statuses that functions answer
instead; ``truth``: the claim of open layouts that is right.  The machine is a tree of files, which a test changes.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from emulator.wave import WaveUnit, run_wave
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.layout_claims import claimed
from mmaprobe.catalog.lookup import instruction, instructions
from mmaprobe.devices.amd.driver import open_driver
from mmaprobe.devices.amd.machine import KFD, NODES, Machine
from mmaprobe.devices.gpu.device import GpuDevice
from mmaprobe.devices.gpu.opening import Compiled, asked, opened
from mmaprobe.devices.model import open_model
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.render import render
from mmaprobe.toolchain.source import Source
from stand_ins.fake_launch import NOT_READY, Grid, Unit
from stand_ins.kernel_source import RunsSources, Seed, core, seeded

TOOLCHAIN = "clang 22.1.8"
NAMES = {
    2: b"hipErrorOutOfMemory", 100: b"hipErrorNoDevice", 209: b"hipErrorNoBinaryForGpu", 214: b"hipErrorECC",
    700: b"hipErrorIllegalAddress", 719: b"hipErrorLaunchFailure",
}  # fmt: skip
STICKY = {"illegal": 700, "ecc": 214, "bus": 100}
"""What every call answers after a launch with this fault."""
PLACE = "0000:03:00.0"
_MULTIPLY = re.compile(r"void multiply\(Registers& of\) \{\n(.*?)\n\}", re.DOTALL)


class _Name:
    """A function of the library that returns text."""

    restype: Any = None

    def __call__(self, status: int) -> bytes | None:
        return NAMES.get(status)


class FakeHip(RunsSources):
    """``libamdhip64`` with ``gpus`` GPUs; what is not said here does nothing well."""

    count = 304
    version = 60_241_133

    def __init__(self, architecture: str = "gfx942", unit: Unit | None = None, **facts: Any) -> None:
        self.architecture, self.unit = architecture, unit or model(architecture)
        self.gpus: int = facts.pop("gpus", 1)
        self.name: bytes = facts.pop("name", b"AMD Instinct MI300X")
        self.memory: int = facts.pop("memory", 1 << 30)
        self.fault: str = facts.pop("fault", "")
        self.after: int = facts.pop("after", 0)
        self.truth: str = facts.pop("truth", "")
        super().__init__(**facts)
        self.faults: dict[str, int] = {}
        self.sticky = self.ended = self.used = 0
        self.current = 7
        self.images: dict[int, bytes] = {}
        self.hipGetErrorName = _Name()

    def __getattr__(self, name: str) -> Any:
        def answer(*arguments: Any) -> int:
            if self.sticky or name in self.faults:
                return self.sticky or self.faults[name]
            done = getattr(type(self), f"_{name}", None)
            return int((done(self, *arguments) if done else 0) or 0)

        return answer

    # What it is

    def _hipGetDeviceCount(self, count: Any) -> None:
        count._obj.value = self.gpus

    def _hipDeviceGetPCIBusId(self, text: Any, size: int, index: int) -> None:
        text.value = PLACE.encode()

    def _hipDeviceGetName(self, text: Any, size: int, index: int) -> None:
        text.value = self.name

    def _hipRuntimeGetVersion(self, number: Any) -> None:
        number._obj.value = self.version

    def _hipGetDevice(self, index: Any) -> None:
        index._obj.value = self.current

    def _hipSetDevice(self, index: int) -> None:
        self.current = index

    # Memory

    def _hipMemGetInfo(self, free: Any, whole: Any) -> None:
        free._obj.value, whole._obj.value = self.memory - self.used, self.memory

    def _hipMalloc(self, address: Any, size: Any) -> int:
        if self.used + size.value > self.memory:
            return 2
        held = ctypes.create_string_buffer(size.value)
        self.allocated[ctypes.addressof(held)] = held
        self.used += size.value
        address._obj.value = ctypes.addressof(held)
        return 0

    def _hipFree(self, address: Any) -> None:
        self.used -= len(self.allocated.pop(address.value))

    def _moved(self, address: int, size: int, move: Callable[[], Any]) -> int:
        assert not self.running, "memory is read while a kernel runs"
        if not self.within(address, size):
            return 1
        move()
        return 0

    def _hipMemset(self, address: Any, byte: int, size: Any) -> int:
        return self._moved(address.value, size.value, lambda: ctypes.memset(address, byte, size.value))

    def _hipMemcpy(self, to: Any, start: Any, size: Any, kind: int) -> int:
        there = {1: to, 2: start}[kind].value
        self.copied += size.value if kind == 1 else 0
        return self._moved(there, size.value, lambda: ctypes.memmove(to, start, size.value))

    def _hipPointerGetAttribute(self, found: Any, attribute: int, address: Any) -> int:
        assert attribute == 9, "HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL"
        here = self.within(address.value, 1)
        found._obj.value = self.foreign.get(address.value, 0) if here else -2
        return 0 if here else 1

    def _hipStreamSynchronize(self, stream: Any) -> None:
        self.settled.append(stream.value)

    # Kernels

    def _hipEventCreateWithFlags(self, event: Any, flags: int) -> None:
        event._obj.value = 1

    def _hipEventQuery(self, event: Any) -> int:
        return NOT_READY if self.running else self.ended

    def _hipEventDestroy(self, event: Any) -> None:
        assert not self.running, "an event goes while a kernel runs"
        self.ended = 0

    def _hipModuleLoadData(self, module: Any, image: bytes) -> None:
        module._obj.value = max(self.images, default=0) + 1
        self.images[module._obj.value] = image

    def _hipModuleGetFunction(self, function: Any, module: Any, name: bytes) -> int:
        function._obj.value = module.value
        return 0 if name == b"mmaprobe_run" else 500

    def _hipModuleUnload(self, module: Any) -> None:
        del self.images[module.value]

    def _hipModuleLaunchKernel(self, function: Any, *rest: Any) -> int:
        groups, _, _, threads, _, _, shared, _, parameters, _ = rest
        assert not shared, "a code object says its own memory of a workgroup"
        fault = self.launched(self.images[function.value], Grid(threads, groups), ctypes.addressof(parameters))
        if fault == "refused":
            return 701
        if fault in STICKY:
            self.sticky = STICKY[fault]
        elif fault == "failed":
            self.ended = 719
        return self.sticky

    def statuses(self) -> set[str]:
        return {*STICKY, "refused", "failed"}

    def loaded(self, image: bytes) -> tuple[Instruction, Source]:
        return _loaded(image)

    def moved(self, made: Instruction, source: Source, batch: Batch) -> Bits:
        stated = _stated(source, made)
        seen = claimed(stated, self.truth) if self.truth else stated
        return run_wave(source, seen, batch, core(stated, self.unit), self.architecture)

    def moved_tiles(self, made: Instruction, source: Source, tiles: Batch) -> Bits:
        """Tiles are the blocks of one item."""
        item = Batch(**{name: value.reshape(made.shapes(1)[name]) for name, value in tiles.items()})
        return self.moved(made, source, item).reshape(-1, made.m, made.n)


def model(architecture: str) -> Unit:
    """The matrix unit as the shipped parameters have it."""
    return lambda made, batch: open_model(architecture).run(made, batch)


@cache
def _loaded(image: bytes) -> tuple[Instruction, Source]:
    text = image.partition(b"\0")[2].decode()
    name, home = text.partition("\n")[0].removeprefix("// ").split(" on ")
    made = instruction(name, home)
    return made, Source(name, home, text, threads=WaveUnit(made, home).lanes)


@cache
def _stated(source: Source, made: Instruction) -> Instruction:
    """The instruction whose kernel has this source's statement, whatever its heading says."""
    for other in (made, *instructions(source.architecture)):
        if _statement(render(other, source.architecture).text) == _statement(source.text):
            return other
    raise AssertionError(f"no instruction of {source.architecture} has this statement: {_statement(source.text)}")


def _statement(text: str) -> str:
    found = _MULTIPLY.search(text)
    assert found, "no matrix instruction is in the source"
    return found[1]


# Kernels


def binary(source: Source, text: str = "", architecture: str = "") -> bytes:
    """What stands for a code object; ``architecture``: another target than its source's."""
    return f"\x7fELFamdgcn-amd-amdhsa--{architecture or source.architecture}\0{text or source.text}".encode()


def kernel(made: Instruction, architecture: str, *seeds: Seed, target: str = "") -> Kernel:
    """The kernel of an instruction as the stand-in runs it; ``seeds`` are wrong texts in its source."""
    source = render(made, architecture)
    return Kernel.of(source, binary(source, seeded(source, seeds), target), TOOLCHAIN)


def campaign_kernel(source: Source) -> Kernel:
    """The kernel of a campaign's source as the stand-in runs it."""
    return Kernel.of(source, binary(source), TOOLCHAIN)


# The machine


def tree(architecture: str = "gfx942") -> dict[str, str]:
    """The files of a machine with one GPU at the place that HIP names, beside a CPU's node."""
    number = int(architecture[3:-2]) * 10000 + int(architecture[-2], 16) * 100 + int(architecture[-1], 16)
    properties = f"simd_count 1216\nsimd_per_cu 4\ngfx_target_version {number}\nlocation_id 768\nunique_id 66\n"
    return {
        f"{NODES}/0/properties": "simd_count 0\ngfx_target_version 0\n",
        f"{NODES}/1/properties": properties,
        "/sys/module/amdgpu/version": "6.8.5",
        KFD: "",
    }


def machine(hip: FakeHip | None, files: dict[str, str] | None = None, **environment: str) -> Machine:
    """A machine with this library (None: with none) and these files."""
    held = files if files is not None else tree(hip.architecture) if hip else {}
    return Machine(
        library=lambda: hip,
        environment=environment,
        exists=lambda path: path in held or bool(_inside(held, path)),
        usable=lambda path: True,
        text=lambda path: held.get(path, "").strip(),
        entries=lambda path: _inside(held, path),
    )


def _inside(files: dict[str, str], folder: str) -> list[str]:
    """The names in a folder."""
    return sorted({path[len(folder) + 1 :].partition("/")[0] for path in files if path.startswith(f"{folder}/")})


def device(hip: FakeHip, *seeds: Seed, target: str = "", options: str = "", on: Machine | None = None) -> GpuDevice:
    """``hip:0`` on the stand-in; texts of each source changed, or its binary made for another target; ``on`` another
    machine than that of its tree."""

    def of_source(source: Source) -> Kernel:
        raise AssertionError("no campaign is asked for")

    what = asked("hip", f"0?trial=no{options}")
    here = Compiled(lambda made, home: kernel(made, home, *seeds, target=target), of_source, lambda: TOOLCHAIN)
    return opened(open_driver(what.index, on or machine(hip)), what, here, lambda name: ())
