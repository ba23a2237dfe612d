"""The archive of a recording: the same bytes for the same answers, small, whole or refused; as a device it answers."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmaprobe.catalog.lookup import instruction
from mmaprobe.devices import recording
from mmaprobe.devices.base import open_device, run_vectors
from mmaprobe.devices.recording import Recorded, Recording, Share, operands_of, read_recording, write_recording
from mmaprobe.errors import CannotWriteError, UsageError
from mmaprobe.evidence.files import sealed
from mmaprobe.operands.batch import Batch, Witness

IDS = (
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16",
    "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64.rn",
    "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.u8",
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16{scale_d=0}",
)
SHARES = (Share("uniform", 1, 7, 0, 20), Share("specials", 1, 7, 100, 5))


def recorded(identifier: str) -> Recorded:
    made = instruction(identifier, "sm_90a")
    vectors, digest = operands_of(made, SHARES)
    return Recorded(identifier, SHARES, digest, run_vectors(open_device("model:sm_90a"), made, vectors))


def example() -> Recording:
    made = instruction(IDS[0])
    zeros = Batch(**{name: np.zeros((1, *shape), value) for name, shape, value in (
        ("a", (16,), np.uint16), ("b", (16,), np.uint16), ("c", (), np.uint32))})  # fmt: skip
    witness = Witness.of(zeros, int(run_vectors(open_device("model:sm_90a"), made, zeros)[0]), "zeros")
    identity = {"architecture": "sm_90a", "model_name": "H200"}
    return Recording("cuda:0", identity, "0" * 12, tuple(map(recorded, IDS)), {IDS[0]: (witness,)})


def written(path: Path, **changes: Any) -> Path:
    write_recording(path / "r.tar.gz", replace(example(), **changes))
    return path / "r.tar.gz"


def test_round_trip(tmp_path: Path) -> None:
    """Every set comes back with its operands, and the device of the archive gives the recorded answers."""
    path = written(tmp_path)
    device = open_device(f"replay:{path}")
    assert device.info()["gpu"] == "H200"
    assert [made.id for made in device.instructions()] == sorted(IDS)
    for each in map(recorded, IDS):
        made = instruction(each.instruction, "sm_90a")
        vectors, _ = operands_of(made, SHARES)
        assert (run_vectors(device, made, vectors) == each.d).all()
    assert read_recording(path).vectors(f"H200/{IDS[0]}/witnesses")[0].size == 1


def test_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    other = written(tmp_path / "b", sets=tuple(map(recorded, reversed(IDS))))
    assert written(tmp_path).read_bytes() == other.read_bytes()


def test_too_large_goes_without_witnesses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = written(tmp_path).stat().st_size
    monkeypatch.setattr(recording, "MOST_BYTES", whole - 1)
    assert written(tmp_path).stat().st_size < whole
    assert not any("witnesses" in each.key for each in read_recording(tmp_path / "r.tar.gz").sets())
    monkeypatch.setattr(recording, "MOST_BYTES", 100)
    with pytest.raises(CannotWriteError, match="it may take 100"):
        written(tmp_path)


def changed(path: Path, name: str, change: Any) -> None:
    """The archive with one member changed."""
    members = recording._members(path)
    members[name] = change(members.get(name, b""))
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as tar:
        for key, content in members.items():
            if content is not None:
                entry = tarfile.TarInfo(key)
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    path.write_bytes(gzip.compress(held.getvalue()))


def listed(**changes: Any) -> Any:
    """A change of the first set in the list."""

    def change(content: bytes) -> bytes:
        document = json.loads(content)
        document["sets"][0].update(changes)
        return json.dumps(sealed(document)).encode()

    return change


def twice(content: bytes) -> bytes:
    """The list with its first set at its end again."""
    document = json.loads(content)
    document["sets"].append(document["sets"][0])
    return json.dumps(sealed(document)).encode()


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("recording.json", lambda _: b"{", "recording.json: line 1"),
        ("recording.json", lambda _: b"[]", "must be a table"),
        ("recording.json", listed(sha256="0" * 64), r"sets\[0\].sha256 is not that of the operands"),
        ("recording.json", listed(shares=[["uniform", 1, 8, 0, 25]]), r"sets\[0\].sha256 is not that of the operands"),
        ("recording.json", listed(shares=[["uniform", 1, 8, 0, 1 << 40]]), "makes 1099511627776 vectors"),
        ("recording.json", listed(shares=[["uniform", 1, 8]]), "must be family, version, seed, start and count"),
        ("recording.json", listed(instruction="mma.none"), "unknown instruction 'mma.none'"),
        ("recording.json", lambda content: content.replace(b"H200", b"H201"), "sha256 is not that of the rest"),
        ("outputs.bin", lambda content: content[:-1], "truncated"),
        ("outputs.bin", lambda content: bytes([content[0] ^ 1]) + content[1:], r"sets\[0\].d_sha256 is not that of"),
        ("witnesses.json", lambda content: content.replace(b"zeros", b"ones"), "witnesses_sha256 is not that of"),
        ("outputs.bin", lambda content: content + b"0", "longer than its sets"),
        (
            "recording.json",
            listed(shares=[["uniform", 1, 7, 0, 1 << 40], ["uniform", 1, 7, 0, 25 - (1 << 40)]]),
            r"shares\[1\]\[4\] is -1099511627751 vectors",
        ),
        ("recording.json", listed(shares=[["uniform", 1, 7, 0, int("9" * 4300)]] * 2), "makes a number of 142"),
        ("recording.json", listed(bytes=int("9" * 4300)), "bytes is a number of 142"),
        ("recording.json", twice, "has a set already"),
        ("extra.bin", lambda _: b"", "'extra.bin' is no file of a recording"),
        (
            "witnesses.json",
            lambda _: b'{"%s": [{"a": [], "d": "0x0", "note": ""}]}' % IDS[0].encode(),
            "witnesses_sha256 is not that of witnesses.json",
        ),
        ("outputs.bin", lambda _: None, "outputs.bin is missing"),
    ],
)
def test_damaged(tmp_path: Path, name: str, change: Any, says: str) -> None:
    path = written(tmp_path)
    changed(path, name, change)
    with pytest.raises(UsageError, match=says):
        read_recording(path)


def test_no_archive(tmp_path: Path) -> None:
    path = tmp_path / "r.tar.gz"
    for content in (b"", b"text", gzip.compress(b"text" * 500), written(tmp_path).read_bytes()[:-40]):
        path.write_bytes(content)
        with pytest.raises(UsageError, match="not a recording, or damaged"):
            open_device(f"replay:{path}")


def test_operands_of_gigabytes_are_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the recipes of all sets make is bounded by what is left of the room, before they make it."""
    path = written(tmp_path)
    sizes = [sum(value.nbytes for _, value in operands_of(instruction(name, "sm_90a"), SHARES)[0].items())
             for name in IDS]  # fmt: skip
    monkeypatch.setattr(recording, "MOST_OPERANDS", sum(sizes))
    read_recording(path)
    monkeypatch.setattr(recording, "MOST_OPERANDS", sum(sizes) - 1)
    with pytest.raises(UsageError, match=r"sets\[4\]\.shares makes operands of more than"):
        read_recording(path)


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_SPARSE, tarfile.SYMTYPE, tarfile.DIRTYPE])
def test_a_member_is_a_plain_file(tmp_path: Path, kind: bytes) -> None:
    """A sparse one of 1 TiB has no byte in the archive; it is refused unread."""
    entry = tarfile.TarInfo("outputs.bin")
    entry.type, entry.linkname = kind, "recording.json"
    block = bytearray(entry.tobuf(tarfile.GNU_FORMAT))
    if kind == tarfile.GNUTYPE_SPARSE:
        block[386:410] = b"00000000000\0" * 2
        block[483:495] = b"\x80" + (1 << 40).to_bytes(11, "big")
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    path = tmp_path / "r.tar.gz"
    path.write_bytes(gzip.compress(bytes(block) + bytes(1024)))
    with pytest.raises(UsageError, match=r"outputs\.bin is no plain file"):
        read_recording(path)
