"""Random records, legal and not: refused in one line, or computed alike by engine, stages and oracle.

``python tests/record_fuzz.py --seconds 600`` goes on until the time is over and prints what it tried, each seed on the
next build of the engine; ``nox -s sanitize`` runs it on one built with AddressSanitizer and UndefinedBehaviorSanitizer.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from test_oracle import by_oracle

from cases.engine_layout import run_groups, run_interpreter
from cases.records import HOSTILE, Table, broken, declared, table_of
from cases.strategies import vectors
from mmaprobe import _native
from mmaprobe.errors import UsageError
from mmaprobe.models import engine, stages
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.lookup import load
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.table import fields, from_table, to_table

VECTORS, BY_ORACLE = 48, 3
LIMIT = 60  # seconds a record, under a sanitizer too
LINE = 400  # characters of a refusal


@dataclass
class Tally:
    """What was tried; ``findings`` are lines that say what went wrong with which seed."""

    counts: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        said = ", ".join(f"{name} {number:,}" for name, number in self.counts.items())
        return "\n".join([f"{said}, findings {len(self.findings)}", *self.findings])


@cache
def shipped() -> list[Table]:
    """The tables of some shipped datapaths, which the engine has kernels for."""
    names = ("sm_80", "sm_90a", "sm_100a", "gfx908", "gfx942", "x86-64", "aarch64")
    paths = {entry.datapath: None for name in names for entry in load(name).entries.values()}
    return [to_table(path, full=True) for path in paths]


@contextmanager
def limited() -> Iterator[None]:
    """TimeoutError in what does not end."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"not done in {LIMIT} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def record(seed: int) -> Datapath:
    """The record of a seed: from a table, three of ten of them broken, every fifth of them of formats that their names
    declare; or a shipped one with a field set by text."""
    rng = random.Random(seed)
    kind = rng.random()
    if kind < 0.2:
        path = from_table(rng.choice(shipped()))
        for _ in range(rng.randint(0, 2)):
            name = rng.choice(fields(path))[0]
            hostile = rng.choice(HOSTILE)
            number = str(rng.randint(-9, 300)) if rng.random() < 0.5 else "9" * rng.choice([9, 5000])
            text = hostile if isinstance(hostile, str) else number
            path = mutate(path, name, text)
        return path
    table = table_of(rng)
    if seed % 5 == 4:
        table = declared(table)
    return from_table(broken(rng, table) if rng.random() < 0.3 else table)


def differences(path: Datapath, batch: Batch) -> Iterator[str]:
    """The ways of computing that do not agree on a batch."""
    expected = stages.evaluate(path, batch)
    ways = {"engine": engine.evaluate}
    if engine.refusal(path) is None:
        ways |= {"interpreter": run_interpreter, "groups": run_groups}  # type: ignore[dict-item]
    for name, run in ways.items():
        found = run(path, batch)
        if found is not None and (wrong := np.flatnonzero(found != expected)).size:
            i = wrong[0]
            yield f"{name}: {found[i]:#x}, stages {expected[i]:#x}, vector {i}"
    few, every = batch.slice(0, BY_ORACLE), (1 << 8 * expected.itemsize) - 1
    for i, code in enumerate(by_oracle(path, few)):
        if code & every != int(expected[i]):
            yield f"oracle: {code:#x}, stages {int(expected[i]):#x}, vector {i}"


def try_seed(seed: int, tally: Tally) -> None:
    """One record: refused in one line, or computed."""
    tally.counts["records"] += 1
    try:
        with limited():
            try:
                path = record(seed)
            except UsageError as error:
                tally.counts["refused"] += 1
                said = str(error)
                if not said.isprintable() or len(said) > LINE:
                    tally.findings.append(f"seed {seed}: refused in {len(said)} characters: {said[:80]!r}")
                return
            if from_table(to_table(path)) != path:
                tally.findings.append(f"seed {seed}: its table is another record")
            tally.counts["legal"] += 1
            tally.counts["exact way"] += engine.refusal(path) is not None
            count = max(4, min(VECTORS, 4096 // path.k))
            batch = vectors(path, seed, count)
            tally.counts["vectors"] += count
            tally.findings += [f"seed {seed}: {what}" for what in differences(path, batch)]
    except Exception as error:
        tally.findings.append(f"seed {seed}: {type(error).__name__}: {str(error)[:200]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, help="this one alone")
    asked = parser.parse_args()
    np.seterr(all="ignore")
    tally = Tally()
    end, seed = time.monotonic() + asked.seconds, asked.start if asked.seed is None else asked.seed
    builds = _native.engine_builds()
    while time.monotonic() < end:
        os.environ["MMAPROBE_ISA"] = builds[seed % len(builds)]
        try_seed(seed, tally)
        seed += 1
        if asked.seed is not None:
            break
    print(f"builds {', '.join(builds)}; seeds {asked.start} to {seed - 1}: {tally}")
    return 1 if tally.findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
