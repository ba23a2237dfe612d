"""Stream vectors through a device under test and a reference and assert that every bit agrees."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device, claims_nans, serial
from mmaprobe.devices.child import no_children
from mmaprobe.devices.gpu.driver import ENDS_ALL
from mmaprobe.devices.replay import Replay
from mmaprobe.errors import DeviceError, NotHereError, UsageError, brief, near
from mmaprobe.evidence.cell_counts import NO_CELLS, CellCounts
from mmaprobe.evidence.records import Mismatch
from mmaprobe.generators import MIX, Recipe, families_for, generate, generate_tiles, plan
from mmaprobe.generators.enumerations import enumeration
from mmaprobe.generators.tiles import vector_at
from mmaprobe.operands.batch import Batch, Bits, join
from mmaprobe.options import FLAG, FUNCTION, TEXT, Rule, checked, one_of, or_none, whole
from mmaprobe.validation.batches import CHUNK, Chunk, alone, compared_runs, end_of, even, small_batches, varied
from mmaprobe.validation.coverage.sample import SAMPLE, ComparedRun, cells_of, sampled
from mmaprobe.validation.elsewhere import here
from mmaprobe.validation.examine import Example, examine
from mmaprobe.validation.explaining import explained
from mmaprobe.validation.fused import ALONE, LEAST, FusedComparison, UnsteadyLaunchError, fused, instead
from mmaprobe.validation.native import Pipeline, SiliconPipeline, pipeline
from mmaprobe.validation.pair import Pair
from mmaprobe.validation.places import ChunkPlaces, pattern, slots
from mmaprobe.validation.summary import Batches, FamilyCount, Summary

NATIVE_CHUNK = 1 << 19
"""Vectors at a time where they never leave native code, which is fast enough to ask ``stop`` as often."""
THREADS = 2
"""Threads that make, run and compare batches, where nobody says how many."""
EXAMPLES = 4
"""Mismatches that are kept."""
EXPLAINED = 64
"""Mismatches that an explanation must hold for."""
EACH_FAMILY = 16
"""Vectors of each family that it must hold for: few, since a device may be slow."""
PLACES = 1024
"""Mismatches of a chunk whose places are kept: with these of all of a tile of 16 rows and 64 columns."""
KEPT_CHUNKS = 16
"""Chunks of which anything is kept but the count."""
MOST = 10**18
"""Vectors of one validation: an index of theirs fits 64 bits in any order of tiles."""
RECORDED = "recorded"
MOST_THREADS = 1024
"""Threads that may be asked for."""
OPTIONS: dict[str, Rule] = {
    "nan": one_of("bits", "any"), "threads": whole(1, MOST_THREADS), "progress": or_none(FUNCTION),
    "stop": or_none(FUNCTION), "said": or_none(FUNCTION), "campaign": FLAG, "first": whole(0, MOST),
    "examined": FLAG, "covered": FLAG, "enumerated": TEXT,
}  # fmt: skip
"""Options of ``validate`` that go by name alone."""

Progress = Callable[[int], None]
Stop = Callable[[], bool]
Ended = Literal["", "stopped", "interrupted"]


@dataclass(frozen=True)
class _Found:
    """What differs in a chunk: how many results, the indices of the first few and, where that is known, what the device
    under test answered there and on which multiprocessor; ``asked``: it saw the chunk as a batch."""

    bad: int
    where: NDArray[np.int64]
    answers: tuple[int, ...] = ()
    multiprocessors: tuple[int, ...] = ()
    asked: bool = True


@dataclass
class _Job(Pair):
    """One validation under way: what its worker threads share.

    ``found`` holds the first chunks in which something differs, ``KEPT_CHUNKS`` at most.
    """

    seed: int = 0
    said: Callable[[str], None] | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    enumerated: str = ""
    recorded: Batch | None = None
    native: Pipeline | None = None
    fused: FusedComparison | None = None
    fell_back: str = ""
    undone: list[Chunk] = field(default_factory=list)
    counts: dict[str, FamilyCount] = field(default_factory=dict)
    twice: dict[Chunk, int] = field(default_factory=dict)  # mismatches of what will be asked again
    batches: Batches = field(default_factory=Batches)
    found: list[tuple[Chunk, _Found]] = field(default_factory=list)

    def fall_back(self, why: str) -> None:
        """The fused way is not taken from here on; ``said`` is told why, once."""
        if not self.fell_back:
            self.fell_back = instead(why)
            if self.said is not None:
                self.said(self.fell_back)


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
    covered: bool = True,
    enumerated: str = "",
) -> Summary:
    """Run ``vectors`` vectors of the named generator families through both devices and compare bits.

    Families default to all that fit the instruction, in the default mix.  A
    mismatch is examined (asked again, shrunk, classified, explained) and kept as
    an example.  ``nan="any"`` lets two
    NaN results count as equal, and so does a device that claims none (``devices.base.claims_nans``).
    ``stop`` is asked between chunks; Ctrl-C ends
    the run with what was compared so far (``Summary.interrupted``).  ``first``:
    the vectors that follow so many of the same mix.  ``examined``: a few mismatches are; else none is asked again.
    ``covered``: a sample is counted by cell (``validation.coverage``).
    ``enumerated``: the vectors are those of this enumeration (``generators.enumerations``) from ``first`` on, each one
    alone, in place of families.

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
        covered=covered,
        enumerated=enumerated,
    )
    recorded = _recording(dut, ref, instruction)
    if not (claims_nans(dut) and claims_nans(ref)):
        nan = "any"
    job = _Job(serial(dut), serial(ref), instruction, nan, seed, said, enumerated=enumerated, recorded=recorded)
    if job.recorded is None and not enumerated:
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
        examples=_examined(job) if examined else (),
        seconds=time.monotonic() - begin,
        nan=nan,
        interrupted=bool(ended),
        stopped=ended == "stopped",
        screening=job.fused.screening() if job.fused and job.fused.vectors.any() else None,
        notes=(job.fell_back,) if job.fell_back else (),
        batches=job.batches,
        coverage=_coverage(job, vectors, generators, first) if covered and ended != "interrupted" else NO_CELLS,
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
    if job.enumerated:
        return _enumerated(job, vectors, first)
    if job.recorded is not None:
        count = min(vectors, max(job.recorded.size - first, 0))
        return alone(instruction, RECORDED, first, count, small_batches(count, 1), job.seed)
    shares = _shares(instruction, vectors, generators, first)
    small = small_batches(vectors, max(len(shares), 1))
    return chain.from_iterable(_family(job, *each, small) for each in shares)


def _shares(
    instruction: Instruction, vectors: int, generators: Sequence[str] | None, first: int
) -> list[tuple[str, int, int]]:
    """(family, start, count) of a comparison's vectors."""
    if vectors == 0:
        return []
    check_generators(instruction, generators or ())
    return plan(instruction, vectors, {name: MIX[name] for name in generators} if generators else None, first)


def _coverage(job: _Job, vectors: int, generators: Sequence[str] | None, first: int) -> CellCounts:
    """A sample of what was compared, counted by cell."""
    made = job.instruction
    if job.enumerated:  # what is counted through says itself what it reaches
        return NO_CELLS
    if job.recorded is not None:
        count = job.counts.get(RECORDED, FamilyCount()).vectors
        found = job.recorded.slice(first, first + min(count, SAMPLE)) if count else None
    else:
        runs = [_compared(job, *each) for each in _shares(made, vectors, generators, first)]
        found = sampled(made, job.seed, chain.from_iterable(runs))
    return cells_of(made, found) if found is not None else NO_CELLS


def _compared(job: _Job, family: str, start: int, count: int) -> Iterator[ComparedRun]:
    """What of a family's share was compared, which is a first piece of it: chunks are compared in their order."""
    done, made = job.counts.get(family, FamilyCount()).vectors, job.instruction
    launched = _launched(job, count)
    for run in compared_runs(made, family, start, count - launched, _unseen(job)):
        outputs = run.count // max(run.tiles, 1) or 1
        yield replace(run, count=min(run.count, done), tiles=min(run.tiles, done // outputs))
        start, done = run.start + (run.tiles * max(made.m, made.n) or run.count), max(done - run.count, 0)
    yield ComparedRun(family, start, done, done // (made.m * made.n)) if launched else ComparedRun(family, start, 0)


def _enumerated(job: _Job, vectors: int, first: int) -> Iterator[Chunk]:
    """UsageError where there are fewer, or a recording holds other vectors."""
    if job.recorded is not None:
        raise UsageError(f"{job.instruction.id}: a recording is compared on what it holds, not on all {job.enumerated}")
    size = enumeration(job.instruction, job.enumerated).size
    if first + vectors > size:
        raise UsageError(f"{job.instruction.id}: {job.enumerated} has {size:,} vectors, not {first + vectors:,}")
    return alone(job.instruction, job.enumerated, first, vectors, small_batches(vectors, 1), job.seed)


def _family(job: _Job, family: str, start: int, count: int, small: int) -> Iterator[Chunk]:
    """The chunks of one family: where there is a fused kernel, a few of the ordinary way and then whole tiles."""
    made, here = job.instruction, job.fused
    tiles = _launched(job, count) // here.outputs if here else 0
    for chunk in _pieces(job, family, start, count - _launched(job, count), small):
        start = max(start, end_of(made, chunk))
        yield chunk
    while here and tiles:
        launch = min(tiles, here.tiles())
        yield Chunk(family, start, launch * here.outputs, launch, fused=True)
        start, tiles = start + launch * max(made.m, made.n), tiles - launch


def _launched(job: _Job, count: int) -> int:
    """How many of so many vectors of a family are outputs of whole tiles that a fused kernel compares."""
    return max(count - ALONE, 0) // job.fused.outputs * job.fused.outputs if job.fused else 0


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
    if _unseen(job):
        return even(job.instruction, family, start, count, NATIVE_CHUNK if job.native and job.native.fast else CHUNK)
    return varied(job.instruction, family, start, count, small, job.seed)


def _unseen(job: _Job) -> bool:
    """Whether no device sees a batch: two models are compared in native code."""
    return job.native is not None and job.native.asked is None


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
    new = _counted(job, chunk, found.bad)
    with job.lock:
        job.counts[chunk.family] = job.counts.get(chunk.family, FamilyCount()) + new
        if new.mismatches:
            _keep(job, chunk, found)
    return new.vectors


def _keep(job: _Job, chunk: Chunk, found: _Found) -> None:
    """Keep what differs in a chunk, if it is among the first; whatever thread was first."""
    job.found.append((chunk, found))
    job.found.sort(key=lambda each: (each[0].family, each[0].start))
    del job.found[KEPT_CHUNKS:]


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


def _by_fused(job: _Job, chunk: Chunk) -> _Found | None:
    """The same as ``_compare`` by the fused kernel; None where that fails, or failed before.

    ``ENDS_ALL`` and UnsteadyLaunchError where it is not the kernel that fails.
    """
    if job.fused is None or job.fell_back:
        return None
    try:
        bad, reported = job.fused.compare(chunk.family, job.seed, chunk.start, chunk.tiles)
    except (*ENDS_ALL, UnsteadyLaunchError):
        raise
    except (DeviceError, NotHereError) as error:
        job.fall_back(str(error))
        return None
    answers, numbers = (tuple(getattr(place, name) for _, place in reported) for name in ("d", "multiprocessor"))
    return _Found(bad, np.array([index for index, _ in reported], np.int64), answers, numbers)


def _compare(job: _Job, chunk: Chunk) -> _Found:
    """What differs in a chunk, and where: the first few."""
    native = job.native
    if native is not None and native.asked is None:
        return _Found(*_compare_native(job, native, chunk, None), asked=False)
    if type(native) is SiliconPipeline:
        return _Found(*_compare_native(job, native, chunk, None))
    vectors, answer = (_tiles(job, chunk), job.answer_tiles) if chunk.tiles else (_vectors(job, chunk), job.answer)
    if native is None:
        given = answer(job.dut, vectors)
        bad, where = job.differences(given, answer(job.ref, vectors), PLACES)
        return _Found(bad, where, tuple(given.reshape(-1)[where].tolist()))
    given = np.ascontiguousarray(answer((job.dut, job.ref)[native.asked or 0], vectors))
    bad, where = _compare_native(job, native, chunk, given)
    return _Found(bad, where, tuple(given.reshape(-1)[where].tolist())) if native.asked == 0 else _Found(bad, where)


def _compare_native(job: _Job, native: Pipeline, chunk: Chunk, answers: Bits | None) -> tuple[int, NDArray[np.int64]]:
    return native.compare(
        chunk.family, job.seed, chunk.start, chunk.count, chunk.tiles, answers, job.nan, PLACES, chunk.version,
        chunk.window,
    )  # fmt: skip


def _tiles(job: _Job, chunk: Chunk) -> Batch:
    return generate_tiles(job.instruction, chunk.family, job.seed, chunk.start, chunk.tiles, chunk.version)


def _vectors(job: _Job, chunk: Chunk) -> Batch:
    if job.recorded is not None:
        return job.recorded.slice(chunk.start, chunk.start + chunk.count)
    return generate(job.instruction, chunk.family, job.seed, chunk.start, chunk.count)


def _example(job: _Job, chunk: Chunk, index: int) -> Example:
    """The vector number ``index`` of a chunk of separate ones."""
    start, slot = chunk.start + index, index % slots(job.dut, job.instruction)
    if job.recorded is not None:
        recorded = job.recorded.slice(start, start + 1)
        return Example(f"{job.instruction.id}: recorded vector {start}", recorded, slot=slot)
    recipe = Recipe.of(job.instruction, chunk.family, job.seed, start)
    return Example(str(recipe), generate(job.instruction, chunk.family, job.seed, start, 1), slot=slot)


def _tile_example(job: _Job, chunk: Chunk, index: int) -> Example:
    """The vector whose result is number ``index`` of a chunk of tiles."""
    m, n = job.instruction.m, job.instruction.n
    tile, row, column = (int(i) for i in np.unravel_index(index, (chunk.tiles, *(chunk.window or (m, n)))))
    first = chunk.start + tile * max(m, n)
    recipe = Recipe.of(job.instruction, chunk.family, job.seed, first, (row, column), chunk.version)
    alone = generate_tiles(job.instruction, chunk.family, job.seed, first, 1, chunk.version)
    return Example(str(recipe), vector_at(alone, 0, row, column), alone, (row, column))


def _examples(job: _Job) -> Iterator[Example]:
    """Of every mismatch that was kept its vector, what it was answered and where."""
    for chunk, found in job.found:
        for number, index in enumerate(found.where.tolist()):
            example = (_tile_example if chunk.tiles else _example)(job, chunk, index)
            seen = (
                f"{job.fused.device.multiprocessor} {found.multiprocessors[number]}"
                if found.multiprocessors and job.fused
                else here(job.dut)
            )
            yield replace(example, first=found.answers[number] if found.answers else None, seen=seen)


def _examined(job: _Job) -> tuple[Mismatch, ...]:
    """The first few mismatches, retested, shrunk, classified and explained."""
    examples = list(islice(_examples(job), EXPLAINED))
    places = [
        ChunkPlaces(found.where, chunk.tiles, found.bad == found.where.size)
        for chunk, found in job.found
        if found.asked
    ]
    common = pattern(job.dut, job.instruction, places)
    kept = [examine(example, job) for example in examples[:EXAMPLES]]
    found = [replace(each, kinds=(*each.kinds, *common)) for each in kept]
    return explained(job, found, _beside(job, examples) if examples and job.recorded is None else None)


def _beside(job: _Job, examples: Sequence[Example]) -> Batch:
    """Vectors on which an explanation must hold, too: other mismatches, and the first of each family, on which most
    devices agree."""
    families = families_for(job.instruction) if job.enumerated else sorted(job.counts)
    first = [generate(job.instruction, family, job.seed, 0, EACH_FAMILY) for family in families]
    return join([*(example.vector for example in examples), *first])
