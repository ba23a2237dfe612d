"""What is known to differ, and what is not to be run: the entries of ``--xfails-file``, each with its reason.

A TOML file::

    [[xfail]]                            # must differ: a test that passes is red, and so is one whose device failed
    instruction = "x86.vdpbf16ps"        # an id, a short one, or a glob; without braces in all control states
    suite = "probes"                     # probes or validation; both where none is named
    question = "nan_*"                   # of the probes, these alone
    reason = "microcode 0x21 gives another NaN"

    [[skip]]                             # is not run
    instruction = "mma.m16n8k64*"
    reason = "hangs with driver 590; reported"

An entry that names no test of the session is red, so that none outlives its reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import matches, short
from mmaprobe.catalog.states import default_state
from mmaprobe.catalog.toml import read_toml, text_of
from mmaprobe.errors import UsageError, brief, near
from mmaprobe.options import Rule, one_of

KINDS = ("xfail", "skip")
_TEXT = Rule("a text that is not empty", lambda value: isinstance(value, str) and bool(value.strip()))
KEYS: Mapping[str, Rule] = {
    "instruction": _TEXT,
    "reason": _TEXT,
    "suite": one_of("probes", "validation"),
    "question": _TEXT,
}
"""What an entry may say, and how."""
UNUSED = "mmaprobe_unused"
"""The word of a worker's output that names the entries without a test."""


@dataclass(frozen=True)
class Expected:
    """An entry; ``where`` is what messages call it."""

    kind: str
    where: str
    instruction: str
    reason: str
    suite: str = ""
    question: str = ""

    def names(self, suite: str, made: Instruction, question: str) -> bool:
        """Whether it is about a test."""
        if self.suite not in ("", suite) or not (self.question == "" or fnmatchcase(question, self.question)):
            return False
        whole = made if "{" in self.instruction else default_state(made)
        return self.instruction in (whole.id, short(whole.id)) or matches(whole, self.instruction)

    @property
    def mark(self) -> pytest.MarkDecorator:
        """An expected difference is one of bits or answers: what else goes wrong stays red."""
        reason = f"{self.reason} ({self.where})"
        if self.kind == "skip":
            return pytest.mark.skip(reason=reason)
        return pytest.mark.xfail(reason=reason, strict=True, raises=AssertionError)


def read_expected(path: str) -> tuple[Expected, ...]:
    """The entries of a file; UsageError naming the entry and the key that is wrong."""
    table = read_toml(text_of(Path(path)), path)
    for kind, entries in table.items():
        if kind not in KINDS:
            raise UsageError(f"{path}: {brief(kind)} is no kind of entry{near(kind, KINDS)}; there are xfail, skip")
        if not (isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)):
            raise UsageError(f"{path}: {kind} must be a list of tables, each headed [[{kind}]]")
    return tuple(
        _entry(kind, entry, f"{path}: [[{kind}]] {number}")
        for kind, entries in table.items()
        for number, entry in enumerate(entries, 1)
    )


def _entry(kind: str, said: Mapping[str, Any], where: str) -> Expected:
    for key, value in said.items():
        if key not in KEYS:
            raise UsageError(f"{where} has a key {brief(key)}{near(key, KEYS)}")
        if not KEYS[key].holds(value):
            raise UsageError(f"{where}: {key} is {brief(value)}; it must be {KEYS[key].words}")
    for key in ("instruction", "reason"):
        if key not in said:
            raise UsageError(f"{where} needs {key}")
    if "question" in said and said.get("suite") == "validation":
        raise UsageError(f"{where}: validation asks no question; the probes do")
    return Expected(kind, where, **said)


class Expectations:
    """Marks the tests that the entries name, and makes a session red in which one names none.

    All tests of the folders or files that the command names count, those that ``-k`` leaves out as well; where it names
    single tests, or the device is not here, nobody is judged.
    """

    def __init__(self, config: pytest.Config, entries: tuple[Expected, ...]) -> None:
        self.config, self.entries = config, entries
        self.unused: list[str] = []
        config.pluginmanager.register(self)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Mark the tests; ``-k`` and ``-m`` choose among them later."""
        used, suites = set(), set()
        for item, suite, made, question in _tests(items):
            suites.add(suite)
            for entry in self.entries:
                if entry.names(suite, made, question):
                    used.add(entry)
                    item.add_marker(entry.mark)
        if not any("::" in word for word in self.config.args):
            judged = [entry for entry in self.entries if suites and (entry.suite in suites or not entry.suite)]
            self.unused = [f"{entry.where}: {entry.instruction}" for entry in judged if entry not in used]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Turn green into red where an entry names nothing; a worker tells the process that judges."""
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput[UNUSED] = self.unused
        elif self.unused and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Every worker collects the same."""
        self.unused = getattr(node, "workeroutput", {}).get(UNUSED, self.unused)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the entries without a test."""
        for entry in self.unused:
            terminalreporter.write_line(f"{entry} names no test of this session", red=True)


def _tests(items: Iterable[pytest.Item]) -> Iterable[tuple[pytest.Item, str, Instruction, str]]:
    """The tests that are about an instruction: of which suite, about which, and what they ask."""
    for item in items:
        mark, given = item.get_closest_marker("suite"), getattr(getattr(item, "callspec", None), "params", {})
        if mark is not None and given.get("instruction") is not None:
            yield item, str(mark.args[0]), given["instruction"], str(given.get("question", ""))
