"""Stream vectors through a device under test and a reference and assert that every bit agrees."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mmaprobe import _native, formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device, run_blocks, run_vectors, serial
from mmaprobe.devices.child import no_children
from mmaprobe.devices.gpu.driver import ENDS_ALL
from mmaprobe.devices.replay import Replay
from mmaprobe.errors import DeviceError, NotHereError, UsageError, brief, near
from mmaprobe.evidence.records import Mismatch
from mmaprobe.generators import MIX, Recipe, families_for, generate, generate_tiles, plan
from mmaprobe.generators.tiles import vector_at
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.options import FLAG, FUNCTION, Rule, checked, one_of, or_none, whole
from mmaprobe.validation.batches import CHUNK, Chunk, alone, end_of, even, small_batches, varied
from mmaprobe.validation.examine import Example, examine
from mmaprobe.validation.fused import ALONE, LEAST, FusedComparison, UnsteadyLaunchError, fused, instead
from mmaprobe.validation.native import Pipeline, pipeline
from mmaprobe.validation.summary import Batches, FamilyCount, Summary

NATIVE_CHUNK = 1 << 19
"""Vectors at a time where they never leave native code, which is fast enough to ask ``stop`` as often."""
THREADS = 2
"""Threads that make, run and compare batches, where nobody says how many."""
EXAMPLES = 4
"""Mismatches that are kept."""
MOST = 10**18
"""Vectors of one validation: an index of theirs fits 64 bits in any order of tiles."""
RECORDED = "recorded"
MOST_THREADS = 1024
"""Threads that may be asked for."""
OPTIONS: dict[str, Rule] = {
    "nan": one_of("bits", "any"), "threads": whole(1, MOST_THREADS), "progress": or_none(FUNCTION),
    "stop": or_none(FUNCTION), "said": or_none(FUNCTION), "campaign": FLAG, "first": whole(0, MOST),
    "examined": FLAG,
}  # fmt: skip
"""Options of ``validate`` that go by name alone."""

Progress = Callable[[int], None]
Stop = Callable[[], bool]
Ended = Literal["", "stopped", "interrupted"]


@dataclass
class _Job:
    """One validation under way: what its worker threads share."""

    dut: Device
    ref: Device
    instruction: Instruction
    seed: int
    nan: str
    said: Callable[[str], None] | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    recorded: Batch | None = None
    native: Pipeline | None = None
    fused: FusedComparison | None = None
    fell_back: str = ""
    undone: list[Chunk] = field(default_factory=list)
    counts: dict[str, FamilyCount] = field(default_factory=dict)
    twice: dict[Chunk, int] = field(default_factory=dict)  # mismatches of what will be asked again
    batches: Batches = field(default_factory=Batches)
    examples: list[tuple[str, int, list[Example]]] = field(default_factory=list)

    def fall_back(self, why: str) -> None:
        """The fused way is not taken from here on; ``said`` is told why, once."""
        if not self.fell_back:
            self.fell_back = instead(why)
            if self.said is not None:
                self.said(self.fell_back)

    def answer(self, device: Device, vectors: Batch) -> Bits:
        """d of separate vectors."""
        return run_vectors(device, self.instruction, vectors)

    def answer_tiles(self, device: Device, batch: Batch) -> Bits:
        """D of whole tiles."""
        return run_blocks(device, self.instruction, batch)

    def differences(self, x: Bits, y: Bits) -> tuple[int, NDArray[np.int64]]:
        """How many items differ, and the indices of the first few."""
        x, y = np.ascontiguousarray(x.reshape(-1)), np.ascontiguousarray(y.reshape(-1))
        count, where = _native.compare(x, y, EXAMPLES)
        if count == 0 or self.nan == "bits":
            return int(count), np.asarray(where, dtype=np.int64)
        indices = np.flatnonzero(self.unequal(x, y))
        return int(indices.size), indices[:EXAMPLES]

    def unequal(self, x: Bits, y: Bits) -> NDArray[np.bool_]:
        """Where two answers differ; two NaNs do not under ``nan="any"``."""
        differ: NDArray[np.bool_] = x != y
        if self.nan == "any":
            fmt = formats.get(self.instruction.d)
            differ &= ~(formats.is_nan(fmt, x) & formats.is_nan(fmt, y))
        return differ


def check_vectors(vectors: int) -> None:
    """UsageError for a number of vectors that cannot be compared."""
    if isinstance(vectors, bool) or not isinstance(vectors, (int, np.integer)):
        raise UsageError(f"vectors is {brief(vectors)}; it must be a whole number")
    if not 0 <= vectors <= MOST:
        raise UsageError(f"vectors is {brief(vectors)}; it must not be negative, nor above {MOST:,}")


def check_options(vectors: int, **options: object) -> None:
    """UsageError for a number of vectors that is none, and for what ``OPTIONS`` does not allow."""
    check_vectors(vectors)
    checked("validate", options, OPTIONS)


def validate(
    dut: Device,
    ref: Device,
    instruction: Instruction,
    vectors: int = 1_000_000,
    seed: int = 0,
    generators: Sequence[str] | None = None,
    *,
    nan: str = "bits",
    threads: int = THREADS,
    progress: Progress | None = None,
    stop: Stop | None = None,
    said: Callable[[str], None] | None = None,
    campaign: bool = True,
    first: int = 0,
    examined: bool = True,
) -> Summary:
    """Run ``vectors`` vectors of the named generator families through both devices and compare bits.

    Families default to all that fit the instruction, in the default mix.  A
    mismatch is retested, shrunk and kept as an example.  ``nan="any"`` lets two
    NaN results count as equal.  ``stop`` is asked between chunks; Ctrl-C ends
    the run with what was compared so far (``Summary.interrupted``).  ``first``:
    the vectors that follow so many of the same mix.  ``examined``: a few mismatches are; else none is asked again.

    A fused ``campaign`` that fails is no failure of the instruction's: what it has not compared is compared the
    ordinary way, ``said`` is told why at once, and ``Summary.notes`` keep it.

    Raises UsageError for an unknown family or option, DeviceError when a device fails.
    """
    check_options(
        vectors,
        nan=nan,
        threads=threads,
        progress=progress,
        stop=stop,
        said=said,
        campaign=campaign,
        first=first,
        examined=examined,
    )
    job = _Job(serial(dut), serial(ref), instruction, seed, nan, said, recorded=_recording(dut, ref, instruction))
    if job.recorded is None:
        job.native = pipeline(dut, ref, instruction)
        if campaign and nan == "bits" and vectors >= LEAST:
            job.fused = fused(dut, ref, instruction, job.fall_back)
    begin = time.monotonic()
    chunks = _chunks(job, vectors, generators, first)
    ended = _drain(job, chunks, 1 if job.fused else threads, progress, stop)
    if job.undone and not ended:
        ended = _drain(job, _ordinary(job), threads, progress, stop)
    mismatches = sum(count.mismatches for count in job.counts.values())
    return Summary(
        instruction=instruction.id,
        dut=dut.name,
        ref=ref.name,
        seed=seed,
        planned=vectors,
        vectors=sum(count.vectors for count in job.counts.values()),
        mismatches=mismatches,
        families=tuple(sorted(job.counts.items())),
        examples=tuple(_examined(job)) if examined else (),
        seconds=time.monotonic() - begin,
        nan=nan,
        interrupted=bool(ended),
        stopped=ended == "stopped",
        screening=job.fused.screening() if job.fused and job.fused.vectors.any() else None,
        notes=(job.fell_back,) if job.fell_back else (),
        batches=job.batches,
    )


def check_generators(instruction: Instruction, generators: Sequence[str]) -> None:
    """UsageError for a family that makes no vectors of the instruction."""
    known = families_for(instruction)
    for name in generators:
        if name not in known:
            raise UsageError(f"no generator {name!r} for {instruction.id}{near(name, known)}")


def _recording(dut: Device, ref: Device, instruction: Instruction) -> Batch | None:
    """The recorded inputs where one of the devices is a recording: no other device chooses its own vectors."""
    return next((each.recorded(instruction)[0] for each in (dut, ref) if type(each) is Replay), None)


def _chunks(job: _Job, vectors: int, generators: Sequence[str] | None, first: int) -> Iterator[Chunk]:
    instruction = job.instruction
    if job.recorded is not None:
        count = min(vectors, max(job.recorded.size - first, 0))
        return alone(instruction, RECORDED, first, count, small_batches(count, 1), job.seed)
    if vectors == 0:
        return iter(())
    check_generators(instruction, generators or ())
    mix = {name: MIX[name] for name in generators} if generators else None
    shares = plan(instruction, vectors, mix, first)
    small = small_batches(vectors, len(shares))
    return chain.from_iterable(_family(job, *each, small) for each in shares)


def _family(job: _Job, family: str, start: int, count: int, small: int) -> Iterator[Chunk]:
    """The chunks of one family: where there is a fused kernel, a few of the ordinary way and then whole tiles."""
    made, here = job.instruction, job.fused
    tiles = max(count - ALONE, 0) // here.outputs if here else 0
    for chunk in _pieces(job, family, start, count - tiles * made.m * made.n, small):
        start = max(start, end_of(made, chunk))
        yield chunk
    while here and tiles:
        launch = min(tiles, here.tiles())
        yield Chunk(family, start, launch * here.outputs, launch, fused=True)
        start, tiles = start + launch * max(made.m, made.n), tiles - launch


def _ordinary(job: _Job) -> Iterator[Chunk]:
    """The whole tiles that the fused kernel was to compare and did not."""
    made, outputs = job.instruction, job.instruction.m * job.instruction.n
    most = max(1, CHUNK // outputs)
    for chunk in job.undone:
        for done in range(0, chunk.tiles, most):
            here = min(most, chunk.tiles - done)
            yield Chunk(chunk.family, chunk.start + done * max(made.m, made.n), here * outputs, here)


def _pieces(job: _Job, family: str, start: int, count: int, small: int) -> Iterator[Chunk]:
    """Chunks of all sizes, some of them twice; of one size where two models never see a batch."""
    native = job.native
    if native is not None and native.asked is None:
        return even(job.instruction, family, start, count, NATIVE_CHUNK if native.fast else CHUNK)
    return varied(job.instruction, family, start, count, small, job.seed)


def _drain(job: _Job, chunks: Iterable[Chunk], threads: int, progress: Progress | None, stop: Stop | None) -> Ended:
    """Run the chunks on worker threads; what ended it early, if anything did."""
    waiting: set[Future[int]] = set()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for chunk in chunks:
                if stop is not None and stop():
                    break
                waiting.add(pool.submit(_run_chunk, job, chunk))
                if len(waiting) > 2 * threads:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    _collect(done, progress)
            else:
                _collect(waiting, progress)
                return ""
            _collect(waiting, progress)
            return "stopped"
        except BaseException as error:
            if not isinstance(error, KeyboardInterrupt):
                pool.shutdown(wait=True, cancel_futures=True)
                raise
            with no_children():
                pool.shutdown(wait=True, cancel_futures=True)
    return "interrupted"


def _collect(done: set[Future[int]], progress: Progress | None) -> None:
    for future in done:
        count = future.result()
        if progress is not None:
            progress(count)


def _run_chunk(job: _Job, chunk: Chunk) -> int:
    """How many vectors of a chunk were compared: all, or none where that was the fused kernel's, which fails."""
    found = _by_fused(job, chunk) if chunk.fused else _compare(job, chunk)
    if found is None:
        job.undone.append(chunk)
        return 0
    bad, where = found
    new = _counted(job, chunk, bad)
    if not new.mismatches:
        where = where[:0]
    examples = [(_tile_example if chunk.tiles else _example)(job, chunk, int(index)) for index in where[:EXAMPLES]]
    with job.lock:
        job.counts[chunk.family] = job.counts.get(chunk.family, FamilyCount()) + new
        if examples:
            job.examples.append((chunk.family, chunk.start, examples))
    return new.vectors


def _counted(job: _Job, chunk: Chunk, bad: int) -> FamilyCount:
    """What a chunk adds to its family: of one asked before only the mismatches that are more than they were."""
    with job.lock:
        before = job.twice.pop(chunk, None)
        if chunk.twice and before is None:
            job.twice[chunk] = bad
        if not chunk.fused and not (job.native and job.native.asked is None):
            job.batches += Batches(1, int(before is not None), chunk.count)
    if before is not None:
        return FamilyCount(0, max(bad - before, 0))
    own = chunk.version is not None
    return FamilyCount(chunk.count, bad, chunk.tiles if own else 0, chunk.count if own else 0)


def _by_fused(job: _Job, chunk: Chunk) -> tuple[int, NDArray[np.int64]] | None:
    """The same as ``_compare`` by the fused kernel; None where that fails, or failed before.

    ``ENDS_ALL`` and UnsteadyLaunchError where it is not the kernel that fails.
    """
    if job.fused is None or job.fell_back:
        return None
    try:
        return job.fused.compare(chunk.family, job.seed, chunk.start, chunk.tiles)
    except (*ENDS_ALL, UnsteadyLaunchError):
        raise
    except (DeviceError, NotHereError) as error:
        job.fall_back(str(error))
        return None


def _compare(job: _Job, chunk: Chunk) -> tuple[int, NDArray[np.int64]]:
    """How many results of a chunk differ, and the indices of the first few."""
    native = job.native
    if native is not None and native.asked is None:
        return _compare_native(job, native, chunk, None)
    vectors, answer = (_tiles(job, chunk), job.answer_tiles) if chunk.tiles else (_vectors(job, chunk), job.answer)
    if native is None:
        return job.differences(answer(job.dut, vectors), answer(job.ref, vectors))
    asked = (job.dut, job.ref)[native.asked or 0]
    return _compare_native(job, native, chunk, np.ascontiguousarray(answer(asked, vectors)))


def _compare_native(job: _Job, native: Pipeline, chunk: Chunk, answers: Bits | None) -> tuple[int, NDArray[np.int64]]:
    return native.compare(
        chunk.family, job.seed, chunk.start, chunk.count, chunk.tiles, answers, job.nan, EXAMPLES, chunk.version
    )


def _tiles(job: _Job, chunk: Chunk) -> Batch:
    return generate_tiles(job.instruction, chunk.family, job.seed, chunk.start, chunk.tiles, chunk.version)


def _vectors(job: _Job, chunk: Chunk) -> Batch:
    if job.recorded is not None:
        return job.recorded.slice(chunk.start, chunk.start + chunk.count)
    return generate(job.instruction, chunk.family, job.seed, chunk.start, chunk.count)


def _example(job: _Job, chunk: Chunk, index: int) -> Example:
    """The vector number ``index`` of a chunk of separate ones."""
    start = chunk.start + index
    if job.recorded is not None:
        recorded = job.recorded.slice(start, start + 1)
        return Example(f"{job.instruction.id}: recorded vector {start}", recorded)
    recipe = Recipe.of(job.instruction, chunk.family, job.seed, start)
    return Example(str(recipe), generate(job.instruction, chunk.family, job.seed, start, 1))


def _tile_example(job: _Job, chunk: Chunk, index: int) -> Example:
    """The vector whose result is number ``index`` of a chunk of tiles."""
    m, n = job.instruction.m, job.instruction.n
    tile, row, column = (int(i) for i in np.unravel_index(index, (chunk.tiles, m, n)))
    first = chunk.start + tile * max(m, n)
    recipe = Recipe.of(job.instruction, chunk.family, job.seed, first, (row, column), chunk.version)
    alone = generate_tiles(job.instruction, chunk.family, job.seed, first, 1, chunk.version)
    return Example(str(recipe), vector_at(alone, 0, row, column), alone, (row, column))


def _examined(job: _Job) -> Iterator[Mismatch]:
    """The first few examples, retested and shrunk."""
    ordered = sorted(job.examples, key=lambda found: found[:2])  # whatever thread was first
    for example in [example for *_, found in ordered for example in found][:EXAMPLES]:
        yield examine(
            example, job.instruction, job.unequal, job.recorded is None,
            lambda v: job.answer(job.dut, v), lambda v: job.answer(job.ref, v),
            lambda t: job.answer_tiles(job.dut, t), lambda t: job.answer_tiles(job.ref, t),
        )  # fmt: skip
