"""A headless Chromium, spoken to over the pipe of its DevTools protocol: no library, no port."""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PATIENCE = 60
"""Seconds that an answer of the browser may take."""
WAYS = ("chromium", "chromium-browser", "google-chrome")
"""What the program may be called."""


def program() -> str:
    """The browser's program; it must be here where its tests were asked for."""
    found = next(filter(None, map(shutil.which, WAYS)), None)
    assert found, "no Chromium is here: apt-get install -y chromium"
    return found


class Chromium:
    """One browser with one page; ``events`` are what it told so far."""

    def __init__(self, profile: Path) -> None:
        read, self._write = os.pipe()
        self._read, write = os.pipe()
        words = [program(), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                 "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]  # fmt: skip
        line = f'exec "$@" 3<&{read} 4>&{write}'
        self._browser = subprocess.Popen(
            ["bash", "-c", line, "chromium", *words], pass_fds=(read, write), stderr=subprocess.DEVNULL
        )
        os.close(read)
        os.close(write)
        self._rest, self._numbers, self.events = b"", itertools.count(1), list[dict[str, Any]]()
        target = self._told("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session = self._told("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime", "Accessibility"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **words: Any) -> dict[str, Any]:
        """What the page answers."""
        return self._told(method, words, self._session)

    def show(self, path: Path, width: int = 1280, height: int = 900, mobile: bool = False) -> None:
        """Load a file into a window of this size, and wait until it is there."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        self.events.clear()
        self.ask("Page.navigate", url=path.resolve().as_uri())
        self._wait("Page.loadEventFired")

    def value(self, expression: str) -> Any:
        """What an expression of JavaScript comes to in the page, once what was changed before is drawn."""
        drawn = f"new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done({expression}))))"
        found = self.ask("Runtime.evaluate", expression=drawn, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def media(self, scheme: str = "light", medium: str = "screen") -> None:
        """Light or dark, on a screen or in print."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.ask("Emulation.setEmulatedMedia", media=medium, features=[feature])

    def picture(self, path: Path, most: int = 4000) -> None:
        """The page as PNG, from its top, at most so many pixels high."""
        box = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": box["width"], "height": min(box["height"], most), "scale": 1}
        shot = self.ask("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def requests(self) -> list[str]:
        """The addresses that were asked for since the page was loaded."""
        return [each["params"]["request"]["url"] for each in self._of("Network.requestWillBeSent")]

    def errors(self) -> list[str]:
        """What the page complained of."""
        said = [each["params"]["entry"]["text"] for each in self._of("Log.entryAdded")]
        return said + [str(each["params"]) for each in self._of("Runtime.exceptionThrown")]

    def close(self) -> None:
        """End the browser."""
        self._told("Browser.close", {})
        self._browser.wait(PATIENCE)

    def _of(self, method: str) -> Iterator[dict[str, Any]]:
        return (each for each in self.events if each["method"] == method)

    def _told(self, method: str, words: dict[str, Any], session: str = "") -> dict[str, Any]:
        number = next(self._numbers)
        asked = {"id": number, "method": method, "params": words} | ({"sessionId": session} if session else {})
        os.write(self._write, json.dumps(asked).encode() + b"\0")
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            message = self._next()
            if message.get("id") == number:
                assert "error" not in message, message
                return dict(message["result"])
        raise AssertionError(f"{method} was not answered in {PATIENCE} s")

    def _wait(self, method: str) -> None:
        end = time.monotonic() + PATIENCE
        while not any(each["method"] == method for each in self.events):
            assert time.monotonic() < end, f"{method} did not come in {PATIENCE} s"
            self._next()

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._read, 1 << 20)
            assert more, "the browser ended"
            self._rest += more
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message
