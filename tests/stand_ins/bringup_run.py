"""``mmaprobe run`` on a stand-in GPU of any vendor: a pack, an evidence folder, the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mmaprobe.cli import main
from mmaprobe.evidence.store import Store
from stand_ins.kernel_source import Seed
from stand_ins.vendors import Around, Vendor

VECTORS = 2000
LATER = 10
"""A launch of the step after the layout, which takes three of them: a known answer, a batch, another known answer."""


class Run:
    """A pack of some instructions, an evidence folder, and the command line on a stand-in."""

    def __init__(
        self,
        vendor: Vendor,
        folder: Path,
        names: tuple[str, ...] = (),
        seeds: Mapping[str, tuple[Seed, ...]] | None = None,
    ) -> None:
        self.vendor, self.pack, self.out = vendor, folder / "pack", folder / "evidence"
        vendor.pack(self.pack, names or (vendor.signed,), seeds)

    def __call__(
        self,
        gpu: Any = None,
        *more: str,
        around: Around | None = None,
        glob: str = "",
        steps: str = "layouts,survey,validation",
        vectors: int = VECTORS,
        trial: str = "no",
        child: str = "",
        **environment: str,
    ) -> int:
        words = ["run", "--steps", steps, "--device", f"{self.vendor.scheme}:0?trial={trial}"]
        words += ["--pack", str(self.pack), "--out", str(self.out)]
        words += ["--instruction", glob or self.vendor.signed, "--vectors", str(vectors), *more]
        given = {"environment": environment} if environment else {}
        with self.vendor.plugged(gpu or self.vendor.gpu(), around and around.machine, child, **given):
            return main(words)

    @property
    def store(self) -> Store:
        return Store.open(self.out)

    @property
    def name(self) -> str:
        return f"{self.vendor.scheme}:0"

    def both(self) -> Run:
        """The same with both instructions."""
        return Run(self.vendor, self.out.parent / "both", (self.vendor.signed, self.vendor.unsigned))

    def statuses(self) -> dict[str, str]:
        return {name: step.status for name, step in self.store.steps.items()}

    def notes(self) -> list[str]:
        return [note for step in self.store.steps.values() for each in step.slices for note in each.notes]


def at(launch: int, does: Callable[[], Any]) -> dict[int, Callable[[], Any]]:
    """What happens before a launch."""
    return {launch: does}


def breaks(gpu: Any, launch: int, fault: str) -> Any:
    """The GPU has a fault from a launch on."""
    gpu.events = at(launch, lambda: setattr(gpu, "fault", fault))
    return gpu


def failed(run: Run) -> str:
    """What the evidence says of the signed instruction, which failed, the other one being finished."""
    parts = run.store.parts
    others = [part for other, part in parts.items() if other != run.vendor.signed]
    assert [(part.status, part.vectors) for part in others] == [("finished", VECTORS)] * len(others)
    assert parts[run.vendor.signed].status == "partial"
    return str(parts[run.vendor.signed].validation["error"])
