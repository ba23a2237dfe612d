"""The step ``cpu``: the machine's own CPU, which may have units that nobody has measured; once the GPU is asked all."""

from __future__ import annotations

from mmaprobe.devices.base import open_device
from mmaprobe.errors import NotHereError
from mmaprobe.report.json import to_json
from mmaprobe.runs.beginning import Options, goes_by_steps
from mmaprobe.runs.engine import conduct
from mmaprobe.runs.instructions import EACH_IN_TURN
from mmaprobe.runs.report_summary import summary_of
from mmaprobe.runs.run_state import RunState, Work
from mmaprobe.showing import counted, mismatches_in

VECTORS = 100_000
"""Vectors of each instruction in the step of the CPU."""
EVERYTHING = "*"


def run_cpu(run: RunState) -> Work:
    """Derive and validate what this machine's CPU has, into the folder ``cpu`` of the evidence.

    Only beside a GPU, and where all of its instructions are asked for.
    """
    result = run.result("cpu")
    if not goes_by_steps(run.device) or run.pattern != EVERYTHING:
        result["text"] = "not asked: it goes with all instructions of a GPU"
        return
    if run.open_steps:
        yield None  # a GPU's minutes are few, a processor is always there
    while True:
        try:
            cpu = open_device("cpu")
            minutes = max(run.deadline - run.clock(), 0) / 60
            folder = run.store.path / "cpu"
            begun = (folder / "manifest.json").exists()
            options = Options(vectors=VECTORS, seed=run.seed, out=folder, budget=minutes, resume=begun)
            report = conduct(cpu, EACH_IN_TURN, options)
        except NotHereError as error:
            result["text"] = str(error)
            return
        summary = summary_of(report)
        result["summary"] = to_json(summary)
        result["text"] = (
            f"{counted(len(summary.rows), 'instruction')}, {mismatches_in(report.mismatches, report.vectors)}"
        )
        if report.interrupted:
            raise KeyboardInterrupt
        if not report.ended:
            return
        yield str(result["text"])
