"""The step ``cpu``: the machine's own CPU, which may have units that nobody has measured; once the GPU is asked all."""

from __future__ import annotations

from collections.abc import Mapping

from mmaprobe.devices.base import open_device
from mmaprobe.errors import NotHereError
from mmaprobe.evidence.steps import StepRecord
from mmaprobe.report.json import to_json
from mmaprobe.report.rows import EXIT_CODES
from mmaprobe.runs.beginning import goes_by_steps
from mmaprobe.runs.campaign import run
from mmaprobe.runs.room import Room, Work
from mmaprobe.runs.rows import summary_of

VECTORS = 100_000
"""Vectors of each instruction."""
EVERYTHING = "*"


def run_cpu(room: Room) -> Work:
    """Derive and validate what this machine's CPU has, into the folder ``cpu`` of the evidence.

    Only beside a GPU, and where all of its instructions are asked for.
    """
    result = room.result("cpu")
    if not goes_by_steps(room.device) or room.pattern != EVERYTHING:
        result["text"] = "not asked: it goes with all instructions of a GPU"
        return
    if room.open_steps:
        yield None  # a GPU's minutes are few, a processor is always there
    while True:
        try:
            cpu = open_device("cpu")
            minutes = max(room.deadline - room.clock(), 0) / 60
            folder = room.store.path / "cpu"
            begun = (folder / "manifest.json").exists()
            report = run(cpu, vectors=VECTORS, seed=room.seed, out=folder, budget=minutes, resume=begun)
        except NotHereError as error:
            result["text"] = str(error)
            return
        summary = summary_of(report)
        result["summary"] = to_json(summary)
        result["text"] = (
            f"{len(summary.rows)} instructions, {report.vectors:,} vectors, {report.mismatches:,} mismatches"
        )
        if not report.ended:
            return
        yield str(result["text"])


def cpu_codes(steps: Mapping[str, StepRecord]) -> list[int]:
    """The exit codes that the CPU's instructions make, from their counts and outcomes."""
    rows = steps["cpu"].result.get("summary", {}).get("instructions", []) if "cpu" in steps else []
    return [1 if row["mismatches"] else EXIT_CODES[row["outcome"]] for row in rows]
