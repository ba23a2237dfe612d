"""Where evidence lies: the folders of runs at and below a folder."""

from __future__ import annotations

import os
from pathlib import Path

from mmaprobe.errors import UsageError
from mmaprobe.evidence.files import parse_json
from mmaprobe.evidence.store import KIND, MANIFEST

PARTS = "instructions"
"""The folder of a run's parts, beside its manifest."""


def evidence_below(folder: Path) -> list[Path]:
    """The folders at or below ``folder`` that hold a run's evidence, or what is left of it, in order of their paths.

    A folder is one by its manifest, or by its parts where that is missing; one that cannot be read is one, too: it is
    named, not passed over.  What lies inside of a run's folder (its CPU's evidence, say) is that run's; no link is
    followed, and corpora are not evidence.  UsageError where the folder is none, or holds none.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder}: {'is no folder' if folder.exists() else 'no such folder'}")
    found = _walked(folder)
    if not found:
        raise UsageError(f"{folder}: no run's evidence is there or in a folder below; mmaprobe run --out makes some")
    return found


def holds_evidence(folder: Path) -> bool:
    """Whether a folder, or one below, holds a run's evidence."""
    return folder.is_dir() and bool(_walked(folder))


def _walked(folder: Path) -> list[Path]:
    found: list[Path] = []
    for place, below, names in os.walk(folder, onerror=lambda error: found.append(Path(error.filename))):
        if MANIFEST in names or PARTS in below:
            below.clear()
            if MANIFEST not in names or not _is_other(Path(place, MANIFEST)):
                found.append(Path(place))
    return sorted(found)


def _is_other(path: Path) -> bool:
    """Whether a manifest says that it is one of something else than a run."""
    try:
        content = path.read_bytes()
        if f'"kind": "{KIND}"'.encode() in content:  # as a run writes it: not worth reading twice
            return False
        document = parse_json(path, content).value
    except (UsageError, OSError):
        return False
    return isinstance(document, list) or (isinstance(document, dict) and document.get("kind", KIND) != KIND)
