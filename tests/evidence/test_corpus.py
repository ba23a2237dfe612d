"""Corpora: the import of text recordings, the folder's round trip, and broken folders."""

from __future__ import annotations

import io
import json
import os
import pickle
import tracemalloc
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cases.sealing import redigest, reseal
from mmaprobe.errors import UsageError
from mmaprobe.evidence.corpus import Corpus, Set, write_corpus
from mmaprobe.evidence.importing import import_corpus, read_text_files
from mmaprobe.operands.batch import Batch


def hex_words(rows: list[list[float]]) -> str:
    return "".join("".join(f"{int(np.float32(x).view(np.uint32)):08x} " for x in row) + "\n" for row in rows)


def binary_words(values: list[float]) -> str:
    return "".join(f"{int(np.float32(x).view(np.uint32)):032b}\n" for x in values)


A = [[1.0, -0.5, 0.25, 3.0], [0.0, 6.0e-8, 65504.0, -1.0]]
B = [[2.0, 1.5, -0.125, 1.0], [1.0, 1.0, 1.0, 1.0]]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A miniature of the public folder: V100 f16 with both results, H200 e4m3 to f32 with a C to be ignored."""
    a = [[float(np.float16(x)) for x in row] for row in A]
    v100 = tmp_path / "suite" / "model_validation" / "V100" / "fp16"
    h200 = tmp_path / "suite" / "model_validation" / "H200" / "E4M3"
    for folder in (v100, h200):
        folder.mkdir(parents=True)
    (tmp_path / "suite" / "LICENCE").write_text("BSD 2-Clause License\n")
    (tmp_path / "suite" / "model_validation" / "reader.m").write_text("% no data\n")
    (v100 / "a_V100_fp16.txt").write_text(hex_words(a))
    (v100 / "b_V100_fp16.txt").write_text(hex_words(B))
    (v100 / "c_V100_fp32.txt").write_text(binary_words([0.1, -0.0]))
    (v100 / "d_V100_fp32.txt").write_text(binary_words([0.3, 2.0]))
    (v100 / "d_V100_fp16.txt").write_text(binary_words([0.5, 2.0]))
    (h200 / "a_H200_E4M3.txt").write_text(hex_words([[1.0, -448.0, 2.0**-9] + [0.0] * 29]))
    (h200 / "b_H200_E4M3.txt").write_text(hex_words([[1.0] * 32]))
    (h200 / "c_H200_fp32.txt").write_text(binary_words([0.7]))
    (h200 / "d_H200_fp32.txt").write_text(binary_words([-447.0]))
    return tmp_path / "suite"


def test_text_files_become_bit_patterns_of_their_formats(texts: Path, tmp_path: Path) -> None:
    import_corpus(texts, tmp_path / "corpus")
    corpus = Corpus.open(tmp_path / "corpus")
    assert corpus.licence == "BSD 2-Clause License\n"
    assert {(s.key, s.architecture, s.instruction, s.k, s.count) for s in corpus.sets()} == {
        ("V100/f16/f32", "sm_70", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", 4, 2),
        ("V100/f16/f16", "sm_70", "mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16", 4, 2),
        ("H200/e4m3/f32", "sm_90a", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3", 32, 1),
    }
    vectors, d = corpus.vectors("V100/f16/f32")
    assert vectors.a.tolist() == [[0x3C00, 0xB800, 0x3400, 0x4200], [0, 0x0001, 0x7BFF, 0xBC00]]
    assert vectors.b.tolist() == np.array(B, np.float16).view(np.uint16).tolist()
    assert vectors.c is not None
    assert vectors.c.tolist() == [0x3DCCCCCD, 0x80000000]
    assert d.tolist() == [0x3E99999A, 0x40000000]
    vectors, d = corpus.vectors("V100/f16/f16")
    assert vectors.c is not None
    assert (vectors.c.tolist(), d.tolist()) == ([0x2E66, 0x8000], [0x3800, 0x4000])
    vectors, d = corpus.vectors("H200/e4m3/f32")
    assert vectors.c is not None
    assert (vectors.a[0, :4].tolist(), vectors.c.tolist()) == ([0x38, 0xFE, 0x01, 0], [0])


def test_importing_twice_writes_the_same_bytes_and_never_overwrites(texts: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        import_corpus(texts / "model_validation", tmp_path / name)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()
    with pytest.raises(UsageError, match="holds a corpus already"):
        import_corpus(texts, tmp_path / "one")


V100 = "model_validation/V100/fp16"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a_V100_fp16.txt", hex_words([[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 0.1]]), "line 2: 0x3dcccccd is not a"),
        ("a_V100_fp16.txt", hex_words([[1.0, 2.0, 3.0, float("inf")], A[0]]), "line 1: 0x7f800000 is not a finite"),
        ("a_V100_fp16.txt", hex_words([A[0], [1.0, 2.0, 3.0]]), "line 2: expected 4 words"),
        ("a_V100_fp16.txt", hex_words([A[0]]), "operand a has shape"),
        ("a_V100_fp16.txt", hex_words([[1.0] * 5] * 2), "no instruction takes 5 lanes of f16 to f16 on sm_70"),
        ("b_V100_fp16.txt", "3f8\n", "line 1: expected 1 words of 8 digits; truncated"),
        ("c_V100_fp32.txt", "2" * 32 + "\n", "line 1: invalid literal"),
        ("d_V100_fp32.txt", "\n", "empty"),
        ("d_V100_tf32.txt", binary_words([1.0, 1.0]), "no instruction takes 4 lanes of f16 to tf32"),
        ("d_V100_fp9.txt", binary_words([1.0, 1.0]), "unknown result format 'fp9'"),
    ],
)
def test_a_broken_text_file_is_named_with_its_line(texts: Path, name: str, content: str, message: str) -> None:
    (texts / V100 / name).write_text(content)
    with pytest.raises(UsageError, match=message):
        read_text_files(texts)


def test_missing_files_licence_and_unknown_devices_are_named(texts: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no <GPU>/<format>/d_\*.txt"):
        read_text_files(tmp_path / "elsewhere")
    (texts / "model_validation" / "V100").rename(texts / "model_validation" / "V101")
    with pytest.raises(UsageError, match="unknown GPU 'V101'; did you mean V100"):
        read_text_files(texts)
    (texts / "model_validation" / "V101").rename(texts / "model_validation" / "V100")
    (texts / V100 / "b_V100_fp16.txt").unlink()
    with pytest.raises(UsageError, match=r"b_V100_fp16\.txt.*No such file"):
        read_text_files(texts)
    (texts / "LICENCE").unlink()
    with pytest.raises(UsageError, match="keeps its source's licence"):
        read_text_files(texts)


RECORD = Set("x/one", "some CPU", "x86-64", "test", "e2m1", "e2m1", "none", "f32", 4, 3, "y.sparse", "ue8m0", 2, 2)
ARRAYS: dict[str, Any] = {
    "x/one/a": np.array([[1, 2], [15, 0], [3, 3]], np.uint8),
    "x/one/b": np.arange(12, dtype=np.uint8).reshape(3, 4),
    "x/one/d": np.array([1, 2, 0xFFFFFFFF], np.uint32),
    "x/one/scale_a": np.full((3, 2), 127, np.uint8),
    "x/one/scale_b": np.full((3, 2), 255, np.uint8),
    "x/one/metadata": np.full((3, 2), 4, np.uint8),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_corpus(tmp_path / "c", Corpus([RECORD], ARRAYS, "a licence"), "a test")
    return tmp_path / "c"


def test_scales_metadata_and_a_missing_accumulator_survive(folder: Path) -> None:
    corpus = Corpus.open(folder)
    assert (corpus.sets(), corpus.licence) == ((RECORD,), "a licence")
    vectors, d = corpus.vectors("x/one")
    assert isinstance(vectors, Batch)
    assert vectors.c is None
    assert {f"x/one/{name}": value.tolist() for name, value in [*vectors.items(), ("d", d)]} == {
        key: value.tolist() for key, value in ARRAYS.items()
    }
    with pytest.raises(UsageError, match="no set 'x/two'; did you mean x/one"):
        corpus.vectors("x/two")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x/one/b": None}, "key x/one/b is missing"),
        ({"x/one/b": ARRAYS["x/one/b"][:2]}, r"key x/one/b must be uint8 \(3, 4\), not uint8 \(2, 4\)"),
        ({"x/one/d": ARRAYS["x/one/d"].astype(np.int32)}, "key x/one/d must be uint32"),
        ({"x/one/d": ARRAYS["x/one/d"].astype(np.float32)}, "key x/one/d must be uint32"),
        ({"x/one/a": ARRAYS["x/one/a"] + 1}, "key x/one/a holds 0x10, outside its 4 bits"),
        ({"x/one/a": np.array([[None, {}]] * 3, object)}, "key x/one/a cannot be read .corrupt, or pickled"),
    ],
)
def test_broken_arrays_are_named(folder: Path, change: dict[str, Any], message: str) -> None:
    changed = {key: value for key, value in (ARRAYS | change).items() if value is not None}
    np.savez_compressed(folder / "vectors.npz", **changed)
    with pytest.raises(UsageError, match=r"vectors\.npz is not the file that manifest\.json names"):
        Corpus.open(folder)
    redigest(folder)
    with pytest.raises(UsageError, match=message) as caught:
        Corpus.open(folder)
    assert "vectors.npz" in str(caught.value)


def test_big_endian_arrays_just_work(folder: Path) -> None:
    np.savez_compressed(folder / "vectors.npz", **(ARRAYS | {"x/one/d": ARRAYS["x/one/d"].astype(">u4")}))
    redigest(folder)
    assert Corpus.open(folder).vectors("x/one")[1].tolist() == [1, 2, 0xFFFFFFFF]


class Trap:
    """Unpickling this leaves a mark."""

    sprung = False

    def __reduce__(self) -> tuple[Any, ...]:
        return (setattr, (Trap, "sprung", True))


def test_nothing_is_ever_unpickled(folder: Path) -> None:
    (folder / "vectors.npz").write_bytes(pickle.dumps(Trap()))
    redigest(folder)
    with pytest.raises(UsageError, match="not a NumPy archive"):
        Corpus.open(folder)
    held = io.BytesIO()
    np.save(held, np.array([Trap()], object), allow_pickle=True)
    np.savez(folder / "vectors.npz", **ARRAYS)
    with zipfile.ZipFile(folder / "vectors.npz", "w") as archive:
        for key in ARRAYS:
            archive.writestr(f"{key}.npy", held.getvalue())
    redigest(folder)
    with pytest.raises(UsageError, match="pickled"):
        Corpus.open(folder)
    assert not Trap.sprung


def header(shape: str, descr: str = "'|u1'", version: int = 1) -> bytes:
    """The beginning of an array's file, which may say anything."""
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    length = len(text).to_bytes(2, "little") if version == 1 else (0xFFFFFFF0).to_bytes(4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + text


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (header("(4294967296,)") + bytes(1 << 16), r"must be uint8 \(3, 2\), not uint8 \(4294967296,\)"),
        (header(f"({'9' * 5000},)"), "cannot be read"),
        (header("(3, 2)", version=2) + bytes(1 << 16), "not of version 1.0"),
        (header("(3, 2)") + bytes(1 << 16), "65,536 bytes in the archive, where its shape has 6"),
        (header("(3, 2)") + bytes(3), "cannot be read"),
        (header("(3, 2)", "()"), "cannot be read"),
        (header("(" * 5000), "cannot be read"),
    ],
    ids=["shape", "digits", "version", "behind", "short", "type", "parentheses"],
)
def test_a_member_that_is_more_than_its_array_is_not_unpacked(folder: Path, content: bytes, says: str) -> None:
    """Shape, header and size of a member are held against the manifest before anything is made of them."""
    np.savez(folder / "vectors.npz", **{key: value for key, value in ARRAYS.items() if key != "x/one/a"})
    with zipfile.ZipFile(folder / "vectors.npz", "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/one/a.npy", content)
    redigest(folder)
    tracemalloc.start()
    with pytest.raises(UsageError, match=says) as caught:
        Corpus.open(folder)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 4 << 20
    assert "key x/one/a " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_member_that_declares_less_than_it_unpacks_to_is_not_unpacked(folder: Path) -> None:
    """64 MiB behind six bytes, by a directory that says six: what is declared is what is read."""
    np.savez(folder / "vectors.npz", **{key: value for key, value in ARRAYS.items() if key != "x/one/a"})
    begin = header("(3, 2)")
    with zipfile.ZipFile(folder / "vectors.npz", "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/one/a.npy", begin + bytes(64 << 20))
        archive.getinfo("x/one/a.npy").file_size = len(begin) + 6
    redigest(folder)
    tracemalloc.start()
    with pytest.raises(UsageError, match="key x/one/a cannot be read"):
        Corpus.open(folder)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 4 << 20


def test_sets_of_gigabytes_are_refused_before_the_archive_is_opened(folder: Path) -> None:
    """Manifest and archive may agree on a size: there is a bound, for readers and for writers."""
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["sets"][0]["count"] = 1 << 29
    reseal(folder / "manifest.json", manifest)
    with pytest.raises(UsageError, match=r"vectors\.npz: the sets up to x/one take more than 1024 MiB"):
        Corpus.open(folder)
    with pytest.raises(UsageError, match="take more than 1024 MiB"):
        write_corpus(folder / "again", Corpus([replace(RECORD, count=1 << 29)], ARRAYS), "a test")


def test_a_manifest_names_files_of_its_folder_only(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["/dev/zero"] = "0" * 64
    reseal(folder / "manifest.json", manifest)
    with pytest.raises(UsageError, match=r"files\./dev/zero is no file in the folder"):
        Corpus.open(folder)


@pytest.mark.parametrize("changes", [{"scale_size": 8}, {"k": 1}])
def test_a_set_without_elements_is_refused(folder: Path, changes: dict[str, int]) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["sets"][0] |= changes
    reseal(folder / "manifest.json", manifest)
    with pytest.raises(UsageError, match="has fewer lanes than scale_size or chunk"):
        Corpus.open(folder)


def test_nested_lists_in_a_manifest_are_refused(folder: Path) -> None:
    """As deep as json reads, which is deeper than what writes it again."""
    (folder / "manifest.json").write_text(
        '{"schema": 2, "kind": "mmaprobe corpus", "x": ' + "[" * 800 + "]" * 800 + "}"
    )
    with pytest.raises(UsageError, match=r"manifest\.json: lists or tables lie deeper"):
        Corpus.open(folder)
    (folder / "manifest.json").write_text('{"schema": ' + "9" * 5000 + "}")
    with pytest.raises(UsageError, match=r"manifest\.json: not a JSON text"):
        Corpus.open(folder)


@pytest.mark.parametrize("at", [0, 10, 0.3, 0.5, 0.9, -1])
def test_a_truncated_archive_is_refused(folder: Path, at: float) -> None:
    whole = (folder / "vectors.npz").read_bytes()
    (folder / "vectors.npz").write_bytes(whole[: int(at * len(whole)) if isinstance(at, float) else at])
    with pytest.raises(UsageError, match=r"vectors\.npz"):
        Corpus.open(folder)


def test_every_flipped_data_byte_is_refused_or_harmless(folder: Path) -> None:
    whole = (folder / "vectors.npz").read_bytes()
    refused = 0
    for place in range(0, len(whole), 7):
        broken = bytearray(whole)
        broken[place] ^= 0x5A
        (folder / "vectors.npz").write_bytes(broken)
        with pytest.raises(UsageError, match="altered or damaged"):
            Corpus.open(folder)
        redigest(folder)
        try:
            corpus = Corpus.open(folder)
        except UsageError:
            refused += 1
            continue
        assert corpus.vectors("x/one")[1].tolist() == [1, 2, 0xFFFFFFFF]
    assert refused > len(whole) // 14


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 0}, r"sets\[0\]\.k must be at least 1"),
        ({"count": "3"}, r"sets\[0\]\.count must be a whole number"),
        ({"a": "e2m2"}, r"unknown format 'e2m2'"),
        ({"scale_size": 0}, "do not go together"),
        ({"arch": None}, r"sets\[0\]\.arch must be a text"),
    ],
)
def test_a_broken_manifest_is_named_by_key(folder: Path, change: dict[str, Any], message: str) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["sets"][0] |= change
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(UsageError, match="sha256 is not that of the rest"):
        Corpus.open(folder)
    reseal(folder / "manifest.json", manifest)
    with pytest.raises(UsageError, match=message):
        Corpus.open(folder)


def test_newer_foreign_and_doubled_manifests_are_refused(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    for change, message in (
        ({"schema": 3}, "newer"),
        ({"kind": "cake"}, "kind"),
        ({"sets": manifest["sets"] * 2}, "two sets"),
        ({"sets": {}}, "key sets must be a list"),
    ):
        reseal(folder / "manifest.json", manifest | change)
        with pytest.raises(UsageError, match=message):
            Corpus.open(folder)
    (folder / "manifest.json").write_text(json.dumps(manifest["sets"]))
    assert (Corpus.open(folder).sets(), Corpus.open(folder).sealed) == ((RECORD,), False)


@pytest.mark.needs("corpus")
def test_the_recorded_corpus_opens() -> None:
    corpus = Corpus.open(os.environ["MMAPROBE_CORPUS"])
    assert corpus.sets()
    for record in corpus.sets():
        vectors, d = corpus.vectors(record.key)
        assert vectors.size == len(d) == record.count
