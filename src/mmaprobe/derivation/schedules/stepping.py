"""The kernel of a class of elements whose steps are primitives: read, carried to every K, told apart, and proven."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from mmaprobe.derivation.schedules.answers import ClassAnswers
from mmaprobe.derivation.schedules.candidates import Candidate, candidates
from mmaprobe.derivation.schedules.carrying import Carried
from mmaprobe.derivation.schedules.certificate import FieldNeighbour, alike_order, neighbours, without_effect
from mmaprobe.derivation.schedules.pairs import ClassView
from mmaprobe.derivation.schedules.search import OrderRead
from mmaprobe.derivation.schedules.step_values import (
    SIDE,
    ask_one,
    ask_values,
    drawn,
    left_by_values,
    refuted_by_values,
)
from mmaprobe.derivation.schedules.steps import StepSearch, keeping, tree_of
from mmaprobe.derivation.schedules.values import FIRSTS, Formats
from mmaprobe.equivalence.same_function import same_function
from mmaprobe.errors import UsageError
from mmaprobe.parameters.chaining import follows_another, repeated
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.schedule import GemmKernel, GemmStep
from mmaprobe.probing.gemm.elements import EqualRows


@dataclass
class Stepped:
    """The kernel, its readings and what became of its neighbours; without a kernel ``why`` says what was read."""

    kernel: GemmKernel | None = None
    readings: list[OrderRead] = field(default_factory=list)
    neighbours: list[FieldNeighbour] = field(default_factory=list)
    why: str = ""


def holds_at_edges(kernel: GemmKernel, view: ClassView, formats: Formats, k: int, rng: np.random.Generator) -> bool:
    """Whether a kernel of single products gives the bits of tiny values, by which primitives that add one product after
    the other are told from it; True where there are none."""
    answers = ClassAnswers(view, formats)
    if view.heard.tiny:
        answers.add(view.heard.tiny)
    else:
        asked = ask_one(answers, drawn(view.calls, "tiny", (SIDE, SIDE, k), rng))
        view.heard.tiny += [] if asked is None else [asked]
    missed = answers.miss(kernel)
    return not (missed and any(candidates(formats.a, formats.b, to) for to in formats.sums))


def find_stepped(
    view: ClassView, k: int, formats: Formats, asked: Sequence[EqualRows], rng: np.random.Generator
) -> Stepped:
    """What is found of a class that no kernel of single products computes."""
    known = [each for to in formats.sums for each in candidates(formats.a, formats.b, to)]
    if not known:
        return Stepped(why=f"no primitive that ships adds products of {formats.a} and {formats.b}")
    answers = ClassAnswers(view, formats)
    answers.add_rows(asked)
    search = StepSearch(view, known, answers, formats.sums[0])
    view.calls.say(f"steps of primitives at K = {k}")
    first = search.read_order(view, k, formats.sums[0], rng)
    if not first.kernels:
        return Stepped(readings=[first], why=_unknown(search, formats))
    view.calls.say("steps of primitives at other K")
    first_of_each = replace(first, kernels=_representatives(first.kernels))
    carried = Carried(view, first_of_each, formats.sums[0], rng, _Again(search))
    with keeping(view, answers):
        carried.settle()
    made = Stepped(readings=carried.readings)
    living = [each for rule in _plainest(carried.living) for each in _variants(rule, first.kernels, formats)]
    view.calls.say("which primitive a step is")
    ask_values(answers, k, max((each.step.width for each in living), default=1), rng)
    left = left_by_values(living, answers, k, rng)
    if not left:
        made.why = f"{_unknown(search, formats)}; {len(first.kernels)} that give its sizes give other values"
        return made
    made.kernel = left[0]
    made.neighbours = [*_others(left, known, answers, k, rng), *_certified(left[0], answers, made.readings, k, rng)]
    return made


@dataclass(frozen=True)
class _Again:
    """Reads a class at another K: of kernels that deal out steps alike one each."""

    search: StepSearch

    def __call__(self, view: ClassView, k: int, fmt: str, rng: np.random.Generator) -> OrderRead:
        found = self.search.read_order(view, k, fmt, rng)
        return replace(found, kernels=_representatives(found.kernels))


def _representatives(kernels: Sequence[GemmKernel]) -> tuple[GemmKernel, ...]:
    """Of kernels that deal out steps of one width alike one each."""
    return tuple({(each.ranges, _dealing(each)): each for each in reversed(kernels)}.values())


def _dealing(kernel: GemmKernel) -> tuple[object, ...]:
    own = kernel.accumulators
    return (
        kernel.step.width, kernel.join.order, kernel.promotion, own.count, own.run, own.block, own.join, own.rest,
    )  # fmt: skip


def _plainest(living: Sequence[GemmKernel]) -> list[GemmKernel]:
    """Of kernels that are alike at every K that was compared the plainest, for each width of steps."""
    return list({each.step.width: each for each in reversed(living)}.values())


def _variants(rule: GemmKernel, found: Sequence[GemmKernel], formats: Formats) -> Iterator[GemmKernel]:
    """The rule with every primitive and tail that fits its dealing, every format and start of partial sums."""
    key = _dealing(rule)
    for each in found:
        if _dealing(each)[0] != key[0] or _dealing(each)[3:] != key[3:]:
            continue
        for to in formats.sums:
            for start in FIRSTS:
                for tail in ("zeros", "scalar"):
                    join = replace(rule.join, format=to, start=start)  # type: ignore[arg-type]
                    own = replace(rule.accumulators, format=each.accumulators.format)
                    yield replace(rule, step=each.step, join=join, accumulators=own, tail=tail)


def _unknown(search: StepSearch, formats: Formats) -> str:
    """What was read where no primitive fits."""
    what = f"{formats.a} x {formats.b}"
    reads = [(read, *read.dealt[0]) for read in search.read if read.dealt]
    if not reads:
        read = search.read[0]
        lanes = np.unique(np.r_[read.pairs.p, read.pairs.q])[:16]
        return f"no steps of one width are seen; lanes meet as {tree_of(read.pairs, lanes)}"
    read, width, kernel = reads[0]
    own = kernel.accumulators
    dealt = "one accumulator" if own.count == 1 else f"{own.count} accumulators"
    tree = tree_of(read.pairs, np.arange(min(2 * width, read.k)))
    return f"steps of {width} lanes in {dealt}, and no primitive of {what} that ships is one: lanes meet as {tree}"


def _others(
    left: Sequence[GemmKernel], known: Sequence[Candidate], answers: ClassAnswers, k: int, rng: np.random.Generator
) -> list[FieldNeighbour]:
    """A verdict on every other primitive: refuted, the same function, or what is left."""
    kernel, found = left[0], list[FieldNeighbour]()
    names = next(
        each.names
        for each in known
        if each.step.primitive == kernel.step.primitive and each.step.architecture == kernel.step.architecture
    )
    found += [FieldNeighbour("step.primitive", name, "equal", "the same datapath") for name in names[1:]]
    for each in known:
        other = with_step(kernel, each)
        if other is None or each.datapath == kernel.step.datapath():
            continue
        why = refuted_by_values(kernel, other, answers, k, rng)
        same = "" if why else _same(kernel.step.datapath(), each.datapath)
        verdict = "refuted" if why else "equal" if same else "open"
        found.append(FieldNeighbour("step.primitive", str(each), verdict, why or same))
    for other in left[1:]:
        if not any(each.value.startswith(other.step.primitive) for each in found) and other.step != kernel.step:
            found.append(FieldNeighbour("step.primitive", other.step.primitive, "open", ""))
    return found


def with_step(kernel: GemmKernel, other: Candidate) -> GemmKernel | None:
    """The kernel with another primitive, whose steps take the place of a whole number of its own, or the other way
    round; None where they do not fit each other."""
    width, own, new = kernel.step.width, kernel.accumulators, other.datapath.k
    order = kernel.step.order if new == width else ()
    run, block, every = (
        each * width for each in (own.run, own.block, kernel.promotion.every if kernel.promotion else new)
    )
    if (own.count > 1 and run % new) or (own.block > 1 and block % new) or every % new:
        return None
    dealt = {"run": max(1, run // new) if own.count > 1 else own.run}
    dealt["block"] = block // new if own.block > 1 else 1
    try:
        return replace(
            kernel,
            step=replace(other.step, order=order),
            accumulators=replace(own, format=other.datapath.d, **dealt),  # type: ignore[arg-type]
            promotion=kernel.promotion and replace(kernel.promotion, every=every // new),
        )
    except UsageError:
        return None


def _same(one: Datapath, other: Datapath) -> str:
    """Why two steps are one function of as many lanes."""
    short, long = sorted((one, other), key=lambda each: each.k)
    if long.k % short.k or (short.k < long.k and not follows_another(short)):
        return ""
    times = long.k // short.k
    if same_function(repeated(short, times) if times > 1 else short, long) is None:
        return ""
    return "provably the same function" + (f" as {times} of its steps" if times > 1 else "")


def _certified(
    kernel: GemmKernel, answers: ClassAnswers, readings: Sequence[OrderRead], k: int, rng: np.random.Generator
) -> list[FieldNeighbour]:
    """The verdict on every neighbour of the other fields."""
    found = []
    for name, value, other in _moved(kernel, answers.formats):
        why = refuted_by_values(kernel, other, answers, k, rng)
        place, _, part = name.partition(".")
        reason = (
            "" if why else without_effect(kernel, place, part, answers.formats) or alike_order(kernel, other, readings)
        )
        reason = reason or ("" if why else _symmetric(kernel, other))
        verdict = "refuted" if why else "equal" if reason else "open"
        found.append(FieldNeighbour(name, value, verdict, why or reason))
    return found


def _moved(kernel: GemmKernel, formats: Formats) -> Iterator[tuple[str, str, GemmKernel]]:
    """Field, value and kernel of each neighbour: of the fields of any kernel, of the order of lanes and of the tail."""
    for place, name, value, other in neighbours(kernel, formats.sums):
        if (place, name) != ("accumulators", "format"):  # that of the primitive
            yield f"{place}.{name}", str(value), other
    for by in ("fma", "multiply_add"):
        if kernel.tail == "zeros":
            run = (
                {"run": kernel.accumulators.run * kernel.step.width, "block": 1}
                if kernel.accumulators.count > 1
                else {}
            )
            own = replace(kernel.accumulators, **run)  # type: ignore[arg-type]
            promotion = kernel.promotion and replace(kernel.promotion, every=kernel.promotion.every * kernel.step.width)
            if own.rest == "first":
                yield "step.by", by, replace(kernel, step=GemmStep(by), accumulators=own, promotion=promotion)
    tail = "scalar" if kernel.tail == "zeros" else "zeros"
    yield "tail", tail, replace(kernel, tail=tail)  # type: ignore[arg-type]
    width = kernel.step.width
    lanes = kernel.step.order or tuple(range(width))
    for x, y in pairwise(range(width)):
        order = list(lanes)
        order[x], order[y] = order[y], order[x]
        yield (
            "step.order",
            f"lanes {x} and {y} exchanged",
            replace(kernel, step=replace(kernel.step, order=tuple(order))),
        )


def _symmetric(kernel: GemmKernel, other: GemmKernel) -> str:
    """Why another order of lanes is none: both are added at once."""
    one, two = (_reordered(each.step) for each in (kernel, other))
    rest = replace(other, step=kernel.step) == kernel
    return "these lanes are of one sum" if rest and one is not None and _same(one, two or one) else ""


def _reordered(step: GemmStep) -> Datapath | None:
    """The datapath of a step with its lanes in order."""
    path = step.datapath()
    if not step.order:
        return path
    lanes = tuple(step.order[lane] for part in path.steps for lane in part)
    return replace(path, order=None if lanes == tuple(range(path.k)) else lanes)
