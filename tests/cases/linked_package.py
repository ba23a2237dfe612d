"""The package in another folder, by links, so that a test can add to it what a recipe adds."""

from __future__ import annotations

from pathlib import Path

import mmaprobe

PACKAGE = Path(mmaprobe.__file__).parent


def linked(folder: Path, *inside: str) -> Path:
    """Below ``folder/src`` the package, the headers beside it; the folder ``inside`` of it is one of its own."""
    source, place = PACKAGE, folder / "src" / "mmaprobe"
    for own in (*inside, ""):
        place.mkdir(parents=True)
        for entry in source.iterdir():
            if entry.name not in (own, "__pycache__"):
                (place / entry.name).symlink_to(entry)
        source, place = source / own, place / own
    headers = PACKAGE.parent.parent / "csrc"
    if headers.exists():
        (folder / "csrc").symlink_to(headers)
    return folder / "src" / "mmaprobe"
