"""The step ``cpu``: the machine's own CPU, which may have units that nobody has measured; once the GPU is asked all."""

from __future__ import annotations

from mmaprobe.devices.base import open_device
from mmaprobe.errors import NotHereError
from mmaprobe.report.json import to_json
from mmaprobe.runs.beginning import Options, goes_by_steps
from mmaprobe.runs.engine import conduct
from mmaprobe.runs.instructions import EACH_IN_TURN
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
            options = Options(vectors=VECTORS, seed=room.seed, out=folder, budget=minutes, resume=begun)
            report = conduct(cpu, EACH_IN_TURN, options)
        except NotHereError as error:
            result["text"] = str(error)
            return
        summary = summary_of(report)
        result["summary"] = to_json(summary)
        result["text"] = (
            f"{len(summary.rows)} instructions, {report.vectors:,} vectors, {report.mismatches:,} mismatches"
        )
        if report.interrupted:
            raise KeyboardInterrupt
        if not report.ended:
            return
        yield str(result["text"])
