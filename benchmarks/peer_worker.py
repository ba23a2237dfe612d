"""The peer's side of compare_peer.py, run by the Python of the peer's own environment.

Reads one JSON request a line on standard input and answers one a line on standard output. Operands and results are
raw bytes in files, so that this side needs nothing but the peer and its torch.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
from mmasim.amd import MFMA, isa_mfma
from mmasim.nv_ptx import (
    MMA,
    WGMMA,
    MMABlockScale,
    TCGen05MMA,
    TCGen05MMABlockScale,
    isa_mma,
    isa_tcgen05mma,
    isa_wgmma,
)

CLASSES: dict[str, tuple[Any, dict[str, list[str]]]] = {
    "MMA": (MMA, isa_mma.mma_shape_and_type),
    "MMABlockScale": (MMABlockScale, isa_mma.mma_block_scale_shape_and_type),
    "WGMMA": (WGMMA, isa_wgmma.wgmma_shape_and_type),
    "TCGen05MMA": (TCGen05MMA, isa_tcgen05mma.tcgen05mma_shape_and_type),
    "TCGen05MMABlockScale": (TCGen05MMABlockScale, isa_tcgen05mma.tcgen05mma_block_scale_shape_and_type),
    "MFMA": (MFMA, isa_mfma.arch_mfma_suffix),
}
BATCHES = (1, 8, 64, 256, 1024)
SECONDS = 0.08
"""Time spent on each batch size."""


def operands(request: dict[str, Any], op: Any) -> dict[str, torch.Tensor]:
    """The tensors behind the files: a (..., items), b (..., items), c (...), alpha and beta (..., blocks)."""
    types = {"a": op.a_type, "b": op.b_type, "c": op.c_type}
    types |= dict.fromkeys(("alpha", "beta"), getattr(op, "s_type", None))
    return {
        name: torch.frombuffer(bytearray(Path(entry["file"]).read_bytes()), dtype=types[name]).reshape(entry["shape"])
        for name, entry in request["operands"].items()
    }


def evaluate(request: dict[str, Any]) -> dict[str, Any]:
    """d of single vectors, through the peer's own dpa."""
    op = CLASSES[request["class"]][0](request["arch"], request["name"])
    taken = operands(request, op)
    parts = []
    for start in range(0, taken["c"].shape[0], request["piece"]):
        part = {name: value[start : start + request["piece"]] for name, value in taken.items()}
        parts.append(op.dpa(*part.values()))
    d = torch.cat(parts).contiguous()
    Path(request["out"]).write_bytes(ctypes.string_at(d.data_ptr(), d.numel() * d.element_size()))
    return {"count": d.shape[0]}


def tile_calls(taken: dict[str, torch.Tensor]) -> list[Any]:
    """Two ways to give whole tiles to dpa: rows and columns broadcast by the arithmetic itself, or expanded views."""
    c = taken["c"]
    rows = {name: taken[name][:, :, None, :] for name in ("a", "alpha") if name in taken}
    columns = {name: taken[name][:, None, :, :] for name in ("b", "beta") if name in taken}
    order = [name for name in ("a", "b", "c", "alpha", "beta") if name in taken]
    broadcast = [(rows | columns | {"c": c})[name] for name in order]
    full = [x if x is c else x.expand(*c.shape, x.shape[-1]) for x in broadcast]
    return [broadcast, full]


def speed(request: dict[str, Any]) -> dict[str, Any]:
    """Million outputs a second at the best batch of tiles, one thread."""
    op = CLASSES[request["class"]][0](request["arch"], request["name"])
    taken = operands(request, op)
    tiles = taken["c"].shape[0]
    best = 0.0
    for batch in BATCHES:
        part = {name: value[: min(batch, tiles)] for name, value in taken.items()}
        whole, separate = tile_calls(part)
        expected = op.dpa(*separate)
        arguments = whole if same(op, whole, expected) else separate
        count = part["c"].numel()
        spent, quickest = 0.0, float("inf")
        while spent < SECONDS:
            start = time.thread_time()
            op.dpa(*arguments)
            took = time.thread_time() - start
            spent, quickest = spent + took, min(quickest, took)
        best = max(best, count / max(quickest, 1e-9) / 1e6)
        if batch >= tiles:
            break
    return {"rate": best}


def same(op: Any, arguments: list[torch.Tensor], expected: torch.Tensor) -> bool:
    """Whether this arithmetic broadcasts: it takes rows and columns as they are, and answers the same."""
    try:
        found = op.dpa(*arguments)
    except (RuntimeError, ValueError):
        return False
    return found.shape == expected.shape and torch.equal(found.nan_to_num(), expected.nan_to_num())


def forms() -> dict[str, Any]:
    """Every form that the peer has: class, architecture, name."""
    return {
        "forms": [
            (kind, arch, name)
            for kind, (_, table) in CLASSES.items()
            for arch, names in table.items()
            for name in names
        ]
    }


def main() -> None:
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    answers = {"forms": lambda request: forms(), "evaluate": evaluate, "speed": speed}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = answers[request["do"]](request)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
