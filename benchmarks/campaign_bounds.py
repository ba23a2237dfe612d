"""What the compiler makes of fused campaigns, and the rate that it bounds: python benchmarks/campaign_bounds.py [ARCH]

No GPU is needed.  For each form: registers and local memory of the kernel as it is shipped; then, of the same source
with every loop inside a tile unrolled and one family alone in it, the instructions that a tile takes in each pipe, both
sides of every branch counted, and from them the vectors a second at most: multiprocessors x clock x vectors of a tile /
cycles of the busiest pipe.  Assumed lanes a cycle and multiprocessor: ALU 64, IMAD 64, other FP32 128, FP64 64 (2 on
some parts), XU 16; LSU a warp's request in two cycles; issue 4 warps.  Latency, bank conflicts and throttling are not
modelled: expect 60 to 85 % of the bound.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass, replace

from mmaprobe.catalog.lookup import instruction
from mmaprobe.generators.families import FAMILIES
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.toolchain import nvrtc
from mmaprobe.toolchain.cubin import registers
from mmaprobe.toolchain.disassembly import disassemble
from mmaprobe.toolchain.source import Source
from mmaprobe.validation.fused import source_of

MULTIPROCESSORS, CLOCK = 132, 1.7e9
FORMS = (
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
    "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
    "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
    "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
    "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16",
    "wgmma.mma_async.sync.aligned.m64n32k32.f32.e4m3.e4m3",
    "wgmma.mma_async.sync.aligned.m64n32k32.f16.e4m3.e4m3",
)
FAMILIES_SHOWN = ("clustered", "cancel")
PIPES = {
    "FP64": r"D(FMA|ADD|MUL|SETP)", "XU": r"(MUFU|FLO|POPC|I2F|F2I|F2F|BREV|I2I)", "IMAD": r"IMAD",
    "FP32": r"(F(FMA|ADD|MUL|SETP|SEL|MNMX)|H\w*2)", "LSU": r"(LD|ST|ATOM|RED|SHFL)", "TENSOR": r"\w+MMA",
    "OTHER": r"(BRA|EXIT|BAR|WARPSYNC|NOP|S2R|CS2R|BSSY|BSYNC|CALL|RET|WARPGROUP|DEPBAR|UISETP|U\w+|R2UR|ERRBAR|FENCE)",
}  # fmt: skip
CYCLES = {"ALU": 0.5, "IMAD": 0.5, "FP32": 0.25, "FP64": 0.5, "XU": 2.0, "LSU": 2.0}
"""Cycles of a multiprocessor that an instruction of a warp takes in its pipe."""
ISSUE = 0.25
_OPCODE = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z]\w*)", re.MULTILINE)


@dataclass(frozen=True)
class Report:
    """What was counted of one form and family, for one warp and a tile of its group."""

    pipes: Counter[str]
    vectors: float

    @property
    def busiest(self) -> tuple[float, str]:
        """Cycles a tile and the pipe that takes them."""
        total = sum(self.pipes.values())
        return max([(self.pipes[pipe] * each, pipe) for pipe, each in CYCLES.items()] + [(total * ISSUE, "issue")])

    @property
    def bound(self) -> float:
        """Vectors a second at most."""
        return MULTIPROCESSORS * CLOCK * self.vectors / self.busiest[0]


def pipe_of(opcode: str) -> str:
    """The pipe of an opcode."""
    return next((pipe for pipe, known in PIPES.items() if re.match(known, opcode)), "ALU")


def unrolled(source: Source, family: str) -> Source:
    """The campaign of one family, without loops inside a tile."""
    made, mark, rest = source.text.partition("namespace compiled {")
    made = re.sub(r"MMAPROBE_ROLLED (?=for)", "MMAPROBE_UNROLLED ", made)  # what walks over specials stays rolled
    text = (made + mark + rest).replace("#pragma unroll 1\n", "#pragma unroll\n")
    text = text.replace("thread / makers, parts, put", "0, parts, put")  # a count that the compiler knows
    text = text.replace("of.family", str(FAMILIES.index(family)))
    return replace(source, text=text)


def counted(source: Source, family: str) -> Report:
    """Instructions of the loop over tiles."""
    text = disassemble(nvrtc.compile_source(unrolled(source, family)).binary)
    made = instruction(source.instruction, source.architecture)
    warps = source.threads // 32
    return Report(Counter(map(pipe_of, _OPCODE.findall(text))), made.m * made.n * source.items / warps)


def main(architecture: str) -> None:
    """Print the table."""
    print(f"{architecture}, {nvrtc.version()}; {MULTIPROCESSORS} multiprocessors at {CLOCK / 1e9:g} GHz assumed")
    print(
        f"{'form':58} {'regs':>4} {'local':>5} {'KiB':>4}  "
        "family     instructions a vector (ALU IMAD FP64 XU LSU)  bound"
    )
    for name in FORMS:
        made = instruction(name, architecture)
        source = source_of(made, architecture, datapath_for(architecture, made))
        assert source is not None
        kernel = nvrtc.compile_source(source)
        text = disassemble(kernel.binary)
        local = sum(opcode in ("STL", "LDL") for opcode in _OPCODE.findall(text))
        for family in FAMILIES_SHOWN:
            if not made.formats()["a"].is_float:
                family = "uniform" if family == "clustered" else "extremes"
            report = counted(source, family)
            each = {pipe: report.pipes[pipe] * 32 / report.vectors for pipe in ("ALU", "IMAD", "FP64", "XU", "LSU")}
            total = sum(report.pipes.values()) * 32 / report.vectors
            print(
                f"{name[:58]:58} {registers(kernel.binary):4} {local:5} {source.shared / 1024:4.0f}  {family:10} "
                f"{total:5.0f} ({' '.join(f'{value:.0f}' for value in each.values())})  "
                f"{report.bound / 1e9:.1f} G/s by {report.busiest[1]}"
            )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "sm_90a")
