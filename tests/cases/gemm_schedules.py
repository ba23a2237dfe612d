"""Random schedules of matrix products, and operands for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from mmaprobe import formats
from mmaprobe.parameters.schedule import (
    LONGEST,
    Accumulators,
    Bands,
    GemmKernel,
    GemmStep,
    Join,
    Promotion,
    Ranges,
    Region,
    Schedule,
    Scope,
)

DOT = GemmStep("primitive", "x86-64", "VDPBF16PS[bf16,bf16->f32]")
SCOPE = Scope("none")
PLAIN = GemmKernel("plain", Ranges(), Join("f32"), Accumulators("f32"))
SHARED = Ranges("stream_k", tile=(4, 6, 8), workers=3, group=2)
ONE = Schedule("f32", "f32", "f32", SCOPE, (PLAIN,), (Region("plain"),), "f32")

lengths = st.integers(1, 9)
ranges = st.one_of(
    st.just(Ranges()),
    st.builds(Ranges, st.sampled_from(("uniform", "residue_first")), lengths),
    st.builds(
        Ranges,
        st.sampled_from(("halve_last", "halve_short")),
        lengths,
        st.integers(1, 4),
        half=st.sampled_from(("down", "up", "below")),
    ),
    st.builds(Ranges, st.just("ceil_split"), st.none(), st.integers(1, 4), st.integers(1, 5)),
)
shared = st.builds(
    Ranges,
    st.just("stream_k"),
    tile=st.tuples(st.integers(1, 3), st.integers(1, 3), st.sampled_from((2, 4, 6))),
    workers=st.integers(1, 9),
    group=st.integers(1, 3),
    groups_of=st.sampled_from(("rows", "columns")),
)


@st.composite
def accumulators(draw: Any, fmt: str, primitive: bool) -> Accumulators:
    count, run = draw(st.sampled_from((1, 2, 3, 4))), draw(st.integers(1, 2))
    block = draw(st.sampled_from((1, count * run, 2 * count * run)))
    start = "zero" if primitive else draw(st.sampled_from(("zero", "product")))
    joins = st.sampled_from(("chain", "pairwise") if count == 3 else ("chain", "pairwise", "halves"))
    rests = ("first", "after", "before") if count > 2 else ("first", "after")
    rest = "first" if block == 1 else draw(st.sampled_from(rests))
    late = draw(st.integers(0, min(block - 1, 3)))
    return Accumulators(fmt, count, run, block, start, draw(joins), rest, late)


@st.composite
def kernels(draw: Any, name: str, operand: str, c: bool) -> GemmKernel:
    wide = st.sampled_from(("f32", "f64", "bf16", "f16"))
    dot = operand == "bf16" and draw(st.booleans())
    step = (
        replace(DOT, order=draw(st.sampled_from(((), (1, 0)))))
        if dot
        else GemmStep(draw(st.sampled_from(("fma", "multiply_add"))))
    )
    fmt = "f32" if dot else draw(wide)
    starts = st.sampled_from(("zero", "first", *(["c"] * c)))
    join = Join(draw(wide), draw(st.sampled_from(("chain", "pairwise", "last_first"))), draw(starts))
    own = draw(accumulators(fmt, dot))
    if own.block > 1 and not dot and draw(st.booleans()):
        step = replace(step, beyond="fma" if step.by == "multiply_add" else "multiply_add")
    promotions = st.one_of(st.none(), st.builds(Promotion, st.integers(1, 4), wide))
    promotion = None if own.rest != "first" else draw(promotions)
    if not dot and own.count == 1 and promotion is None:
        step = replace(step, filled=draw(st.integers(1, 4)))
    tail = draw(st.sampled_from(("zeros", "scalar"))) if dot else "zeros"
    return GemmKernel(name, draw(ranges | shared), join, own, step, promotion, tail)


@st.composite
def bands(draw: Any) -> Bands:
    lead, pieces = (tuple(draw(st.lists(st.integers(1, 3), max_size=2))) for _ in range(2))
    take = (draw(st.integers(0, len(lead + pieces) - 1)),) if lead + pieces else ()
    places = (draw(st.integers(0, (lead + pieces)[take[0]] - 1)),) if take and draw(st.booleans()) else ()
    least = draw(st.integers(0, 3))
    most = draw(st.one_of(st.just(LONGEST), st.integers(least, 12)))
    return Bands(draw(ranges), draw(st.sampled_from(("every", "first"))), lead, pieces, take, places, least, most)


@st.composite
def schedules(draw: Any) -> Schedule:
    operand, c = draw(st.sampled_from(("f32", "bf16", "f16", "e4m3"))), draw(st.booleans())
    two = tuple(draw(kernels(name, operand, c)) for name in ("x", "y"))
    regions = (Region("x", draw(bands()), draw(bands())), Region("y", rest=True))
    d = draw(st.sampled_from(("f32", "bf16")))
    return Schedule(operand, operand, d, SCOPE, two, regions, "f32" if c else None)


def operands(rng: np.random.Generator, fmt: formats.Format, shape: tuple[int, ...]) -> Any:
    """Mostly numbers near 1, some of them any code."""
    codes = rng.integers(0, 1 << fmt.container_bits, shape, np.uint64)
    near = fmt.one + rng.integers(-3 << max(fmt.fraction_bits - 1, 0), 1 << fmt.fraction_bits, shape)
    near |= fmt.sign_mask * (rng.random(shape) < 0.5)
    return np.where(rng.random(shape) < 0.02, codes.astype(np.int64), near).astype(fmt.dtype)
