"""A figure to draw on, and the file that it becomes (needs the extra ``plot``)."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from mmaprobe.errors import NotHereError, UsageError
from mmaprobe.evidence.files import write_bytes

INK, SOFT, PAPER = "#1f2933", "#7b8794", "#ffffff"


def new_figure(path: Path, width: float, height: float) -> Any:
    """A figure of so many inches for ``path``; its suffix, .png or .svg, says the kind.

    UsageError for another suffix, NotHereError without matplotlib.
    """
    if path.suffix not in (".png", ".svg"):
        raise UsageError(f"cannot draw {path.name}: a picture is .png or .svg")
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise NotHereError("drawing needs matplotlib; type: pip install 'mmaprobe[plot]'") from None
    figure = Figure(figsize=(width, height), facecolor=PAPER)
    FigureCanvasAgg(figure)
    return figure


def save(figure: Any, path: Path, option: str) -> None:
    """Write the figure whole or not at all, the same picture as the same file; CannotWriteError naming the option
    that chooses another."""
    from matplotlib import rc_context

    held = io.BytesIO()
    metadata = {"Date": None} if path.suffix == ".svg" else {"Software": None}
    with rc_context({"svg.hashsalt": "mmaprobe"}):
        figure.savefig(held, format=path.suffix[1:], dpi=160, metadata=metadata)
    write_bytes(path, held.getvalue(), f"choose another file with {option}")
