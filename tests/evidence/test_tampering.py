"""No text of ours changes its meaning unseen: of every single change the reader refuses it, or reads the same.

The bare command tries a sample of each kind, ``long`` all of them; as a script, with ``PYTHONPATH=tests``, it prints
the table.
"""

from __future__ import annotations

import gzip
import io
import sys
import tarfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

import mmaprobe
from cases.tampering import bent_json, bent_text
from mmaprobe.catalog.lookup import instruction
from mmaprobe.devices import recording
from mmaprobe.devices.base import open_device, run_vectors
from mmaprobe.devices.function import open_function
from mmaprobe.devices.recording import Recorded, Recording, Share, operands_of, read_recording, write_recording
from mmaprobe.devices.replay import record
from mmaprobe.errors import UsageError
from mmaprobe.evidence.corpus import Corpus, write_corpus
from mmaprobe.evidence.store import Store
from mmaprobe.operands.batch import Batch, Witness
from mmaprobe.toolchain.build import Built
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.pack import open_pack, write_pack
from mmaprobe.validation.mismatch_file import read_saved

SAMPLE = 60
"""Changes of each file that the bare command tries."""
Bent = Iterator[tuple[str, bytes]]


@dataclass(frozen=True)
class Kind:
    """``make`` writes into a folder and says which files to bend; ``read`` says what a reader makes of the folder."""

    make: Callable[[Path], Iterable[Path]]
    read: Callable[[Path], Any]


def _evidence(folder: Path) -> Iterable[Path]:
    given: dict[str, Any] = {"instruction": "x86.pmadd*", "vectors": 300, "seed": 3}
    mmaprobe.run("model:x86-64+intel", out=folder, **given)
    return sorted(folder.rglob("*.json"))


def _steps(folder: Path) -> Iterable[Path]:
    given: dict[str, Any] = {"instruction": "mma.m16n8k8.f32.f16.f16.f32", "vectors": 300, "seed": 3}
    mmaprobe.bring_up("model:sm_90a", out=folder, steps=["layouts", "validation", "recording"], **given)
    return sorted(path for path in folder.rglob("*") if path.suffix == ".json")


def _read_evidence(folder: Path) -> Any:
    store = Store.open(folder)
    return store.header, store.parts, store.steps, store.finished


def _corpus(folder: Path) -> Iterable[Path]:
    dot = open_function("numpy:dot?k=4")
    ones = np.random.default_rng(1).normal(size=(2, 3, 4)).astype(np.float32).view(np.uint32)
    write_corpus(folder, record(dot, [(dot.instruction, Batch(ones[0], ones[1]))], "a licence\n"), "a test")
    return [folder / "manifest.json", folder / "LICENSE"]


def _read_corpus(folder: Path) -> Any:
    corpus = Corpus.open(folder)
    vectors = [(name, value.tolist()) for each in corpus.sets() for name, value in corpus.vectors(each.key)[0].items()]
    return corpus.sets(), corpus.licence, vectors


def _pack(folder: Path) -> Iterable[Path]:
    built = [
        Built(name, "sm_90a", "compiled", kernel=Kernel(name, "sm_90a", name.encode(), "a toolchain"), code="c0de",
              opcodes={"HMMA": 2})
        for name in ("one", "two")
    ]  # fmt: skip
    write_pack(folder, "sm_90a", "a toolchain", built)
    return [folder / "pack.json"]


def _read_pack(folder: Path) -> Any:
    pack = open_pack(folder)
    return pack, [pack.read(each) for each in (*pack.kernels.values(), *pack.campaigns.values())]


def _recording(folder: Path) -> Iterable[Path]:
    made = instruction("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "sm_90a")
    shares = (Share("uniform", 1, 7, 0, 5),)
    vectors, digest = operands_of(made, shares)
    d = run_vectors(open_device("model:sm_90a"), made, vectors)
    shown = Witness.of(vectors.slice(0, 1), int(d[0]), "the first")
    found = Recorded(made.id, shares, digest, d)
    identity = {"architecture": "sm_90a", "model_name": "H200"}
    write_recording(folder / "r.tar.gz", Recording("cuda:0", identity, "0" * 12, (found,), {made.id: (shown,)}))
    members = recording._members(folder / "r.tar.gz")
    for name, content in members.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in members if name.endswith(".json")]


def _read_recording(folder: Path) -> Any:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as tar:
        for name in (recording.LIST, recording.OUTPUTS, recording.WITNESSES):
            tar.add(folder / name, name)
    (folder / "r.tar.gz").write_bytes(gzip.compress(held.getvalue(), 1))
    corpus = read_recording(folder / "r.tar.gz")
    vectors = [(name, value.tolist()) for each in corpus.sets() for name, value in corpus.vectors(each.key)[0].items()]
    return corpus.sets(), vectors, [corpus.vectors(each.key)[1].tolist() for each in corpus.sets()]


def _mismatches(folder: Path) -> Iterable[Path]:
    given: dict[str, Any] = {"vectors": 20_000, "seed": 3, "save": folder / "m.json", "generators": ["tie"]}
    dut, form = "misbehaving:place?n=10&of=model:sm_90a", "mma.m16n8k8.f32.f16.f16.f32"
    mmaprobe.validate(dut, "model:sm_90a", form, **given)
    return [folder / "m.json"]


KINDS = {
    "evidence": Kind(_evidence, _read_evidence),
    "evidence of steps": Kind(_steps, _read_evidence),
    "corpora": Kind(_corpus, _read_corpus),
    "packs": Kind(_pack, _read_pack),
    "recordings": Kind(_recording, _read_recording),
    "mismatches": Kind(_mismatches, lambda folder: read_saved(folder / "m.json")),
}


def bend(kind: Kind, folder: Path, sample: int | None) -> tuple[Counter[str], list[str]]:
    """How many changes were refused, and how many read the same; and those that changed the meaning unseen."""
    counts: Counter[str] = Counter()
    unseen: list[str] = []
    paths = list(kind.make(folder))
    meant = kind.read(folder)
    for path in paths:
        whole = path.read_bytes()
        text = whole.decode()
        changes = list((bent_json if path.suffix == ".json" else bent_text)(text))
        step = 1 if sample is None else max(1, len(changes) // sample)
        for what, changed in changes[::step]:
            if changed == text:
                continue
            path.write_text(changed)
            try:
                said = "read the same" if kind.read(folder) == meant else "unseen"
            except UsageError:
                said = "refused"
            counts[said] += 1
            unseen += [f"{path.name}: {what}"] * (said == "unseen")
        path.write_bytes(whole)
    return counts, unseen


@pytest.mark.parametrize("name", KINDS)
def test_nothing_changes_its_meaning_unseen(tmp_path: Path, name: str) -> None:
    counts, unseen = bend(KINDS[name], tmp_path, SAMPLE)
    assert unseen == []
    assert counts["refused"] > 10 * counts["read the same"]


@pytest.mark.long
@pytest.mark.parametrize("name", KINDS)
def test_nothing_at_all_changes_its_meaning_unseen(tmp_path: Path, name: str) -> None:
    counts, unseen = bend(KINDS[name], tmp_path, None)
    assert unseen == []
    assert counts["refused"] > 100


def test_files_of_two_runs_are_not_exchanged(tmp_path: Path) -> None:
    """Nor are two parts of one run, nor a file for another step's."""
    for name in "ab":
        _evidence(tmp_path / name)
    for path in sorted((tmp_path / "a").rglob("*.json")):
        whole = path.read_bytes()
        path.write_bytes((tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes())
        with pytest.raises(UsageError):
            Store.open(tmp_path / "a")
        path.write_bytes(whole)
    first, second = sorted((tmp_path / "a" / "instructions").iterdir())
    one, two = first.read_bytes(), second.read_bytes()
    first.write_bytes(two)
    second.write_bytes(one)
    with pytest.raises(UsageError, match="altered"):
        Store.open(tmp_path / "a")


if __name__ == "__main__":
    print(f"{'':20} {'tried':>8} {'refused':>8} {'same':>8} {'unseen':>8}")
    for each, kind in KINDS.items():
        with TemporaryDirectory() as place:
            counted, passed = bend(kind, Path(place) / "x", None if "--all" in sys.argv else SAMPLE)
        row = (counted.total(), counted["refused"], counted["read the same"], len(passed))
        print(f"{each:20} " + " ".join(f"{number:8,}" for number in row))
        print("\n".join(passed))
