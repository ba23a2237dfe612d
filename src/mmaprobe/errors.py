"""Errors that a person reads, each with the exit code of the command that meets it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class MmaprobeError(Exception):
    """Base of every error of this package; ``exit_code`` is what the command line returns."""

    exit_code = 2


class UsageError(MmaprobeError, ValueError):
    """A wrong name, shape, type or value, or a broken input file."""

    exit_code = 2


class NotHereError(MmaprobeError):
    """A device, driver, toolchain or CPU feature is not on this machine."""

    exit_code = 3


class DeviceError(MmaprobeError):
    """The device failed or lied: launch error, hang, canary intact, unstable answers."""

    exit_code = 5


class CannotWriteError(MmaprobeError):
    """Output could not be written; nothing half-written is left behind."""

    exit_code = 6


class InternalError(MmaprobeError):
    """An error of mmaprobe itself, which nobody foresaw; its message says where the traceback is."""

    exit_code = 70


def near(name: str, choices: Iterable[str], count: int = 4) -> str:
    """``"; did you mean a, b?"`` for the choices closest to ``name``, or all of a few, or nothing."""
    options = list(choices)
    found = difflib.get_close_matches(name, options, n=count, cutoff=0.5)
    if not found:
        found = [o for o in options if name.lower() in o.lower() or o.lower() in name.lower()][:count]
    if found:
        return f"; did you mean {', '.join(found)}?"
    return f"; known: {', '.join(sorted(options))}" if 0 < len(options) <= 16 else ""
