"""How the project's own tests run: on all cores, without the long ones, with one line on what was skipped and why.

``tests/`` alone does so: the workers of ``probes`` and ``validation`` would be GPUs.  What draws a seed otherwise takes
0 here, so that every run is the same.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from mmaprobe.catalog import supplements
from mmaprobe.parameters import lookup as parameters
from needs import NEEDS, missing, said

HERE = Path(__file__).parent

DAY = 86_400
"""Seconds."""
LONE = 4
"""Of the long tests with one parameter or none one in so many is left, or one in N / 4 where that is more."""

os.environ.setdefault("MMAPROBE_SEED", "0")


def pytest_addoption(parser: pytest.Parser) -> None:
    known = ",".join(NEEDS)
    group = parser.getgroup("mmaprobe")
    group.addoption(
        "--equipped", default="", metavar="NAMES", help=f"fail, instead of skipping, where one of these lacks: {known}"
    )
    group.addoption(
        "--one-in",
        type=int,
        default=1,
        metavar="N",
        help="of a test's long parameters one in so many, of other long tests a quarter or one in N/4; others daily",
    )
    group.addoption(
        "--turn", type=int, default=int(time.time()) // DAY, metavar="N", help="which of them (the number of the day)"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """All of tests/ runs on all cores, unless the words of the command say how.  Workers start none themselves."""
    if hasattr(config, "workerinput"):
        return
    option = config.option
    whole = {Path(config.invocation_params.dir, name).resolve() for name in config.args} == {HERE}
    workers = {"numprocesses": None, "dist": "no", "tx": []}  # what pytest-xdist, where it is, has without a word
    unsaid = all(getattr(option, name, ...) == value for name, value in workers.items())
    if whole and unsaid and not (option.usepdb or option.trace):
        option.numprocesses, option.dist = "auto", "worksteal"


def pytest_configure(config: pytest.Config) -> None:
    unknown = set(filter(None, config.getoption("--equipped").split(","))) - NEEDS.keys()
    if unknown:
        raise pytest.UsageError(f"--equipped {', '.join(sorted(unknown))}: known are {', '.join(NEEDS)}")
    if config.getoption("--one-in") < 1:
        raise pytest.UsageError(f"--one-in {config.getoption('--one-in')}: at least 1")
    config.pluginmanager.register(DidNotRun())


def spread(count: int, kept: int) -> set[int]:
    """``kept`` of the numbers below ``count``, the first and the last among them and the others even between."""
    kept = min(kept, count)
    return {round(i * (count - 1) / max(kept - 1, 1)) for i in range(kept)}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a test that is ``sampled(n)``, n of its parameters stay, the rest is long; of these ``--one-in`` N is left,
    and with any N above 1 one in ``LONE``, or in N / 4 if that is more, of the long tests that have one or none."""
    for group in by_test(
        item for item in items if item.get_closest_marker("sampled") and not item.get_closest_marker("long")
    ):
        mark = group[0].get_closest_marker("sampled")
        assert mark is not None
        kept = spread(len(group), *mark.args)
        for number, item in enumerate(group):
            if number not in kept:
                item.add_marker(pytest.mark.long)
    every, turn = config.getoption("--one-in"), config.getoption("--turn")
    long = [item for item in items if item.get_closest_marker("long")]
    some = by_test(long)
    out = {item for group in some for number, item in enumerate(group) if (number + turn) % every and len(group) > 1}
    if every > 1:
        lone = (group[0] for group in some if len(group) == 1)
        out |= {item for number, item in enumerate(lone) if (number + turn) % max(LONE, every // 4)}
    config.hook.pytest_deselected(items=[item for item in items if item in out])
    items[:] = [item for item in items if item not in out]


def by_test(items: Iterable[pytest.Item]) -> list[list[pytest.Item]]:
    """The parameters of each test."""
    groups: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        groups[item.nodeid.partition("[")[0]].append(item)
    return list(groups.values())


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs something that is not here; fail where ``--equipped`` says that it is."""
    for mark in item.iter_markers("needs"):
        for name in mark.args:
            reason = missing(name)
            if reason and name in item.config.getoption("--equipped").split(","):
                pytest.fail(f"--equipped names {name}, but {reason}", pytrace=False)
            if reason:
                item.user_properties.append(("needs", name))
                pytest.skip(reason)


def pytest_collectreport() -> None:
    """What a module adds to the catalog when it is imported is nothing that another one sees."""
    supplements._ADDED.clear()
    parameters._ADDED.clear()


@pytest.fixture(autouse=True)
def catalog_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test adds to the catalog is gone after it."""
    monkeypatch.setattr(supplements, "_ADDED", [])
    monkeypatch.setattr(parameters, "_ADDED", [])


class DidNotRun:
    """What of the tests did not run, for the line at the end; workers tell it the process that prints."""

    def __init__(self) -> None:
        self.long = 0
        self.files: list[str] = []
        """The need of each file that was skipped whole, for want of a module."""

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Count what is left out because it is long; what ``-k`` leaves out comes in a call of its own."""
        if all(any(map(item.get_closest_marker, ("long", "browser", "libraries"))) for item in items):
            self.long += sum(item.get_closest_marker("long") is not None for item in items)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self.files += sorted((name for name in NEEDS if f"'{name}" in str(report.longrepr)), key=len)[-1:]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["did not run"] = [self.long, self.files]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Every worker collects the same."""
        self.long, self.files = getattr(node, "workeroutput", {}).get("did not run", [self.long, self.files])

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        tests = [each for each in terminalreporter.stats.get("skipped", []) if isinstance(each, pytest.TestReport)]
        reasons = [(dict(each.user_properties).get("needs", ""), str(each.longrepr[2])) for each in tests]
        line = said(reasons, self.files, self.long)
        if line:
            terminalreporter.write_line(line)
