"""The summary of a run as JUnit XML, for CI: one test case an instruction."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from mmaprobe.evidence.files import write_bytes
from mmaprobe.evidence.silicon import remark
from mmaprobe.report.run_summary import NEW, InstructionRow, RunSummary
from mmaprobe.showing import counted, of_which

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(summary: RunSummary, gate: str | None = None) -> str:
    """The XML text; ``gate``: what is red of the run beside its baseline, empty where nothing is, None without one.

    A mismatch, a change and, under ``check``, what is new or missing is a ``failure``; other outcomes that are not
    equal are an ``error``, as is a run that ended before its minimum; instructions that are not here are ``skipped``.
    """
    elements = [_element(row) for row in summary.rows if not _passed(row, summary.check)]
    ended = _ended(summary)
    lost = summary.missing if summary.check else ()
    elements += ["failure"] * bool(gate)
    elements += ["error"] * len(ended) + ["failure"] * len(lost) + ["skipped"] * (len(summary.not_here) - len(lost))
    beside = remark(summary.device, summary.identity)
    count = len(summary.rows) + len(summary.not_here) + len(ended) + (gate is not None)
    suite = ElementTree.Element(
        "testsuite", name=_clean(f"mmaprobe {summary.device}{f' ({beside})' if beside else ''}"),
        tests=str(count), failures=str(elements.count("failure")),
        errors=str(elements.count("error")), skipped=str(elements.count("skipped")), time=f"{summary.seconds:.3f}",
    )  # fmt: skip
    properties = ElementTree.SubElement(suite, "properties")
    facts = {"run": summary.run, "seed": str(summary.seed), "version": summary.version, **summary.identity}
    for name, value in facts.items():
        ElementTree.SubElement(properties, "property", name=_clean(name), value=_clean(value))
    group = _clean(summary.identity.get("architecture", summary.device))
    for row in summary.rows:
        _add_case(suite, group, row, _passed(row, summary.check))
    for reason in ended:
        case = ElementTree.SubElement(suite, "testcase", classname=group, name="the whole run", time="0.000")
        ElementTree.SubElement(case, "error", type="ended", message=_clean(reason))
    if gate is not None:
        case = ElementTree.SubElement(suite, "testcase", classname=group, name="beside the baseline", time="0.000")
        if gate:
            ElementTree.SubElement(case, "failure", type="baseline", message=_clean(gate))
    for name, reason in summary.not_here:
        case = ElementTree.SubElement(suite, "testcase", classname=group, name=_clean(name), time="0.000")
        if name in lost:
            ElementTree.SubElement(case, "failure", type="missing", message="missing, and nobody says why")
        else:
            ElementTree.SubElement(case, "skipped", message=_clean(f"not here: {reason}"))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def _passed(row: InstructionRow, check: bool) -> bool:
    return row.outcome == "equal" and not (check and row.parameters == NEW)


def _element(row: InstructionRow) -> str:
    return "failure" if row.outcome in ("mismatch", "changed", "equal") else "error"


def _ended(summary: RunSummary) -> list[str]:
    """Why the run as a whole is no success."""
    ended = [summary.ended] * bool(summary.ended and (summary.failure or summary.unreached))
    few = f"{counted(summary.compared, 'instruction')} compared, at least {summary.least} must be"
    return ended + [few] * (summary.compared < summary.least)


def _add_case(suite: ElementTree.Element, group: str, row: InstructionRow, passed: bool) -> None:
    case = ElementTree.SubElement(
        suite, "testcase", classname=group, name=_clean(row.instruction), time=f"{row.seconds:.3f}"
    )
    if passed:
        return
    outcome = NEW if row.outcome == "equal" else row.outcome
    message = f"{outcome}: {of_which(row.mismatches, row.vectors, 'vector', 'differ')}"
    if row.changes:
        message += f"; not what is shipped: {'; '.join(row.changes)}"
    trouble = ElementTree.SubElement(case, _element(row), type=outcome, message=_clean(message))
    trouble.text = _clean("\n".join(row.shown) or row.detail)


def _clean(text: str) -> str:
    """``text`` without the characters that XML cannot hold."""
    return _NOT_XML.sub("?", text)


def write(summary: RunSummary, path: str | Path, gate: str | None = None) -> None:
    """``to_junit`` at ``path``; CannotWriteError where it cannot be written."""
    write_bytes(Path(path), to_junit(summary, gate).encode(), "choose another file with --junit")
