"""Recordings of other projects as a corpus: the text files of MATLAB-tensor-core.

Its folder ``model_validation`` holds ``<GPU>/<format>/{a,b,c,d}_<GPU>_<format>.txt``.
A and B: one vector a line, each element the hex of an f32 that holds it.  C
(always ``fp32``) and D: one item a line, the 32 binary digits of an f32.  K is
the number of elements a line.  Where D is ``fp16`` the recording rounded C to
f16, nearest even.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from mmaprobe import formats
from mmaprobe.catalog.toml import read_toml
from mmaprobe.errors import UsageError, near
from mmaprobe.evidence.corpus import Corpus, Set, write_corpus
from mmaprobe.operands.batch import Bits

_C_REMARK = {"f32": "f32 bits", "f16": "f16 bits (the recording rounded C to f16, nearest even)"}
_F32 = formats.get("f32")


def import_corpus(source: str | Path, destination: str | Path) -> Corpus:
    """Turn MATLAB-tensor-core's text files at ``source`` into a corpus at ``destination``.

    ``source`` is the repository or its folder ``model_validation``; the
    licence comes along.  Values are not changed: each f32 must be a value of
    its operand's format.  Raises UsageError naming the file and the line.
    """
    corpus = read_text_files(source)
    write_corpus(destination, corpus, _facts()["source"])
    return corpus


def read_text_files(source: str | Path) -> Corpus:
    """The corpus that the text files at ``source`` hold, in memory."""
    root = Path(source)
    folder = root / "model_validation" if (root / "model_validation").is_dir() else root
    facts = _facts()
    results = sorted(folder.glob("*/*/d_*.txt"))
    if not results:
        raise UsageError(f"{folder}: no <GPU>/<format>/d_*.txt; SOURCE is MATLAB-tensor-core or its model_validation")
    licence = _licence(folder)
    sets: list[Set] = []
    arrays: dict[str, Bits] = {}
    for path in results:
        record, found = _read_set(path, facts)
        sets.append(record)
        arrays |= {f"{record.key}/{name}": array for name, array in found.items()}
    return Corpus(sets, arrays, licence, folder)


def _facts() -> dict[str, Any]:
    text = (resources.files("mmaprobe.evidence") / "data" / "matlab_tensor_core.toml").read_text()
    return read_toml(text, "matlab_tensor_core.toml")


def _licence(folder: Path) -> str:
    names = [where / name for where in (folder, folder.parent) for name in ("LICENSE", "LICENCE")]
    for path in names:
        if path.is_file():
            return path.read_text()
    raise UsageError(f"{folder}: no LICENCE here or in the folder above; a corpus keeps its source's licence")


def _read_set(result: Path, facts: dict[str, Any]) -> tuple[Set, dict[str, Bits]]:
    gpu, spelled = result.parent.parent.name, result.parent.name
    architecture = _known(result, "GPU", gpu, facts["architectures"])
    fmt = _known(result, "format", spelled, facts["formats"])
    d = _known(result, "result format", result.stem.rpartition("_")[2], facts["formats"])
    arrays = {name: _operand(result.with_name(f"{name}_{gpu}_{spelled}.txt"), fmt) for name in ("a", "b")}
    k = arrays["a"].shape[1]
    form = _form(result, facts["forms"], fmt, d, k, architecture)
    c_bits = _words(result.with_name(f"c_{gpu}_fp32.txt"), 2)[:, 0]
    zero = form.get("zero_c", False)
    arrays["c"] = np.zeros(c_bits.shape, formats.get(d).dtype) if zero else _rounded(c_bits, d)
    arrays["d"] = _exactly(result, _words(result, 2), d)[:, 0]
    count = len(c_bits)
    record = Set(
        f"{gpu}/{fmt}/{d}", gpu, architecture, form["api"], fmt, fmt, "zero" if zero else _C_REMARK[d], d, k, count,
        form["instruction"].format(a=fmt, d=d),
    )  # fmt: skip
    for name, (_, shape, _) in record.arrays().items():
        if arrays[name].shape != shape:
            raise UsageError(f"{result.parent}: operand {name} has shape {arrays[name].shape}, C makes it {shape}")
    return record, arrays


def _known(path: Path, what: str, name: str, table: dict[str, str]) -> str:
    if name not in table:
        raise UsageError(f"{path}: unknown {what} {name!r}{near(name, table)}")
    return table[name]


def _form(path: Path, forms: list[dict[str, Any]], a: str, d: str, k: int, architecture: str) -> dict[str, Any]:
    for form in forms:
        wanted = form["k"] == k and a in form["a"] and form.get("d", d) == d and d in _C_REMARK
        if wanted and architecture in form.get("architectures", [architecture]):
            return form
    raise UsageError(f"{path}: no instruction takes {k} lanes of {a} to {d} on {architecture}")


def _words(path: Path, base: int) -> Bits:
    """The 32-bit words of a text file, (lines, words a line), written in ``base`` with all their digits."""
    digits = {2: 32, 16: 8}[base]
    rows: list[list[int]] = []
    try:
        lines = path.read_text("ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}") from error
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words:
            continue
        try:
            rows.append([int(word, base) for word in words])
        except ValueError as error:
            raise UsageError(f"{path}: line {number}: {error}") from error
        if any(len(word) != digits for word in words) or len(words) != len(rows[0]):
            raise UsageError(f"{path}: line {number}: expected {len(rows[0])} words of {digits} digits; truncated?")
    if not rows:
        raise UsageError(f"{path}: empty")
    return np.array(rows, dtype=np.uint32)


def _rounded(bits: Bits, name: str) -> Bits:
    if name == "f32":
        return bits
    _, negative, exponent, significand = formats.decode(_F32, bits)
    return formats.encode(formats.get(name), negative, significand, exponent)


def _operand(path: Path, name: str) -> Bits:
    return _exactly(path, _words(path, 16), name)


def _exactly(path: Path, bits: Bits, name: str) -> Bits:
    """The codes in format ``name`` of values given as f32 bits, none of which may change."""
    if name == "f32":
        return bits
    kind, negative, exponent, significand = formats.decode(_F32, bits)
    codes = formats.encode(formats.get(name), negative, significand, exponent)
    back = formats.decode(formats.get(name), codes)
    shift = exponent - back.exponent
    same = np.where(shift >= 0, significand << np.maximum(shift, 0), significand) == np.where(
        shift < 0, back.significand << np.maximum(-shift, 0), back.significand
    )
    wrong = ~same | (negative != back.negative) | (kind >= formats.INFINITE)
    if wrong.any():
        line = int(np.argwhere(wrong)[0][0]) + 1
        raise UsageError(f"{path}: line {line}: {int(bits[wrong][0]):#010x} is not a finite value of {name}")
    return codes
