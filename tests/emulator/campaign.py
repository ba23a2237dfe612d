"""A fused campaign's source on the host: its tiles, made and judged by its own phases, with a unit in between."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from emulator.host import OPERANDS, Operands, host
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.gpu.campaign import FOUND, MEASURE, LaunchOrder
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.toolchain.source import Source

Unit = Callable[[Batch, int], Bits]
"""D of the tiles of one step, computed on a multiprocessor."""
EXPORTS = """
static Word32 emulated_number;
Word32 multiprocessor() { return emulated_number; }
Word64 add(Word64* at, Word64 more) { return (*at += more) - more; }
static Memory emulated_memory(Byte* base) { return Places{base, 0}.memory(Shape::tiles, false); }
extern "C" const unsigned long campaign_bytes[] = {sizeof(Campaign), sizeof(Found), Shape::tiles, Shape::bytes};
extern "C" unsigned long campaign_used() {
  Places places = {nullptr, 0};
  places.memory(Shape::tiles, false);
  return places.used;
}
extern "C" void campaign_make(const Campaign* of, Word64 first, Byte* base, Operands* given) {
  const Memory memory = emulated_memory(base);
  for (int thread = 0; thread < Shape::threads; ++thread) make_tiles(*of, first, thread, memory, 0);
  for (int thread = 0; thread < Shape::threads; ++thread) seal_tiles(thread, memory, 0);
  *given = batch_of(memory, Shape::tiles);
}
extern "C" void campaign_judge(const Campaign* of, Word64 first, Byte* base, Word32 number) {
  const Memory memory = emulated_memory(base);
  emulated_number = number;
  for (int thread = 0; thread < Shape::threads; ++thread) sabotage(*of, first, thread, memory, 0);
  for (int thread = 0; thread < Shape::threads; ++thread) {
    Judge judge = {*of, memory, first, 0, 0, 0};
    judge.run(thread);
    Word64 done = 0;
    add_up(*of, thread ? 0 : tiles_here(*of, first), judge.wrong, judge.checksum, thread, &done);
  }
}
"""

STAGES = """
extern "C" void campaign_measure(const Campaign* of) { measure(*of); }
extern "C" void campaign_stage(const Campaign* of, Word32 number, Word64* done) {
  const Memory memory = Places{of->memory, 0}.memory(of->tiles, true);
  emulated_number = number;
  for (Word64 tile = 0; tile < of->tiles; ++tile) {
    for (int thread = 0; thread < Shape::threads; ++thread) {
      Word64 wrong = 0, checksum = 0;
      run_stage(*of, memory, tile, thread, wrong, checksum);
      if (of->stage == JUDGE) add_up(*of, !thread, wrong, checksum, thread, done);
    }
    if (of->stage == JUDGE) continue;
    if (of->stage == SPOIL) {
      ++*done;
      continue;
    }
    for (int thread = 0; thread < Shape::threads; ++thread) seal_tiles(thread, memory, tile);
    ++*done;
  }
}
"""


class HostCampaign:
    """The phases of one source; ``run`` is a launch."""

    def __init__(self, source: Source, made: Instruction) -> None:
        self.made = replace(made, blocks=1)  # a block is a tile of its own
        self.library = host(source, EXPORTS + (STAGES if source.campaign == "staged" else ""))
        order, found, self.step, room = (ctypes.c_ulong * 4).in_dll(self.library, "campaign_bytes")
        self.library.campaign_used.restype = ctypes.c_ulong
        size = self.library.campaign_used()
        assert (order, found) == (len(LaunchOrder(0, 0, 0, 0, 0).pack(0)), FOUND.itemsize)
        assert source.campaign == "staged" or size <= room, "a group has less shared memory than it needs"
        self.held = np.zeros(size + 64, np.uint8)
        self.memory = ctypes.c_void_p(self.held.ctypes.data + -self.held.ctypes.data % 64)
        self.found = np.zeros(1, FOUND)
        self.given = Operands()

    def tiles(self, order: bytes, first: int) -> Batch:
        """The tiles of a group from number ``first`` of a launch on, as the instruction's loads find them."""
        self.held[:] = 0xCD
        self.library.campaign_make(order, ctypes.c_ulonglong(first), self.memory, ctypes.byref(self.given))
        return Batch(**{name: self._array(name) for name in self.made.shapes(self.step)})

    def judge(self, order: bytes, first: int, d: Bits, number: int) -> None:
        """The results of these tiles against the model, on a multiprocessor."""
        self._array("d")[...] = d
        self.library.campaign_judge(order, ctypes.c_ulonglong(first), self.memory, ctypes.c_uint(number))

    def run(self, order: LaunchOrder, unit: Unit, multiprocessors: int = 4) -> np.void:
        """What a launch finds."""
        self.found[:] = 0
        self.launch(order.pack(self.found.ctypes.data), order.tiles, unit, multiprocessors)
        found: np.void = self.found[0]
        return found

    def launch(self, order: bytes, tiles: int, unit: Unit, multiprocessors: int) -> None:
        """All tiles of a launch; the results go where the order says."""
        for first in range(0, tiles, self.step):
            number = first // self.step % multiprocessors
            self.judge(order, first, unit(self.tiles(order, first), number), number)

    def stage(self, order: bytes, stage: int, done: int) -> None:
        """One launch of a campaign in stages; ``done`` is the address of its count."""
        if stage == MEASURE:
            self.library.campaign_measure(order)
        else:
            self.library.campaign_stage(order, 1, ctypes.c_void_p(done))

    def _array(self, name: str) -> Bits:
        made = self.made
        shape = (self.step, made.m, made.n) if name == "d" else made.shapes(self.step)[name]
        fmt = made.formats().get(name)
        dtype = np.dtype(np.uint8) if fmt is None else fmt.dtype
        address = getattr(self.given, name)
        assert name in OPERANDS
        assert address
        size = int(np.prod(shape)) * dtype.itemsize
        return np.frombuffer((ctypes.c_char * size).from_address(address), dtype).reshape(shape)
