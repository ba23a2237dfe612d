"""A product D = A B by ``mma.sync`` behind a ring of ``cp.async`` slots: its source, and the schedule that it obeys.

The kernel is made for one shape.  Where elements lie in shared memory and which tile a CTA computes are layouts of the
algebra, written as C: one object is proved, and compiled.
"""

from __future__ import annotations

from dataclasses import dataclass

from mmaprobe.catalog.layout_algebra import Composed, Layout, Swizzle
from mmaprobe.catalog.lookup import instruction, lowering
from mmaprobe.catalog.shared_memory import offset_formula
from mmaprobe.catalog.tile_orders import TileOrder, grouped, turned
from mmaprobe.errors import UsageError, brief
from mmaprobe.parameters.schedule import Accumulators, GemmKernel, GemmStep, Join, Ranges, Region, Schedule, Scope
from mmaprobe.toolchain.source import Source, template

TEMPLATE = "cuda/gemm_multistage.cuh"
THREADS = 128
"""Threads of a CTA: four warps, two by two."""
STEP = 16
"""K of the instruction."""
CHUNK = 8
"""Elements of 16 bytes, which one copy moves: K and N are multiples of it."""
STAGES = range(2, 8)
"""Slots that a ring may have."""
TILES = (32, 64, 128)
"""Lengths of a tile along M, N and K."""
MOST_SHARED = 163 * 1024
"""Bytes of shared memory of a CTA (sm_80)."""
LONGEST = 1 << 20
"""Largest M, N and K: offsets within a tile row are 32-bit numbers."""
FORMATS = ("f16", "bf16")


@dataclass(frozen=True)
class Multistage:
    """A kernel for D (M, N) of A (M, K) and B (K, N), ``operands`` f16 or bf16, D f32.

    ``tile`` is M, N and K of a tile; ``stages`` slots of shared memory hold one of A and one of B each; tiles are
    visited in groups of ``group`` rows, or with ``turned`` columns.  UsageError for what it does not fit.
    """

    m: int
    n: int
    k: int
    operands: str = "f16"
    architecture: str = "sm_80"
    stages: int = 4
    tile: tuple[int, int, int] = (128, 128, 32)
    group: int = 8
    turned: bool = False

    def __post_init__(self) -> None:
        for name, unit in (("m", 1), ("n", CHUNK), ("k", CHUNK)):
            value = getattr(self, name)
            if not 0 < value <= LONGEST or value % unit:
                raise UsageError(f"{name} is {value}; multistage takes multiples of {unit} up to {LONGEST}")
        if self.operands not in FORMATS:
            raise UsageError(f"operands are {brief(self.operands)}; multistage takes {' or '.join(FORMATS)}")
        if self.stages not in STAGES:
            raise UsageError(f"stages is {self.stages}; it must be {STAGES[0]} to {STAGES[-1]}")
        if len(self.tile) != 3 or not set(self.tile) <= set(TILES):
            raise UsageError(f"tile is {brief(self.tile)}; it must be three of {', '.join(map(str, TILES))}")
        if self.group < 1:
            raise UsageError(f"group is {self.group}; it must be at least 1")
        if self.shared > MOST_SHARED:
            raise UsageError(f"{self.stages} stages take {self.shared} bytes of shared memory; a CTA has {MOST_SHARED}")
        lowering(instruction(self.opcode, self.architecture), self.architecture)

    @property
    def shared(self) -> int:
        """Bytes of shared memory of a CTA."""
        m, n, k = self.tile
        return self.stages * (m + n) * k * 2

    @property
    def groups(self) -> int:
        """CTAs of a launch: one a tile."""
        return self.order.steps

    @property
    def threads(self) -> int:
        """Threads of a CTA."""
        return THREADS

    @property
    def corners(self) -> int:
        """What the kernel counts: tiles."""
        return self.order.steps

    @property
    def opcode(self) -> str:
        """The instruction that multiplies."""
        return f"mma.sync.aligned.m16n8k16.row.col.f32.{self.operands}.{self.operands}.f32"

    @property
    def order(self) -> TileOrder:
        """The order in which CTAs have the tiles of D."""
        rows, columns = -(-self.m // self.tile[0]), -(-self.n // self.tile[1])
        return turned(grouped(columns, rows, self.group)) if self.turned else grouped(rows, columns, self.group)

    def schedule(self) -> Schedule:
        """The order of every sum: one accumulator from +0, steps of the instruction's primitive from the first on."""
        (primitive,) = lowering(instruction(self.opcode, self.architecture), self.architecture).primitives
        kernel = GemmKernel(
            "multistage",
            Ranges(),
            Join("f32", start="first"),
            Accumulators("f32"),
            GemmStep("primitive", self.architecture, primitive),
        )
        scope = Scope("mmaprobe", call="multistage", layouts=("NN",), source="csrc/cuda/gemm_multistage.cuh")
        return Schedule(self.operands, self.operands, "f32", scope, (kernel,), (Region("multistage"),))

    def source(self) -> Source:
        """CUDA C++; its launch has a CTA for each step of ``order``."""
        m, n, k = self.tile
        numbers = {"M": self.m, "N": self.n, "K": self.k, "TILE_M": m, "TILE_N": n, "TILE_K": k, "STAGES": self.stages}
        text = "\n".join(
            [
                f"// {self.m} x {self.n} x {self.k} by {self.opcode}",
                "#define MMAPROBE_DEVICE __device__ __forceinline__",
                *(f"constexpr int {name} = {value};" for name, value in numbers.items()),
                address("address_a", rows_in_shared_memory(m, k)),
                address("address_b", rows_in_shared_memory(k, n)),
                tile_at(self.order),
                multiply(self.opcode),
                template(TEMPLATE),
            ]
        )
        return Source(self.opcode, self.architecture, text, threads=THREADS, groups=1, shared=self.shared)


def rows_in_shared_memory(lines: int, length: int) -> Composed:
    """(line, element) to byte: rows of 16-bit elements side by side, their units of 16 bytes swizzled.

    Eight lines that follow one another at one unit, which ``ldmatrix`` reads at once, lie in 32 different banks.
    """
    row = 2 * length
    bits = min(3, (row // 16).bit_length() - 1)
    shift = max(3, row.bit_length() - 5)
    return Composed(Swizzle(bits, 4, shift), 0, Layout((lines, length), (row, 2)))


def address(name: str, layout: Composed) -> str:
    """A layout of (line, at) as a function of C++."""
    formula = offset_formula(layout, ("line", "at"))
    return f"MMAPROBE_DEVICE int {name}(int line, int at) {{ return {formula.c}; }}  // {layout}"


def tile_at(order: TileOrder) -> str:
    """``tile_at``: the tile (m, n) of a step, from the layouts of the order's bands."""
    lines, first = [], 0
    names = ("n", "m") if order.turned else ("m", "n")
    for band in order.bands:
        place = offset_formula(Composed(Swizzle(0, 0, 0), 0, band.order), ("step",)).c
        lines += [
            f"  if (step < {first + band.order.size}) {{  // {band.order}",
            f"    step -= {first};",
            f"    const int place = {place};",
            f"    {names[0]} = {band.first} + place % {band.rows}, {names[1]} = place / {band.rows};",
            "    return;",
            "  }",
        ]
        first += band.order.size
    return "\n".join(["MMAPROBE_DEVICE void tile_at(int step, int& m, int& n) {", *lines, "}"])


def multiply(opcode: str) -> str:
    """``multiply``: d += a b of one warp's fragments."""
    return f"""MMAPROBE_DEVICE void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {{
  asm volatile("{opcode} {{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}}"""
