"""A product D = A B by TMA and ``wgmma`` (sm_90a), one warpgroup copying and two multiplying: its source and schedule.

The ring between them is ``ring.ring``, written into the source; how A and B lie in it is the catalog's record of
matrices in shared memory, whose descriptors the instruction is given.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from mmaprobe.catalog.descriptors import descriptor
from mmaprobe.catalog.lookup import instruction, lowering
from mmaprobe.catalog.shared_memory import SharedMatrix, shared_matrix
from mmaprobe.catalog.tile_orders import TileOrder, grouped, turned
from mmaprobe.errors import UsageError, brief
from mmaprobe.parameters.schedule import (
    Accumulators,
    GemmKernel,
    GemmStep,
    Join,
    Ranges,
    Region,
    Schedule,
    Scope,
)  # fmt: skip
from mmaprobe.toolchain.nvidia.products.multistage import CHUNK, FORMATS, LONGEST, STAGES, tile_at
from mmaprobe.toolchain.nvidia.products.ring import CONSUMERS, SlotRing, functions, ring
from mmaprobe.toolchain.nvidia.shared_matrices import constant_fields, start_field
from mmaprobe.toolchain.source import Source, template

TEMPLATE = "cuda/gemm_warp_specialised.cuh"
THREADS = 384
"""Threads of a CTA: three warpgroups."""
TILE_K = 64
"""K of a slot: rows of 128 bytes, the widest swizzle."""
BOX_N = 64
"""Columns of B that one copy moves, 128 bytes."""
LINES = 64
"""Rows of D of one instruction."""
TILES_N = (64, 128, 256)
"""Lengths of a tile along N."""
MOST_SUMS = 128
"""Accumulators of a thread at most."""
MOST_SHARED = 227 * 1024
"""Bytes of shared memory of a CTA (sm_90)."""
BARRIERS = 16 * 8
"""Bytes of all barriers of 7 stages, two by slot and two more."""
ALL_CAME = 8
"""Bytes behind the barriers: whether all parts of a tile have come, a word for each consumer."""


@dataclass(frozen=True)
class WarpSpecialised:
    """A kernel for D (M, N) of A (M, K) and B (K, N), ``operands`` f16 or bf16, D f32, on sm_90a.

    ``tile`` is M and N of a tile, which both warpgroups have together, or in ``pingpong`` each its own.  ``workers``
    CTAs go through the tiles.  K of a tile is cut into ``parts`` (split-K), or, with ``stream``, wherever an equal
    share of all steps of all tiles ends (stream-K); whoever comes last adds the parts in order.
    """

    m: int
    n: int
    k: int
    operands: str = "f16"
    stages: int = 4
    pingpong: bool = False
    tile: tuple[int, int] = (128, 128)
    workers: int = 132
    parts: int = 1
    stream: bool = False
    group: int = 8
    turned: bool = False
    architecture: str = field(default="sm_90a", init=False)

    def __post_init__(self) -> None:
        for name, unit in (("m", 1), ("n", CHUNK), ("k", CHUNK)):
            value = getattr(self, name)
            if not 0 < value <= LONGEST or value % unit:
                raise UsageError(f"{name} is {value}; warp-specialised takes multiples of {unit} up to {LONGEST}")
        if self.operands not in FORMATS:
            raise UsageError(f"operands are {brief(self.operands)}; warp-specialised takes {' or '.join(FORMATS)}")
        if self.stages not in STAGES:
            raise UsageError(f"stages is {self.stages}; it must be {STAGES[0]} to {STAGES[-1]}")
        for name in ("workers", "parts", "group"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.stream and self.parts > 1:
            raise UsageError(f"parts is {self.parts}; stream-K cuts K by itself")
        self._check_tile()

    def _check_tile(self) -> None:
        lines = LINES * (1 if self.pingpong else CONSUMERS)
        if len(self.tile) != 2 or self.tile[1] not in TILES_N or self.tile[0] not in (lines, 2 * lines):
            widths = ", ".join(map(str, TILES_N))
            raise UsageError(f"tile is {brief(self.tile)}; it must be {lines} or {2 * lines} by one of {widths}")
        sums = self.tile[0] // lines * self.tile[1] // 2
        if sums > MOST_SUMS:
            raise UsageError(f"tile is {brief(self.tile)}: a thread has {sums} accumulators, at most {MOST_SUMS}")
        if self.shared > MOST_SHARED:
            raise UsageError(f"{self.stages} stages take {self.shared} bytes of shared memory; a CTA has {MOST_SHARED}")

    @property
    def slot(self) -> int:
        """Bytes of a slot."""
        return sum(self.tile) * TILE_K * 2

    @property
    def shared(self) -> int:
        """Bytes of shared memory of a CTA."""
        return self.stages * self.slot + BARRIERS + ALL_CAME

    @property
    def opcode(self) -> str:
        """The instruction that multiplies."""
        return f"wgmma.mma_async.sync.aligned.m64n{self.tile[1]}k16.f32.{self.operands}.{self.operands}"

    @property
    def order(self) -> TileOrder:
        """The order in which tiles are visited."""
        rows, columns = -(-self.m // self.tile[0]), -(-self.n // self.tile[1])
        return turned(grouped(columns, rows, self.group)) if self.turned else grouped(rows, columns, self.group)

    @property
    def steps(self) -> int:
        """Slots that K takes."""
        return -(-self.k // TILE_K)

    @property
    def share(self) -> int:
        """Slots of a part, but the last one."""
        return -(-self.steps // self.parts)

    @property
    def groups(self) -> int:
        """CTAs of a launch."""
        return self.workers

    @property
    def threads(self) -> int:
        """Threads of a CTA."""
        return THREADS

    @property
    def corners(self) -> int:
        """What the kernel counts: of each tile one for every warpgroup that has it."""
        return self.order.steps * (1 if self.pingpong else CONSUMERS)

    @property
    def ring(self) -> SlotRing:
        """The protocol between producer and consumers."""
        return ring(self.stages, self.pingpong)

    @property
    def ranges(self) -> Ranges:
        """How K of a tile is cut: not at all, into parts of whole slots, or by the workers' shares of all slots."""
        if self.stream:
            groups_of: Literal["rows", "columns"] = "columns" if self.turned else "rows"
            tile = (*self.tile, TILE_K)
            return Ranges("stream_k", tile=tile, workers=self.workers, group=self.group, groups_of=groups_of)
        return Ranges("ceil_split", parts=self.parts, unit=TILE_K) if self.parts > 1 else Ranges()

    @property
    def most_parts(self) -> int:
        """Parts of the tile that has most."""
        return max(len(kernel.ranges.of(self.k)) for kernel, *_ in self.schedule().areas(self.m, self.n, self.k))

    def schedule(self) -> Schedule:
        """The order of every sum: a chain of the instruction's primitive for each part, and parts added in order."""
        (primitive,) = lowering(instruction(self.opcode, self.architecture), self.architecture).primitives
        step = GemmStep("primitive", self.architecture, primitive)
        tile = GemmKernel("tile", self.ranges, Join("f32", start="first"), Accumulators("f32"), step)
        call = "warp-specialised, stream-K" if self.stream else "warp-specialised"
        scope = Scope("mmaprobe", call=call, layouts=("NN",), source=f"csrc/{TEMPLATE}")
        return Schedule(self.operands, self.operands, "f32", scope, (tile,), (Region("tile"),))

    def source(self) -> Source:
        """CUDA C++; its launch has ``workers`` CTAs."""
        numbers = {
            "M": self.m, "N": self.n, "K": self.k, "TILE_M": self.tile[0], "TILE_N": self.tile[1], "TILE_K": TILE_K,
            "STAGES": self.stages, "PINGPONG": self.pingpong, "STREAM": self.stream,
            "PARTS": -(-self.steps // self.share), "SHARE": self.share, "WORKERS": self.workers,
            "TILES": self.order.steps,
        }  # fmt: skip
        a, b = self.matrices()
        text = "\n".join(
            [
                f"// {self.m} x {self.n} x {self.k} by {self.opcode}",
                "#define MMAPROBE_DEVICE __device__ __forceinline__",
                "typedef unsigned long long Word64;",
                *(f"constexpr int {name} = {int(value)};" for name, value in numbers.items()),
                tile_at(self.order),
                describe("describe_a", a),
                describe("describe_b", b),
                multiply(self.opcode, self.tile[1] // 2),
                template(TEMPLATE).replace("MMAPROBE_PROTOCOL\n", functions(self.ring)),
            ]
        )
        return Source(self.opcode, self.architecture, text, threads=THREADS, groups=1, shared=self.shared)

    def boxes(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Rows and columns that one copy moves of A and of B."""
        return (self.tile[0], TILE_K), (TILE_K, BOX_N)

    def matrices(self) -> tuple[SharedMatrix, SharedMatrix]:
        """A and B of one instruction as they lie in a slot: rows of A, and rows of B 64 columns long, in the 128-byte
        swizzle; the next 64 columns of B lie behind all rows of the slot."""
        return (
            shared_matrix(LINES, 16, 16, 128, sbo=8 * 128),
            shared_matrix(self.tile[1], 16, 16, 128, major="mn_major", lbo=TILE_K * 128, sbo=8 * 128),
        )


def describe(name: str, of: SharedMatrix) -> str:
    """A matrix' descriptor at a start address, as a function of C++."""
    fields = descriptor("wgmma.matrix")
    made = f"{constant_fields(of, fields):#x}ull | {start_field(fields)}"
    return f"MMAPROBE_DEVICE Word64 {name}(unsigned start) {{ return {made}; }}  // {of.layout}"


def multiply(opcode: str, registers: int) -> str:
    """``multiply``: d += a b, begun; B is transposed, for its rows lie along N."""
    places = ", ".join(f"%{number}" for number in range(registers))
    outputs = ", ".join(f'"+f"(d[{number}])' for number in range(registers))
    return f"""MMAPROBE_DEVICE void multiply(float (&d)[{registers}], Word64 a, Word64 b) {{
  asm volatile("{opcode} {{{places}}}, %{registers}, %{registers + 1}, 1, 1, 1, 0, 1;"
               : {outputs} : "l"(a), "l"(b) : "memory");
}}"""
