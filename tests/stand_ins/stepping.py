"""What tests of bring-ups step by step share: a clock, a listener, a device that changes."""

from __future__ import annotations

from typing import Any

from mmaprobe.devices.base import open_device
from mmaprobe.runs import verbs

MODEL = "model:sm_90a"
F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
FEW: dict[str, Any] = {"instruction": "mma.m16n8k*.f32.f16.f16.f32", "vectors": 3000, "seed": 3}
ONE = FEW | {"instruction": F16}
PLAIN = ["layouts", "main", "survey", "validation"]
NAMES = [step.name for step in verbs.STEPS]


class Ticking:
    """A clock that moves by one second each time it is read."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


class Heard:
    """A listener that notes the slices, and does something at one of them."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.left: list[float | None] = []

    def begin(self, instructions: int, vectors: int | None) -> None: ...

    def step(self, name: str, purpose: str) -> None:
        self.steps.append(name)

    def at(self, text: str, left: float | None) -> None:
        self.left.append(left)

    def derived(self, instruction: str) -> None: ...

    def compared(self, vectors: int) -> None: ...


class Changed:
    """The model, of which some attributes are others."""

    def __init__(self, **others: Any) -> None:
        self.inner, self.others = open_device(MODEL), others
        self.resident: Any
        self.run_operands: Any

    def __getattr__(self, name: str) -> Any:
        return self.others[name] if name in self.others else getattr(self.inner, name)
