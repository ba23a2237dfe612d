"""A corpus: recorded inputs and outputs of devices, as bit patterns.

A folder with ``manifest.json`` (one record a set), ``vectors.npz`` (arrays
``<key>/a (n, K)``, ``<key>/b (n, K)``, ``<key>/c (n,)``, ``<key>/d (n,)`` and,
where the instruction has them, ``scale_a``, ``scale_b``, ``metadata``, ``random``) and
``LICENSE``.  Reading never unpickles, and unpacks nothing whose size is not the one that the manifest gives it.
"""

from __future__ import annotations

import io
import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mmaprobe import formats
from mmaprobe.catalog.instruction import RANDOM_FORMATS, Instruction
from mmaprobe.errors import UsageError, near
from mmaprobe.evidence import files
from mmaprobe.operands.batch import Batch, Bits

SCHEMA = 2
"""Schema 1, and a bare list of records, have no digests."""
KIND = "mmaprobe corpus"
_ADVICE = "choose another destination"
MOST_UNPACKED = 1 << 30
"""Bytes of all arrays of a corpus together."""
_UNREADABLE = (
    OSError, EOFError, ValueError, LookupError, TypeError, MemoryError, SyntaxError, RuntimeError,
    tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What zipfile, zlib and NumPy raise on a damaged, encrypted or pickled archive."""


_MAY_LACK = ("scale", "scale_size", "chunk", "random", "silicon")
"""Keys of a record that are left out where there is nothing to say."""


@dataclass(frozen=True)
class Set:
    """One recorded set: ``count`` vectors of ``k`` lanes through one instruction of one device.

    ``a``, ``b``, ``d`` are formats.  ``c`` begins with the format of C, or is
    ``zero`` (C was +0; stored in the format of d) or ``none`` (the instruction
    has no accumulator); what follows is a remark.  ``silicon`` is what the
    unit's identity says of itself; empty in a set of somebody else's.
    """

    key: str
    gpu: str
    architecture: str
    api: str
    a: str
    b: str
    c: str
    d: str
    k: int
    count: int
    instruction: str
    scale: str = ""
    scale_size: int = 0
    chunk: int = 0
    random: str = ""
    silicon: str = ""

    @property
    def c_format(self) -> str | None:
        """The format in which C is stored, None without an accumulator."""
        word = self.c.split()[0] if self.c else "none"
        return {"none": None, "zero": self.d}.get(word, word)

    def arrays(self) -> dict[str, tuple[np.dtype[Any], tuple[int, ...], int]]:
        """Name -> (dtype, shape, one above the largest code) of each array of the set."""
        n, k = self.count, self.k
        rows: dict[str, tuple[str, tuple[int, ...]]] = {
            "a": (self.a, (n, k // 2 if self.chunk else k)),
            "b": (self.b, (n, k)),
            "d": (self.d, (n,)),
        }
        if self.c_format is not None:
            rows["c"] = (self.c_format, (n,))
        if self.scale:
            rows |= dict.fromkeys(("scale_a", "scale_b"), (self.scale, (n, k // self.scale_size)))
        if self.chunk:
            rows["metadata"] = ("u8", (n, k // self.chunk))
        if self.random:
            rows["random"] = (self.random, (n,))
        named = {name: (formats.get(fmt), shape) for name, (fmt, shape) in rows.items()}
        return {name: (fmt.dtype, shape, fmt.code_limit) for name, (fmt, shape) in named.items()}

    def to_json(self) -> dict[str, Any]:
        """The record as the manifest holds it; absent scales, metadata, random bits and identity are left out."""
        return {("arch" if name == "architecture" else name): value for name, value in asdict(self).items()
                if name not in _MAY_LACK or value}  # fmt: skip


def set_of(made: Instruction, unit: str, architecture: str, api: str, count: int, key: str, silicon: str = "") -> Set:
    """The record of ``count`` vectors of all lanes through an instruction of a unit."""
    return Set(
        key, unit, architecture, api, made.a, made.b, made.c or "none", made.d, made.k, count, made.id,
        made.scale or "", made.scale_size, made.chunk, made.random or "", silicon,
    )  # fmt: skip


class Corpus:
    """Recorded sets with their vectors, all of them read and checked."""

    def __init__(
        self,
        sets: Iterable[Set],
        arrays: Mapping[str, Bits],
        licence: str = "",
        path: Path = Path(),
        sealed: bool = True,
    ) -> None:
        self.path = path
        self.sealed = sealed
        self.licence = licence
        self._sets = {record.key: record for record in sets}
        self._arrays = dict(arrays)

    @classmethod
    def open(cls, path: str | Path) -> Corpus:
        """The corpus in the folder ``path``.

        Raises UsageError naming the file and the key for anything corrupt,
        truncated, pickled, missing or of a wrong shape or type; a corpus is
        read as a whole or not at all.
        """
        folder = Path(path)
        manifest = folder / "manifest.json"
        if not manifest.exists():
            made = "mmaprobe corpus import SOURCE FOLDER makes one"
            raise UsageError(f"{manifest}: No such file, and so no corpus; {made}")
        sets, digests = _read_manifest(manifest)
        for name, digest in (digests or {}).items():
            _check_digest(folder / name, digest)
        arrays = _read_arrays(folder / "vectors.npz", sets)
        licence = _read_licence(folder)
        if digests is not None and licence and "LICENSE" not in digests:
            raise UsageError(f"{folder / 'LICENSE'} is not named by manifest.json")
        return cls(sets, arrays, licence, folder, digests is not None)

    def sets(self) -> tuple[Set, ...]:
        """The recorded sets, in the manifest's order."""
        return tuple(self._sets.values())

    def vectors(self, key: str) -> tuple[Batch, Bits]:
        """The inputs of a set in one-vector shapes, and the recorded d (n,)."""
        if key not in self._sets:
            raise UsageError(f"{self.path}: no set {key!r}{near(key, self._sets)}")
        given = {name: self._arrays[f"{key}/{name}"] for name in self._sets[key].arrays()}
        expected = given.pop("d")
        return Batch(**given), expected


def write_corpus(path: str | Path, corpus: Corpus, source: str) -> None:
    """Write a corpus as a folder: vectors, then licence, then the manifest.

    The manifest comes last, so a folder with a manifest is a whole corpus.
    Raises UsageError where a corpus is already there or this one is too large to be read, CannotWriteError.
    """
    folder = Path(path)
    if (folder / "manifest.json").exists():
        raise UsageError(f"{folder} holds a corpus already; {_ADVICE}")
    _check_size(folder / "vectors.npz", corpus.sets())
    held = io.BytesIO()
    np.savez_compressed(held, **corpus._arrays)  # type: ignore[arg-type]
    contents = {"vectors.npz": held.getvalue()} | ({"LICENSE": corpus.licence.encode()} if corpus.licence else {})
    for name, content in contents.items():
        files.write_bytes(folder / name, content, _ADVICE)
    digests = {name: files.digest_of(content) for name, content in contents.items()}
    sets = [record.to_json() for record in corpus.sets()]
    manifest = {"schema": SCHEMA, "kind": KIND, "source": source, "sets": sets, "files": digests}
    files.write_json(folder / "manifest.json", files.sealed(manifest), _ADVICE)


def _read_licence(folder: Path) -> str:
    try:
        return (folder / "LICENSE").read_text()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{folder / 'LICENSE'}: {error}") from error


def _check_digest(path: Path, digest: str) -> None:
    try:
        found = files.digest_of(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    if found != digest:
        raise UsageError(f"{path} is not the file that manifest.json names: altered or damaged")


def _read_manifest(path: Path) -> tuple[list[Set], dict[str, str] | None]:
    """The records, and the digests of the files beside the manifest; None where it has none."""
    document = files.read_json(path)
    digests = None
    if not isinstance(document.value, list):  # a bare list of sets is schema 0
        document["kind"].one_of(KIND)
        if document["schema"].whole > SCHEMA:
            raise document["schema"].wrong(f"is newer than {SCHEMA}: pip install --upgrade mmaprobe")
        if files.check_seal(document, SCHEMA):
            listed = document["files"]
            digests = {name: listed[name].text for name in ("vectors.npz", *listed.typed(dict))}
            for name in digests:
                if Path(name).name != name or not (path.parent / name).is_file():  # elsewhere may be without end
                    raise listed[name].wrong("is no file in the folder of the manifest")
        document = document["sets"]
    sets = [_read_set(record) for record in document]
    if len({record.key for record in sets}) < len(sets):
        raise UsageError(f"{path}: two sets have the same key")
    return sets, digests


def _read_set(record: files.FileValue) -> Set:
    texts = {name: record[name].text for name in ("key", "gpu", "api", "a", "b", "c", "d", "instruction")}
    optional = record.typed(dict)
    found = Set(
        **texts, architecture=record["arch"].text, k=record["k"].whole, count=record["count"].whole,
        scale=record["scale"].text if "scale" in optional else "",
        scale_size=record["scale_size"].whole if "scale_size" in optional else 0,
        chunk=record["chunk"].whole if "chunk" in optional else 0,
        random=record["random"].one_of(*RANDOM_FORMATS) if "random" in optional else "",
        silicon=record["silicon"].text if "silicon" in optional else "",
    )  # fmt: skip
    for name in ("k", "count"):
        if record[name].whole < 1:
            raise record[name].wrong("must be at least 1")
    if bool(found.scale) != (found.scale_size > 0) or found.chunk < 0:
        raise record.wrong("has scale, scale_size or chunk that do not go together")
    try:
        shapes = [shape for _, shape, _ in found.arrays().values()]
    except UsageError as error:
        raise record.wrong(f"({found.key}): {error}") from error
    if not all(map(all, shapes)):
        raise record.wrong(f"({found.key}) has fewer lanes than scale_size or chunk")
    return found


def _read_arrays(path: Path, sets: Sequence[Set]) -> dict[str, Bits]:
    """Every array of the sets; what their sizes come to is bounded before the first is made."""
    _check_size(path, sets)
    try:
        archive = zipfile.ZipFile(path)
    except _UNREADABLE as error:
        raise UsageError(f"{path}: not a NumPy archive, or truncated: {error}") from error
    with archive:
        return {
            f"{record.key}/{name}": _read_array(path, archive, f"{record.key}/{name}", *rule)
            for record in sets
            for name, rule in record.arrays().items()
        }


def _check_size(path: Path, sets: Iterable[Set]) -> None:
    total = 0
    for record in sets:
        total += sum(math.prod(shape) * dtype.itemsize for dtype, shape, _ in record.arrays().values())
        if total > MOST_UNPACKED:
            raise UsageError(f"{path}: the sets up to {record.key} take more than {MOST_UNPACKED >> 20} MiB unpacked")


def _read_array(
    path: Path, archive: zipfile.ZipFile, key: str, dtype: np.dtype[Any], shape: tuple[int, ...], limit: int
) -> Bits:
    """One array, its header and its size in the archive held against the manifest before the rest is unpacked."""
    try:
        entry = archive.getinfo(f"{key}.npy")
    except KeyError:
        raise UsageError(f"{path}: key {key} is missing") from None
    try:
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError("compressed by other means than NumPy's")
        with archive.open(entry) as stream:
            if np.lib.format.read_magic(stream) != (1, 0):  # a later version's header may have any length
                raise ValueError("not of version 1.0 of NumPy's format")
            found, fortran, kind = np.lib.format.read_array_header_1_0(stream)
            if kind.hasobject:
                raise ValueError("objects, not numbers")
            if kind.newbyteorder("=") != dtype or found != shape:
                raise UsageError(f"{path}: key {key} must be {dtype.name} {shape}, not {kind} {found!s:.60}")
            size = math.prod(shape) * dtype.itemsize
            held = entry.file_size - stream.tell()
            if held != size:
                raise ValueError(f"{held:,} bytes in the archive, where its shape has {size:,}")
            content = stream.read(size)  # all of it; without a number zipfile unpacks what comes, whatever it declared
            array = np.frombuffer(content, kind).reshape(shape, order="F" if fortran else "C")
    except UsageError:
        raise
    except _UNREADABLE as error:
        raise UsageError(f"{path}: key {key} cannot be read (corrupt, or pickled): {error}") from error
    if int(array.max()) >= limit:
        raise UsageError(f"{path}: key {key} holds {int(array.max()):#x}, outside its {limit.bit_length() - 1} bits")
    return np.array(array, dtype=dtype, order="C")
