"""A recording: what a device answered to vectors named by recipes, in one small archive.

``recording.tar.gz`` holds ``recording.json`` (the device, the rows of its architecture where that does not ship, and of
each instruction its recipes and the SHA-256 of the operands that they make and of d), ``outputs.bin`` (d of all sets in
their order, little-endian) and ``witnesses.json``; the list has the digest of that and, last, its own.  The same
recording gives the same bytes.  A reader makes the operands again and holds all against their digests.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mmaprobe.catalog import lookup
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.outside import add_all, of
from mmaprobe.errors import CannotWriteError, UsageError, brief
from mmaprobe.evidence import silicon
from mmaprobe.evidence.corpus import Corpus, Set, set_of
from mmaprobe.evidence.files import FileValue, check_seal, digest_of, json_text, parse_json, sealed, write_bytes
from mmaprobe.evidence.records import Witness
from mmaprobe.evidence.records_json import witness_from_json, witness_to_json
from mmaprobe.generators import generate
from mmaprobe.operands.batch import Batch, Bits

SCHEMA = 2
"""Schema 1 had a digest of the operands alone."""
KIND = "mmaprobe recording"
MOST_BYTES = 12 << 20
"""An archive is no larger; without its witnesses where it would be."""
MOST_UNPACKED = 256 << 20
"""Bytes of an archive unpacked at most, told before they are: twenty times ``MOST_BYTES``."""
MOST_VECTORS = 1 << 20
"""Vectors of a set: more is no recording of ours."""
MOST_OPERANDS = 1 << 30
"""Bytes of the operands that the recipes of all sets make."""
LIST, OUTPUTS, WITNESSES = "recording.json", "outputs.bin", "witnesses.json"
_UNREADABLE = (OSError, EOFError, ValueError, RecursionError, tarfile.TarError, zlib.error)


@dataclass(frozen=True)
class Share:
    """``count`` consecutive vectors of a family, from ``start`` on."""

    family: str
    version: int
    seed: int
    start: int
    count: int


@dataclass(frozen=True)
class Recorded:
    """One instruction: the shares that make its operands, their SHA-256, and d (n,)."""

    instruction: str
    shares: tuple[Share, ...]
    digest: str
    d: Bits

    def to_json(self) -> dict[str, Any]:
        """As evidence keeps it; d as the hexadecimal text of its little-endian bytes."""
        return {"shares": _shares_form(self.shares), "sha256": self.digest, "bytes": self.d.itemsize,
                "d": self.outputs.hex(), "d_sha256": digest_of(self.outputs)}  # fmt: skip

    @property
    def outputs(self) -> bytes:
        """The little-endian bytes of d."""
        return bytes(self.d.astype(self.d.dtype.newbyteorder("<")).tobytes())

    @classmethod
    def from_json(cls, instruction: str, entry: Mapping[str, Any], where: Path) -> Recorded:
        """What ``to_json`` wrote."""
        field = FileValue(where, instruction, dict(entry))
        try:
            outputs = bytes.fromhex(field["d"].text)
            d = np.frombuffer(outputs, f"<u{field['bytes'].one_of(1, 2, 4, 8)}")
        except ValueError:
            raise field["d"].wrong("must be hexadecimal items of d") from None
        if digest_of(outputs) != field["d_sha256"].text:
            raise field["d_sha256"].wrong("is not that of d")
        native = np.ascontiguousarray(d, d.dtype.newbyteorder("="))
        return cls(instruction, _shares(field["shares"]), field["sha256"].text, native)


@dataclass(frozen=True)
class Recording:
    """Of one device, with its identity and the run's id; ``witnesses`` by instruction."""

    device: str
    identity: Mapping[str, str]
    run: str
    sets: tuple[Recorded, ...]
    witnesses: Mapping[str, tuple[Witness, ...]]


def operands_of(made: Instruction, shares: Sequence[Share]) -> tuple[Batch, str]:
    """The vectors of the shares, one after another, and the SHA-256 of their operands."""
    parts = [generate(made, each.family, each.seed, each.start, each.count, each.version) for each in shares]
    whole = {name: np.concatenate([getattr(part, name) for part in parts]) for name, _ in parts[0].items()}
    digest = hashlib.sha256()
    for name, value in sorted(whole.items()):
        digest.update(f"{name} {value.itemsize} {value.shape}\n".encode())
        digest.update(np.ascontiguousarray(value, value.dtype.newbyteorder("<")).tobytes())
    return Batch(**whole), digest.hexdigest()


def write_recording(path: Path, recording: Recording) -> None:
    """Write ``archive``; CannotWriteError where that is too large, or cannot be written."""
    write_bytes(path, archive(recording))


def archive(recording: Recording) -> bytes:
    """The archive; without its witnesses where it would be larger than ``MOST_BYTES``, which its list says.

    CannotWriteError where it is too large even so.
    """
    content = _archive(recording, recording.witnesses)
    if len(content) > MOST_BYTES:
        content = _archive(recording, None)
    if len(content) > MOST_BYTES:
        raise CannotWriteError(f"the recording takes {len(content):,} bytes; it may take {MOST_BYTES:,}")
    return content


def _archive(recording: Recording, witnesses: Mapping[str, tuple[Witness, ...]] | None) -> bytes:
    ordered = sorted(recording.sets, key=lambda each: each.instruction)
    head = {
        "schema": SCHEMA,
        "kind": KIND,
        "device": recording.device,
        "identity": dict(recording.identity),
        "run": recording.run,
        "sets": [{"instruction": each.instruction, "shares": _shares_form(each.shares), "sha256": each.digest,
                  "bytes": each.d.itemsize, "d_sha256": digest_of(each.outputs)} for each in ordered],
        "witnesses": "left out: too large" if witnesses is None else "whole",
    }  # fmt: skip
    carried = of(recording.identity.get("architecture", ""))
    head |= {"catalog": carried} if carried else {}
    shown = {name: [witness_to_json(each) for each in found] for name, found in (witnesses or {}).items()}
    beside = json_text(shown).encode()
    listed = json_text(sealed(head | {"witnesses_sha256": digest_of(beside)})).encode()
    members = {LIST: listed, OUTPUTS: b"".join(each.outputs for each in ordered), WITNESSES: beside}
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return gzip.compress(held.getvalue(), 9, mtime=0)


def read_recording(path: Path) -> Corpus:
    """The archive as a corpus: operands made anew, its witnesses beside them.

    UsageError naming the file and the key for anything damaged, and where a recipe does not make the operands that
    were recorded.
    """
    members = _members(path)
    head = _document(path, members, LIST)
    head["kind"].one_of(KIND)
    if head["schema"].whole > SCHEMA:
        raise head["schema"].wrong(f"is newer than {SCHEMA}: pip install --upgrade mmaprobe")
    checked = check_seal(head, SCHEMA)
    identity, device = head["identity"].typed(dict), head["device"].text
    unit, architecture = unit_of(identity, device), str(identity.get("architecture", ""))
    said = silicon.said_by(device, identity)
    if "catalog" in head.typed(dict):
        add_all((each.typed(dict) for each in head["catalog"]), str(path))
    sets: list[Set] = []
    arrays: dict[str, Bits] = {}

    def put(made: Instruction, vectors: Batch, d: Bits, key: str) -> None:
        sets.append(set_of(made, unit, architecture, f"mmaprobe {device}", d.size, key, said))
        arrays.update({f"{key}/{name}": value for name, value in [*vectors.items(), ("d", d)]})

    rest, room = members[OUTPUTS], MOST_OPERANDS
    for entry in head["sets"]:
        made = lookup.instruction(entry["instruction"].text, architecture)
        if f"{unit}/{made.id}" in (each.key for each in sets):
            raise entry["instruction"].wrong(f"is {made.id}, which has a set already")
        vectors, d, rest = _set(entry, made, rest, checked, room)
        room -= sum(value.nbytes for _, value in vectors.items())
        put(made, vectors, d, f"{unit}/{made.id}")
    if rest:
        raise UsageError(f"{path}: {OUTPUTS} is longer than its sets")
    shown = _document(path, members, WITNESSES)
    if checked and digest_of(members[WITNESSES]) != head["witnesses_sha256"].text:
        raise head["witnesses_sha256"].wrong(f"is not that of {WITNESSES}")
    for name in shown.typed(dict):
        made = lookup.instruction(name, architecture)
        found = [witness_from_json(each) for each in shown[name]]
        if found:
            put(made, *_batch(shown[name], made, found), f"{unit}/{made.id}/witnesses")
    return Corpus(sets, arrays, path=path, sealed=checked)


def unit_of(identity: Mapping[str, str], device: str) -> str:
    """What a recorded unit is called."""
    return identity.get("gpu") or identity.get("model_name") or identity.get("name") or device


def _set(entry: FileValue, made: Instruction, rest: bytes, checked: bool, room: int) -> tuple[Batch, Bits, bytes]:
    """A set's operands, of at most ``room`` bytes, and outputs, and the bytes behind these; ``checked``: against the
    digest of the outputs, too."""
    shares = _shares(entry["shares"])
    count, dtype = sum(share.count for share in shares), made.formats()["d"].dtype
    if not 0 < count <= MOST_VECTORS:
        raise entry["shares"].wrong(f"makes {brief(count)} vectors; it must be 1 to {MOST_VECTORS}")
    if entry["bytes"].whole != dtype.itemsize:
        raise entry["bytes"].wrong(f"is {brief(entry['bytes'].whole)}; {made.id} has results of {dtype.itemsize}")
    size = count * dtype.itemsize
    if len(rest) < size:
        raise UsageError(f"{entry.file}: {OUTPUTS} ends before {made.id}: truncated")
    one = sum(value.nbytes for _, value in operands_of(made, [replace(shares[0], count=1)])[0].items())
    if count * one > room:
        raise entry["shares"].wrong(f"makes operands of more than {MOST_OPERANDS >> 20} MiB, with the sets before it")
    vectors, digest = operands_of(made, shares)
    if digest != entry["sha256"].text:
        raise entry["sha256"].wrong(f"is not that of the operands which the recipes of {made.id} make here")
    if checked and digest_of(rest[:size]) != entry["d_sha256"].text:
        raise entry["d_sha256"].wrong(f"is not that of the results of {made.id} in {OUTPUTS}")
    d = np.frombuffer(rest[:size], dtype.newbyteorder("<"))
    return vectors, np.ascontiguousarray(d, dtype), rest[size:]


def _batch(field: FileValue, made: Instruction, witnesses: Sequence[Witness]) -> tuple[Batch, Bits]:
    """Witnesses as vectors with their answers."""
    types = {role: fmt.dtype for role, fmt in made.formats().items()} | {"metadata": np.dtype(np.uint8)}
    try:
        given = {name: np.array([getattr(each, name) for each in witnesses], types[name])
                 for name in (*made.shapes(1), "d")}  # fmt: skip
    except (ValueError, TypeError, OverflowError) as error:
        raise field.wrong(f"does not hold vectors of {made.id}: {error}") from None
    d = given.pop("d")
    return Batch(**given), d


def _members(path: Path) -> dict[str, bytes]:
    """The archive's files, each read once and within bounds."""
    found: dict[str, bytes] = {}
    try:
        with gzip.open(path) as unpacked:
            content = unpacked.read(MOST_UNPACKED + 1)
        if len(content) > MOST_UNPACKED:
            raise UsageError(f"{path}: more than {MOST_UNPACKED >> 20} MiB unpacked; no recording of ours")
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
            for entry in tar:
                if entry.name not in (LIST, OUTPUTS, WITNESSES) or entry.name in found:
                    raise UsageError(f"{path}: {brief(entry.name)} is no file of a recording, or there twice")
                plain = entry.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and entry.sparse is None
                if not plain or entry.size > len(content):  # a sparse file's size is whatever its header says
                    raise UsageError(f"{path}: {entry.name} is no plain file of the size that it has in the archive")
                held = tar.extractfile(entry)
                found[entry.name] = held.read() if held is not None else b""
    except UsageError:
        raise
    except _UNREADABLE as error:
        raise UsageError(f"{path}: not a recording, or damaged: {error}") from error
    for name in (LIST, OUTPUTS, WITNESSES):
        if name not in found:
            raise UsageError(f"{path}: {name} is missing; not a recording, or damaged")
    return found


def _document(path: Path, members: Mapping[str, bytes], name: str) -> FileValue:
    return parse_json(path / name, members[name])


def _shares_form(shares: Sequence[Share]) -> list[list[object]]:
    return [[each.family, each.version, each.seed, each.start, each.count] for each in shares]


def _shares(field: FileValue) -> tuple[Share, ...]:
    found = []
    for each in field:
        parts = list(each)
        if len(parts) != 5:
            raise each.wrong("must be family, version, seed, start and count")
        share = Share(parts[0].text, *(part.whole for part in parts[1:]))
        if share.count < 1:
            raise parts[4].wrong(f"is {brief(share.count)} vectors")
        found.append(share)
    return tuple(found)
