"""Evidence and corpora changed by one who computes the digests anew: what is left to refuse are the contents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mmaprobe.evidence import files


def reseal(path: Path, document: dict[str, Any]) -> None:
    """Write a document with the seal that fits."""
    path.write_bytes(files.json_text(files.sealed(document)).encode())


def replaced(path: Path, document: dict[str, Any]) -> None:
    """Write a file of an evidence folder, with the seal and the manifest's digest that fit."""
    reseal(path, document)
    folder = next(above for above in path.parents if (above / "manifest.json").exists())
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"][path.relative_to(folder).as_posix()] = files.digest_of(path.read_bytes())
    reseal(folder / "manifest.json", manifest)


def redigest(folder: Path) -> None:
    """Make the manifest of a corpus name its files as they are now."""
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"] = {name: files.digest_of((folder / name).read_bytes()) for name in manifest["files"]}
    reseal(folder / "manifest.json", manifest)
