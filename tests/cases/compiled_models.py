"""Models that are compiled in, built for the host: rows, columns and outputs as a thread of a GPU has them."""

from __future__ import annotations

import ctypes
import subprocess
from functools import cache
from pathlib import Path

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.models.program import program
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.toolchain.compiled import compiled_model

EXPORTS = """
using namespace mmaprobe::MMAPROBE_BUILD;
using namespace mmaprobe::MMAPROBE_BUILD::compiled;
struct Arrays {
    const u64 *a, *b, *c, *scale_a, *scale_b, *metadata;
};
// Vector i; row i beside columns i and i + 1; rows i and i + 1 beside both; C is that of the column's vector.
extern "C" void outputs(const Arrays* g, int vectors, u64* one, u64* two, u64* four) {
    const int groups = GROUPS, chunks = CHUNK ? K / (CHUNK ? CHUNK : 1) : 0;
    Model::Row* rows = new Model::Row[vectors];
    Model::Column* columns = new Model::Column[vectors];
    for (int i = 0; i < vectors; ++i) {
        for (int k = LIVE - 1; k >= 0; --k) Model::put_a(rows[i], k, g->a[i * LIVE + k]);
        for (int k = K - 1; k >= 0; --k) Model::put_b(columns[i], k, g->b[i * K + k]);
        for (int k = 0; k < groups; ++k) Model::put_scale_a(rows[i], k, g->scale_a[i * groups + k]);
        for (int k = 0; k < groups; ++k) Model::put_scale_b(columns[i], k, g->scale_b[i * groups + k]);
        for (int k = 0; k < chunks; ++k) Model::put_metadata(rows[i], k, u32(g->metadata[i * chunks + k]));
        Model::seal(rows[i]);
        Model::seal(columns[i]);
    }
    for (int i = 0; i < vectors; ++i) {
        const int next = (i + 1) % vectors;
        const u64 c[4] = {g->c[i], g->c[next], g->c[i], g->c[next]};
        one[i] = Model::evaluate(rows[i], columns[i], c[0]);
        Model::evaluate_two(rows[i], columns[i], columns[next], c, two + 2 * i);
        Model::evaluate_four(rows[i], rows[next], columns[i], columns[next], c, four + 4 * i);
    }
    delete[] rows;
    delete[] columns;
}
"""
NAMES = ("a", "b", "c", "scale_a", "scale_b", "metadata")


class _Arrays(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in NAMES]


def text_of(made: Instruction, architecture: str) -> str:
    """The model's source."""
    words = program(datapath_for(architecture, made))
    assert words is not None
    return compiled_model(words.tolist(), made.chunk)


@cache
def library(text: str, compiler: str, folder: Path) -> ctypes.CDLL:
    """A model, built."""
    path = folder / f"{len(list(folder.iterdir()))}.so"
    flags = ["-std=c++17", "-O1", "-w", "-fwrapv", "-shared", "-fPIC", "-x", "c++", "-", "-o", str(path)]
    done = subprocess.run([compiler, *flags], input=text + EXPORTS, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(path))


def outputs(built: ctypes.CDLL, vectors: Batch) -> tuple[Bits, Bits, Bits]:
    """Codes (n,) of each vector; (n, 2) of its row with its own column and the next; (n, 4) of both rows with both."""
    wide = {name: np.ascontiguousarray(value, np.uint64) for name, value in vectors.items()}
    wide.setdefault("c", np.zeros(vectors.size, np.uint64))
    arrays = _Arrays(*(wide[name].ctypes.data if name in wide else None for name in NAMES))
    one, two, four = (np.zeros((vectors.size, each), np.uint64) for each in (1, 2, 4))
    pointers = (ctypes.c_void_p(made.ctypes.data) for made in (one, two, four))
    built.outputs(ctypes.byref(arrays), vectors.size, *pointers)
    return one[:, 0], two, four
