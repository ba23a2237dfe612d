"""Runs to make pages of, and what of a page can be counted."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from mmaprobe.cli import main
from mmaprobe.evidence.store import Store, read_manifest

COMMITTED = Path(__file__).parents[2] / "validation" / "evidence"
HOPPER = COMMITTED / "sm_90a-beafa0e45cde"
CPU = COMMITTED / "x86-64+amd-bc6b12d2e5a2"
STATES = tuple(f"x86.dppd{state}" for state in ("", "{daz}", "{ftz}", "{rounding=rz}"))
TILE = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
WIDE = "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
UNIT = "HMMA.16816.F32[f16,f16->f32]"
FAULT = f"mutant:sm_90a/{UNIT}/tree.fraction_bits=24"
HOSTILE = '"><script>alert(1)</script><img src=http://example.org/x onerror=alert(1)>&\u202e\x1b[2J'
"""What a name in evidence may be: tags, quotes, entities, turns of writing direction, an escape of a terminal."""


def some_of(run: Path, out: Path, *names: str, **others: str) -> Path:
    """These instructions of a committed run; ``others``: what one was derived to be is that of another one."""
    named = read_manifest(run)
    made = Store.create(out, named.header)
    for name in names:
        part = named.read_part(name)
        made.save(replace(part, datapath=named.read_part(others[name]).datapath) if name in others else part)
    made.finish()
    return out


def wrong_run(out: Path) -> Path:
    """A unit with a fault against its model: mismatches, of which some are kept in full."""
    words = ["validate", FAULT, "model:sm_90a", TILE, "--plan", "smoke", "--seed", "1", "--out", str(out)]
    assert main(words) == 1
    return out


def evidence_counts(run: Path) -> dict[str, int]:
    """Rivals that the evidence counts, and mismatches that it holds."""
    store = Store.open(run)
    forms = [found["certificate"] for part in store.parts.values() if "certificate" in (found := part.datapath or {})]
    rivals = sum(form["refuted"] + form["equivalent"] + sum(map(len, form["open"].values())) for form in forms)
    return {"rivals": rivals, "mismatches": sum(len(part.mismatches) for part in store.parts.values())}


class Page(HTMLParser):
    """A page taken apart: how many elements of each tag, of each class and with each attribute; ids, links, texts."""

    VOID = frozenset(("meta", "br", "wbr", "img", "link", "input", "rect", "line"))

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.classes, self.attributes = Counter[str](), Counter[str](), Counter[str]()
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.headings: list[int] = []
        self.labels: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        if tag not in self.VOID:
            self.open.append(tag)
        if tag in ("h1", "h2", "h3", "h4"):
            self.headings.append(int(tag[1]))
        for name, value in attrs:
            self.attributes[name] += 1
            self.classes.update((value or "").split() if name == "class" else ())
            if name == "id":
                self.ids.append(value or "")
            elif name in ("href", "src"):
                self.targets.append(value or "")
            elif name in ("aria-labelledby", "aria-describedby"):
                self.labels += (value or "").split()

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        """All that is read."""
        return "".join(self.words)


def sound(page: Page, text: str) -> None:
    """Ids are there once, links and labels lead to one, headings leave no level out, nothing is fetched."""
    assert not page.open
    assert len(set(page.ids)) == len(page.ids)
    assert {target[1:] for target in page.targets} <= set(page.ids)
    assert all(target.startswith("#") for target in page.targets)
    assert set(page.labels) <= set(page.ids)
    assert page.headings[0] == 1
    assert all(after - before <= 1 for before, after in zip(page.headings, page.headings[1:], strict=False))
    assert not page.tags.keys() & {"script", "link", "img", "iframe", "object", "form", "base"}
    assert not re.search(r"url\(|@import|<[^>]*\bhttps?:", text)
    assert "default-src 'none'" in text
    assert page.tags["main"] == page.tags["nav"] == page.tags["header"] == page.tags["footer"] == page.tags["h1"] == 1
    assert page.tags["svg"] == page.tags["title"] - 1 == page.tags["desc"]
