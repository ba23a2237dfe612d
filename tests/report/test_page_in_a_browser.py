"""Pages in a real browser: whole, without a word to the network, on a telephone, in the dark, printed, by keyboard."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import Chromium

from cases.report_pages import (
    CPU,
    HOPPER,
    SPARSE,
    STATES,
    TILE,
    WIDE,
    evidence_counts,
    some_of,
    wrong_run,
)
from mmaprobe.cli import main
from mmaprobe.evidence.store import Store

pytestmark = pytest.mark.browser

PHONE = (375, 812)
"""Pixels of a small telephone."""
DESK = (1280, 900)
"""Pixels of a window on a desk."""
PAPER = (718, 1047)
"""Pixels of a sheet of A4 within a browser's margins of a centimetre."""
READABLE = 4.5
"""Contrast of text by WCAG 2, level AA."""
CONTRAST = """
(() => {
  const light = word => {
    const [r, g, b] = word.match(/[\\d.]+/g).slice(0, 3).map(x => x / 255)
      .map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = node => {
    for (; node; node = node.parentElement) {
      const paint = getComputedStyle(node).backgroundColor;
      if (!/, 0\\)$|transparent/.test(paint)) return paint;
    }
    return 'rgb(255, 255, 255)';
  };
  let worst = 99;
  for (const node of document.querySelectorAll('body *')) {
    if (node.closest('svg') || ![...node.childNodes].some(x => x.nodeType === 3 && x.data.trim())) continue;
    const [a, b] = [light(getComputedStyle(node).color), light(behind(node))].sort();
    worst = Math.min(worst, (b + 0.05) / (a + 0.05));
  }
  return worst;
})()
"""
"""The least contrast of any text with what is painted behind it."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    made = Chromium(tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


RUNS = ("hopper", "cpu", "wrong")


@pytest.fixture(scope="module", params=[*RUNS, "units"])
def shown(request: pytest.FixtureRequest, folder: Path) -> tuple[Path, Path]:
    """A run and its page: a GPU's, a CPU's beside an older one, a fault's; and what two units have otherwise."""
    run, page, words = folder / request.param, folder / f"{request.param}.html", list[str]()
    if request.param == "units":
        assert main(["diff", "sm_80", "sm_90a", "--html", str(page)]) == 1
        return run, page
    if request.param == "hopper":
        some_of(HOPPER, run, TILE, WIDE, SPARSE)
    elif request.param == "cpu":
        some_of(CPU, run, *STATES)
        words = ["--against", str(some_of(CPU, folder / "older", STATES[0], "x86.pmaddwd"))]
    else:
        wrong_run(run)
    assert main(["report", str(run), "--html", str(page), *words]) == 0
    return run, page


def counted(browser: Chromium, selector: str) -> int:
    return int(browser.value(f"document.querySelectorAll({selector!r}).length"))


def kept(browser: Chromium, page: Path, name: str) -> None:
    """A picture, where somebody asked for them."""
    if os.environ.get("MMAPROBE_SHOTS"):
        browser.picture(Path(os.environ["MMAPROBE_SHOTS"]) / f"{page.stem}-{name}.png")


@pytest.mark.parametrize("shown", RUNS, indirect=True)
def test_it_is_whole_and_asks_the_network_for_nothing(browser: Chromium, shown: tuple[Path, Path]) -> None:
    run, page = shown
    browser.media()
    browser.show(page, *DESK)
    assert browser.requests() == [page.resolve().as_uri()]
    assert browser.errors() == []
    held = evidence_counts(run)
    older = 61 - 40 if run.name == "cpu" else 0  # rivals of which the version that wrote the evidence did not know
    assert counted(browser, "[data-rival]") == held["rivals"] + older
    assert counted(browser, "[data-mismatch]") == held["mismatches"]
    assert counted(browser, "svg .leaf.product") == {"hopper": 24, "cpu": 2, "wrong": 16}[run.name]
    assert counted(browser, "tr[data-row]") == counted(browser, ".card") > 0
    assert all(name in browser.value("document.body.textContent") for name in Store.open(run).parts)
    kept(browser, page, "desk")


@pytest.mark.parametrize("shown", ["units"], indirect=True)
def test_what_two_units_have_otherwise_is_whole(browser: Chromium, shown: tuple[Path, Path]) -> None:
    browser.media()
    browser.show(shown[1], *DESK)
    assert browser.requests() == [shown[1].resolve().as_uri()]
    assert browser.errors() == []
    assert counted(browser, "tr[data-row]") == counted(browser, ".card") == 8
    assert counted(browser, "[data-pair]") == 23
    assert counted(browser, "[data-difference]") == 9
    kept(browser, shown[1], "desk")


BROKEN = """
[...document.querySelectorAll('tbody th, td.code:not(.digest), td .code, h3')].flatMap(node => {
  const walk = document.createTreeWalker(node, NodeFilter.SHOW_TEXT), found = [];
  for (let last = Infinity, before = ''; walk.nextNode(); )
    for (let at = 0; at < walk.currentNode.data.length; at++) {
      const range = document.createRange();
      range.setStart(walk.currentNode, at);
      range.setEnd(walk.currentNode, at + 1);
      const box = range.getBoundingClientRect(), sign = walk.currentNode.data[at];
      const inside = /[A-Za-z0-9]/.test(before) && /[A-Za-z0-9]/.test(sign);
      if (inside && box.width && box.top > last + 4) found.push(node.textContent);
      if (box.width) last = box.top;
      before = sign;
    }
  return found;
})
"""
"""Texts of which a line begins inside a word: ids, parameters and vectors."""


@pytest.mark.parametrize("width", [1025, 1100, DESK[0]])
def test_nothing_scrolls_sideways_on_a_desk_and_no_id_breaks_inside_a_word(
    browser: Chromium, shown: tuple[Path, Path], width: int
) -> None:
    """With everything unfolded, from the narrowest window that has tables on."""
    browser.media()
    browser.show(shown[1], width, DESK[1])
    browser.value("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.value(BROKEN) == []


def test_links_lead_to_what_they_name(browser: Chromium, shown: tuple[Path, Path]) -> None:
    browser.show(shown[1], *DESK)
    found = browser.value("""
        [...document.querySelectorAll('a')].map(a => {
          a.click();
          const to = document.querySelector(a.getAttribute('href'));
          return [location.hash === a.getAttribute('href'), to !== null,
                  to && to.getBoundingClientRect().top < innerHeight];
        })""")
    assert len(found) > 5
    assert found == [[True, True, True]] * len(found)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_scrolls_sideways_on_a_telephone(browser: Chromium, shown: tuple[Path, Path], scheme: str) -> None:
    """With everything unfolded; nor does anything inside of it."""
    browser.media(scheme)
    browser.show(shown[1], *PHONE, mobile=True)
    browser.value("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert browser.value("document.documentElement.scrollWidth") == PHONE[0]
    wide = "[...document.querySelectorAll('body *')].filter(each => !each.closest('svg, thead, .skip'))"
    assert browser.value(f"{wide}.filter(each => each.getBoundingClientRect().right > innerWidth + 1).length") == 0
    assert (
        browser.value(f"{wide}.filter(each => each.scrollWidth > each.clientWidth + 1 && each.clientWidth).length") == 0
    )
    kept(browser, shown[1], f"telephone-{scheme}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_can_be_read(browser: Chromium, shown: tuple[Path, Path], scheme: str) -> None:
    browser.media(scheme)
    browser.show(shown[1], *DESK)
    assert browser.value("getComputedStyle(document.body).backgroundColor") == (
        "rgb(255, 255, 255)" if scheme == "light" else "rgb(18, 23, 29)"
    )
    assert browser.value(CONTRAST) >= READABLE
    kept(browser, shown[1], scheme)


def test_in_print_all_is_unfolded(browser: Chromium, shown: tuple[Path, Path]) -> None:
    browser.show(shown[1], 794, 1123)
    seen = "each.checkVisibility({contentVisibilityAuto: true})"
    hidden = f"[...document.querySelectorAll('details :is(td, li)')].filter(each => each.textContent && !{seen}).length"
    assert browser.value(hidden) > 0
    browser.media(medium="print")
    assert browser.value(hidden) == 0
    assert browser.value("getComputedStyle(document.querySelector('nav')).display") == "none"
    kept(browser, shown[1], "print")
    browser.media()


def test_on_paper_tables_stay_tables_and_nothing_is_cut_off(browser: Chromium, shown: tuple[Path, Path]) -> None:
    """A sheet is no telephone: a row of a table is a line, and all is within A4 less its margins."""
    browser.media(medium="print")
    browser.show(shown[1], *PAPER)
    rows = browser.value("[...document.querySelectorAll('table.rows tr')].map(each => getComputedStyle(each).display)")
    assert set(rows) == {"table-row"}
    assert browser.value("document.documentElement.scrollWidth") <= PAPER[0]
    browser.media()


def test_the_keyboard_reaches_all_and_a_screen_reader_hears_what_is_drawn(
    browser: Chromium, shown: tuple[Path, Path]
) -> None:
    browser.show(shown[1], *DESK)
    for kind in ("rawKeyDown", "keyUp"):
        browser.ask("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
    assert browser.value("document.activeElement.className") == "skip"
    assert browser.value("document.activeElement.getBoundingClientRect().left") >= 0
    browser.value("document.querySelectorAll('details').forEach(each => each.open = true)")
    tree = browser.ask("Accessibility.getFullAXTree")["nodes"]
    roles = [node["role"]["value"] for node in tree if not node["ignored"]]
    assert {"main", "navigation", "banner", "contentinfo", "table", "columnheader", "rowheader", "article"} <= set(
        roles
    )
    pictures = [node for node in tree if node["role"]["value"] in ("image", "img") and not node["ignored"]]
    assert len(pictures) == counted(browser, "svg")
    assert all(node["name"]["value"] and node["description"]["value"] for node in pictures)
