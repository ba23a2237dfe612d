"""One core after another: which of a machine's cores computes wrong."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device
from mmaprobe.validation.cores import allowed_cores, pinned
from mmaprobe.validation.fused import runs_campaigns
from mmaprobe.validation.stream import EXAMPLES, Stop, validate
from mmaprobe.validation.summary import MOST_PLACES, Screening, Summary, joined

EACH = 1_000_000
"""Vectors of a core at least, where so many are asked for."""


def validate_cores(
    dut: Device,
    ref: Device,
    instruction: Instruction,
    vectors: int,
    seed: int = 0,
    generators: Sequence[str] | None = None,
    *,
    nan: str = "bits",
    first: int = 0,
    stop: Stop | None = None,
) -> Summary:
    """``validate`` on every core that this thread may run on, one after another: ``Summary.screening`` names the wrong.

    ``vectors`` are divided among the cores (at least ``EACH``), and every core gets the same ones.  What the device
    computes in this thread, or in threads that it starts now, is computed there; another process or a pool of threads
    is not.  A GPU places its work itself: there this is ``validate``, whose fused campaign counts by multiprocessor.

    Raises NotHereError where threads cannot be pinned, and what ``validate`` raises.
    """
    if runs_campaigns(dut):
        return validate(dut, ref, instruction, vectors, seed, generators, nan=nan, first=first, stop=stop)
    cores = allowed_cores()
    begin, share = time.monotonic(), max(vectors // len(cores), min(vectors, EACH))
    found: dict[int, Summary] = {}
    for core in cores:
        with pinned(core):
            found[core] = validate(
                dut, ref, instruction, share, seed, generators, nan=nan, threads=1, first=first, stop=stop
            )
        if found[core].interrupted:
            break
    return replace(_joined(found, len(cores)), seconds=time.monotonic() - begin)


def _joined(found: dict[int, Summary], present: int) -> Summary:
    """The summaries of the cores as one."""
    every = list(found.values())
    first = tuple(
        (example.recipe, core, example.vector.d, example.expected)
        for core, summary in found.items()
        for example in summary.examples
    )
    wrong = {str(core): summary.mismatches for core, summary in found.items() if summary.mismatches}
    return replace(
        joined(every, EXAMPLES),
        planned=every[0].planned * present,
        screening=Screening(present, sum(map(bool, (s.vectors for s in every))), wrong, first[:MOST_PLACES], "core"),
    )
