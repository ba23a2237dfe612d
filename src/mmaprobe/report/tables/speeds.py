"""The table of ``mmaprobe bench``."""

from __future__ import annotations

from typing import Any

from mmaprobe.devices.base import open_device
from mmaprobe.showing import counted
from mmaprobe.validation.speed import Speed, forms, machine, measure

COLUMNS = ("instruction", "formats", "k", "kernel", "roof", "engine", "share", "call", "compared")


def bench(architecture: str | None, glob: str, threads: int, smoke: bool) -> dict[str, Any]:
    """The machine and a row a form: million dot products a second, and the engine's share of the roof."""
    name = architecture or open_device("cpu").info()["architecture"]
    rows = [row(measure(made, path, threads, smoke)) for made, path in forms(name, glob)]
    return {"schema": 1, "architecture": name, "threads": threads, **machine(), "rows": rows}


def row(speed: Speed) -> dict[str, Any]:
    """Rates to four digits; ``share`` between 0 and 1."""
    rates = {name: getattr(speed, name) for name in ("roof", "engine", "share", "call", "compared")}
    found = {name: None if rate is None else float(f"{rate:.4g}") for name, rate in rates.items()}
    return {
        "instruction": speed.instruction,
        "formats": speed.formats,
        "k": speed.k,
        "kernel": speed.kernel,
        **found,
    }


def title(found: dict[str, Any]) -> str:
    """What the figures hold for, and what they are."""
    threads = "one thread" if found["threads"] == 1 else f"{counted(found['threads'], 'thread')}"
    return (
        f"{found['architecture']} on {found['processor']}, {found['build']} build, {found['compiler']}, {threads}\n"
        "Million dot products a second. engine: on its own layout; call: the model with arrays; compared: generated,\n"
        "evaluated and compared natively; share: engine of roof.\n"
    )


def cells(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows as text."""
    return [
        {
            **given,
            "roof": _rate(given["roof"]),
            "engine": _rate(given["engine"]),
            "share": "-" if given["share"] is None else f"{given['share']:.0%}",
            "call": _rate(given["call"]),
            "compared": _rate(given["compared"]),
        }
        for given in found["rows"]
    ]


def _rate(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.0f}" if rate >= 100 else f"{rate:.3g}"
