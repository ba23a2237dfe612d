"""The console of everything that is shown: what devices and files say is text there, all of it, and nothing more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from mmaprobe.errors import printable


class PlainConsole(Console):
    """A console whose texts are ``printable`` and neither markup nor emoji: devices and files have a say in them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def print(self, *objects: Any, crop: bool = False, **options: Any) -> None:
        """Print what is never cut off: a word that is wider than the console goes on in the next line of the screen."""
        super().print(*objects, crop=crop, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of what is printed, control characters in their texts as escapes."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)
