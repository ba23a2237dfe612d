"""Inline SVG, made of elements, so that whatever a text holds is escaped; colours are the page's own."""

from __future__ import annotations

from xml.etree import ElementTree

from mmaprobe.errors import printable

WIDTH = 330
"""Units that a drawing is wide."""
LETTER = 6.4
"""Units that a letter of 12 units takes, about."""
PLACES = 2
"""Decimals of a coordinate."""


class Drawing:
    """A picture with a title and a description for who cannot see it, ``WIDTH`` units wide.

    ``name`` is an id that no other drawing of the page has.
    """

    def __init__(self, name: str, title: str, description: str) -> None:
        self.root = ElementTree.Element("svg", {"role": "img", "aria-labelledby": f"{name}-title {name}-text"})
        for tag, text in (("title", title), ("desc", description)):
            part = ElementTree.SubElement(self.root, tag, {"id": f"{name}-{'title' if tag == 'title' else 'text'}"})
            part.text = printable(text)

    def box(self, x: float, y: float, width: float, height: float, kind: str, radius: float = 2) -> None:
        """A rectangle of the class ``kind``."""
        place = {"x": x, "y": y, "width": width, "height": height, "rx": radius}
        self._add("rect", place, {"class": kind})

    def line(self, x0: float, y0: float, x1: float, y1: float, kind: str = "wire") -> None:
        """A straight line of the class ``kind``."""
        self._add("line", {"x1": x0, "y1": y0, "x2": x1, "y2": y1}, {"class": kind})

    def text(self, x: float, y: float, text: str, kind: str = "say") -> None:
        """A line of text, its baseline at ``y``."""
        self._add("text", {"x": x, "y": y}, {"class": kind}).text = printable(text)

    def close(self, height: float) -> str:
        """The drawing as text, so many units high."""
        self.root.set("viewBox", f"0 0 {_number(WIDTH)} {_number(height)}")
        return ElementTree.tostring(self.root, encoding="unicode")

    def _add(self, tag: str, numbers: dict[str, float], words: dict[str, str]) -> ElementTree.Element:
        return ElementTree.SubElement(self.root, tag, {key: _number(each) for key, each in numbers.items()} | words)


def _number(value: float) -> str:
    return f"{round(value, PLACES):g}"
