"""A kernel of ``tcgen05.mma`` as a function on batches: its own phases thread by thread, and a unit in between.

The unit finds its operands by what the rendered instruction is given, in the order of the PTX text: descriptors and
addresses, read back by CuTe's layouts (``umma``, ``tensor_memory``, ``instruction_descriptor``).
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from emulator import tensor_memory, umma
from emulator.host import host, operands
from emulator.instruction_descriptor import said
from emulator.registers import BITS, Array
from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.operands.batch import Batch
from mmaprobe.toolchain.source import Source

Unit = Callable[[dict[str, Array]], Array]
"""D (m, n) of the operands of one item, as the tensor core would see them."""
THREADS, COLUMNS, CANARY = 128, 512, 0xA5
SHARED = 0x8400
"""The address in shared memory at which a CTA's matrices start; of 18 bits, 1024-byte aligned."""
EXPORTS = """
extern "C" void emulated_clear(int thread, Byte* shared) { clear(thread, shared); }
extern "C" void emulated_operands(const Operands* given, Word64 item, int part, int thread, Byte* shared,
                                  Word32* lane) {
  write_operands(*given, item, part, thread, shared, lane);
}
extern "C" void emulated_c(const Operands* given, Word64 item, int part, int thread, Word32* lane) {
  write_c(*given, item, part, thread, lane);
}
extern "C" void emulated_d(const Operands* given, Word64 item, int lane_number, Word32* lane) {
  read_d(*given, item, lane_number, lane);
}
extern "C" int emulated_columns() { return COLUMNS; }
extern "C" int emulated_bytes() { return SHARED_BYTES; }
extern "C" Word64 emulated_value(int operand, Word32 tensor, Word32 shared) {
  const Issue of = issue_of(tensor, shared);
  switch (operand) { CASES }
  return 0;
}
"""


@dataclass(frozen=True)
class Statement:
    """The asm statement of a function: the opcode, its operands as they stand, the C expressions behind them."""

    opcode: str
    text: str
    inputs: tuple[str, ...]
    predicate: int

    @property
    def operands(self) -> tuple[str, ...]:
        return tuple(re.findall(r"{[^}]*}|[^,\s]+", self.text))


def statement(text: str, function: str) -> Statement:
    """The one matrix instruction of a function of the rendered source."""
    body = re.search(rf"MMAPROBE_DEVICE void {function}\(const Issue& of\) {{\n(.*?)\n}}", text, re.S)
    assert body, function
    found = re.findall(r'"(tcgen05\.mma\S*) (.*);\\n"', body[1])
    enable = re.search(r"setp\.ne\.b32 enable, %(\d+), 0;", body[1])
    assert len(found) == 1, body[1]
    assert enable, body[1]
    inputs = re.findall(r'"[rl]"\(([^()]*)\)', body[1])
    return Statement(*found[0], tuple(inputs), int(enable[1]))


class Issued:
    """What the unit is given, by name: ``d a b metadata descriptor scale_a scale_b lanes enable scale mask``."""

    def __init__(self, made: Instruction, text: str, function: str = "multiply") -> None:
        self.said = statement(text, function)
        names = ["d", "a", "b", *(["metadata"] if made.chunk else []), "descriptor"]
        names += ["scale_a", "scale_b"] if made.scale else []
        names += ["lanes"] if "disable_output_lane" in made.modifier else []
        names += ["enable", *(["scale"] if "scale_input_d" in made.modifier else [])]
        names += ["mask"] if "zero_column_mask" in made.modifier else []
        assert len(names) == len(self.said.operands), self.said.operands
        self.text = dict(zip(names, self.said.operands, strict=True))
        brackets = {name for name, text in self.text.items() if text.startswith("[")}
        in_tensor = {"a"} if made.modifier.get("a") == "tmem" else set()
        assert brackets == {"d", "metadata", "scale_a", "scale_b", *in_tensor} & set(names), brackets

    def number(self, name: str) -> int:
        """The asm number of an operand; of ``enable`` that of the word behind the predicate."""
        return self.said.predicate if name == "enable" else int(self.text[name].strip("[]%"))


class Pair:
    """Shared and tensor memory of one CTA, or of two, and what the unit reads there."""

    def __init__(self, made: Instruction, source: Source) -> None:
        self.made, self.issued, self.parts = made, Issued(made, source.text), source.cluster
        cases = " ".join(f"case {i}: return {text};" for i, text in enumerate(self.issued.said.inputs))
        self.code = host(source, EXPORTS.replace("CASES", cases))
        self.code.emulated_value.restype = ctypes.c_ulonglong
        self.bytes, self.allocated = self.code.emulated_bytes(), self.code.emulated_columns()
        self.base = 32 if self.allocated < COLUMNS else 0  # the column at which the allocation starts
        self.shared = np.full((self.parts, 1 << 18), CANARY, np.uint8)
        self.tensor = np.full((self.parts, THREADS, COLUMNS), CANARY * 0x01010101, np.uint32)
        self.pair, self.ws = self.parts == 2, ".ws" in made.opcode
        kind = re.search(r"\.kind::(\w+)", made.opcode)
        assert kind
        self.fields = said(self.value("descriptor"), kind[1])
        self.rows = int(self.fields["m"]) // self.parts
        self.columns = int(self.fields["n"])

    def value(self, name: str) -> int:
        """What the instruction is given."""
        return int(self.code.emulated_value(self.issued.number(name), self.base, SHARED))

    def threads(self) -> list[tuple[int, int, ctypes.c_void_p, ctypes.c_void_p]]:
        """(part, thread, its CTA's shared memory, its lane of tensor memory)."""
        return [
            (part, thread, address(self.shared, part, SHARED), address(self.tensor, part, thread, self.base))
            for part in range(self.parts)
            for thread in range(THREADS)
        ]

    def place(self, operand: str) -> tuple[int, int, bool]:
        """(bits of the element, shift in its place of tensor memory, in a byte of its own) of A, B, C or D."""
        name = self.made.formats()[operand].name
        bits = BITS.get(name, formats.get(name).bits)
        narrow = bits < 8 and "f8f6f4" in self.made.opcode
        return bits, 2 if narrow and name == "e2m1" else 0, narrow

    def a(self) -> Array:
        """A as the unit sees it, of a pair the rows of both."""
        made, (bits, shift, narrow) = self.made, self.place("a")
        if made.modifier.get("a") != "tmem":
            return np.concatenate([self.matrix("a", part, self.rows, made.selected) for part in range(self.parts)])
        places = tensor_memory.multiplicand(self.rows, made.selected, 8 if narrow else bits, pair=self.pair)
        return self.lanes("a", places, bits, shift)

    def b(self) -> Array:
        share = self.columns // self.parts
        return np.concatenate([self.matrix("b", part, share, self.made.k) for part in range(self.parts)]).T

    def matrix(self, operand: str, part: int, mn: int, k: int) -> Array:
        """The part of an operand that a CTA's shared memory holds."""
        bits, _, narrow = self.place(operand)
        turned = bool(self.fields.get(f"trans_{operand}", 0))
        return umma.read(self.shared[part], self.value(operand), mn, k, bits, padded=narrow, turned=turned)

    def lanes(self, name: str, places: tensor_memory.Places, width: int, shift: int = 0) -> Array:
        """An operand with rows in tensor memory, those of both CTAs."""
        at = self.value(name)
        assert at >> 16 == 0, f"{name} at {at:#x}"
        return np.concatenate([tensor_memory.read(one, at, places, width, shift) for one in self.tensor])

    def d_places(self) -> tensor_memory.Places:
        return tensor_memory.accumulator(self.rows, self.columns, pair=self.pair, ws=self.ws)

    def seen(self) -> dict[str, Array]:
        """Every operand that the instruction has."""
        made = self.made
        out = {"a": self.a(), "b": self.b()}
        if self.value("enable"):
            out["c"] = self.lanes("d", self.d_places(), self.place("d")[0])
        if made.chunk:
            bits, selector = self.place("a")[0], int(self.fields.get("selector", 0))
            wide = max(bits, 8) if "f8f6f4" in made.opcode else bits
            out["metadata"] = self.lanes(
                "metadata", tensor_memory.metadata(self.rows, made.k, made.chunk, wide, selector), 4
            )
        if made.scale:
            count, first = made.k // made.scale_size, (int(self.fields["scale_a_id"]), int(self.fields["scale_b_id"]))
            out["scale_a"] = self.lanes("scale_a", tensor_memory.scales(self.rows, count, first[0], halves=False), 8)
            halves = self.pair and self.rows == 64
            both = self.lanes("scale_b", tensor_memory.scales(self.columns, count, first[1], halves=halves), 8)
            each = both.reshape(self.parts, self.columns, count)
            out["scale_b"] = np.where((each == each[0]).all(0), each[0], np.uint64(tensor_memory.DISAGREE)).T
        return out

    def result(self, d: Array, rng: np.random.Generator) -> None:
        """D into tensor memory, with noise above its bits."""
        width = self.place("d")[0]
        noise = rng.integers(0, 1 << 32, d.shape, np.uint64) << np.uint64(width) & np.uint64(0xFFFFFFFF)
        for part, rows in enumerate(np.split(d | noise, self.parts)):
            tensor_memory.write(self.tensor[part], self.value("d"), self.d_places(), rows)

    def strays(self) -> list[str]:
        """Memory that was written outside of what the kernel asks for."""
        shared = np.delete(self.shared, range(SHARED, SHARED + self.bytes), 1)
        tensor = np.delete(self.tensor, range(self.base, self.base + self.allocated), 2)
        found = {"shared": (shared != CANARY).any(), "tensor": (tensor != CANARY * 0x01010101).any()}
        return [name for name, wrong in found.items() if wrong]


def address(array: NDArray[np.generic], *index: int) -> ctypes.c_void_p:
    """The address of one item of an array."""
    step = sum(i * stride for i, stride in zip(index, array.strides, strict=True))
    return ctypes.c_void_p(array.ctypes.data + step)


def run_pair(source: Source, made: Instruction, batch: Batch, unit: Unit) -> tuple[Array, list[str]]:
    """D of a batch: each item through all threads' writes, the unit, all threads' reads; and where they strayed."""
    on = Pair(made, source)
    rng = np.random.default_rng(7)
    d = np.full((batch.size, made.m, made.n), CANARY, made.formats()["d"].dtype)
    given = operands(batch, d, batch.size)
    for _, thread, shared, _ in on.threads():
        on.code.emulated_clear(thread, shared)
    for item in range(batch.size):
        here = (ctypes.byref(given), ctypes.c_ulonglong(item))
        for part, thread, shared, lane in on.threads():
            on.code.emulated_operands(*here, part, thread, shared, lane)
        for part, thread, _, lane in on.threads():
            on.code.emulated_c(*here, part, thread, lane)
        on.result(unit(on.seen()), rng)
        for part, thread, _, lane in on.threads():
            on.code.emulated_d(*here, part * THREADS + thread, lane)
    return d, on.strays()
