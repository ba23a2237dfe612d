"""Every run below a folder in a row each, by its manifest alone: thousands of runs are listed in seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mmaprobe.errors import UsageError
from mmaprobe.evidence.folders import evidence_below
from mmaprobe.evidence.silicon import kind_of
from mmaprobe.evidence.store import MANIFEST, Named, read_manifest
from mmaprobe.exit_codes import EQUAL, USAGE

DAMAGED = "damaged"
LISTED = (
    "begun", "run", "device", "unit", "driver", "architecture", "version", "seed", "instructions", "vectors",
    "mismatches", "outcome", "path",
)  # fmt: skip
"""What a table of runs shows of each."""


@dataclass(frozen=True)
class ListedRun:
    """One run as its manifest tells of it; ``wrong``: why it cannot be read, all else being empty then.

    ``outcome`` is that of the manifest's counts: ``mismatch``; ``unfinished``: the run, unless a budget left
    it enough; ``inconclusive``: a part, or nothing was compared; else ``equal``.  How what was derived stands to what
    ships is for ``verify`` and ``show``.
    """

    path: Path
    run: str = ""
    begun: str = ""
    device: str = ""
    identity: Mapping[str, str] = field(default_factory=dict)
    version: str = ""
    seed: int | None = None
    instructions: int = 0
    vectors: int = 0
    mismatches: int = 0
    finished: bool = False
    outcome: str = DAMAGED
    wrong: str = ""

    @property
    def architecture(self) -> str:
        return self.identity.get("architecture", "")

    @property
    def driver(self) -> str:
        return self.identity.get("driver", "")

    @property
    def unit(self) -> str:
        """Which piece of hardware, or program, it is; of what is neither silicon nor a model that, too."""
        name = next((self.identity[key] for key in ("uuid", "model_name", "gpu", "name") if key in self.identity), "")
        beside = "" if self.silicon in ("silicon", "model", "") else f"({self.silicon})"
        return " ".join(filter(None, (name, beside)))

    @property
    def silicon(self) -> str:
        """Whether silicon computed it: silicon, emulated, model or unknown; empty where nobody can tell."""
        return "" if self.wrong else kind_of(self.device, self.identity)

    def to_json(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        said = asdict(self) | {"path": str(self.path), "identity": dict(self.identity)}
        return said | {"architecture": self.architecture, "driver": self.driver, "unit": self.unit,
                       "silicon": self.silicon}  # fmt: skip


def list_runs(folder: Path) -> list[ListedRun]:
    """The runs at and below a folder, the oldest first, and those that cannot be read before them; UsageError where
    there is none."""
    return sorted(map(_listed, evidence_below(folder)), key=lambda each: (each.begun, str(each.path)))


def list_code(runs: list[ListedRun]) -> int:
    """2 where one is damaged: it is an input that cannot be read, whatever the others are."""
    return USAGE if any(each.wrong for each in runs) else EQUAL


def _listed(path: Path) -> ListedRun:
    try:
        named = read_manifest(path)
        return _row(path, named)
    except UsageError as error:
        return ListedRun(path, wrong=str(error).removeprefix(f"{path / MANIFEST}: "))


def _row(path: Path, named: Named) -> ListedRun:
    header, counts = named.header, named.manifest["counts"]
    vectors, mismatches = counts["vectors"].whole, counts["mismatches"].whole
    settled = all(named.manifest["parts"][name]["status"].text == "finished" for name in named.parts)
    outcome = "mismatch" if mismatches else "unfinished" if not named.settled else ""
    outcome = outcome or ("equal" if vectors and (settled or named.enough) else "inconclusive")
    return ListedRun(
        path, header.run, header.execution.get("begun", ""), header.device, header.identity, header.version,
        header.seed, len(named.parts), vectors, mismatches, named.finished, outcome,
    )  # fmt: skip
