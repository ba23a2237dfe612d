"""What a campaign costs beyond its comparisons: python benchmarks/bench_bookkeeping.py [--smoke]

The same vectors of the same instructions, once as a plan in shards with canaries, coverage, files and a merge into
evidence, once by ``validate`` alone, in turns in one process; processor time, the least of three rounds.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from mmaprobe.campaigns.campaign import put_together, read_shards, write_campaign
from mmaprobe.campaigns.parts import Shard
from mmaprobe.campaigns.plan import ValidationPlan
from mmaprobe.campaigns.shard import PlanWork, run_shard, work_of
from mmaprobe.campaigns.shard_file import write_shard
from mmaprobe.devices.base import open_device
from mmaprobe.validation import validate

DEVICE = "model:sm_90a"
INSTRUCTIONS = ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
                "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
                "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32")  # fmt: skip
VECTORS = 200_000_000
"""Vectors of each instruction."""
SHARDS = 6
ROUNDS = 3


def campaign(work: PlanWork) -> float:
    """Processor seconds of the plan in shards, merged."""
    begin = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(SHARDS):
            write_shard(run_shard(work, Shard(number, SHARDS)), Path(folder, "shards"))
        found = put_together(read_shards([Path(folder, "shards")]))
        write_campaign(found, Path(folder, "all"))
    assert found.exit_code == 0
    return time.process_time() - begin


def counts_only(work: PlanWork) -> float:
    """Processor seconds of the same parts, counted."""
    begin = time.process_time()
    for part in work.parts:
        found = validate(work.dut, work.ref, part.instruction, part.vectors, work.seed, first=part.first, covered=False)
        assert found.mismatches == 0
    return time.process_time() - begin


def main() -> None:
    vectors = VECTORS // 500 if "--smoke" in sys.argv else VECTORS
    plan = ValidationPlan("bench", INSTRUCTIONS, 3, vectors=vectors, least_vectors=vectors)
    device = open_device(DEVICE)
    work = work_of(plan, device, device, 1)
    counts_only(work_of(replace(plan, vectors=10_000, least_vectors=10_000), device, device, 1))
    rounds = [(counts_only(work), campaign(work)) for _ in range(1 if "--smoke" in sys.argv else ROUNDS)]
    for number, (alone, kept) in enumerate(rounds, 1):
        print(f"round {number}: counts alone {alone:.2f} s, as a campaign {kept:.2f} s")
    alone, kept = (min(column) for column in zip(*rounds, strict=True))
    print(f"{vectors * len(INSTRUCTIONS):,} vectors in {len(work.parts)} parts and {SHARDS} shards")
    print(f"the least of each: {alone:.2f} s and {kept:.2f} s of processor time")
    each = 1e3 * (kept - alone) / SHARDS
    print(f"bookkeeping, canaries, coverage and files: {100 * (kept / alone - 1):+.1f} %, {each:.0f} ms a shard")


if __name__ == "__main__":
    main()
