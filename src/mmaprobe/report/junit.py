"""The summary of a run as JUnit XML, for CI: one test case an instruction."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from mmaprobe.evidence.files import write_bytes
from mmaprobe.report.rows import InstructionRow, Summary

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ELEMENTS = {"mismatch": "failure", "changed": "failure"}


def to_junit(summary: Summary) -> str:
    """The XML text.

    A mismatch or a change is a ``failure``; failed, inconclusive and unwritten
    instructions are an ``error``, as is a run that a failure ended; instructions that are not here are ``skipped``.
    """
    elements = [_ELEMENTS.get(row.outcome, "error") for row in summary.rows if not _passed(row, summary.check)]
    ended = bool(summary.ended and summary.failure)
    elements += ["error"] * ended
    suite = ElementTree.Element(
        "testsuite", name=_clean(f"mmaprobe {summary.device}"),
        tests=str(len(summary.rows) + len(summary.not_here) + ended), failures=str(elements.count("failure")),
        errors=str(elements.count("error")), skipped=str(len(summary.not_here)), time=f"{summary.seconds:.3f}",
    )  # fmt: skip
    properties = ElementTree.SubElement(suite, "properties")
    facts = {"run": summary.run, "seed": str(summary.seed), "version": summary.version, **summary.identity}
    for name, value in facts.items():
        ElementTree.SubElement(properties, "property", name=_clean(name), value=_clean(value))
    group = _clean(summary.identity.get("architecture", summary.device))
    for row in summary.rows:
        _add_case(suite, group, row, _passed(row, summary.check))
    if ended:
        case = ElementTree.SubElement(suite, "testcase", classname=group, name="the whole run", time="0.000")
        ElementTree.SubElement(case, "error", type="ended", message=_clean(summary.ended))
    for name, reason in summary.not_here:
        case = ElementTree.SubElement(suite, "testcase", classname=group, name=_clean(name), time="0.000")
        ElementTree.SubElement(case, "skipped", message=_clean(f"not here: {reason}"))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def _passed(row: InstructionRow, check: bool) -> bool:
    return row.outcome == "equal" or (row.outcome == "changed" and not check)


def _add_case(suite: ElementTree.Element, group: str, row: InstructionRow, passed: bool) -> None:
    case = ElementTree.SubElement(
        suite, "testcase", classname=group, name=_clean(row.instruction), time=f"{row.seconds:.3f}"
    )
    if passed:
        return
    message = f"{row.outcome}: {row.mismatches} of {row.vectors} vectors differ"
    trouble = ElementTree.SubElement(case, _ELEMENTS.get(row.outcome, "error"), type=row.outcome, message=message)
    trouble.text = _clean(row.detail)


def _clean(text: str) -> str:
    """``text`` without the characters that XML cannot hold."""
    return _NOT_XML.sub("?", text)


def write(summary: Summary, path: str | Path) -> None:
    """``to_junit`` at ``path``; CannotWriteError where it cannot be written."""
    write_bytes(Path(path), to_junit(summary).encode(), "choose another file with --junit")
