"""The kernels cross-compiled for Arm, under an emulator: the same bits as here.

MMAPROBE_ARM_KERNELS is the path of the runner that tests/arm/build_kernels.sh makes.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from cases.engine import DATAPATHS, MODES, batch
from cases.engine_layout import tiles_of
from mmaprobe import formats
from mmaprobe.catalog.lookup import instruction
from mmaprobe.models import stages
from mmaprobe.models.kernels import FUSED, kernel
from mmaprobe.models.model import evaluate_tiles
from mmaprobe.models.program import program
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.lookup import datapath_for

RUNNER = os.environ.get("MMAPROBE_ARM_KERNELS", "")
EMULATOR = "" if platform.machine() == "aarch64" else shutil.which("qemu-aarch64-static")
PATHS = {name: path for name, path in DATAPATHS.items() if kernel(path) == FUSED} | {
    form: datapath_for("gfx90a", instruction(form, "gfx90a"))
    for form in ("v_mfma_f32_16x16x16f16", "v_mfma_f32_16x16x8bf16")
} | {
    form: datapath_for(architecture, instruction(form, architecture))
    for architecture, form in (
        ("x86-64+intel", "x86.dpps{daz,rounding=ru}"), ("x86-64", "x86.dppd{rounding=rz}"),
        ("x86-64", "x86.vfmadd.f16{rounding=rd}"), ("aarch64", "arm.fmmla"), ("aarch64", "arm.fmopa.f64{neg_a}"),
    )
}  # fmt: skip
pytestmark = pytest.mark.needs("arm kernels")
Run = Callable[[Datapath, Batch, int, int, int], Bits]


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    words = [EMULATOR, RUNNER] if EMULATOR else [RUNNER]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        stdin, stdout = child.stdin, child.stdout
        assert stdin is not None
        assert stdout is not None

        def call(path: Datapath, operands: Batch, count: int, m: int, n: int) -> Bits:
            found, dtype = program(path), formats.get(path.d).dtype
            assert found is not None
            size = count * (m * n if n else 1) * dtype.itemsize
            stdin.write(np.array([found.size, count, m, n, dtype.itemsize, size, 0], np.int64).tobytes())
            stdin.write(found.tobytes())
            for x in (operands.a, operands.b, operands.c, operands.scale_a, operands.scale_b):
                data = b"" if x is None else np.ascontiguousarray(x).tobytes()
                stdin.write(np.int64(len(data)).tobytes() + data)
            stdin.flush()
            assert np.frombuffer(stdout.read(8), np.int64)[0] == 1
            return np.frombuffer(stdout.read(size), dtype)

        yield call
        stdin.close()


@pytest.mark.parametrize("name", PATHS)
def test_sums(run: Run, name: str) -> None:
    path = PATHS[name]
    for mode in MODES:
        vectors = batch(path, mode, 5, 16 * 8 * 4 + 3)
        assert (run(path, vectors, vectors.size, 16, 0) == stages.evaluate(path, vectors)).all(), mode
        tiles = tiles_of(vectors, 16, 8)
        expected = evaluate_tiles(lambda part: stages.evaluate(path, part), tiles)
        assert (run(path, tiles, 4, 16, 8) == expected.reshape(-1)).all(), mode
