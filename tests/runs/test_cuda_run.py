"""``mmaprobe run`` on a GPU that is lost on the way, against a stand-in for NVIDIA's driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mmaprobe
from mmaprobe.evidence.store import Store
from stand_ins.fake_cuda import FakeCuda, device

pytestmark = pytest.mark.needs("cuda.bindings")

FIRST = "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16"
VECTORS = 20_000
SECOND = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"


class LosesIt:
    """A listener that breaks the GPU once all vectors of the first instruction were compared."""

    def __init__(self, cuda: FakeCuda) -> None:
        self.cuda, self.left = cuda, VECTORS

    def compared(self, vectors: int) -> None:
        self.left -= vectors
        if self.left == 0:
            self.cuda.fault = "ecc"

    def begin(self, *given: Any) -> None: ...
    def step(self, *given: Any) -> None: ...
    def at(self, *given: Any) -> None: ...
    def derived(self, *given: Any) -> None: ...


def test_what_was_recorded_before_the_loss_stays(tmp_path: Path) -> None:
    """The first instruction's part is whole, the second's says what happened; a later run goes on from there."""
    cuda = FakeCuda()
    options: dict[str, Any] = {"instruction": "mma.m16n8k8.*.f16.f16.f*", "vectors": VECTORS, "out": tmp_path / "e"}
    report = mmaprobe.run(device(cuda), listener=LosesIt(cuda), **options)
    assert report.exit_code == 5
    parts = Store.open(tmp_path / "e").parts
    assert (parts[FIRST].status, parts[FIRST].vectors) == ("finished", VECTORS)
    assert (parts[SECOND].status, parts[SECOND].vectors) == ("partial", 0)
    assert "device is lost" in next(result.error for result in report.results if result.instruction.id == SECOND)

    again = mmaprobe.run(device(FakeCuda()), resume=True, **options)
    assert again.exit_code == 0
    assert [bool(result.resumed) for result in again.results] == [True, False]
