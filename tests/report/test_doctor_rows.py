"""What doctor says of processors without a name, and of hundreds of instructions that are not here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from mmaprobe.devices.base import Support
from mmaprobe.report.tables import doctor


@dataclass
class Named:
    id: str


class Arm:
    """A processor with a number for a name, and 300 instructions of which it lacks all but one."""

    def info(self) -> dict[str, str]:
        return {"architecture": "aarch64", "vendor": "65", "model": "3404"}

    def instructions(self) -> list[Named]:
        return [Named(f"arm.dot{number}") for number in range(300)]

    def supports(self, instruction: Any) -> Support:
        return Support(instruction.id == "arm.dot7", "needs sme2")


def test_an_arm_processor_is_told_in_two_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "open_device", lambda name: Arm())
    assert [each.found for each in doctor._cpu()] == [
        "a processor of implementer 0x41, part 0xd4c (aarch64): 1 instruction run here",
        "arm.dot0, arm.dot1, arm.dot2, arm.dot3, arm.dot4, arm.dot5 and 293 more: needs sme2",
    ]
