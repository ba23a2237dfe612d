"""What keeps silent is named once, whatever waits for it: a function of this process, a launch on a GPU, workers.

Whoever listens lets what is waited for go on, so that no test hangs on a clock.
"""

from __future__ import annotations

import queue
import sys
import threading
import types
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from mmaprobe.campaigns import engines
from mmaprobe.campaigns.engines import Engine, EngineOptions, Order, run_orders
from mmaprobe.campaigns.parts import Shard
from mmaprobe.campaigns.plan import ValidationPlan
from mmaprobe.devices import waiting
from mmaprobe.devices.function import open_function, open_product
from mmaprobe.devices.gpu.driver import NOT_READY, await_end
from mmaprobe.operands.batch import Batch

LIMIT = 60
"""Seconds after which what nobody lets go on fails."""


class Gate:
    """What waits until a line about it was said."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._said = threading.Event()

    def listener(self, line: str) -> None:
        self.lines.append(line)
        self._said.set()

    def dot(self, a: Any, b: Any) -> Any:
        assert self._said.wait(LIMIT)
        return np.dot(a, b)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    monkeypatch.setattr(waiting, "PATIENCE", 0.05)
    made, module = Gate(), types.ModuleType("slow")
    monkeypatch.setattr(module, "dot", made.dot, raising=False)
    monkeypatch.setitem(sys.modules, "slow", module)
    return made


def test_a_function_of_this_process(gate: Gate) -> None:
    device = open_function("slow:dot?k=2")
    ones = np.full((3, 2), 0x3F800000, np.uint32)
    with waiting.telling(gate.listener):
        for _ in range(2):
            d = device.run(device.instruction, Batch(ones[:, None], ones[..., None]))
    assert d.ravel().tolist() == [0x40000000] * 3
    said = "waiting for function:slow:dot?k=2, which has been silent for 0.05 s; Ctrl-C ends it"
    assert gate.lines == [said]


def test_a_whole_product_of_this_process(gate: Gate) -> None:
    ones = np.full((2, 2), 0x3F800000, np.uint32)
    with waiting.telling(gate.listener):
        assert open_product("slow:dot?m=2&n=2&k=2").multiply(ones, ones).tolist() == [[0x40000000] * 2] * 2
    assert [line.partition(", which")[0] for line in gate.lines] == ["waiting for function:slow:dot?m=2&n=2&k=2"]


def test_a_launch_on_a_gpu(gate: Gate) -> None:
    with waiting.telling(gate.listener):
        assert await_end("cuda:0", lambda: 0 if gate.lines else NOT_READY, LIMIT) == 0
    assert gate.lines == [
        "waiting for cuda:0, where a launch has not ended for 0.05 s; it may take 60 s; Ctrl-C ends it"
    ]


def test_workers(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def engine(options: EngineOptions) -> Any:
        yield Engine(lambda order: str(gate.dot([order.shard.number], [1])), options.workers, lambda: None)

    monkeypatch.setitem(engines.ENGINES, "local", engine)  # type: ignore[arg-type]
    plan = ValidationPlan("p", ("*",), 1)
    orders = [Order(plan, "model:sm_90a", "", 0, Shard(number, 3), ".") for number in range(3)]
    done: list[str] = []
    with waiting.telling(gate.listener):
        run_orders(orders, EngineOptions("local", 2), done.append)
    assert sorted(done) == ["0", "1", "2"]
    assert gate.lines == [
        "waiting for 2 local workers with model:sm_90a: no shard of 3 has ended for 0.05 s; Ctrl-C ends it"
    ]


class Clock:
    """An event on which each wait takes as long as it may, and ends with a sign of life; the third time all is over."""

    def __init__(self, living: bool) -> None:
        self.now, self.waits, self.living = 0.0, 0, living
        self.alive: queue.Queue[Callable[[], None]] = queue.Queue()
        self.over = threading.Event()

    def set(self) -> None:
        """The block has ended."""

    def wait(self, seconds: float) -> bool:
        alive = self.alive.get(timeout=LIMIT)
        self.alive.put(alive)
        self.now += seconds
        self.waits += 1
        if self.living:
            alive()
        if self.waits == 3:
            self.over.set()
        return self.waits == 3


@pytest.mark.parametrize("living", [True, False])
def test_a_sign_of_life_is_no_silence(living: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock begins anew with each."""
    clock, lines = Clock(living), list[str]()
    shown = types.SimpleNamespace(Event=lambda: clock, Thread=threading.Thread)
    monkeypatch.setattr(waiting, "threading", shown)
    monkeypatch.setattr(waiting, "time", types.SimpleNamespace(monotonic=lambda: clock.now))

    def listener(line: str) -> None:
        lines.append(line)
        clock.over.set()

    with waiting.telling(listener), waiting.wondering("x, which has been silent") as alive:
        clock.alive.put(alive)
        assert clock.over.wait(LIMIT)
    assert lines == ([] if living else ["waiting for x, which has been silent for 5 s; Ctrl-C ends it"])
    assert clock.waits == (3 if living else 1)


def test_where_nobody_listens_nothing_is_watched() -> None:
    before = threading.active_count()
    with waiting.wondering("x, which has been silent") as alive:
        assert threading.active_count() == before
        alive()
