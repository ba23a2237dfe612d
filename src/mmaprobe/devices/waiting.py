"""Who is told that a device keeps silent: nobody, until somebody listens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 5.0
"""Seconds of silence after which a person wonders."""
_LISTENERS: list[Callable[[str], None]] = []


@contextmanager
def telling(listener: Callable[[str], None]) -> Iterator[None]:
    """Inside, the listener is called with a line for each device that keeps silent, from whatever thread waits."""
    _LISTENERS.append(listener)
    try:
        yield
    finally:
        _LISTENERS.remove(listener)


def tell(line: str) -> None:
    """Say what is waited for."""
    for listener in list(_LISTENERS):
        listener(line)
