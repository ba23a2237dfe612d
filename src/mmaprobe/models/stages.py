"""The NumPy interpreter of the datapath record: readable, any width, exact.

It follows ``docs/datapath.md`` section by section, each stage over whole
arrays of vectors.  Everything is integer arithmetic; magnitudes that do not
fit in 61 bits are Python integers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.errors import UsageError
from mmaprobe.formats import Format
from mmaprobe.models.nodes import Step, form_products, run
from mmaprobe.models.numbers import Numbers, conditioned, read_operands, zeros
from mmaprobe.models.parts import parts_of
from mmaprobe.models.rounding import RandomBits, encode
from mmaprobe.models.special import Bools, NanRule, Nans
from mmaprobe.models.trace import Trace
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import Datapath, Encode, Operand
from mmaprobe.parameters.rewrite import explicit

CHUNK = 1 << 16
"""Lanes evaluated at a time: few enough for the arrays to stay in the cache."""


def evaluate(datapath: Datapath, vectors: Batch, trace: Trace | None = None) -> Bits:
    """d (n,) of the vectors a (n, K), b (n, K), c (n,), scale_* (n, K/S), random (n,), as bit patterns.

    The rule is ``docs/datapath.md``.  ``trace`` notes every stage; it takes a
    single vector.  Raises UsageError where an operand is missing or of the
    wrong shape.
    """
    _check(datapath, vectors, trace)
    datapath = explicit(datapath)
    d = np.empty(vectors.size, formats.get(datapath.d).dtype)
    chunk = max(1, min(1 << 13, CHUNK // datapath.k))
    for start in range(0, vectors.size, chunk):
        d[start : start + chunk] = _evaluate(datapath, vectors.slice(start, start + chunk), trace)
    return d


def _check(datapath: Datapath, vectors: Batch, trace: Trace | None) -> None:
    n, k = vectors.size, datapath.k
    shapes: dict[str, tuple[int, ...]] = {"a": (n, k), "b": (n, k)}
    if datapath.c is not None:
        shapes["c"] = (n,)
    if datapath.scale is not None:
        shapes["scale_a"] = shapes["scale_b"] = (n, k // datapath.scale.size)
    if datapath.random is not None:
        shapes["random"] = (n,)
    given = {name: value.shape for name, value in vectors.items()}
    for name in sorted(shapes.keys() | given.keys()):
        if shapes.get(name) != given.get(name):
            raise UsageError(
                f"operand {name}: this datapath takes {shapes.get(name, 'none')}, got {given.get(name, 'none')}"
            )
    if trace is not None and n != 1:
        raise UsageError(f"a trace follows one vector, got {n}")


def _evaluate(datapath: Datapath, vectors: Batch, trace: Trace | None) -> Bits:
    d = formats.get(datapath.d)
    rule = NanRule(datapath.special, d)
    a = read_operands(formats.get(datapath.a), vectors.a, datapath.operand_a, rule)
    b = read_operands(formats.get(datapath.b), vectors.b, datapath.operand_b, rule)
    accumulator = zeros(vectors.size, rule)
    if datapath.c is not None and vectors.c is not None:
        accumulator = read_operands(formats.get(datapath.c), vectors.c, datapath.operand_c, rule)
    scales = _scales(datapath, vectors, rule)
    random = RandomBits.of(datapath, vectors)
    root: Encode = datapath.tree.to  # type: ignore[union-attr, assignment]
    codes = rule.start_codes(
        formats.get(datapath.c) if datapath.c else None, _conditioned_c(datapath, vectors), vectors.size
    )
    factors = (a, b) if datapath.product.split is None else parts_of(a, b, datapath.product.split, rule)
    for index, products in enumerate(datapath.products):
        step = _step(datapath, rule, products, factors, scales, accumulator, random, trace)
        if trace is not None:
            trace.step = index
            trace.record(
                "operands", numbers=products, a=step.a, b=step.b, scales=scales, accumulator=accumulator,
                products=step.products,
            )  # fmt: skip
        accumulator = run(datapath.tree, step, root)
        if rule.by_cause:
            codes = _settled(step, codes)
    done = encode(accumulator, datapath.result or Encode(format=datapath.d), rule, random)
    code = done.bits.astype(np.uint64)
    nan = done.numbers.nan
    if rule.by_cause:  # a NaN that the last conversion makes is none of the steps'
        nan = Nans(nan.flag, np.where(accumulator.nan.flag, codes, np.uint64(rule.special.code)))
    code = np.where(nan.flag, rule.result_codes(nan, _operands(datapath, vectors)), code)
    if trace is not None:
        trace.record("result", bits=code, value=done.numbers, nan=nan.flag)
    return code.astype(d.dtype)


def _conditioned_c(datapath: Datapath, vectors: Batch) -> Bits | None:
    if datapath.c is None or vectors.c is None:
        return None
    return conditioned(formats.get(datapath.c), vectors.c, datapath.operand_c)


def _settled(step: Step, codes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The codes of a step's NaN results by their causes."""
    p = step.products
    up, down = ((p.infinite & side).any(-1) for side in (~p.negative, p.negative))
    invalid: Bools = np.asarray(p.nan.flag.any(-1) | (up & down))
    factors: Bools = np.asarray((step.a.nan.flag | step.b.nan.flag).any(-1))
    return step.rule.settled_codes(step.accumulator.nan, codes, factors, invalid)


def _scales(datapath: Datapath, vectors: Batch, rule: NanRule) -> tuple[Numbers, ...]:
    if datapath.scale is None or vectors.scale_a is None or vectors.scale_b is None:
        return ()
    fmt = formats.get(datapath.scale.format)
    return tuple(read_operands(fmt, bits, Operand(), rule) for bits in (vectors.scale_a, vectors.scale_b))


def _step(
    datapath: Datapath,
    rule: NanRule,
    numbers: tuple[int, ...],
    factors: tuple[Numbers, Numbers],
    scales: tuple[Numbers, ...],
    accumulator: Numbers,
    random: RandomBits | None,
    trace: Trace | None,
) -> Step:
    """The products of these numbers, formed."""
    a, b = (factor.take(numbers) for factor in factors)
    per_lane: tuple[Numbers, ...] = ()
    if datapath.scale is not None and datapath.scale.where == "product":
        size = datapath.scale.size
        per_lane = tuple(scale.take([lane // size for lane in numbers]) for scale in scales)
    products = form_products(a, b, per_lane, datapath.product, rule, random)
    return Step(datapath, rule, numbers, a, b, products, accumulator, scales, random, trace)


def _operands(datapath: Datapath, vectors: Batch) -> dict[str, tuple[Format, Bits]]:
    """The bits behind each name that ``special.priority`` may hold."""
    if datapath.special.nan != "global":
        return {}
    of_a, of_b = formats.get(datapath.a), formats.get(datapath.b)
    a, b = conditioned(of_a, vectors.a, datapath.operand_a), conditioned(of_b, vectors.b, datapath.operand_b)
    found = {f"a{k}": (of_a, a[:, k]) for k in range(datapath.k)}
    found |= {f"b{k}": (of_b, b[:, k]) for k in range(datapath.k)}
    c = _conditioned_c(datapath, vectors)
    if datapath.c is not None and c is not None:
        found["c"] = (formats.get(datapath.c), c)
    return found
