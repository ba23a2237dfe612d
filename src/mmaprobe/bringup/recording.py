"""The step ``recording``: what the device answers to vectors named by recipes, for those who do not have it."""

from __future__ import annotations

from collections.abc import Iterator

from mmaprobe.bringup.asking import answers_of
from mmaprobe.bringup.room import Room, Work
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.modifiers import moves_operands
from mmaprobe.devices.base import run_vectors
from mmaprobe.devices.recording import Recorded, Recording, Share, archive, operands_of
from mmaprobe.evidence.records import Witness
from mmaprobe.generators import plan as shares_of
from mmaprobe.generators.families import VERSIONS

DISTINCT, EACH = 1000, 16
"""Vectors of each distinct family, formats and K, and of every other instruction."""
ARCHIVE = "recording.tar.gz"


def record_all(room: Room) -> Work:
    """Run each instruction's vectors once; inputs are kept as recipes with a hash, outputs as bits."""
    result = room.result("recording")
    sets = result.setdefault("sets", {})
    plan = room.sound()
    distinct = set(plan.distinct)
    for made in plan.asked:
        if made.id in sets or room.left_out(made) or moves_operands(made):
            continue
        with room.asking(made):
            sets[made.id] = _record(room, made, DISTINCT if made in distinct else EACH).to_json()
        count = sum(share[-1] for each in sets.values() for share in each["shares"])
        result["text"] = f"{count:,} vectors of {len(sets)} instructions"
        yield made.id


def _record(room: Room, made: Instruction, count: int) -> Recorded:
    shares = tuple(
        Share(family, VERSIONS[family], room.seed, start, size)
        for family, start, size in shares_of(made, count)
        if size
    )
    vectors, digest = operands_of(made, shares)
    return Recorded(made.id, shares, digest, run_vectors(room.device, made, vectors).astype(made.formats()["d"].dtype))


def write_archive(room: Room) -> None:
    """The recording with all witnesses as one archive; nothing where nothing was recorded."""
    sets = room.result("recording").get("sets", {})
    recorded = [Recorded.from_json(name, entry, room.store.path) for name, entry in sets.items()]
    if recorded:
        header = room.store.header
        recording = Recording(header.device, dict(header.identity), header.run, tuple(recorded), _witnesses(room))
        room.store.attach(ARCHIVE, archive(recording))


def _witnesses(room: Room) -> dict[str, tuple[Witness, ...]]:
    """Of every sound instruction the vectors that decided something: derivations', probes' and answers'."""
    found: dict[str, dict[Witness, None]] = {}
    for name, witness in _all_witnesses(room):
        found.setdefault(name, {})[witness] = None
    return {name: tuple(each) for name, each in sorted(found.items())}


def _all_witnesses(room: Room) -> Iterator[tuple[str, Witness]]:
    for name, part in room.parts.items():
        if "error" in part.validation:
            continue
        yield from ((name, each) for each in part.witnesses)
        yield from ((name, each) for finding in part.findings for each in finding.witnesses)
    for answer in answers_of(room.store):
        if answer.status in ("settled", "open"):
            yield from ((answer.instruction, shown.witness) for shown in answer.witnesses)
