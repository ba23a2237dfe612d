"""The command line: one function a command, each a thin layer over the API.

A command imports what it needs when it runs, so that ``--help`` and mistakes
in the words of a command cost no more than reading them.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
from codecs import lookup
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import typer

# in the order in which --help lists them
from mmaprobe.cli import run, report, probe, validate, replay, derive, kernels, evidence, diff, files, tree, gemm  # isort: skip
from mmaprobe.cli import instructions, this_machine, plot  # isort: skip
from mmaprobe.cli.terminal import JSON, app, emit, emitted, ends, leave_nothing, tell, typed
from mmaprobe.devices.waiting import telling
from mmaprobe.errors import CannotWriteError, InternalError, MmaprobeError, UsageError, printable
from mmaprobe.evidence.unexpected_ends import interrupting, unforeseen
from mmaprobe.exit_codes import INTERRUPTED

__all__ = [
    "derive",
    "diff",
    "evidence",
    "files",
    "gemm",
    "instructions",
    "kernels",
    "main",
    "plot",
    "probe",
    "replay",
    "report",
    "run",
    "this_machine",
    "tree",
    "validate",
]

FULL = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Why a stream takes no more."""


def main(arguments: list[str] | None = None) -> int:
    """Run a command; every error is one line on standard error and an exit code.

    SIGTERM and SIGHUP end it as Ctrl-C does.  An error that nobody foresaw is 70, with its traceback in a file.
    """
    ends.clear()
    emitted.clear()
    typed[:] = sys.argv[1:] if arguments is None else arguments
    if sys.stdout is None:
        return _fail("cannot write to standard output: it is closed", CannotWriteError.exit_code)
    with interrupting(), telling(_waiting), _notes_told():
        try:
            code = _run(arguments)
            sys.stdout.flush()
        except MmaprobeError as error:
            return _fail(str(error), error.exit_code)
        except KeyboardInterrupt:
            code = INTERRUPTED
        except Exception as error:
            if hasattr(error, "format_message"):  # a click usage error
                return _fail(_mistake(error), UsageError.exit_code)
            if isinstance(error, OSError) and error.filename is None and error.errno in FULL:
                return _cannot_print(error)
            if isinstance(error, UnicodeEncodeError) and lookup(error.encoding) == lookup(sys.stdout.encoding):
                return _cannot_encode(error)
            return _fail(str(unforeseen(error)), InternalError.exit_code)
    return _fail("; ".join(["interrupted", *ends]), INTERRUPTED) if code == INTERRUPTED else code


def _run(arguments: list[str] | None) -> int:
    """The exit code of a command; typer's own ends as errors."""
    try:
        code = app(arguments, standalone_mode=False)
    except typer.Exit as error:
        return int(error.exit_code)
    except SystemExit as error:  # how typer ends where nobody reads standard output any more
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)) from error
    return code if isinstance(code, int) else 0


def _mistake(error: Any) -> str:
    """What is wrong with the words of a command, and where it says what it takes."""
    names: list[str] = []
    context = getattr(error, "ctx", None)
    while context is not None and context.parent is not None:
        names, context = [context.info_name, *names], context.parent
    return f"{error.format_message().rstrip('.')}; see {' '.join(['mmaprobe', *names, '--help'])}"


def _cannot_print(error: OSError) -> int:
    """Standard output takes no more."""
    leave_nothing(sys.stdout)
    if error.errno == errno.EPIPE:  # as head does: not worth a line
        return CannotWriteError.exit_code
    return _fail(f"cannot write to standard output: {error.strerror}", CannotWriteError.exit_code)


def _cannot_encode(error: UnicodeEncodeError) -> int:
    """Standard output takes no such characters."""
    lacking = f"its encoding {error.encoding} has no {error.object[error.start]!a}"
    mend = "set PYTHONIOENCODING=utf-8, or take --json"
    return _fail(f"cannot write to standard output: {lacking}; {mend}", CannotWriteError.exit_code)


def _waiting(line: str) -> None:
    """What a command waits for; nothing where a program reads what it prints."""
    if JSON not in typed:
        _say(line)


class _Notes(logging.Handler):
    """What the package notes by the way, such as what a name was taken for, as a line of the command."""

    def emit(self, record: logging.LogRecord) -> None:
        """The line."""
        tell(record.getMessage())


@contextmanager
def _notes_told() -> Iterator[None]:
    """Inside, notes are lines of the command."""
    log, handler = logging.getLogger("mmaprobe"), _Notes(logging.WARNING)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def _say(message: str) -> None:
    """A line on standard error, where that can be written."""
    tell(f"mmaprobe: {message}")


def _fail(message: str, code: int) -> int:
    """The one line of an error, on standard error where that can be written; with ``--json`` a document as well,
    unless the command has printed its own."""
    _say(message)
    if JSON in typed and code != CannotWriteError.exit_code and not emitted:
        with suppress(OSError):
            emit({"error": printable(message), "exit_code": code})
            sys.stdout.flush()
    return code
