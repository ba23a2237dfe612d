"""Where shards run: in this process, in processes of this machine, on a dask cluster, or as jobs of Slurm.

Each engine is a thin adapter that turns an order (a picklable record: device names, plan, seed, shard) into a future.
A worker that dies takes its shard with it and nothing else: the shard leaves no file, and is ordered again.  Ctrl-C
ends an engine at once: what has not begun is cancelled, jobs of Slurm also where they have, and shards that are there
stay.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from mmaprobe.campaigns.parts import Shard
from mmaprobe.campaigns.plan import ValidationPlan
from mmaprobe.campaigns.shard import PlanWork, run_shard, work_of
from mmaprobe.campaigns.shard_file import read_shard, shard_name, write_shard
from mmaprobe.devices.base import open_device
from mmaprobe.devices.waiting import wondering
from mmaprobe.errors import DeviceError, MmaprobeError, NotHereError, UsageError, brief, near
from mmaprobe.evidence.files import FileIsThereError
from mmaprobe.parameters.lookup import add_catalog
from mmaprobe.showing import counted
from mmaprobe.vendors import vendor_called

TRIES = 3
"""How often a shard is run whose worker dies; then it is the shard that kills it."""
POLL = 1.0
"""Seconds between two looks of a worker at whether the process that it works for is there."""
PATIENCE = 3
"""Looks at a job of Slurm that is in no queue and has no result yet, before it is given up: files of a network come
late."""
LEAST_MINUTES = 1e-3
"""Minutes of a shard at least, where minutes are counted: none would be no limit."""
ANSWERS = 10.0
"""Seconds in which a scheduler of dask must answer."""
GONE = "the dask scheduler answers no more; the shards that are there stay, and --resume goes on with them"
"""What is said where it ends in the middle of a campaign."""
DAY = 1440
"""Minutes after which Slurm may end the job of a shard."""
MOST_WORKERS = 4096
"""Workers that may be asked for."""


class WorkerDiedError(DeviceError):
    """The process that ran a shard ended without a word."""


@dataclass(frozen=True)
class Order:
    """One shard to be run somewhere: everything by name, the result into a folder.  ``catalogs``: the files that
    ``--catalog`` named, without which a worker would not know what the names mean."""

    plan: ValidationPlan
    dut: str
    ref: str
    seed: int
    shard: Shard
    folder: str
    minutes: float = 0
    catalogs: tuple[str, ...] = ()


@dataclass(frozen=True)
class EngineOptions:
    """Which engine, with how many workers; ``scheduler`` is the address of dask's, ``partition`` one of Slurm's."""

    name: str = "local"
    workers: int = 1
    scheduler: str = ""
    partition: str = ""

    def __post_init__(self) -> None:
        if self.name not in ENGINES:
            raise UsageError(f"no engine {self.name!r}{near(self.name, ENGINES)}")
        if not 1 <= self.workers <= MOST_WORKERS:
            raise UsageError(f"{self.workers:,} workers; there must be 1 to {MOST_WORKERS:,}")
        if self.scheduler and self.name != "dask":
            raise UsageError("--scheduler is the address of a dask scheduler; it goes with --engine dask")
        if self.partition and self.name != "slurm":
            raise UsageError("--partition is one of Slurm's; it goes with --engine slurm")


def run_order(order: Order) -> str:
    """Run a shard and write its file, whose path this is; what is there already of the same shard is kept, also where
    another process (that of a campaign which was killed) was there first in the end."""
    for catalog in order.catalogs:
        _know(catalog)
    path = Path(order.folder) / shard_name(order.shard)
    if not path.exists():
        result = run_shard(_work(order.plan, order.dut, order.ref, order.seed), order.shard, minutes=order.minutes)
        with suppress(FileIsThereError):
            return str(write_shard(result, path.parent))
    read_shard(path)
    return str(path)


@lru_cache
def _know(catalog: str) -> None:
    """A file of ``--catalog`` is added in each process once."""
    add_catalog(catalog)


@lru_cache(maxsize=1)
def _work(plan: ValidationPlan, dut: str, ref: str, seed: int) -> PlanWork:
    """The devices of a worker are opened once; without a reference it is the model of the device's architecture."""
    device = open_device(dut)
    return work_of(plan, device, open_device(ref or f"model:{device.info().get('architecture', '')}"), seed)


@dataclass(frozen=True)
class Engine:
    """``run`` runs a shard somewhere and waits for it, ``at_a_time`` of them; WorkerDiedError where its process ended
    without a word.  ``cancel`` ends what waits: each ``run`` under way raises soon, and none begins any more."""

    run: Callable[[Order], str]
    at_a_time: int
    cancel: Callable[[], None]


class _Clock:
    """The minutes of a campaign, shared out among its shards as each begins: what is left, by what is left to do."""

    def __init__(self, minutes: float, shards: int, at_a_time: int) -> None:
        self.end = time.monotonic() + 60 * minutes if minutes else None
        self.left, self.at_a_time = shards, at_a_time
        self.lock = threading.Lock()

    def begins(self, order: Order) -> Order:
        """The order with its minutes."""
        with self.lock:
            share = min(self.at_a_time / self.left, 1) if self.left > 0 else 1
            self.left -= 1
        if self.end is None:
            return order
        return replace(order, minutes=max(share * (self.end - time.monotonic()) / 60, LEAST_MINUTES))


def run_orders(
    orders: Sequence[Order],
    options: EngineOptions,
    done: Callable[[str], None],
    minutes: float = 0,
    failed: Callable[[Order, MmaprobeError], None] | None = None,
) -> None:
    """Run all orders, in so many ``minutes`` together (0: in any time); ``done`` is told each file as it appears.

    The first error of a shard ends all, unless somebody is told what ``failed``; so does one whose worker dies
    ``TRIES`` times (DeviceError).  NotHereError where the engine is not installed, or its scheduler does not answer.
    """

    def take(order: Order, result: Callable[[], str]) -> None:
        try:
            done(result())
        except MmaprobeError as error:
            if failed is None:
                raise
            failed(order, error)

    if options.name == "local" and options.workers == 1:
        clock = _Clock(minutes, len(orders), 1)
        for order in orders:
            take(order, lambda order=order: run_order(clock.begins(order)))  # type: ignore[misc]
        return
    with (
        ENGINES[options.name](options) as engine,
        ThreadPoolExecutor(engine.at_a_time) as pool,
        _cancelled_early(pool, engine),
    ):
        clock = _Clock(minutes, len(orders), engine.at_a_time)
        futures = {pool.submit(_tried, engine, clock, order): order for order in orders}
        with wondering(_working(orders, options)) as alive:
            for future in as_completed(futures):
                alive()
                take(futures[future], future.result)


def _working(orders: Sequence[Order], options: EngineOptions) -> str:
    """Who is waited for, and what they work on."""
    duts = ", ".join(dict.fromkeys(order.dut for order in orders))
    workers = counted(options.workers, f"{options.name} worker")
    return f"{workers} with {duts}: no shard of {len(orders):,} has ended"


def _tried(engine: Engine, clock: _Clock, order: Order) -> str:
    """The file of a shard; DeviceError where each of ``TRIES`` workers that had it died."""
    for _ in range(TRIES - 1):
        with suppress(WorkerDiedError):
            return engine.run(clock.begins(order))
    try:
        return engine.run(clock.begins(order))
    except WorkerDiedError as error:
        raise DeviceError(f"shard {order.shard}: {error}, {TRIES} times; alone: --shard {order.shard}") from None


@contextmanager
def _cancelled_early(pool: ThreadPoolExecutor, engine: Engine) -> Iterator[None]:
    """Whatever ends the block early cancels what waits."""
    try:
        yield
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        engine.cancel()
        raise


class _Underway:
    """What an engine has asked for and not got yet, so that it can be cancelled from another thread."""

    def __init__(self, cancel: Callable[[Any], object]) -> None:
        self.lock, self.cancelled = threading.Lock(), False
        self.asked: set[Any] = set()
        self.cancel_one = cancel

    @contextmanager
    def asking(self, begin: Callable[[], Any]) -> Iterator[Any]:
        """What ``begin`` asks for, until the block ends; CancelledError where all is cancelled already."""
        with self.lock:
            if self.cancelled:
                raise CancelledError
            asked = begin()
            self.asked.add(asked)
        try:
            yield asked
        finally:
            with self.lock:
                self.asked.discard(asked)

    def cancel(self) -> None:
        """All of it, and what would be asked for from here on."""
        with self.lock:
            self.cancelled = True
            for each in self.asked:
                self.cancel_one(each)


@contextmanager
def _local(options: EngineOptions) -> Iterator[Engine]:
    """Processes of this machine, one a worker: where one dies, it is known whose shard it had."""
    mine = threading.local()
    pools: list[ProcessPoolExecutor] = []
    under_way = _Underway(lambda future: future.cancel())

    def begun(order: Order) -> Future[str]:
        if getattr(mine, "pool", None) is None:
            context = multiprocessing.get_context("spawn")
            mine.pool = ProcessPoolExecutor(1, context, _end_with, (os.getpid(),))
            pools.append(mine.pool)
        future: Future[str] = mine.pool.submit(run_order, order)
        return future

    def run(order: Order) -> str:
        try:
            with under_way.asking(lambda: begun(order)) as future:
                return str(future.result())
        except BrokenProcessPool:
            mine.pool = None
            raise WorkerDiedError("its process died") from None

    def cancel() -> None:
        under_way.cancel()
        for child in multiprocessing.active_children():
            child.terminate()

    try:
        yield Engine(run, options.workers, cancel)
    finally:
        for pool in pools:
            pool.shutdown(wait=True, cancel_futures=True)


def _end_with(parent: int) -> None:
    """Begin a worker: it ends with the process that it works for, however that ends, which alone hears Ctrl-C."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(POLL)
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _dask(options: EngineOptions) -> Iterator[Engine]:
    """A dask cluster at an address, else one of processes that is begun here; a worker that names the resource GPU
    has one shard at a time for each."""
    distributed = _needed("distributed", "dask")
    try:
        with _deaf():
            client = distributed.Client(options.scheduler or None, **_begun(options))
    except OSError as error:
        raise NotHereError(f"no dask scheduler answers at {options.scheduler}: {error}") from None
    except ValueError as error:
        said = (
            f"--scheduler {brief(options.scheduler)} is no address of a dask scheduler, as tcp://HOST:8786 is: {error}"
        )
        raise UsageError(said) from None
    except RuntimeError as error:  # a process that is begun here died before it was a worker
        raise NotHereError(f"no dask began here: {error} Try again, or name a cluster: --scheduler ADDRESS") from None
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # what it says of a scheduler that is gone
    with client:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        gpus = [each for each in workers if each.get("resources", {}).get("GPU")]
        wants = {"resources": {"GPU": 1}} if gpus else {}

        under_way = _Underway(lambda future: client.cancel([future], force=True))

        def run(order: Order) -> str:
            with under_way.asking(lambda: client.submit(run_order, order, pure=False, **wants)) as future:
                try:
                    return str(future.result())
                except distributed.scheduler.KilledWorker:
                    raise WorkerDiedError("its dask worker died") from None
                except CancelledError:
                    if under_way.cancelled:
                        raise
                    raise NotHereError(GONE) from None

        yield Engine(run, max(len(gpus or workers), 1) + 1, under_way.cancel)  # one waits, so that none is idle


@contextmanager
def _deaf() -> Iterator[None]:
    """Processes that are begun inside do not hear Ctrl-C, which a terminal says to all: who began them ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _begun(options: EngineOptions) -> Mapping[str, object]:
    """How long a scheduler may take to answer; of a cluster that is begun here: processes of one thread, and no page on
    the network."""
    local = {"n_workers": options.workers, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    return {"timeout": ANSWERS} if options.scheduler else local


@contextmanager
def _slurm(options: EngineOptions) -> Iterator[Engine]:
    """Jobs of Slurm, as many at a time as there are workers; their logs lie beside the shards."""
    submitit = _needed("submitit", "slurm")
    if shutil.which("sbatch") is None:
        raise NotHereError("--engine slurm needs sbatch, which is not on this machine; run it where jobs are begun")
    under_way = _Underway(lambda job: job.cancel(check=False))

    def run(order: Order) -> str:
        folder = str(Path(order.folder) / "slurm")
        executor = submitit.AutoExecutor(folder=folder, cluster="slurm")
        partition = {"slurm_partition": options.partition} if options.partition else {}
        gpu = {"gpus_per_node": 1} if vendor_called(order.dut.partition(":")[0]) else {}
        executor.update_parameters(name="mmaprobe", timeout_min=DAY, cpus_per_task=1, **partition, **gpu)

        def submit() -> Any:
            try:
                return executor.submit(run_order, order)
            except submitit.core.utils.FailedJobError as error:
                said = " ".join(str(error).split("\n")[-1].split())
                raise NotHereError(f"Slurm takes no job here: {said or 'sbatch does not say why'}") from None

        absent = 0
        with under_way.asking(submit) as job:
            while not job.paths.result_pickle.exists():
                if under_way.cancelled:
                    raise CancelledError
                absent = 0 if _in_queue(job.job_id) else absent + 1
                if absent > PATIENCE:
                    raise WorkerDiedError(f"job {job.job_id} of Slurm ended without a result")
                time.sleep(POLL)
            return str(job.result())

    yield Engine(run, options.workers, under_way.cancel)


def _in_queue(job: str) -> bool:
    """Whether Slurm knows a job that is not over; ``squeue`` knows it without an accounting database."""
    done = subprocess.run(["squeue", "-h", "-j", job, "-o", "%T"], capture_output=True, text=True, check=False)
    return done.stdout.strip() in ("PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "COMPLETING", "REQUEUED")


def _needed(module: str, engine: str) -> ModuleType:
    """A module of the extra ``cluster``; NotHereError with the command that gets it."""
    try:
        return import_module(module)
    except ImportError:
        raise NotHereError(f"--engine {engine} needs {module}: pip install 'mmaprobe[cluster]'") from None


ENGINES: Mapping[str, Callable[[EngineOptions], AbstractContextManager[Engine]]] = {
    "local": _local, "dask": _dask, "slurm": _slurm,
}  # fmt: skip
"""Each engine by its name."""
