"""Whole matrix products of known schedules: random ones, and how two of them differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mmaprobe.derivation.schedules.candidates import candidates
from mmaprobe.models.gemm import Gemm
from mmaprobe.parameters.schedule import Accumulators, GemmKernel, Join, Promotion, Ranges, Region, Schedule, Scope
from mmaprobe.probing.gemm.calls import ProductCalls
from mmaprobe.probing.gemm.families import operands
from mmaprobe.probing.gemm.sizes import narrow

SIDES = ((40, 33), (9, 71), (5, 5))
"""Shapes that no identification asks at."""


@dataclass
class Modelled:
    """A schedule as a product whose answers may be changed on the way."""

    schedule: Schedule
    shape: tuple[int, int, int] = (24, 24, 96)
    change: Callable[[Any, Any, Any], Any] | None = None
    name = "gemm:modelled"
    version = ""
    threads = 1
    environment = ()

    @property
    def a(self) -> str:
        return self.schedule.a

    @property
    def b(self) -> str:
        return self.schedule.b

    @property
    def d(self) -> str:
        return self.schedule.d

    def multiply(self, a: Any, b: Any) -> Any:
        d = Gemm(self.schedule).run(a[None], b[None])[0]
        return d if self.change is None else self.change(a, b, d)


def alone(ranges: Ranges, accumulators: Accumulators, join: Join, promotion: Promotion | None = None) -> Schedule:
    kernel = GemmKernel("x", ranges, join, accumulators, promotion=promotion)
    return Schedule("f32", "f32", "f32", Scope("none"), (kernel,), (Region("x"),))


def stepped(kernel: GemmKernel, operands: str, d: str = "f32") -> Schedule:
    """The schedule of one kernel, of operands of this format."""
    return Schedule(operands, operands, d, Scope("none"), (kernel,), (Region(kernel.name),))


def rounded(schedule: Schedule, fmt: str, partials: str = "f32") -> Schedule:
    """The schedule with operands and D of another format, and its partial sums of one."""
    kernels = tuple(replace(each, join=replace(each.join, format=partials)) for each in schedule.kernels)
    return replace(schedule, a=fmt, b=fmt, d=fmt, kernels=kernels)


def drawn(rng: np.random.Generator) -> Schedule:
    """A random schedule of one kernel."""
    cut = str(rng.choice(["whole", "uniform", "halve_last", "ceil_split", "residue_first"]))
    length, unit = int(rng.integers(8, 30)), int(rng.integers(1, 5))
    ranges = {
        "whole": Ranges(),
        "uniform": Ranges("uniform", length),
        "residue_first": Ranges("residue_first", length),
        "halve_last": Ranges("halve_last", length, unit),
        "ceil_split": Ranges("ceil_split", parts=int(rng.integers(2, 9)), unit=unit),
    }[cut]
    count, run = int(rng.choice([1, 2, 3, 4, 8])), int(rng.choice([1, 1, 2, 3]))
    block = int(rng.choice([1, 1, count * run, 2 * count * run]))
    orders = ["chain", "pairwise", *(["halves"] if count & (count - 1) == 0 else [])]
    join: Any = rng.choice(orders)
    ways: Any = rng.choice(["chain", "pairwise"])
    promotion = Promotion(int(rng.integers(2, 6)), "f32") if rng.random() < 0.2 else None
    if rng.random() < 0.2:
        ways, ranges = "last_first", Ranges("uniform", length)
    if rng.random() < 0.2:
        ranges = Ranges("halve_last" if rng.random() < 0.5 else "halve_short", length, half="up")
    rest: Any = "after" if block > 1 and promotion is None and rng.random() < 0.5 else "first"
    own = Accumulators("f32", count, run, block, "zero", str(join), rest)  # type: ignore[arg-type]
    return alone(ranges, own, Join("f32", str(ways)), promotion)  # type: ignore[arg-type]


def staged(schedule: Schedule, rng: np.random.Generator) -> Schedule:
    """The same with late steps, and with a rest that is added before the last addition, where the record has them."""
    kernel = schedule.kernels[0]
    own = kernel.accumulators
    own = replace(own, late=int(rng.integers(min(own.block, 4))))
    if own.rest == "after" and own.count > 2 and rng.integers(2):
        own = replace(own, rest="before")
    return replace(schedule, kernels=(replace(kernel, accumulators=own),))


STEP_KINDS = {"primitive": ("bf16", "f16"), "fp8": ("e4m3", "e5m2"), "promoted": ("e4m3", "f16")}
"""Kinds of random schedules whose steps are primitives, and their operands."""
WIDEST = 32
"""Lanes of such a step at most."""


def drawn_steps(rng: np.random.Generator, kind: str) -> Schedule:
    """A random schedule of one kernel whose steps are a primitive that ships, with partial sums of f32."""
    operands = str(rng.choice(STEP_KINDS[kind]))
    known = [each for each in candidates(operands, operands, "f32") if 1 < each.datapath.k <= WIDEST]
    step = known[int(rng.integers(len(known)))].step
    width = step.width
    if rng.random() < 0.2:
        step = replace(step, order=tuple(rng.permutation(width).tolist()))
    length = width * int(rng.integers(1, 5)) if rng.random() < 0.7 else int(rng.integers(width, 4 * width))
    cuts = (Ranges(), Ranges("uniform", length), Ranges("ceil_split", parts=int(rng.integers(2, 5)), unit=width))
    promotion = Promotion(int(rng.integers(2, 5)), "f32") if kind == "promoted" else None
    own = Accumulators("f32", 1 if promotion else int(rng.choice([1, 1, 2, 4])))
    tail: Any = "scalar" if rng.random() < 0.3 else "zeros"
    kernel = GemmKernel("x", cuts[int(rng.integers(3))], Join("f32"), own, step, promotion, tail)
    return stepped(kernel, operands, "bf16" if rng.random() < 0.2 else "f32")


def differ(x: Schedule, y: Schedule, k: int) -> int:
    """Elements of random products by two schedules that differ; a narrow D shows what additions rounded off."""
    rng, wrong, calls = np.random.default_rng(5), 0, ProductCalls(Modelled(y), 0)
    for m, n in SIDES:
        for family in ("normal", "opposed") if narrow(calls.d) else ("normal",):
            a, b = (each[None] for each in operands(calls, family, (m, n, k), rng))
            wrong += int((Gemm(replace(x, scope=Scope("any"))).run(a, b) != Gemm(y).run(a, b)).sum())
    return wrong
