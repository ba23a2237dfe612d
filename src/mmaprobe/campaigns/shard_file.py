"""The file of a shard: written once, whole, sealed; read with errors that name the file and the key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mmaprobe.campaigns.parts import Shard
from mmaprobe.campaigns.shard import SPENT, Exhausted, PartResult, ShardResult, Unit
from mmaprobe.errors import UsageError
from mmaprobe.evidence.counts import ERRORS
from mmaprobe.evidence.files import (
    FileIsThereError,
    FileValue,
    check_place,
    check_seal,
    json_text,
    parse_json,
    sealed,
    write_new,
)
from mmaprobe.evidence.records_json import mismatch_from_json, mismatch_to_json
from mmaprobe.evidence.store import MANIFEST, SHARD_KIND, Header, read_manifest
from mmaprobe.showing import counted, mismatches_in
from mmaprobe.survey.smoke import FAMILY
from mmaprobe.validation.summary import Summary, summary_from_json

SCHEMA = 1
"""Of a shard's file."""
SUFFIX = ".shard.json"
ADVICE = "choose another folder with --out; the shards that are there are kept"
"""What to do where a shard cannot be written."""
SHARDS = "shards"
"""The folder of a campaign's shards inside its evidence."""


def shard_name(shard: Shard) -> str:
    """The file of a shard in its folder: ``00003-of-00016.shard.json``."""
    return f"{shard.number:05d}-of-{shard.of:05d}{SUFFIX}"


def check_shard_place(shard: Shard, folder: Path) -> None:
    """Before a shard is run: UsageError where one is there already, CannotWriteError where none can be written."""
    path = folder / shard_name(shard)
    if path.exists():
        raise FileIsThereError(f"{path} is there already, and such a file never changes; choose another --out")
    check_place(path, ADVICE)


def write_shard(result: ShardResult, folder: Path) -> Path:
    """Put a shard's result into a folder; UsageError where there is one of it already, CannotWriteError."""
    path = folder / shard_name(result.shard)
    document = sealed(shard_to_json(result))
    write_new(path, json_text(document).encode(), ADVICE)
    return path


def shard_to_json(result: ShardResult) -> dict[str, Any]:
    """The document of a shard's result."""
    return {
        "schema": SCHEMA,
        "kind": SHARD_KIND,
        "plan": dict(result.plan),
        "seed": result.seed,
        "version": result.version,
        "shard": result.shard.number,
        "of": result.shard.of,
        "device": {"name": result.device.name, "identity": dict(result.device.identity)},
        "reference": {"name": result.reference.name, "identity": dict(result.reference.identity)},
        "parts": result.parts,
        "count": result.count,
        "done": [_part_to_json(each) for each in result.done],
        "left": [list(each) for each in result.left],
        "ended": result.ended,
        "canaries": dict(result.canaries),
        "absent": [list(each) for each in result.absent],
        **(
            {"exhausts": {name: exhausted_json(each) for name, each in result.exhausts.items()}}
            if result.exhausts
            else {}
        ),
        "begun": result.begun,
        "seconds": round(result.seconds, 3),
    }


def exhausted_json(each: Exhausted) -> dict[str, Any]:
    """What is counted through of an instruction, and what is not."""
    spaces = {name: {"vectors": size, "counted": words} for name, (size, words) in each.spaces.items()}
    return {"spaces": spaces, "left_out": list(each.leaves)}


def _part_to_json(part: PartResult) -> dict[str, Any]:
    out: dict[str, Any] = {"part": part.number, "instruction": part.instruction}
    if part.error:
        out |= {"error": part.error, "error_code": part.code}
    if part.summary is not None:
        out |= {"compared": part.summary.form(), "stopped": part.summary.stopped,
                "mismatches": [mismatch_to_json(each) for each in part.summary.examples]}  # fmt: skip
    return out


def read_shard(path: Path) -> ShardResult:
    """The shard in a file; UsageError naming file and key where it is none, or was changed, or does not add up."""
    try:
        document = parse_json(path, path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    document["kind"].one_of(SHARD_KIND)
    schema = document["schema"]
    if not 1 <= schema.whole <= SCHEMA:
        raise schema.wrong(f"is {schema.whole}; this package reads up to {SCHEMA}: pip install --upgrade mmaprobe")
    check_seal(document, SCHEMA)
    shard = Shard(document["shard"].whole, document["of"].whole)
    count = document["count"].whole
    done = tuple(_part_from_json(each) for each in document["done"])
    left = tuple(_left(each) for each in document["left"])
    for number in (*(part.number for part in done), *(number for number, _ in left)):
        if not 0 <= number < count or number % shard.of != shard.number:
            raise document["done"].wrong(f"names part {number}, which is none of shard {shard}")
    return ShardResult(
        plan=document["plan"].typed(dict),
        seed=document["seed"].whole,
        version=document["version"].text,
        shard=shard,
        device=_unit(document["device"]),
        reference=_unit(document["reference"]),
        parts=document["parts"].text,
        count=count,
        done=done,
        left=left,
        ended=document["ended"].one_of("", SPENT),
        canaries=_canaries(document["canaries"], done),
        absent=tuple(_absent(each) for each in document["absent"]),
        exhausts=_exhausts(document["exhausts"]) if "exhausts" in document.typed(dict) else {},
        begun=document["begun"].text,
        seconds=_seconds(document["seconds"]),
    )


def shard_words(path: Path) -> tuple[str, int]:
    """What a shard's file says in a line, and its exit code; UsageError where it is not what was written, or is no
    shard of the campaign in whose folder it lies."""
    result, shards = read_shard(path), path.resolve().parent
    if shards.name == SHARDS and (shards.parent / MANIFEST).exists():
        _check_kin(path, result, read_manifest(shards.parent).header)
    said = f"{mismatches_in(result.mismatches, result.vectors)}, {counted(len(result.done), 'part')}"
    return f"shard {result.shard} of plan {result.plan['name']}, {said}", result.exit_code


def _check_kin(path: Path, result: ShardResult, header: Header) -> None:
    """UsageError where a shard and the evidence above it are of two campaigns."""
    said = {"plan": dict(result.plan), "parts": result.parts, "seed": result.seed, "version": result.version}
    kept = {name: header.settings.get(name) for name in ("plan", "parts")}
    kept |= {"seed": header.seed, "version": header.version}
    for name, value in said.items():
        if kept[name] != value:
            raise UsageError(f"{path}: key {name} is not that of {MANIFEST}: a shard of another campaign")


def _unit(field: FileValue) -> Unit:
    return Unit(field["name"].text, {key: field["identity"][key].text for key in field["identity"].typed(dict)})


def _canaries(field: FileValue, done: Sequence[PartResult]) -> Mapping[str, int]:
    """What was reported where a difference was planted: some of every instruction whose vectors count, and of no
    other one."""
    found = {name: field[name].whole for name in field.typed(dict)}
    for name, count in found.items():
        if count < 0:
            raise field[name].wrong("must not be negative")
        if name not in {part.instruction for part in done}:
            raise field[name].wrong("is of an instruction that the shard did not compare")
    for part in done:
        families = part.summary.families if part.summary is not None else ()
        if not found.get(part.instruction) and any(count.vectors for name, count in families if name != FAMILY):
            raise field.wrong(f"has none of {part.instruction}: that a difference would be reported is not shown")
    return found


def _exhausts(field: FileValue) -> Mapping[str, Exhausted]:
    return {name: _exhausted(field[name]) for name in field.typed(dict)}


def _exhausted(field: FileValue) -> Exhausted:
    spaces = {name: _space(field["spaces"][name]) for name in field["spaces"].typed(dict)}
    return Exhausted(spaces, tuple(each.text for each in field["left_out"]))


def _space(field: FileValue) -> tuple[int, str]:
    size = field["vectors"].whole
    if size < 1:
        raise field["vectors"].wrong("must be at least 1")
    return size, field["counted"].text


def _left(field: FileValue) -> tuple[int, str]:
    number, instruction = _pair(field)
    return number.whole, instruction.text


def _absent(field: FileValue) -> tuple[str, str]:
    instruction, why = _pair(field)
    return instruction.text, why.text


def _pair(field: FileValue) -> tuple[FileValue, FileValue]:
    found = list(field)
    if len(found) != 2:
        raise field.wrong("must be a pair")
    return found[0], found[1]


def _seconds(field: FileValue) -> float:
    if not (type(field.value) in (int, float) and field.value >= 0):
        raise field.wrong("must be a number of seconds")
    return float(field.value)


def _part_from_json(field: FileValue) -> PartResult:
    given = field.typed(dict)
    name, error, code = field["instruction"].text, "", 0
    if "error" in given:
        error, code = field["error"].text, int(field["error_code"].one_of(*ERRORS))
    summary: Summary | None = None
    if "compared" in given:
        examples = tuple(mismatch_from_json(each) for each in field["mismatches"])
        summary = summary_from_json(name, field["compared"], examples, bool(field["stopped"].typed(bool)))
    return PartResult(field["part"].whole, name, summary, error, code)
