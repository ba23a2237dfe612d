"""Options in a device's name: ``scheme:target?key=value&key=value``."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import unquote

from mmaprobe.errors import UsageError, brief, near


def split_options(argument: str, known: Collection[str], prefix: str | None = None) -> tuple[str, dict[str, str]]:
    """The target and its options; values may be percent-encoded (``%26`` is &, ``%3F`` is ?).

    Known is also every option whose name begins with ``prefix`` and goes on.

    UsageError with the near names for an option that is not ``known``, or given twice.
    """
    target, _, text = argument.partition("?")
    options: dict[str, str] = {}
    for item in filter(None, text.split("&")):
        key, _, value = item.partition("=")
        if key not in known and not (prefix and key.startswith(prefix) and key != prefix):
            raise UsageError(f"{argument!r}: unknown option {key!r}{near(key, known)}")
        if key in options:
            raise UsageError(f"{argument!r}: option {key} is given twice")
        options[key] = unquote(value)
    return target, options


def number(options: dict[str, str], key: str, default: float, low: float, high: float) -> float:
    """Option ``key`` as a number in low..high; UsageError naming it otherwise."""
    try:
        value = float(options.get(key, default))
    except ValueError:
        raise UsageError(f"option {key}={options[key]!r} is not a number") from None
    if not low <= value <= high:
        raise UsageError(f"option {key}={options[key]} must lie in {low:g}..{high:g}")
    return value


def whole(options: dict[str, str], key: str, default: int, low: int) -> int:
    """Option ``key`` as a whole number from ``low`` on; UsageError naming it otherwise."""
    text = options.get(key, str(default))
    if not text.isascii() or not text.isdigit() or len(text) > 18 or int(text) < low:
        raise UsageError(f"option {key}={brief(text)} must be a whole number from {low} on")
    return int(text)
