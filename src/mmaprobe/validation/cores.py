"""The cores that this thread may run on, and one of them alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from mmaprobe.errors import NotHereError


def allowed_cores() -> list[int]:
    """The cores that this thread may run on: in a container often not all; NotHereError where nobody can tell."""
    if not hasattr(os, "sched_getaffinity"):
        raise NotHereError("this system pins no thread to a core, so no core can be checked by itself")
    return sorted(os.sched_getaffinity(0))


@contextmanager
def pinned(core: int) -> Iterator[None]:
    """This thread, and those that it starts, on one core; afterwards where it was allowed before."""
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {core})
    except OSError as error:
        raise NotHereError(f"core {core} takes no thread of this process: {error.strerror}") from None
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
