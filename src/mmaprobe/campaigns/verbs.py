"""``validate_plan``: a plan's shards run here or by an engine, put together; ``merge``: those that others have run.

``carry_out`` is ``validate_plan`` with its options as a record, which are checked before anything begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import mmaprobe
from mmaprobe.campaigns.campaign import Campaign, put_together, read_shards, write_campaign
from mmaprobe.campaigns.engines import EngineOptions, Order, run_orders
from mmaprobe.campaigns.parts import MOST_SHARDS, Shard, digest_of_parts
from mmaprobe.campaigns.plan import MOST_MINUTES, ValidationPlan, read_plan
from mmaprobe.campaigns.shard import PlanWork, ShardResult, run_shard, work_of
from mmaprobe.campaigns.shard_file import SHARDS, SUFFIX, check_shard_place, read_shard, write_shard
from mmaprobe.devices.base import open_device
from mmaprobe.errors import UsageError
from mmaprobe.evidence.files import Lock, new_folder, sweep
from mmaprobe.evidence.store import MANIFEST
from mmaprobe.generators.seeds import fixed, seed_of
from mmaprobe.showing import another

EACH_WORKER = 8
"""Shards a worker, where nobody says how many: little is lost with one that dies, and the last ones wait little."""


@dataclass(frozen=True)
class CampaignOptions:
    """How a plan is run: ``budget`` in minutes in place of the plan's; ``shards``: how many, 0: as fits the engine;
    ``resume``: go on in ``out``; ``catalogs``: the files of ``--catalog``, by paths that every worker can read."""

    seed: int | None = None
    out: Path | None = None
    budget: float | None = None
    shards: int = 0
    resume: bool = False
    engine: EngineOptions = field(default_factory=EngineOptions)
    catalogs: tuple[str, ...] = ()
    progress: Callable[[int], None] | None = None
    planned: Callable[[int], None] | None = None

    def __post_init__(self) -> None:
        fixed(self.seed)
        if self.budget is not None and not 0 < self.budget <= MOST_MINUTES:  # nor nan
            raise UsageError(f"--budget is {self.budget:g}; it must be more than 0, to {MOST_MINUTES:,} minutes")
        if not 0 <= self.shards <= MOST_SHARDS:
            raise UsageError(f"--shards is {self.shards:,}; it must be 1 to {MOST_SHARDS:,}")
        if self.resume and self.out is None:
            raise UsageError("--resume needs the folder to go on in: --out FOLDER")
        if self.out is None and (self.shards or self.engine != EngineOptions()):
            raise UsageError("shards, and workers or an engine to run them, need a folder: --out FOLDER")


def minutes_of(plan: ValidationPlan, options: CampaignOptions) -> float:
    """How long it may take: the plan's minutes, or those of the budget."""
    return plan.minutes if options.budget is None else options.budget


def validate_plan(
    dut: str,
    ref: str,
    plan: str | ValidationPlan,
    *,
    seed: int | None = None,
    out: str | Path | None = None,
    budget: float | None = None,
    shards: int = 0,
    resume: bool = False,
    engine: str = "local",
    workers: int = 1,
    scheduler: str = "",
    partition: str = "",
    progress: Callable[[int], None] | None = None,
) -> Campaign:
    """Compare a device with a reference on many instructions as a plan says: a shipped one's name, or a file's path.

    Shards and evidence are kept in ``out``, where ``resume`` goes on; ``budget`` are minutes in place of the plan's.
    ``engine`` is local (processes), dask (``scheduler``: its address) or slurm (``partition``: one of its own), with so
    many ``workers``, and ``shards`` are cut as fits them where none are given.  A ``seed`` of None is drawn.
    ``progress`` is told of vectors compared.

    >>> import mmaprobe
    >>> from mmaprobe.campaigns.plan import ValidationPlan
    >>> plan = ValidationPlan("dot products", ("x86.dpps",), least_instructions=1, vectors=1000)
    >>> mmaprobe.validate_plan("model:x86-64+amd", "model:x86-64+amd", plan, seed=1).exit_code
    0

    UsageError, NotHereError, CannotWriteError, DeviceError; what an instruction does wrong is in the campaign.
    """
    how = EngineOptions(engine, workers, scheduler, partition)
    place = None if out is None else Path(out)
    return carry_out(dut, ref, plan, CampaignOptions(seed, place, budget, shards, resume, how, progress=progress))


def carry_out(dut: str, ref: str, plan: str | ValidationPlan, options: CampaignOptions) -> Campaign:
    """Compare a device with a reference as a plan says: in this process, or with shards by an engine.

    With ``out`` the shards and the evidence made of them are kept there.  UsageError, NotHereError, CannotWriteError,
    DeviceError; what an instruction does wrong is in the campaign.
    """
    chosen = read_plan(plan) if isinstance(plan, str) else plan
    seed = seed_of(options.seed)
    minutes = minutes_of(chosen, options)
    if options.out is None:
        work = _work(chosen, dut, ref, seed)
        _tell(work, options)
        return put_together([("the plan", run_shard(work, Shard(), minutes=minutes, progress=options.progress))])
    return _kept(chosen, dut, ref, seed, minutes, options, options.out)


def validate_shard(dut: str, ref: str, plan: ValidationPlan, shard: Shard, options: CampaignOptions) -> ShardResult:
    """Run one shard; its file goes into ``out``.  UsageError without a seed: all shards need the same."""
    if fixed(options.seed) is None:
        raise UsageError("a shard needs a seed, the same for all of them: --seed N")
    if options.out is not None:
        check_shard_place(shard, options.out)
    minutes = minutes_of(plan, options)
    work = _work(plan, dut, ref, seed_of(options.seed))
    result = run_shard(work, shard, minutes=minutes, progress=options.progress)
    if options.out is not None:
        write_shard(result, options.out)
    return result


def merge(places: Sequence[str | Path], out: str | Path) -> Campaign:
    """Put shards together, files or folders of them, and write the evidence of the whole into ``out``.

    >>> import tempfile, mmaprobe
    >>> from mmaprobe.campaigns.plan import ValidationPlan
    >>> plan = ValidationPlan("two", ("x86.dpps", "x86.pmaddwd"), least_instructions=2, vectors=500)
    >>> model = "model:x86-64+amd"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = mmaprobe.validate_plan(model, model, plan, seed=1, shards=2, out=f"{folder}/run")
    ...     mmaprobe.merge([f"{folder}/run/shards"], f"{folder}/merged").vectors
    1000

    UsageError where they do not go together, and where another process writes there.
    """
    campaign, out = put_together(read_shards([Path(place) for place in places])), Path(out)
    with Lock(out):
        write_campaign(campaign, out)
    return campaign


def _work(plan: ValidationPlan, dut: str, ref: str, seed: int) -> PlanWork:
    return work_of(plan, open_device(dut), open_device(ref), seed)


def _tell(work: PlanWork, options: CampaignOptions) -> None:
    """How many vectors there are to come, to whoever draws a bar."""
    if options.planned is not None:
        options.planned(sum(part.vectors for part in work.parts))


def _kept(
    plan: ValidationPlan, dut: str, ref: str, seed: int, minutes: float, options: CampaignOptions, out: Path
) -> Campaign:
    """The campaign whose shards and evidence are kept in a folder, begun there or gone on with."""
    folder, engine = out / SHARDS, options.engine
    with Lock(out):
        before = shards_before(out, options.resume)
        if before and options.seed is None:
            seed = before[0].seed
        work = _work(plan, dut, ref, seed)
        _tell(work, options)
        for result in before:
            _check_same(result, work, out)
        of = before[0].shard.of if before else options.shards or min(len(work.parts), EACH_WORKER * engine.workers)
        there = {result.shard.number for result in before}
        orders = [
            Order(plan, dut, ref, seed, Shard(number, of), str(folder), catalogs=options.catalogs)
            for number in range(of) if number not in there
        ]  # fmt: skip
        new_folder(folder)
        run_orders(orders, engine, lambda path: _told(options, Path(path)), minutes)
        campaign = put_together(read_shards([folder]))
        write_campaign(campaign, out)
    return campaign


def shards_before(out: Path, resume: bool) -> list[ShardResult]:
    """The shards that are in a folder already; UsageError where there are any, or evidence, and nobody goes on."""
    folder = out / SHARDS
    found = [read_shard(path) for path in sorted(folder.glob(f"*{SUFFIX}"))]
    if not resume and (found or (out / MANIFEST).exists()):
        raise UsageError(f"{out} holds a campaign already; go on with --resume, or choose another --out")
    if resume and not folder.is_dir():
        raise UsageError(f"{out} holds no campaign to go on with; begin there without --resume")
    sweep(folder)
    return found


def _check_same(result: ShardResult, work: PlanWork, out: Path) -> None:
    """UsageError where a shard that is there is not of the campaign that goes on."""
    now = {"plan": work.plan.form(), "seed": work.seed, "version": mmaprobe.__version__,
           "parts": digest_of_parts(work.parts), "device": work.dut.name, "reference": work.ref.name}  # fmt: skip
    was = {"plan": dict(result.plan), "seed": result.seed, "version": result.version, "parts": result.parts,
           "device": result.device.name, "reference": result.reference.name}  # fmt: skip
    for name, value in now.items():
        if was[name] != value:
            raise UsageError(
                f"{out} was begun with {another(name)}; start anew with another --out, or give the same options"
            )


def _told(options: CampaignOptions, path: Path) -> None:
    """A shard is there: its vectors go to whoever draws a bar."""
    if options.progress is not None:
        done = read_shard(path).done
        options.progress(sum(part.summary.vectors for part in done if part.summary is not None))
