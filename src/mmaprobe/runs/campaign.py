"""The main job: probe, derive, compare with the shipped file, validate, record, for every instruction of a device."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation import derive
from mmaprobe.devices.base import Device, open_device, serial
from mmaprobe.devices.child import no_children
from mmaprobe.devices.model import DatapathDevice
from mmaprobe.errors import DeviceError, MmaprobeError, UsageError
from mmaprobe.evidence.ending import unforeseen
from mmaprobe.evidence.records import Finding
from mmaprobe.evidence.store import Store
from mmaprobe.options import checked, or_none, with_methods
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.table import from_table
from mmaprobe.probing import probe
from mmaprobe.runs import beginning
from mmaprobe.runs.beginning import begun, best_device, check_options
from mmaprobe.runs.result import Report, Result, mismatches_of, spent, to_part, vectors_of
from mmaprobe.runs.selection import select, unaccounted
from mmaprobe.survey.comparison import compare, compare_with_shipped
from mmaprobe.validation import validate

LEAST_PER_MODE = 100_000
INCONCLUSIVE = 4
"""Exit code."""


class Listener(Protocol):
    """Who is told how the run goes."""

    def begin(self, device: Device, states: int, vectors: int) -> None: ...
    def deriving(self, instruction: Instruction, step: str) -> None: ...
    def derived(self, instruction: Instruction) -> None: ...
    def compared(self, vectors: int) -> None: ...


OPTIONS = beginning.OPTIONS | {"listener": or_none(with_methods("begin", "deriving", "derived", "compared"))}


def run(
    device: Device | str | None = None,
    *,
    instruction: str = "*",
    vectors: int = 10_000_000,
    seed: int | None = None,
    out: str | Path | None = None,
    budget: float | None = None,
    resume: bool = False,
    check: bool = False,
    least: int = 0,
    listener: Listener | None = None,
) -> Report:
    """Probe, derive and validate every supported instruction that ``instruction`` (an id or glob) names.

    ``vectors`` are compared per instruction, divided among its control states
    (at least 10**5 each).  Without a ``seed`` one is drawn (``Report.seed``).
    A datapath that is not the shipped one is exit code 1; with ``check`` an instruction of which nothing is shipped, or
    that is missing without a reason, is so too.  ``least`` instructions must be compared.  ``budget`` minutes end the
    run cleanly: 0 where each state had its ``LEAST_PER_MODE`` vectors (or its share, where that is less), 4 where not.
    ``resume`` goes on in ``out``.  Evidence is written as each part ends.

    Raises UsageError, NotHereError, CannotWriteError; what a device does wrong is
    in the report.
    """
    checked("run", {"device": device, "instruction": instruction, "check": check, "listener": listener}, OPTIONS)
    check_options(vectors, seed, budget, least, out, resume)
    opened = open_device(device) if isinstance(device, str) else device or best_device()
    chosen, absent = select(opened, instruction)
    if check:
        known = {group[0].id for group in chosen} | {name for name, _ in absent}
        absent += [(name, "") for name in unaccounted(opened, instruction, known)]
    settings = {"instruction": instruction, "vectors": vectors}
    store = begun(opened, out, seed, settings, resume)
    deadline = None if budget is None else time.monotonic() + 60 * budget
    with closing(store):
        campaign = _Campaign(serial(opened), store, vectors, store.header.seed, deadline, listener, check, least)
        return campaign.run(chosen, absent)


def _check_sound(findings: dict[str, Finding]) -> None:
    """DeviceError where answers contradict what any unit does, the layout of the operands before all else."""
    wrong = [finding for finding in findings.values() if finding.status == "contradictory"]
    if wrong:
        first = min(wrong, key=lambda finding: finding.question != "layout")
        raise DeviceError(f"{first.question}: {first.text}")


@dataclass
class _Campaign:
    device: Device
    store: Store
    vectors: int
    seed: int
    deadline: float | None
    listener: Listener | None
    check: bool
    least: int
    stopping: bool = False

    def run(self, groups: list[tuple[Instruction, ...]], absent: list[tuple[str, str]]) -> Report:
        begin = time.monotonic()
        if self.listener:
            total = sum(len(group) * self._share(group) for group in groups)
            self.listener.begin(self.device, sum(map(len, groups)), total)
        interrupted = False
        pending: list[Future[Result]] = []
        with ThreadPoolExecutor(1) as validator:
            try:
                self._derive_all(groups, validator, pending)
                results = [future.result() for future in pending]
            except KeyboardInterrupt:
                self.stopping = interrupted = True
                with no_children():
                    results = [future.result() for future in pending if not future.cancel()]
        unreached, cut = self._below(groups, results)
        ended = "interrupted" if interrupted else spent(unreached, sum(map(len, groups)), self._minimum) if cut else ""
        if not ended:
            self.store.finish()
        return Report(
            device=self.device,
            results=tuple(results),
            absent=tuple(absent),
            out=self.store.path,
            run=self.store.header.run,
            seed=self.seed,
            seconds=time.monotonic() - begin,
            ended=ended,
            interrupted=interrupted,
            check=self.check,
            least=self.least,
            unreached=unreached,
        )

    @property
    def _minimum(self) -> int:
        """Vectors of each instruction and control state that a run must compare."""
        return min(LEAST_PER_MODE, self.vectors)

    def _below(self, groups: list[tuple[Instruction, ...]], results: list[Result]) -> tuple[int, bool]:
        """How many states the end of the budget left below the minimum, and whether it cut anything short."""
        found = {result.instruction: result for result in results}
        short = [state for group in groups for state in group if state not in found]
        cut = [each for each in results if each.summary is not None and each.summary.stopped]
        below = [each for each in cut if vectors_of(each) < self._minimum and not mismatches_of(each)]
        return len(short) + len(below), bool(short or cut)

    def _share(self, group: Sequence[Instruction]) -> int:
        return max(self.vectors // len(group), self._minimum)

    def _late(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline

    def _stop(self) -> bool:
        return self.stopping or self._late()

    def _derive_all(
        self, groups: list[tuple[Instruction, ...]], validator: ThreadPoolExecutor, pending: list[Future[Result]]
    ) -> None:
        """Derive on this thread; validate on the other, one part behind."""
        known: dict[str, Datapath] = {}
        for group in groups:
            for state in group:
                if self._stop():
                    return
                kept = self.store.is_finished(state.id)
                result = self._kept(state) if kept else self._derive(state, known.get(state.opcode))
                if result.datapath is not None:
                    known.setdefault(state.opcode, result.datapath)
                pending.append(validator.submit(self._finish, result, self._share(group)))

    def _kept(self, state: Instruction) -> Result:
        """What a part that an earlier run finished says, beside the file that ships now."""
        part = self.store.parts[state.id]
        table = (part.datapath or {}).get("datapath")
        datapath = from_table(table, f"{self.store.path}: {state.id}") if table else None
        comparison = compare(self.device.info()["architecture"], state, datapath, self.seed)
        return Result(state, datapath, comparison=comparison, resumed=part)

    def _derive(self, state: Instruction, start: Datapath | None) -> Result:
        begin = time.monotonic()
        say: Callable[[str], None] = lambda step: self.listener.deriving(state, step) if self.listener else None  # noqa: E731
        say("probing" if start is None else "a known relative")
        findings: dict[str, Finding] = {}
        try:
            if start is None and not state.chunk:
                findings = probe(self.device, state, seed=self.seed)
                _check_sound(findings)
            derivation = derive(self.device, state, seed=self.seed, start=start, findings=findings, say=say)
            comparison = compare_with_shipped(self.device.info().get("architecture", ""), state, derivation, self.seed)
        except Exception as error:
            probed = tuple(findings.values())
            return self._failed(Result(state, seconds=time.monotonic() - begin, findings=probed), error)
        finally:
            if self.listener:
                self.listener.derived(state)
        return Result(state, derivation.datapath, derivation, comparison, seconds=time.monotonic() - begin)

    def _finish(self, result: Result, vectors: int) -> Result:
        """Validate against the derived datapath, and save the part; against the shipped one where none was found, or
        where no vector told the two apart.  What an earlier run finished is done."""
        if result.resumed is not None:
            return result
        begin = time.monotonic()
        comparison = result.comparison
        shipped = comparison.shipped if comparison is not None else None
        reference = result.datapath or shipped
        if comparison is not None and comparison.outcome == "equivalent":
            reference = shipped
        if not result.error and reference is not None:
            result = self._validate(result, reference, vectors)
        result = replace(result, seconds=result.seconds + time.monotonic() - begin)
        self.store.save(to_part(result))
        return result

    def _validate(self, result: Result, reference: Datapath, vectors: int) -> Result:
        model = DatapathDevice(result.instruction, reference)
        try:
            summary = validate(
                self.device,
                model,
                result.instruction,
                vectors,
                self.seed + 1,
                progress=self.listener.compared if self.listener else None,
                stop=self._stop,
            )
        except Exception as error:
            return result if self.stopping else self._failed(result, error)
        return replace(result, summary=summary)

    def _failed(self, result: Result, error: Exception) -> Result:
        """What went wrong with one instruction is its result, an error that nobody foresaw too; the others go on."""
        said = error if isinstance(error, MmaprobeError) else unforeseen(error, self.store.path)
        code = INCONCLUSIVE if isinstance(said, UsageError) else said.exit_code
        return replace(result, error=str(said), error_code=code)
