"""The main job: probe, derive, compare with the shipped file, validate, record, for every instruction of a device."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import mmaprobe
from mmaprobe.bringup.result import Report, Result, to_part
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import architectures, forms, instructions, is_glob, matches, short
from mmaprobe.catalog.lookup import instruction as lookup_instruction
from mmaprobe.catalog.states import default_state, modes
from mmaprobe.derivation import derive
from mmaprobe.derivation.comparison import compare_with_shipped
from mmaprobe.devices.base import Device, open_device, schemes, serial
from mmaprobe.devices.model import DatapathDevice
from mmaprobe.errors import DeviceError, MmaprobeError, NotHereError, UsageError, near
from mmaprobe.evidence.store import Header, Store
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.probing import probe
from mmaprobe.validation import validate

PREFERRED = ("cuda:0", "hip:0", "cpu")
LEAST_PER_MODE = 100_000


class Listener(Protocol):
    """Who is told how the run goes."""

    def begin(self, device: Device, states: int, vectors: int) -> None: ...
    def deriving(self, instruction: Instruction, step: str) -> None: ...
    def derived(self, instruction: Instruction) -> None: ...
    def compared(self, vectors: int) -> None: ...


def best_device() -> Device:
    """The best device here: a GPU where there is one, else the CPU."""
    for name in PREFERRED:
        if name.partition(":")[0] in schemes():
            try:
                return open_device(name)
            except NotHereError:
                continue
    raise NotHereError("no device is here, not even the CPU; see: mmaprobe doctor")


def run(
    device: Device | str | None = None,
    *,
    instruction: str = "*",
    vectors: int = 10_000_000,
    seed: int = 0,
    out: str | Path | None = None,
    budget: float | None = None,
    resume: bool = False,
    check: bool = False,
    listener: Listener | None = None,
) -> Report:
    """Probe, derive and validate every supported instruction that ``instruction`` (an id or glob) names.

    ``vectors`` are compared per instruction, divided among its control states
    (at least 10**5 each).  ``budget`` minutes end the run cleanly; ``resume`` goes
    on in ``out``; with ``check`` a datapath that is not the shipped one is a
    failure (exit code 1).  Evidence is written as each part ends.

    Raises UsageError, NotHereError, CannotWriteError; what a device does wrong is
    in the report.
    """
    if vectors < 0:
        raise UsageError(f"--vectors is {vectors}; it must not be negative")
    opened = open_device(device) if isinstance(device, str) else device or best_device()
    chosen, absent = select(opened, instruction)
    folder = Path(out) if out else Path("mmaprobe-evidence") / f"{_file_name(opened.name)}-{_stamp()}"
    header = Header(
        device=opened.name,
        identity=opened.info(),
        version=mmaprobe.__version__,
        seed=seed,
        settings={"instruction": instruction, "vectors": vectors},
    )
    store = _resume(folder, header) if resume else Store.create(folder, header)
    deadline = None if budget is None else time.monotonic() + 60 * budget
    campaign = _Campaign(serial(opened), store, vectors, seed, deadline, listener, check)
    return campaign.run(chosen, absent)


def select(device: Device, pattern: str) -> tuple[list[tuple[Instruction, ...]], list[tuple[str, str]]]:
    """What of the device a glob names: groups of control states that run here, and what does not run and why.

    An id or glob with braces names single control states, one without them
    whole instructions with all their states.  Of a form that the device lists
    by its first instruction, it is the first that the glob names.
    """
    states = [modes(base) for base in _listed(device, pattern)]
    groups: list[tuple[Instruction, ...]]
    if "{" in pattern:
        groups = [(state,) for group in states for state in group if _matches(state, pattern)]
    else:
        groups = [group for group in states if _matches(group[0], pattern)]
    if not groups:
        known = [group[0].id for group in states]
        raise UsageError(
            f"{device.name} has no instruction {pattern!r}{near(pattern, known)}; see: mmaprobe instructions"
        )
    here = [group for group in groups if device.supports(group[0])]
    absent = [(group[0].id, device.supports(group[0]).reason) for group in groups if not device.supports(group[0])]
    if not here:
        raise NotHereError(f"{pattern} does not run on {device.name}: {absent[0][1]}")
    return here, absent


def _listed(device: Device, pattern: str) -> Sequence[Instruction]:
    """The device's instructions; where those are an architecture's forms, each at what the pattern names of it."""
    listed = device.instructions()
    architecture = device.info().get("architecture", "")
    if architecture.partition("+")[0] not in architectures() or tuple(listed) != instructions(architecture):
        return listed
    if not is_glob(pattern):
        try:
            return [default_state(lookup_instruction(pattern, architecture))]
        except UsageError:
            return listed
    found = [form.first for form in forms(architecture, pattern)]
    stateful = [base for base in listed if base.controls and base not in found] if "{" in pattern else []
    return [*found, *stateful] or listed


def _matches(instruction: Instruction, pattern: str) -> bool:
    return pattern in (instruction.id, short(instruction.id)) or matches(instruction, pattern)


def _file_name(device: str) -> str:
    """A device's name with everything that does not belong in a file name as a hyphen."""
    return re.sub(r"[^A-Za-z0-9_+]+", "-", device)


def _stamp() -> str:
    return datetime.now().strftime("%Y%m%d-%H%M%S")


def _resume(folder: Path, header: Header) -> Store:
    if not (folder / "manifest.json").exists():
        return Store.create(folder, header)
    store = Store.open(folder)
    for name in ("device", "identity", "version", "seed", "settings"):
        before, now = (_lasting(getattr(of, name)) for of in (store.header, header))
        if before != now:
            raise UsageError(
                f"{folder} was begun with another {name} ({before!r}, now {now!r}); "
                "start anew with another --out, or give the same options"
            )
    return store


def _lasting(value: Any) -> Any:
    """What must be the same when a run goes on: an identity without its readings of clocks."""
    return {k: v for k, v in value.items() if not k.startswith("clock_")} if isinstance(value, Mapping) else value


@dataclass
class _Campaign:
    device: Device
    store: Store
    vectors: int
    seed: int
    deadline: float | None
    listener: Listener | None
    check: bool
    results: list[Result] = field(default_factory=list)
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
                results = [future.result() for future in pending if not future.cancel()]
        ended = "interrupted" if interrupted else "the budget was spent" if self._late() else ""
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
        )

    def _share(self, group: Sequence[Instruction]) -> int:
        return max(self.vectors // len(group), min(LEAST_PER_MODE, self.vectors))

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
                if self.store.is_finished(state.id):
                    part = self.store.parts[state.id]
                    pending.append(validator.submit(lambda s=state, p=part: Result(s, resumed=p)))  # type: ignore[misc]
                    continue
                result = self._derive(state, known.get(state.opcode))
                if result.datapath is not None:
                    known.setdefault(state.opcode, result.datapath)
                pending.append(validator.submit(self._finish, result, self._share(group)))

    def _derive(self, state: Instruction, start: Datapath | None) -> Result:
        begin = time.monotonic()
        say: Callable[[str], None] = lambda step: self.listener.deriving(state, step) if self.listener else None  # noqa: E731
        say("probing" if start is None else "a known relative")
        try:
            findings = probe(self.device, state, seed=self.seed) if start is None and not state.chunk else {}
            derivation = derive(self.device, state, seed=self.seed, start=start, findings=findings, say=say)
            comparison = compare_with_shipped(self.device.info()["architecture"], state, derivation, self.seed)
        except MmaprobeError as error:
            return Result(state, seconds=time.monotonic() - begin, error=str(error), error_code=error.exit_code)
        finally:
            if self.listener:
                self.listener.derived(state)
        return Result(state, derivation.datapath, derivation, comparison, seconds=time.monotonic() - begin)

    def _finish(self, result: Result, vectors: int) -> Result:
        """Validate against the derived datapath (the shipped one where none was found), and save the part."""
        begin = time.monotonic()
        reference = result.datapath or (result.comparison.shipped if result.comparison else None)
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
        except DeviceError as error:
            return replace(result, error=str(error), error_code=error.exit_code)
        return replace(result, summary=summary)
