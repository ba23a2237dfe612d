"""How fast an instruction's model is here: dot products a second, and their share of what the machine could do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from mmaprobe import _native, formats
from mmaprobe.catalog import lookup
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.modifiers import changes_batch
from mmaprobe.devices.model import open_model
from mmaprobe.errors import UsageError
from mmaprobe.generators import families_for, generate, generate_tiles
from mmaprobe.generators.domain import domain
from mmaprobe.generators.families import FAMILIES, stream_number
from mmaprobe.generators.tiles import has_tiles
from mmaprobe.models.kernels import FUSED, GROUPED, KERNELS, LATE_C, SHORT_SUMS, TWO_STAGE, kernel
from mmaprobe.models.model import run_tiles, run_vectors
from mmaprobe.models.program import Program, program
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.validation.native import Pipeline, has_kernel, isa

STRIP = 16
"""Vectors side by side in the engine's layout (``csrc/cpu/kernels``)."""
SECONDS = 0.1
"""Seconds of thread time that a measurement takes."""
LAYOUT_RESULTS = 1 << 13
"""Results of one call on the engine's layout: operands and results stay in the second cache."""
RESULTS = 1 << 17
"""Results of one Python call, and of one native comparison."""
SMOKE_RESULTS = 1 << 10
"""Results of one call where it is only to be seen that it runs."""


class Work(NamedTuple):
    """Operations for 16 results: of a mix, so many a term; others a step, a result, and an item that one result has for
    itself (what the results of a tile share is not counted)."""

    mix: str
    term: float
    result: float
    step: float = 0
    item: float = 0


ROOFS = {
    FUSED: Work("fused", 1, 45),
    GROUPED: Work("dots", 0.25, 115),
    TWO_STAGE: Work("other", 9, 55),
    SHORT_SUMS: Work("other", 7, 0, step=18, item=8),
    LATE_C: Work("fused", 1, 2 * 45),
}
"""What a kernel cannot do without.

Where C joins last it is that of the two fused sums that the instruction is lowered to.
Of short sums a term is two labels added, their largest, a product, its power, its scaling, a cut and a sum; a step
takes C apart, aligns, cuts and adds it, and rounds, scales and tests the sum; an item is converted, and taken apart
into its label and a significand.  Counted by hand; chains and trees of the processor's own operations are bound by
memory, or by what it takes for a subnormal result, and have none.
"""
WIDE_EXPONENTS = 8
"""Exponent bits from which on a fused sum's terms outgrow floating point: the mix is then that of integers."""


@dataclass(frozen=True)
class Speed:
    """Million dot products a second of one form; None where there is no such path, or no roof is known.

    ``engine``: on the engine's own layout; ``call``: the model called with
    row-major arrays; ``compared``: generated, evaluated and compared with
    answers.  ``share`` of the roof is the engine's.
    """

    instruction: str
    formats: str
    k: int
    kernel: str
    roof: float | None
    engine: float | None
    call: float
    compared: float | None

    @property
    def share(self) -> float | None:
        """Engine over roof."""
        return self.engine / self.roof if self.engine and self.roof else None


def forms(architecture: str, glob: str = "*") -> Iterator[tuple[Instruction, Datapath]]:
    """Of the dense instructions that a glob names, one of every (formats, K, datapath) that the model has."""
    device = open_model(architecture)
    seen = set()
    for made in lookup.match(architecture, glob):
        if made.chunk or not device.supports(made) or changes_batch(made):
            continue
        path = device.datapath(made)
        if path not in seen:
            seen.add(path)
            yield made, path


def measure(made: Instruction, path: Datapath, threads: int = 1, smoke: bool = False) -> Speed:
    """The speed of one form: the best of several calls, by thread time (by the clock where there are several threads);
    ``smoke``: of one call with little."""
    form = TimedForm(made, path, "clustered" if "clustered" in families_for(made) else "uniform")
    clock = Stopwatch(threads, 0.0 if smoke else SECONDS)
    results = SMOKE_RESULTS if smoke else RESULTS
    roof, names = roof_rate(path, made.m * made.n > 1), (made.a, made.b, made.c, made.d, made.scale)
    engine = compared = None
    if form.words is not None and has_kernel(form.words):
        engine = clock.rate(*form.engine_call(SMOKE_RESULTS if smoke else LAYOUT_RESULTS))
        compared = clock.rate(*form.compared_call(results))
    return Speed(
        made.id, " ".join(filter(None, names)), path.k, KERNELS[kernel(path)].lower(), roof and roof * threads, engine,
        clock.rate(*form.python_call(results)), compared,
    )  # fmt: skip


Call = tuple[Callable[[], object], int]


@dataclass(frozen=True)
class TimedForm:
    """One instruction by one datapath; its calls come with the number of their results."""

    made: Instruction
    path: Datapath
    family: str

    @property
    def words(self) -> Program | None:
        """The engine's program."""
        return program(self.path)

    def _count(self, results: int) -> tuple[int, int, int, int]:
        """(tiles or vectors, m, n, results): n = 0 for units without tiles; of several blocks each is a tile."""
        m, n = self.made.m, self.made.n
        if not has_tiles(self.made, windows=True):
            return results, 1, 0, results
        tiles = max(1, results // (m * n))
        return tiles, m, n, tiles * m * n

    def engine_call(self, results: int) -> Call:
        """The kernel on operands that lie in its layout."""
        count, m, n, made = self._count(results)
        t, number = domain(self.made), FAMILIES.index(self.family)
        strips = -(-m // STRIP) * STRIP if n else STRIP
        units, columns = (count, n) if n else (-(-count // STRIP), STRIP)
        places = strips * columns if n else STRIP
        sizes = {"a": strips * t.space.live, "b": columns * t.space.k, "c": places,
                 "scale_a": strips * t.space.groups, "scale_b": columns * t.space.groups}  # fmt: skip
        kinds = self.made.formats()
        operands = [
            np.zeros(units * size, kinds[name].dtype) if name in kinds else None for name, size in sizes.items()
        ]
        _native.generate_layout(t.packed(), number, stream_number(self.family), 0, 0, count, m, n, operands)
        out, words, build = np.zeros(units * places, kinds["d"].dtype), self.words, isa()
        assert words is not None
        turns = max(1, RESULTS // made) if results == LAYOUT_RESULTS else 1

        def call() -> None:
            for _ in range(turns):
                _native.engine_evaluate_layout(words, operands, out, units, m, n, build)

        return call, turns * made

    def python_call(self, results: int) -> Call:
        """The model, called with row-major arrays."""
        count, _, n, made = self._count(results)
        if n == 0:
            vectors = generate(self.made, self.family, 0, 0, count)
            return lambda: run_vectors(self.made, self.path, vectors), made
        tiles = generate_tiles(self.made, self.family, 0, 0, count)
        return lambda: run_tiles(self.made, self.path, tiles), made

    def compared_call(self, results: int) -> Call:
        """Generated, evaluated and compared with the right answers."""
        count, _, n, made = self._count(results)
        call, _ = self.python_call(results)
        answers = np.ascontiguousarray(call())
        words = self.words
        assert words is not None
        native = Pipeline(self.made, (words,), 0, True)
        return lambda: native.compare(self.family, 0, 0, made, count if n else 0, answers, "bits", 1), made


@dataclass(frozen=True)
class Stopwatch:
    """Measures calls that ``threads`` threads make at once, for ``seconds`` in all."""

    threads: int
    seconds: float

    def rate(self, call: Callable[[], object], results: int) -> float:
        """Million results a second of the best of several calls."""
        with ThreadPoolExecutor(self.threads) as pool:
            best, spent = self._once(call, pool), 0.0
            while spent < self.seconds:
                took = self._once(call, pool)
                best, spent = min(best, took), spent + took
        return results * self.threads / max(best, 1e-9) / 1e6

    def _once(self, call: Callable[[], object], pool: ThreadPoolExecutor) -> float:
        if self.threads == 1:
            start = time.thread_time()
            call()
            return time.thread_time() - start
        start = time.perf_counter()
        for done in [pool.submit(call) for _ in range(self.threads)]:
            done.result()
        return time.perf_counter() - start


def roof_rate(path: Datapath, tiled: bool = True) -> float | None:
    """Million dot products a second of one thread at the roof; ``tiled``: the results of a tile share their items."""
    work = ROOFS.get(kernel(path))
    if work is None:
        return None
    wide = min(formats.get(name).exponent_bits for name in (path.a, path.b)) >= WIDE_EXPONENTS
    times = _roof(isa())
    of_terms = times["lane" if work.mix == "fused" and wide else work.mix]
    others = len(path.steps) * work.step + work.result + (0 if tiled else 2 * path.k * work.item)
    return 16 / (path.k * work.term * of_terms + others * times["other"]) / 1e6


@lru_cache(maxsize=4)
def _roof(build: str) -> dict[str, float]:
    try:
        return _native.roof(build)
    except ValueError as error:
        raise UsageError(f"engine: {error}") from None


def machine() -> dict[str, str]:
    """What the figures hold for: processor, engine build, compiler."""
    identity = dict(_native.cpu_identity())
    return {
        "processor": identity.get("model_name", "unknown"),
        "build": isa() or _native.engine_builds()[-1],
        "compiler": _native.compiler,
    }
