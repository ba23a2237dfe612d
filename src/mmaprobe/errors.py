"""Errors that a person reads, each with the exit code of the command that meets it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sized

from mmaprobe import exit_codes

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """The text with control characters (all but tab and newline), turns of writing direction and halves of pairs
    written as escapes: what a device or a file says cannot steer the terminal that shows it."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def brief(value: object, most: int = 60) -> str:
    """A value as an error shows it: one line, at most about ``most`` characters, whatever it is."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, (list, tuple)) and len(value) < 5 and all(isinstance(item, (int, str)) for item in value):
        return f"[{', '.join(brief(item, 20) for item in value)}]"
    if isinstance(value, Sized) and not isinstance(value, (str, bytes)):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, (str, bytes)) and len(value) > most:
        return f"{value[:most]!r}... ({len(value)} characters)"
    text = repr(value)
    return text if len(text) <= 2 * most else f"{text[:most]}..."


class MmaprobeError(Exception):
    """Base of every error of this package; ``exit_code`` is what the command line returns.

    Its text is ``printable``.
    """

    exit_code = exit_codes.USAGE

    def __init__(self, *args: object) -> None:
        super().__init__(*(printable(arg) if isinstance(arg, str) else arg for arg in args))


class UsageError(MmaprobeError, ValueError):
    """A wrong name, shape, type or value, or a broken input file."""

    exit_code = exit_codes.USAGE


class NotHereError(MmaprobeError):
    """A device, driver, toolchain or CPU feature is not on this machine."""

    exit_code = exit_codes.NOT_HERE


class DeviceError(MmaprobeError):
    """The device failed or lied: launch error, hang, canary intact, unstable answers."""

    exit_code = exit_codes.DEVICE_FAILED


class CannotWriteError(MmaprobeError):
    """Output could not be written; nothing half-written is left behind."""

    exit_code = exit_codes.CANNOT_WRITE


class InternalError(MmaprobeError):
    """An error of mmaprobe itself, which nobody foresaw; its message says where the traceback is."""

    exit_code = exit_codes.INTERNAL


def near(name: object, choices: Iterable[str], count: int = 4) -> str:
    """``"; did you mean a, b?"`` for the choices closest to ``name``, or all of a few, or nothing."""
    options, name = list(choices), name[:200] if isinstance(name, str) else ""
    found = difflib.get_close_matches(name, options, n=count, cutoff=0.5)
    if not found and name:
        found = [o for o in options if name.lower() in o.lower() or o.lower() in name.lower()][:count]
    if found:
        return f"; did you mean {', '.join(found)}?"
    return f"; known: {', '.join(sorted(options))}" if 0 < len(options) <= 16 else ""
