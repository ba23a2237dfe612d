"""The console of everything that is shown: what devices and files say is text there, all of it, and nothing more.

On a terminal lines break between words, never inside one, and a command that is broken goes on behind a backslash, so
that it can be copied.  What is no terminal has no edge: a line is a line there, and a row of a table is one.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

from mmaprobe.errors import printable

ENDLESS = 100_000
"""Columns of what has no edge."""
_COMMAND = re.compile(r"(?:^|(?<=: ))\s*mmaprobe [a-z-]")
"""Where a line's command begins, which its rest is."""
_WORDS = re.compile(r"""(?:'[^']*'|"[^"]*"|\S)+""")
"""Words as a shell reads them: a space in quotes parts none."""


class PlainConsole(Console):
    """A console whose texts are ``printable`` and neither markup nor emoji: devices and files have a say in them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print what is never cut off; texts are ``Folded``."""
        if all(isinstance(each, str) for each in objects):
            objects = (Folded(" ".join(objects)),)
        super().print(*objects, **{"crop": False, **options})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of what is printed, control characters in their texts as escapes; no line ends in spaces."""
        spaces: list[Segment] = []
        for text, style, control in super().render(renderable, options):
            if control or not text:
                yield Segment(text, style, control)
                continue
            said = printable(text)
            kept = said.rstrip(" ")
            if kept:
                yield from () if kept.startswith("\n") else spaces
                yield Segment(kept, style)
                spaces = []
            if kept != said:
                spaces.append(Segment(said[len(kept) :], style))
        yield from spaces


class Folded:
    """A text whose lines are ``folded``: a word that is wider than the console stays whole."""

    def __init__(self, text: str, style: str = "") -> None:
        self.text, self.style = text, style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = (folded(line, options.max_width) for line in self.text.split("\n"))
        yield Text("\n".join(lines), self.style, no_wrap=True, overflow="ignore")


def folded(line: str, width: int) -> str:
    """A line in lines of at most so many columns, broken between words; what is laid out in columns is left as it
    is."""
    if Text(line).cell_len <= width or "  " in line.strip():
        return line
    found = _COMMAND.search(line)
    head, command = (line, "") if found is None else (line[: found.start()], line[found.start() :])
    indent = " " * (len(line) - len(line.lstrip()))
    lines = _wrapped(head.strip(), width, indent)
    if not command:
        return "\n".join(lines)
    begun = f"{lines.pop()} " if lines else indent
    return "\n".join([*lines, *_in_a_shell(begun, _WORDS.findall(command), width, indent)])


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _in_a_shell(begun: str, words: Iterable[str], width: int, indent: str) -> Iterator[str]:
    """A line that was begun, and a command's words in it and in those that go on with it."""
    line = begun
    for number, word in enumerate(words):
        if line.strip() and len(line) + len(word) + len(" \\") > width:
            yield line.rstrip() + (" \\" if number else "")
            line = f"{indent}  "
        line += f"{word} "
    yield line.rstrip()
