"""A plan on every GPU that is here, each in a process of its own, all at once: which of them computes wrong."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from mmaprobe.campaigns.campaign import Campaign, put_together, write_campaign
from mmaprobe.campaigns.engines import EngineOptions, Order, run_orders
from mmaprobe.campaigns.parts import Shard
from mmaprobe.campaigns.plan import ValidationPlan
from mmaprobe.campaigns.shard_file import SHARDS, read_shard, shard_name
from mmaprobe.campaigns.summary_rows import ends_early
from mmaprobe.campaigns.verbs import CampaignOptions, minutes_of, shards_before
from mmaprobe.devices.listed import gpu_names
from mmaprobe.errors import MmaprobeError, NotHereError, UsageError
from mmaprobe.evidence.files import Lock
from mmaprobe.exit_codes import DEVICE_FAILED, EQUAL, INTERNAL, NOT_HERE, worst
from mmaprobe.generators.seeds import seed_of
from mmaprobe.report.mismatches import wrong_devices
from mmaprobe.runs.beginning import file_name
from mmaprobe.showing import counted, counted_states
from mmaprobe.vendors import every, vendor_called

SPOKEN = {NOT_HERE: "not here", DEVICE_FAILED: "failed", INTERNAL: "failed"}
"""What an exit code says of a GPU that is neither equal nor wrong; any other one is inconclusive."""


@dataclass(frozen=True)
class GpuResult:
    """What a plan found on one GPU; or the ``error`` that ended it, with its exit ``code``."""

    name: str
    campaign: Campaign | None = None
    error: str = ""
    code: int = 0

    @property
    def exit_code(self) -> int:
        return self.code if self.campaign is None else self.campaign.exit_code

    @property
    def line(self) -> str:
        """The GPU in a line: by name, UUID and model; of a wrong one its multiprocessors or cores, too."""
        word = SPOKEN.get(self.exit_code, "inconclusive")
        if self.campaign is None:
            return f"{self.name}: {word}: {self.error}"
        identity, rows = self.campaign.device.identity, self.campaign.rows
        wrong = wrong_devices([(identity, [row.summary for row in rows if row.summary is not None])])
        errors = [f"{row.instruction}: {row.error}" for row in rows if row.error]
        reasons = [*errors[:1], *ends_early(self.campaign)]
        if wrong:
            return "; ".join([*wrong, *reasons])
        who = " ".join(filter(None, (self.name, identity.get("uuid", ""), identity.get("model_name", ""))))
        said = f"{counted(self.campaign.vectors, 'vector')} of {counted_states(len(rows))}"
        if self.exit_code == EQUAL:
            return "; ".join([f"{who}: equal: {said}", *reasons])
        return "; ".join([f"{who}: {word}: {said}", *reasons])


def visible_gpus(which: str = "") -> list[str]:
    """The GPUs that are here: all, or those of a maker (``cuda``, ``hip:?pack=FOLDER``).

    UsageError for what names no GPUs, or a single one; NotHereError where there is none.
    """
    names = [which] if which else [vendor.scheme for vendor in every()]
    found = [gpu for name in names for gpu in gpu_names(name)]
    if which and found == [which]:
        raise UsageError(f"--all-gpus is about more than {which}: leave it out, or its number")
    if which and vendor_called(which.partition(":")[0]) is None:
        raise UsageError(f"--all-gpus is about GPUs, and {which} is none: leave it out")
    if not found:
        raise NotHereError("no GPU is here; why not: mmaprobe doctor")
    return found


def validate_all_gpus(
    names: Sequence[str], ref: str, plan: ValidationPlan, options: CampaignOptions
) -> list[GpuResult]:
    """A plan on each of these devices, all at once with a process each, in the minutes of one; a GPU that fails leaves
    the others.

    Without ``ref``, or a reference of the plan's, each is held against the model of its architecture.  ``out`` gets a
    folder of evidence for each; UsageError where one of them holds a campaign already.
    """
    with ExitStack() as held:
        folder = options.out or Path(held.enter_context(TemporaryDirectory()))
        if options.out is not None:
            held.enter_context(Lock(folder))
        places = {name: folder / file_name(name) for name in names}
        for place in places.values():
            shards_before(place, resume=False)
        seed, failed = seed_of(options.seed), dict[str, MmaprobeError]()
        orders = [
            Order(plan, name, ref, seed, Shard(), str(places[name] / SHARDS), catalogs=options.catalogs)
            for name in names
        ]  # fmt: skip
        run_orders(
            orders, EngineOptions(workers=len(names)), lambda path: None, minutes_of(plan, options),
            lambda order, error: failed.update({order.dut: error}),
        )  # fmt: skip
        found = [_result(name, places[name], failed.get(name)) for name in names]
        for each in found:
            if options.out is not None and each.campaign is not None:
                write_campaign(each.campaign, places[each.name])
    return found


def _result(name: str, folder: Path, error: MmaprobeError | None) -> GpuResult:
    if error is not None:
        return GpuResult(name, error=str(error), code=error.exit_code)
    path = folder / SHARDS / shard_name(Shard())
    return GpuResult(name, put_together([(str(path), read_shard(path))]))


def exit_code_of(found: Sequence[GpuResult]) -> int:
    """The first of all that the single ones end with."""
    return worst({each.exit_code for each in found})
