"""How a process ends that was not meant to: signals that interrupt it, and errors that nobody foresaw."""

from __future__ import annotations

import hashlib
import os
import platform
import signal
import stat
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import mmaprobe
from mmaprobe.errors import CannotWriteError, InternalError
from mmaprobe.evidence.files import write_bytes

SIGNALS = (signal.SIGTERM, signal.SIGHUP)
"""What ends a process as Ctrl-C does."""
GRACE = 10.0
"""Seconds after a signal in which others are let go by."""


def unforeseen(error: BaseException, folder: Path | None = None) -> InternalError:
    """The error to raise, or record, for one that nobody foresaw: a line that asks for a report.

    The traceback is written into ``folder`` (an evidence folder), else into the folder for temporary files, under a
    name that the same error has again; where neither can be written, to standard error.
    """
    if isinstance(error, InternalError):
        return error
    said = " ".join(f"{type(error).__name__}: {error}".split())
    told = f"mmaprobe {mmaprobe.__version__}, Python {platform.python_version()}, {platform.platform()}\n"
    text = f"{told}{sys.argv}\n\n{''.join(traceback.format_exception(error))}"
    name = f"mmaprobe-error-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:12]}.txt"
    for place in (folder, Path(tempfile.gettempdir())):
        if place is not None:
            try:
                write_bytes(place / name, text.encode("utf-8", "replace"))
            except CannotWriteError:
                continue
            return InternalError(f"internal error: {said}; please report it with {place / name}")
    print(text, file=sys.stderr)
    return InternalError(f"internal error: {said}; please report it with the lines above")


def _leave_terminal() -> None:
    """Write nothing more to a terminal that has hung up: it would be an error, in the middle of what is being kept."""
    nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    for stream in (1, 2):
        with suppress(OSError):
            if stat.S_ISCHR(os.fstat(stream).st_mode):
                os.dup2(nowhere, stream)
    os.close(nowhere)


@contextmanager
def interrupting() -> Iterator[None]:
    """SIGTERM and SIGHUP end what runs inside as Ctrl-C does, by KeyboardInterrupt.

    Those that come within ``GRACE`` seconds of one are let go by: what was found is written then, and whoever closes a
    session sends several.  What ``nohup`` ignores stays ignored, and who handles a signal already keeps it.
    """
    before: dict[signal.Signals, Any] = {}
    last = -GRACE

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal last
        if time.monotonic() < last + GRACE:
            return
        last = time.monotonic()
        if number == signal.SIGHUP:
            _leave_terminal()
        raise KeyboardInterrupt(signal.Signals(number).name)

    if threading.current_thread() is threading.main_thread():
        for each in SIGNALS:
            if signal.getsignal(each) == signal.SIG_DFL:
                before[each] = signal.signal(each, interrupt)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
