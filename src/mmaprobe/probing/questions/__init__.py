"""The questions: each file of this folder is one, which it states as ``PROBE``; there is no other list of them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from mmaprobe.probing.session.probe import Probe


def _stated() -> Iterator[tuple[str, Probe]]:
    for file in iter_modules(__path__):
        yield file.name, import_module(f"{__name__}.{file.name}").PROBE


PROBES: dict[str, Probe] = dict(sorted(_stated(), key=lambda stated: stated[1].order))
"""Each question by its name, that of its file, in the order in which they are asked."""
