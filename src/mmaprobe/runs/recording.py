"""The steps ``outputs`` and ``recording``: what a device answers to vectors named by recipes, for others to replay."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Any

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.modifiers import moves_operands
from mmaprobe.devices.base import run_vectors
from mmaprobe.devices.recording import Recorded, Recording, Share, archive, operands_of
from mmaprobe.errors import CannotWriteError
from mmaprobe.evidence.records import Witness
from mmaprobe.generators import plan as shares_of
from mmaprobe.generators.families import VERSIONS
from mmaprobe.runs.asking import answers_of
from mmaprobe.runs.run_state import FLAGGED, RunState, Work
from mmaprobe.runs.selftest import kernels
from mmaprobe.showing import counted

DISTINCT = 1000
"""Vectors recorded of each distinct family, formats and K."""
EACH = 16
"""Vectors recorded of every other instruction."""
ARCHIVE = "recording.tar.gz"
RECORDING = ("recording", "outputs")
"""The steps that record; of what both did the latter's counts."""


def record_main(run: RunState) -> Work:
    """Run the vectors of the main forms and the self-test's, before anything else can go wrong."""
    first = tuple(dict.fromkeys((*run.sound().main, *kernels(run))))
    yield from _recorded(run, "outputs", first, first, {})


def record_all(run: RunState) -> Work:
    """Run each instruction's vectors once; inputs are kept as recipes with a hash, outputs as bits.

    What contradicts itself is recorded too: nowhere do its answers matter more.
    """
    plan = run.sound(flagged=True)
    yield from _recorded(run, "recording", plan.asked, set(plan.distinct), run.result("outputs").get("sets", {}))


def _recorded(
    run: RunState, step: str, every: Iterable[Instruction], distinct: Container[Instruction], known: Container[str]
) -> Work:
    """Record every instruction that is not ``known``, many vectors of those that are ``distinct``."""
    result = run.result(step)
    sets = result.setdefault("sets", {})
    for made in every:
        if made.id in sets or made.id in known or run.broken(made) or moves_operands(made):
            continue
        with run.asking(made):
            sets[made.id] = _record(run, made, DISTINCT if made in distinct else EACH).to_json()
        result["text"] = _text(run, sets)
        yield made.id


def _text(run: RunState, sets: dict[str, Any]) -> str:
    count = sum(share[-1] for each in sets.values() for share in each["shares"])
    flagged = [name for name in sets if name in run.parts and FLAGGED in run.parts[name].validation]
    said = f"{counted(count, 'vector')} of {counted(len(sets), 'instruction')}"
    return said + "".join(f"; {name} contradicts itself" for name in flagged)


def _sets(run: RunState) -> dict[str, Any]:
    """What is recorded so far, of both steps."""
    return {name: entry for step in RECORDING for name, entry in run.result(step).get("sets", {}).items()}


def _record(run: RunState, made: Instruction, count: int) -> Recorded:
    shares = tuple(
        Share(family, VERSIONS[family], run.seed, start, size) for family, start, size in shares_of(made, count) if size
    )
    vectors, digest = operands_of(made, shares)
    return Recorded(made.id, shares, digest, run_vectors(run.device, made, vectors).astype(made.formats()["d"].dtype))


def write_archive(run: RunState) -> list[str]:
    """The recording with all witnesses as one archive; nothing where nothing was recorded.

    A line where it would be too large: what was recorded is in the steps' own files all the same.
    """
    recorded = [Recorded.from_json(name, entry, run.store.path) for name, entry in _sets(run).items()]
    if not recorded:
        return []
    header = run.store.header
    recording = Recording(header.device, dict(header.identity), header.run, tuple(recorded), _witnesses(run))
    try:
        content = archive(recording)
    except CannotWriteError as error:
        return [f"no {ARCHIVE} is written: {error}; send {run.store.path / 'steps'}"]
    run.store.attach(ARCHIVE, content)
    return []


def _witnesses(run: RunState) -> dict[str, tuple[Witness, ...]]:
    """Of every sound instruction the vectors that decided something: derivations', probes' and answers'."""
    found: dict[str, dict[Witness, None]] = {}
    for name, witness in _all_witnesses(run):
        found.setdefault(name, {})[witness] = None
    return {name: tuple(each) for name, each in sorted(found.items())}


def _all_witnesses(run: RunState) -> Iterator[tuple[str, Witness]]:
    for name, part in run.parts.items():
        if "error" in part.validation and FLAGGED not in part.validation:
            continue
        yield from ((name, each) for each in part.witnesses)
        yield from ((name, each) for finding in part.findings for each in finding.witnesses)
    for answer in answers_of(run.store):
        if answer.status in ("settled", "open"):
            yield from ((answer.instruction, shown.witness) for shown in answer.witnesses)
