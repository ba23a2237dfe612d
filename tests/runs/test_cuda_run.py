"""``mmaprobe run`` on a GPU that is lost on the way, against a stand-in for NVIDIA's driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mmaprobe
from mmaprobe.evidence.store import Store
from stand_ins.fake_cuda import FakeCuda, device

pytestmark = pytest.mark.needs("cuda.bindings")

VECTORS = 20_000


class LosesIt:
    """A listener that breaks the GPU once the part of one instruction is whole, whichever of them comes first."""

    def __init__(self, cuda: FakeCuda, out: Path) -> None:
        self.cuda, self.out = cuda, out

    def compared(self, vectors: int) -> None:
        if not self.cuda.fault and (self.out / "manifest.json").exists():
            parts = Store.open(self.out).parts
            if any(part.status == "finished" for part in parts.values()):
                self.cuda.fault = "ecc"

    def begin(self, *given: Any) -> None: ...
    def step(self, *given: Any) -> None: ...
    def at(self, *given: Any) -> None: ...
    def derived(self, *given: Any) -> None: ...


@pytest.mark.long
def test_what_was_recorded_before_the_loss_stays(tmp_path: Path) -> None:
    """One instruction's part is whole, the other's says what happened; a later run goes on from there."""
    cuda, out = FakeCuda(), tmp_path / "e"
    options: dict[str, Any] = {"instruction": "mma.m16n8k8.*.f16.f16.f*", "vectors": VECTORS, "out": out}
    report = mmaprobe.run(device(cuda), listener=LosesIt(cuda, out), **options)
    assert report.exit_code == 5
    parts = Store.open(out).parts
    [whole] = [name for name, part in parts.items() if part.status == "finished"]
    [lost] = [name for name in parts if name != whole]
    assert parts[whole].vectors == VECTORS > parts[lost].vectors
    assert parts[lost].status == "partial"
    assert "device is lost" in next(result.error for result in report.results if result.instruction.id == lost)

    again = mmaprobe.run(device(FakeCuda()), resume=True, **options)
    assert again.exit_code == 0
    assert {result.instruction.id: bool(result.resumed) for result in again.results} == {whole: True, lost: False}
