"""Of one GPU: the instructions whose layout is open, and which claim of theirs a probe on it found right."""

from __future__ import annotations

from pathlib import Path

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.layout_claims import KEY, claimed, unclaimed
from mmaprobe.catalog.layouts import claims, open_reason
from mmaprobe.catalog.lookup import instruction
from mmaprobe.catalog.modifiers import unmodified
from mmaprobe.evidence.files import check_seal, read_json


class OpenLayouts:
    """What is open on a GPU called ``device`` and what was settled, for each opcode with all of its modifiers."""

    def __init__(self, device: str, architecture: str) -> None:
        self._device, self._architecture = device, architecture
        self._settled: dict[str, str] = {}

    def settle(self, made: Instruction, name: str) -> None:
        """From here on an instruction runs by the claim of this name."""
        self._settled[_key(made)] = name

    def read(self, path: Path) -> None:
        """Take in what a run settled (the ``steps/layouts.json`` of its evidence); UsageError where it is none."""
        step = read_json(path)
        check_seal(step, 2)
        findings = step["result"]["findings"]
        for name in findings.typed(dict):
            answer = findings[name]["answer"]
            if isinstance(answer.value, dict) and answer.value.get("claim"):
                made = instruction(name, self._architecture)
                answer["claim"].one_of(*(each.modifier[KEY] for each in claims(made, self._architecture)))
                self.settle(made, answer["claim"].text)

    def settled(self, made: Instruction) -> Instruction:
        """An instruction as it runs here: by the claim that was found right, else itself."""
        name = self._settled.get(_key(made), "")
        return claimed(made, name) if name and KEY not in made.modifier and self._open(made) else made

    def claims(self, made: Instruction) -> tuple[Instruction, ...]:
        """An instruction by each claim of its open layout; () where none is open, or it was settled."""
        return claims(made, self._architecture) if self._open(self.settled(made)) else ()

    def reason(self, made: Instruction) -> str:
        """Why an instruction cannot run yet and what settles it; empty where it can."""
        reason = self._open(self.settled(made))
        if not reason or not self.claims(made):
            return reason
        return f"{reason}; mmaprobe probe '{made.id}' --device {self._device} --question layout settles it here"

    def _open(self, made: Instruction) -> str:
        return open_reason(made, self._architecture)


def _key(made: Instruction) -> str:
    return unmodified(unclaimed(made))
