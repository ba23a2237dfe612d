"""What a campaign costs beside its engine: python benchmarks/bench_campaign.py [FORM ...] [--smoke]

One core, processor time, all in one run.  For each form:

- the engine's own rate: its kernel on operands that lie in its layout (``mmaprobe bench``);
- the default mix, at the weights of ``families.MIX``: ``validate`` between two models, so generated, evaluated on both
  sides and compared by the pipeline that campaigns use, in million vectors a second and as a share of the engine's
  rate (without the sample that is sorted into cells: what that costs a campaign says ``bench_bookkeeping.py``);
- the same of every family alone, with its weight in the mix, and the nanoseconds that one of its vectors takes to
  generate, to evaluate on both sides, and for the rest: comparing, and what goes on around it.

The lane-wise units of this CPU are compared with the silicon, too, if it has them.  FORM: a part of a name below.
Another tree is measured beside this one with its ``src`` first in PYTHONPATH.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from mmaprobe import _native
from mmaprobe.catalog import lookup
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import open_device
from mmaprobe.devices.model import ModelDevice, open_model
from mmaprobe.errors import MmaprobeError
from mmaprobe.generators import MIX, families_for
from mmaprobe.generators.domain import domain
from mmaprobe.generators.families import FAMILIES, TILE_VERSIONS, stream_number
from mmaprobe.generators.tiles import tile_version, tile_window
from mmaprobe.validation import validate
from mmaprobe.validation.batches import even
from mmaprobe.validation.native import has_kernel, isa
from mmaprobe.validation.speed import SMOKE_RESULTS, Stopwatch, TimedForm, machine

FORMS = (
    ("f16 K=16", "sm_90a", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
    ("bf16 K=16", "sm_90a", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
    ("e4m3 K=32", "sm_90a", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"),
    ("tf32 K=8", "sm_90a", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"),
    ("f64 K=4", "sm_90a", "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64"),
    ("mxf4 K=64", "sm_100a", "tcgen05.mma.cta_group::1.kind::mxf4.block_scale.m128n64k64.f32.e2m1.e2m1.ue8m0"),
    (
        "nvfp4 K=64",
        "sm_100a",
        "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X.m128n64k64.f32.e2m1.e2m1.ue4m3",
    ),
    ("VDPBF16PS", "x86-64+intel", "x86.vdpbf16ps"),
    ("DPPS", "x86-64+intel", "x86.dpps"),
    ("DPPD", "x86-64+intel", "x86.dppd"),
    ("VFMADD f32", "x86-64+intel", "x86.vfmadd.f32"),
    ("VFMADD f16", "x86-64+intel", "x86.vfmadd.f16"),
)
"""What a form is called, the architecture whose model is measured, and the instruction."""
VECTORS = 1 << 26
"""Vectors of a measurement of the mix, so many that what a campaign begins with does not show; of a family alone a
sixteenth."""
BLOCK = 1 << 13
"""Results whose operands are generated and evaluated at a time, within the second cache."""


def processor_time(work: Callable[[], object], trials: int) -> float:
    """The least processor time of several calls, in seconds."""
    best = float("inf")
    for _ in range(trials):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


class Form:
    """One instruction by one model."""

    def __init__(self, architecture: str, identifier: str, smoke: bool) -> None:
        self.model: ModelDevice = open_model(architecture)
        self.made: Instruction = lookup.instruction(identifier, architecture)
        self.trials, self.mix = (1, 1 << 14) if smoke else (3, VECTORS)
        self.block = SMOKE_RESULTS if smoke else BLOCK
        self.families = families_for(self.made)

    def timed(self, family: str) -> TimedForm:
        """The form on operands of one family."""
        return TimedForm(self.made, self.model.datapath(self.made), family)

    def engine_call(self, family: str) -> tuple[Callable[[], object], int]:
        """The kernel on its layout, with how many results; of a form without kernel the model on arrays."""
        form = self.timed(family)
        if form.words is not None and has_kernel(form.words):
            return form.engine_call(self.block)
        return form.python_call(self.block)

    def engine_rate(self, family: str) -> float:
        """Million results a second of the engine on prepared operands."""
        return Stopwatch(1, 0.0 if self.trials == 1 else 0.2).rate(*self.engine_call(family))

    def compared(self, dut: Any, count: int, generators: list[str] | None = None) -> float:
        """Nanoseconds of processor time that a vector of a validation takes."""

        def work() -> None:
            summary = validate(dut, self.model, self.made, count, 1, generators, threads=1, covered=False)
            assert summary.vectors == count
            assert not summary.mismatches

        return processor_time(work, self.trials) / count * 1e9

    def generated(self, family: str, count: int) -> float:
        """Nanoseconds that one vector takes to generate: tiles and separate vectors as a validation mixes them."""
        tiles = sum(chunk.count for chunk in even(self.made, family, 0, count, BLOCK) if chunk.tiles) / count
        version = tile_version(self.made, family, windows=True)
        aims = version == TILE_VERSIONS.get(family)
        m, n = tile_window(self.made) if aims else (self.made.m, self.made.n)
        whole = self._generate(family, m, n, version if aims else None) if tiles else 0.0
        return tiles * whole + (1 - tiles) * self._generate(family, 1, 0)

    def _generate(self, family: str, m: int, n: int, version: int | None = None) -> float:
        """Nanoseconds a result of tiles of m rows and n columns; n = 0: of separate vectors."""
        t, results = domain(self.made), m * n if n else 1
        count = max(1, self.block // results)
        strips, columns = (-(-m // 16) * 16, n) if n else (16, 16)
        units = count if n else -(-count // 16)
        sizes = {"a": strips * t.space.live, "b": columns * t.space.k, "c": strips * columns if n else 16,
                 "scale_a": strips * t.space.groups, "scale_b": columns * t.space.groups}  # fmt: skip
        kinds = self.made.formats()
        operands = [
            np.zeros(units * size, kinds[name].dtype) if name in kinds else None for name, size in sizes.items()
        ]
        given = (t.packed(), FAMILIES.index(family), stream_number(family, version), 1, 0, count, m, n, operands)
        turns = 1 if self.trials == 1 else 16

        def work() -> None:
            for _ in range(turns):
                _native.generate_layout(*given)

        return processor_time(work, self.trials + 2) / (turns * count * results) * 1e9

    def evaluated(self, family: str) -> float:
        """Nanoseconds that the two evaluations of one result take."""
        return 2e3 / self.engine_rate(family)


def report(name: str, form: Form) -> None:
    """The table of one form."""
    usual = "clustered" if "clustered" in form.families else "uniform"
    engine = form.engine_rate(usual)
    whole = form.compared(form.model, form.mix)
    print(f"{name}: {form.made.id}")
    print(f"  engine alone {engine:.0f} M/s; default mix {1e3 / whole:.1f} M/s, {100e3 / whole / engine:.1f} % of it")
    if form.made.lane_wise:
        beside_silicon(form)
    print("                               weight in   ns a vector:")
    print("  family          M/s  % of engine   mix   generate  evaluate twice  compare and the rest")
    for family in form.families:
        took = form.compared(form.model, form.mix // 16, [family])
        made, evaluated = form.generated(family, form.mix // 16), form.evaluated(family)
        print(
            f"  {family:12} {1e3 / took:6.1f} {100e3 / took / engine:12.1f} {MIX[family]:5d}"
            f" {made:10.2f} {evaluated:15.2f} {max(took - made - evaluated, 0):21.2f}"
        )


def beside_silicon(form: Form) -> None:
    """The same of this CPU's own unit beside its model, where it is here."""
    cpu = open_device("cpu")
    model = open_model(cpu.info()["architecture"]) if cpu.supports(form.made) else None
    if model is None or not model.supports(form.made):
        print("  not here: this CPU has no such instruction, or no model of it")
        return
    form.model, kept = model, form.model
    took = form.compared(cpu, form.mix)
    form.model = kept
    print(f"  this CPU's own unit beside its model: {1e3 / took:.1f} M/s of processor time, {took:.1f} ns a vector")


def main() -> None:
    smoke = "--smoke" in sys.argv
    wanted = [word for word in sys.argv[1:] if word != "--smoke"]
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    here = machine()
    print(f"{here['processor']}, {here['build']} build, {here['compiler']}, one core, processor time")
    print(f"engine build asked for: {isa() or 'the best'}; million vectors a second (M/s)")
    for name, architecture, identifier in FORMS:
        if wanted and not any(word.lower() in name.lower() for word in wanted):
            continue
        try:
            report(name, Form(architecture, identifier, smoke))
        except MmaprobeError as error:
            print(f"{name}: not measured: {error}")


if __name__ == "__main__":
    main()
