"""What the compiler makes of fused campaigns, and the rate that it bounds: python benchmarks/campaign_bounds.py [ARCH]

No GPU is needed.  For each form: registers, local and shared memory of the kernel as it is shipped; then, of the same
source with every loop inside a tile unrolled and one family alone in it, the instructions that a tile takes in each
pipe, both sides of every branch counted, and from them the vectors a second at most: multiprocessors x clock x vectors
of a tile / cycles of the busiest pipe.  Assumed of NVIDIA, lanes a cycle and multiprocessor: ALU 64, IMAD 64, other
FP32 128, FP64 64 (2 on some parts), XU 16; LSU a warp's request in two cycles; issue 4 warps.  Of AMD's gfx9: four
SIMDs of 16 lanes, 32-bit and wide products and transcendentals in four passes, binary64 in one; a scalar instruction a
cycle; LDS 128 bytes a cycle.  Latency, bank conflicts and throttling are not modelled: expect 60 to 85 % of the bound.
Models that the interpreter evaluates loop as their programs do, and have no bound here.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from mmaprobe.catalog.lookup import instruction
from mmaprobe.generators.families import FAMILIES
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.toolchain.amd import code_object
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.nvidia import cubin, nvdisasm
from mmaprobe.toolchain.source import Source
from mmaprobe.toolchain.vendors import compiler_for
from mmaprobe.validation.fused import source_of
from mmaprobe.vendors import AMD

NVIDIA_FORMS = (
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
AMD_FORMS = {
    "gfx90a": (
        "v_mfma_f32_16x16x16f16", "v_mfma_f32_16x16x16bf16_1k", "v_mfma_f32_16x16x4f32", "v_mfma_f64_16x16x4f64",
        "v_mfma_i32_16x16x16i8",
    ),
    "gfx942": (
        "v_mfma_f32_16x16x16_f16", "v_mfma_f32_32x32x8_bf16", "v_mfma_f32_16x16x8_xf32",
        "v_mfma_f32_16x16x32_fp8_fp8", "v_smfmac_f32_16x16x32_f16", "v_mfma_f32_16x16x4_f32", "v_mfma_f64_16x16x4_f64",
        "v_mfma_i32_16x16x32_i8",
    ),
    "gfx950": ("v_mfma_f32_16x16x4_f32", "v_mfma_f64_16x16x4_f64", "v_mfma_i32_16x16x64_i8"),
}  # fmt: skip
FAMILIES_SHOWN = ("clustered", "cancel")
NVIDIA_PIPES = {
    "FP64": r"D(FMA|ADD|MUL|SETP)", "XU": r"(MUFU|FLO|POPC|I2F|F2I|F2F|BREV|I2I)", "IMAD": r"IMAD",
    "FP32": r"(F(FMA|ADD|MUL|SETP|SEL|MNMX)|H\w*2)", "LSU": r"(LD|ST|ATOM|RED|SHFL)", "TENSOR": r"\w+MMA",
    "OTHER": r"(BRA|EXIT|BAR|WARPSYNC|NOP|S2R|CS2R|BSSY|BSYNC|CALL|RET|WARPGROUP|DEPBAR|UISETP|U\w+|R2UR|ERRBAR|FENCE)",
    "ALU": r"",
}  # fmt: skip
AMD_PIPES = {
    "MATRIX": r"v_(mfma|smfmac|wmma|swmmac)", "F64": r"v_\w+_f64",
    "SLOW": r"v_(mul_(lo|hi)_[ui]32|mad_[ui]64_[ui]32|rcp|sqrt|rsq|exp|log|sin|cos)", "VALU": r"v_",
    "LDS128": r"ds_\w+_(b128|b96|2\w*_b64)", "LDS64": r"ds_\w+_(b64|2\w*_b32)", "LDS": r"ds_",
    "MEMORY": r"(global|flat|buffer|scratch)_", "OTHER": r"s_(waitcnt|wait_|nop|delay|barrier|clause|endpgm|sleep)",
    "CALL": r"s_swappc", "SALU": r"s_",
}  # fmt: skip
_NVIDIA_OPCODE = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z]\w*)", re.MULTILINE)


@dataclass(frozen=True)
class Machine:
    """A GPU: multiprocessors, clock, and pipes by what opcodes begin with (the first that fits).

    ``limits``: what a warp's or wave's instruction takes, cycles of a multiprocessor by pipe.
    """

    multiprocessors: int
    clock: float
    pipes: Mapping[str, str]
    limits: Mapping[str, Mapping[str, float]]
    shown: tuple[str, ...]

    def pipe_of(self, opcode: str) -> str:
        """The pipe of an opcode."""
        return next(pipe for pipe, known in self.pipes.items() if re.match(known, opcode))

    def busiest(self, pipes: Counter[str]) -> tuple[float, str]:
        """Cycles a tile, and the limit that takes them."""
        return max((sum(pipes[pipe] * each for pipe, each in of.items()), name) for name, of in self.limits.items())


def _nvidia() -> Machine:
    cycles = {"ALU": 0.5, "IMAD": 0.5, "FP32": 0.25, "FP64": 0.5, "XU": 2.0, "LSU": 2.0}
    limits: dict[str, Mapping[str, float]] = {pipe: {pipe: each} for pipe, each in cycles.items()}
    limits["issue"] = dict.fromkeys(NVIDIA_PIPES, 0.25)
    return Machine(132, 1.7e9, NVIDIA_PIPES, limits, ("ALU", "IMAD", "FP64", "XU", "LSU"))


def _amd(multiprocessors: int, clock: float) -> Machine:
    limits = {
        "VALU": {"VALU": 1.0, "F64": 1.0, "SLOW": 4.0}, "SALU": {"SALU": 1.0},
        "LDS": {"LDS": 2.0, "LDS64": 4.0, "LDS128": 8.0},
    }  # fmt: skip
    return Machine(multiprocessors, clock, AMD_PIPES, limits, ("VALU", "SLOW", "F64", "SALU", "LDS", "LDS64", "LDS128"))


MACHINES: dict[str, Callable[[], Machine]] = {
    "sm": _nvidia,  # H200
    "gfx90a": lambda: _amd(110, 1.7e9),  # one half of MI250X
    "gfx942": lambda: _amd(304, 2.1e9),  # MI300X
    "gfx950": lambda: _amd(256, 2.4e9),  # MI355X
}


def unrolled(source: Source, family: str) -> Source:
    """The campaign of one family, without loops inside a tile."""
    made, mark, rest = source.text.partition("namespace compiled {")
    made = re.sub(r"MMAPROBE_ROLLED (?=for)", "MMAPROBE_UNROLLED ", made)  # what walks over specials stays rolled
    text = (made + mark + rest).replace("#pragma unroll 1\n", "#pragma unroll\n")
    text = text.replace('_Pragma("unroll 8")', '_Pragma("unroll")')
    text = text.replace("thread / makers, parts, put", "0, parts, put")  # a count that the compiler knows
    text = text.replace("of.family", str(FAMILIES.index(family)))
    return replace(source, text=text)


def opcodes(made: Kernel) -> list[str]:
    """The opcodes of a kernel."""
    if AMD.makes(made.architecture):
        return [line.split()[0] for line in code_object.disassemble(made.binary, made.threads)]
    return _NVIDIA_OPCODE.findall(nvdisasm.disassemble(made.binary))


def resources(made: Kernel) -> tuple[int, int, int]:
    """Registers, bytes of local memory (of NVIDIA instructions that use it) and bytes of shared memory."""
    if AMD.makes(made.architecture):
        found = code_object.resources(made.binary)
        return found["vgprs"], found["local_bytes"], found["shared_bytes"]
    return cubin.registers(made.binary), sum(opcode in ("STL", "LDL") for opcode in opcodes(made)), made.shared


def main(architecture: str) -> None:
    """Print the table."""
    machine = MACHINES[architecture.partition("_")[0]]()
    compiler = compiler_for(architecture)
    units = f"{machine.multiprocessors} multiprocessors at {machine.clock / 1e9:g} GHz"
    print(f"{architecture}, {compiler.version()}; {units} assumed")
    print(
        f"{'form':58} {'regs':>4} {'local':>5} {'KiB':>4}  "
        f"family     instructions a vector ({' '.join(machine.shown)})  bound"
    )
    for name in AMD_FORMS.get(architecture, NVIDIA_FORMS):
        made = instruction(name, architecture)
        source = source_of(made, architecture, datapath_for(architecture, made))
        assert source is not None
        registers, local, shared = resources(compiler.compile_source(source))
        wave = min(source.threads, 64) if AMD.makes(architecture) else 32
        vectors = made.m * made.n * source.items * wave / source.threads  # of a tile, for one warp or wave
        for family in FAMILIES_SHOWN:
            if not made.formats()["a"].is_float:
                family = "uniform" if family == "clustered" else "extremes"
            pipes = Counter(map(machine.pipe_of, opcodes(compiler.compile_source(unrolled(source, family)))))
            if pipes["CALL"]:
                print(f"{name[:58]:58} {registers:4} {local:5} {shared / 1024:4.0f}  interpreted", flush=True)
                break
            cycles, limit = machine.busiest(pipes)
            each = " ".join(f"{pipes[pipe] * wave / vectors:.0f}" for pipe in machine.shown)
            print(
                f"{name[:58]:58} {registers:4} {local:5} {shared / 1024:4.0f}  {family:10} "
                f"{sum(pipes.values()) * wave / vectors:5.0f} ({each})  "
                f"{machine.multiprocessors * machine.clock * vectors / cycles / 1e9:.1f} G/s by {limit}",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "sm_90a")
