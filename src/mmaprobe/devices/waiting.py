"""Who is told that a device keeps silent: nobody, until somebody listens."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 5.0
"""Seconds of silence after which a person wonders."""
_LISTENERS: list[Callable[[str], None]] = []


@contextmanager
def telling(listener: Callable[[str], None]) -> Iterator[None]:
    """Inside, the listener is called with a line for each device that keeps silent, from whatever thread waits; with
    the same line once."""
    said: set[str] = set()

    def listening(line: str) -> None:
        if line not in said:
            said.add(line)
            listener(line)

    _LISTENERS.append(listening)
    try:
        yield
    finally:
        _LISTENERS.remove(listening)


def tell(line: str) -> None:
    """Say what is waited for."""
    for listener in list(_LISTENERS):
        listener(line)


@contextmanager
def wondering(said: str) -> Iterator[Callable[[], None]]:
    """Inside, who listens is told once what is waited for, after ``PATIENCE`` seconds without a sign of life: a call of
    what is yielded.  ``said``: ``cuda:0, which has been silent``; for how long comes behind it."""
    if not _LISTENERS:
        yield lambda: None
        return
    over, last = threading.Event(), time.monotonic()

    def alive() -> None:
        nonlocal last
        last = time.monotonic()

    def watch() -> None:
        while (left := last + PATIENCE - time.monotonic()) > 0:
            if over.wait(left):
                return
        tell(f"waiting for {said} for {PATIENCE:g} s; Ctrl-C ends it")

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield alive
    finally:
        over.set()
