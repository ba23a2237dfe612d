"""What a derivation of a random architecture was worth: recovered, left open, inconclusive or wrong."""

from __future__ import annotations

import json
import signal
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from judge import aimed
from random_architectures import case

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation import Derivation, derive
from mmaprobe.derivation.budget import ALLOWANCE
from mmaprobe.derivation.certificate import OTHERWISE, Certificate, Key
from mmaprobe.devices.base import Device, Support
from mmaprobe.errors import DeviceError
from mmaprobe.generators import families_for, generate
from mmaprobe.models.engine import evaluate_many
from mmaprobe.models.model import bind, run_tiles, run_vectors
from mmaprobe.operands.batch import Batch, Bits, Witness, check_batch
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.diff import datapath_changes
from mmaprobe.parameters.neighbours import neighbourhood
from mmaprobe.parameters.table import from_table

LIMIT = 120.0
"""Seconds of processor time after which a derivation is stopped: it said nothing, neither right nor wrong."""
JUDGED = 2_000
"""Vectors of every family, the generators' and the judge's own, that decide whether two datapaths are one function."""
SEED = 991
LOST = "a sum that every unit gets right"
"""What a refusal says of a unit whose zeros show so large an exponent that 1 + 0 comes out wrong: a few in a thousand
are such."""
VERDICTS = ("recovered", "left open", "inconclusive", "stopped", "wrong", "error")
BAD = ("left open", "wrong", "error")
"""Verdicts that no architecture may get: of the first the certificate says so, of the others nothing does."""


class BlackBox:
    """A random architecture as a device: it answers batches and says nothing of itself."""

    concurrent: ClassVar[bool] = True

    def __init__(self, instruction: Instruction, datapath: Datapath) -> None:
        self.name = "a random architecture"
        self._instruction = instruction
        self._datapath = datapath

    def info(self) -> dict[str, str]:
        return {"architecture": "random"}

    def instructions(self) -> Sequence[Instruction]:
        return (self._instruction,)

    def supports(self, instruction: Instruction) -> Support:
        return Support(instruction == self._instruction, f"only {self._instruction.id}")

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        return run_tiles(instruction, self._datapath, check_batch(instruction, batch))

    def run_vectors(self, instruction: Instruction, vectors: Batch) -> Bits:
        return run_vectors(instruction, self._datapath, vectors)


@dataclass(frozen=True)
class Outcome:
    """One architecture: the verdict, what it cost, and what differs where something does.

    ``differing`` of ``judged`` vectors tell the derived datapath from the true
    one; ``changes`` are the fields in which the two are written differently.
    """

    name: str
    kind: str
    verdict: str
    status: str = ""
    tiles: int = 0
    launches: int = 0
    vectors: int = 0
    seconds: float = 0.0
    judged: int = 0
    differing: int = 0
    reason: str = ""
    changes: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        return json.dumps(asdict(self))


def outcome(seed: int, limit: float = LIMIT, allowance: int = ALLOWANCE) -> Outcome:
    """Derive the architecture of a seed blind, and judge what comes out."""
    drawn = case(seed)
    box = BlackBox(drawn.instruction, drawn.datapath)
    return recover(drawn.name, drawn.kind, box, drawn.instruction, drawn.datapath, seed, limit, allowance)[0]


def recover(
    name: str,
    kind: str,
    device: Device,
    instruction: Instruction,
    truth: Datapath,
    seed: int,
    limit: float = LIMIT,
    allowance: int = ALLOWANCE,
) -> tuple[Outcome, Derivation | None]:
    """The verdict on a blind derivation, and the derivation.

    Wrong: a datapath was reported that differs from the true one on a judged vector, or
    nothing was, without a reason or with a counterexample that is none.  Left open: it differs, and its certificate
    names one that does not among those that no vector told apart.  Error: the
    derivation broke down.  Inconclusive, too: it was refused since the device loses 1, and it does.  Stopped: it
    took longer than ``limit``.
    """
    began = time.thread_time()
    try:
        with limited(limit):
            derivation = derive(device, instruction, seed=seed, allowance=allowance)
    except LateError as late:
        return Outcome(name, kind, "stopped", seconds=limit, reason=str(late)), None
    except Exception as error:
        if isinstance(error, DeviceError) and LOST in str(error) and loses_one(instruction, truth):
            return Outcome(name, kind, "inconclusive", "refused", reason=str(error)), None
        where = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{type(error).__name__}: {error} ({where.name}, line {where.lineno} of {Path(where.filename).name})"
        return Outcome(name, kind, "error", seconds=time.thread_time() - began, reason=reason), None
    seconds = round(time.thread_time() - began, 3)
    cost = (derivation.status, derivation.tiles, derivation.launches, derivation.vectors, seconds)
    found = derivation.datapath
    if found is None:
        fair = derivation.status == "inconclusive" and derivation.reason and refutes(instruction, truth, derivation)
        verdict = "inconclusive" if fair else "wrong"
        return Outcome(name, kind, verdict, *cost, reason=derivation.reason), derivation
    vectors = judged(instruction, truth)
    true, mine, *rows = evaluate_many([truth, found, *unrefuted(found, derivation.certificate).values()], vectors)
    differing = int(np.count_nonzero(true != mine))
    changes = tuple(f"{path}: {true} -> {got}" for path, true, got in datapath_changes(truth, found))
    verdict = verdict_on(true, mine, rows)
    return Outcome(name, kind, verdict, *cost, vectors.size, differing, derivation.reason, changes), derivation


def unrefuted(found: Datapath, certificate: Certificate) -> dict[Key, Datapath]:
    """What a certificate leaves open beside the datapath that was found: neighbours by field and value, and others."""
    near = {each[:2]: each.datapath for each in neighbourhood(found)}
    left = [(entry.field, entry.value) for entry in certificate.entries if entry.verdict == "open"]
    others = {(OTHERWISE, said): from_table(table) for said, table in certificate.otherwise}
    return {key: near[key] for key in left if key in near} | others


def verdict_on(true: Bits, mine: Bits, unrefuted: Sequence[Bits]) -> Literal["recovered", "left open", "wrong"]:
    """What a datapath is worth that answers ``mine`` and leaves open others that answer so: left open where it is not
    the truth and one of those is."""
    if (mine == true).all():
        return "recovered"
    return "left open" if any((row == true).all() for row in unrefuted) else "wrong"


def loses_one(instruction: Instruction, truth: Datapath) -> bool:
    """Whether some product, or c, of 1 or -1 alone, or two neighbouring products of 1, come out as something else."""
    k, a, b, d = instruction.k, *(formats.get(name) for name in (instruction.a, instruction.b, instruction.d))
    lanes, rows = np.arange(k), 3 * k - 1
    operands = {"a": np.zeros((rows + 2, k), a.dtype), "b": np.zeros((rows + 2, k), b.dtype)}
    expected = np.full(rows + 2, d.one, d.dtype)
    for start, code in ((0, a.one), (k, a.one | a.sign_mask)):
        operands["a"][start + lanes, lanes], operands["b"][start + lanes, lanes] = code, b.one
    for lane in lanes[1:]:
        operands["a"][2 * k + lane - 1, lane - 1 : lane + 1] = a.one
        operands["b"][2 * k + lane - 1, lane - 1 : lane + 1] = b.one
    expected[k : 2 * k] |= d.dtype.type(d.sign_mask)
    expected[2 * k : rows] += d.dtype.type(1 << (d.fraction_bits + d.padding))
    live = np.arange(rows + 2) < rows
    if instruction.c is not None:
        c = formats.get(instruction.c)
        operands["c"] = np.zeros(rows + 2, c.dtype)
        operands["c"][rows:] = c.one, c.one | c.sign_mask
        expected[-1] |= d.dtype.type(d.sign_mask)
        live[rows:] = True
    if instruction.scale is not None:
        scale, shape = formats.get(instruction.scale), (rows + 2, k // instruction.scale_size)
        operands |= {name: np.full(shape, scale.one, scale.dtype) for name in ("scale_a", "scale_b")}
    return bool((evaluate_many([truth], Batch(**operands))[0] != expected)[live].any())


class LateError(BaseException):
    """No answer in time; no Exception, since what a device raises becomes a DeviceError."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """LateError in what runs inside after so much processor time of this process (in its main thread only)."""

    def stop(signal_number: int, frame: object) -> None:
        raise LateError(f"no answer after {seconds:g} s of processor time")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def refutes(instruction: Instruction, truth: Datapath, derivation: Derivation) -> bool:
    """Whether the counterexample, where there is one, is the truth's answer and not the closest datapath's."""
    witness, closest = derivation.counterexample, derivation.closest
    if witness is None or closest is None:
        return True
    true, near = evaluate_many([truth, closest], bind(instruction, truth).dense(vector(instruction, witness)))
    return bool(true[0] == witness.d != near[0])


def vector(instruction: Instruction, witness: Witness) -> Batch:
    """The batch of one vector that a witness names."""
    dtypes = {name: fmt.dtype for name, fmt in instruction.formats().items()} | {"metadata": np.dtype(np.uint8)}
    return Batch(**{name: np.array([getattr(witness, name)], dtypes[name]) for name in instruction.shapes(1)})


def compared(instruction: Instruction, truth: Datapath, found: Datapath) -> tuple[int, int]:
    """(vectors, how many of them tell the two apart)."""
    vectors = judged(instruction, truth)
    d, other = evaluate_many([truth, found], vectors)
    return vectors.size, int(np.count_nonzero(d != other))


@lru_cache(maxsize=2)
def judged(instruction: Instruction, truth: Datapath) -> Batch:
    """The vectors that decide: every generator's family, and the judge's own; of sparse ones the lanes kept."""
    batches = [generate(instruction, family, SEED, 0, JUDGED) for family in families_for(instruction)]
    dense = bind(instruction, truth).dense
    return join([*map(dense, batches), aimed(truth, SEED, JUDGED)])


def join(batches: list[Batch]) -> Batch:
    """One batch of them all."""
    names = [name for name, _ in batches[0].items()]
    return Batch(**{name: np.concatenate([getattr(batch, name) for batch in batches]) for name in names})
