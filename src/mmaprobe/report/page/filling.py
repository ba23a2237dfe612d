"""A page's template filled in, and the file that it becomes (needs the extra ``report``)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mmaprobe.errors import NotHereError, UsageError, printable
from mmaprobe.evidence.files import write_bytes

SUFFIXES = (".html", ".htm")
"""How the name of a page ends."""
ADVICE = "choose another file with --html FILE"
_PART = re.compile(r"(?<=[._,:={/])(?=[\w{+*-])")
"""Where an id or a vector may go on in a new line: behind what parts its words."""
MISSING = "a page needs jinja2; type: pip install 'mmaprobe[report]'"


def filled(template: str, **values: Any) -> str:
    """The text of a page: every text that is put in is escaped.  NotHereError without jinja2."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise NotHereError(MISSING) from None
    environment = Environment(
        loader=PackageLoader("mmaprobe.report.page", "template"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters["parts"] = _parted
    return str(environment.get_template(template).render(**values))


def refuse_name(file: Path, better: Path) -> None:
    """UsageError where a page is to be written to what is a folder, or to a file whose name does not say that it is
    one."""
    if file.is_dir():
        raise UsageError(f"{file} is a folder; name a file: --html {better}")
    if file.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{file}: a page's name ends in .html: --html {file.with_name(file.name + SUFFIXES[0])}")


def write(text: str, path: Path) -> int:
    """The page at ``path``, whole or not at all; how many bytes it has.  CannotWriteError where it cannot be
    written."""
    data = text.encode()
    write_bytes(path, data, ADVICE)
    return len(data)


def _parted(text: Any) -> Any:
    """An id or a vector that may go on in a new line behind what parts its words."""
    from markupsafe import Markup, escape

    return Markup(_PART.sub("<wbr>", str(escape(printable(str(text))))))


def _shown(value: Any) -> Any:
    """A text without characters that steer; what is markup already stays."""
    return printable(value) if type(value) is str else value
