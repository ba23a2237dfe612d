"""The notebook of the documentation, executed: ``python docs/notebook.py`` writes its outputs, ``--check`` says with 1
where they are others now.

It needs nbclient, nbformat and ipykernel, which ``nox -s docs`` installs; the site shows the file as it is.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parent / "notebooks" / "two_units.ipynb"
SECONDS = 120
"""Seconds that a cell may take."""


def executed(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook with the outputs that its cells have now; nothing that differs from run to run is kept."""
    made = nbformat.from_dict(notebook)
    NotebookClient(made, timeout=SECONDS, kernel_name="python3", record_timing=False).execute()
    made.metadata = nbformat.from_dict({"kernelspec": {"name": "python3", "display_name": "Python 3"}})
    return made


def outputs(notebook: nbformat.NotebookNode) -> list[object]:
    """What the cells printed and showed."""
    return [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]


def main(check: bool) -> int:
    """Execute it; write it, or hold it against the file."""
    kept = nbformat.read(NOTEBOOK, as_version=4)
    now = executed(kept)
    if not check:
        nbformat.write(now, NOTEBOOK)
        return 0
    same = outputs(now) == outputs(kept)
    if not same:
        print(f"{NOTEBOOK.name} shows other outputs now; look at them, then: python docs/notebook.py")
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main("--check" in sys.argv[1:]))
