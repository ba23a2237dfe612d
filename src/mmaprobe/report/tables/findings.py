"""Findings, derivations and comparisons as text for a person and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from mmaprobe.derivation import Derivation
from mmaprobe.derivation.certificate import OTHERWISE
from mmaprobe.evidence.records import Finding, Witness
from mmaprobe.evidence.records_json import finding_to_json, mismatch_to_json
from mmaprobe.generators.tiles import dependences
from mmaprobe.parameters.diff import datapath_changes
from mmaprobe.report.coverage import coverage_json, coverage_lines
from mmaprobe.report.datapath.phrases import describe
from mmaprobe.report.datapath.tree import datapath_text
from mmaprobe.report.known_answers import with_known
from mmaprobe.report.mismatches import example_lines, summary_line
from mmaprobe.report.tables.certificates import certificate_lines, coverage_line
from mmaprobe.report.tables.listing import table
from mmaprobe.report.vectors import vector_text
from mmaprobe.showing import counted
from mmaprobe.survey.comparison import Comparison
from mmaprobe.validation import Summary

MOST_OTHERS = 8
"""Datapaths that agreed as well and are listed; the certificate has all."""
MOST_REPAIRS = 5
"""Repairs that are printed; evidence has all."""


def findings_json(findings: Mapping[str, Finding]) -> dict[str, Any]:
    """Every finding by its question."""
    return {name: finding_to_json(finding) for name, finding in findings.items()}


def findings_table(console: Console, instruction: str, findings: Mapping[str, Finding]) -> None:
    """One line a question: its answer, how sure, what it cost; then what all of them cost."""
    findings = with_known(instruction, findings)
    rows = [
        {"question": f.question, "answer": f.text, "status": f.status, "witnesses": len(f.witnesses), "tiles": f.tiles}
        for f in findings.values()
    ]
    console.print(table(rows, ("question", "answer", "status", "witnesses", "tiles"), instruction))
    tiles, launches = (sum(getattr(f, what) for f in findings.values()) for what in ("tiles", "launches"))
    cost = f"{counted(tiles, 'tile')} in {counted(launches, 'launch')}"
    console.print(f"{counted(len(rows), 'question')}, {cost}")


def findings_code(findings: Mapping[str, Finding]) -> int:
    """5 for a contradiction, 4 where nothing was found out, else 0."""
    statuses = {finding.status for finding in findings.values()}
    if "contradictory" in statuses:
        return 5
    return 0 if statuses & {"exact", "bounded"} else 4


def print_derivation(console: Console, derivation: Derivation, comparison: Comparison) -> None:
    """The derived datapath field by field, the certificate's verdicts, and the shipped file's difference."""
    console.print(
        f"{derivation.instruction}: {derivation.status}" + (f" ({derivation.reason})" if derivation.reason else "")
    )
    datapath = derivation.datapath or derivation.closest
    if datapath is not None:
        console.print("derived:" if derivation.datapath else "closest:")
        console.print(datapath_text(datapath))
        for name, phrase in describe(datapath).items():
            if phrase != "-":
                console.print(f"  {name}: {phrase}")
    if derivation.counterexample is not None:
        again = f", another time {derivation.again:#x}" if derivation.again is not None else ""
        shown = f"{vector_text(derivation.counterexample)} -> {derivation.counterexample.d:#x}{again}"
        console.print(f"counterexample: {shown}")
    for kind in derivation.kinds:
        console.print(f"differs {kind}; {vector_text(kind.witness)} -> {kind.witness.d:#x}")
    if derivation.repairs:
        console.print(f"one field changed: {'; '.join(map(str, derivation.repairs[:MOST_REPAIRS]))}")
    _print_unsettled(console, derivation)
    certificate = derivation.certificate
    console.print(
        f"certificate: of {len(certificate.entries)} neighbours {certificate.refuted} refuted, each with a vector, "
        f"{certificate.equivalent} the same function, {sum(map(len, certificate.open_fields.values()))} open; "
        f"{counted(derivation.vectors, 'vector')} asked in {counted(derivation.launches, 'launch')}, "
        f"{derivation.fresh:,} fresh ones agree"
    )
    for name, values in certificate.open_fields.items():
        console.print(f"  open: {name} could also be {', '.join(values)} (no vector found that tells)")
    for said, _ in certificate.otherwise[:MOST_OTHERS]:
        console.print(f"  {OTHERWISE}, as many vectors agree: {said} (no vector found that tells)")
    if len(certificate.otherwise) > MOST_OTHERS:
        console.print(f"  {OTHERWISE}: {len(certificate.otherwise) - MOST_OTHERS} more (--certificate)")
    if certificate.coverage.fresh:
        console.print(coverage_line(certificate.coverage))
    print_comparison(console, comparison)


def _print_unsettled(console: Console, derivation: Derivation) -> None:
    """What an inconclusive derivation knows none the less: the summation tree, and the hypotheses nobody refuted."""
    tree = derivation.findings.get("summation_tree")
    if derivation.datapath is None and tree is not None:
        console.print(f"the summation tree, {tree.status}: {tree.text}")
    for number, (path, telling) in enumerate(zip(derivation.left, derivation.telling, strict=True), 1):
        if number == 1:
            said = "; ".join(f"{name}: {phrase}" for name, phrase in describe(path).items() if phrase != "-")
        else:
            changes = datapath_changes(derivation.left[0], path)
            said = "as left 1, but " + "; ".join(f"{field} {old} -> {new}" for field, old, new in changes)
            said += "; no vector found that tells" if telling is None else _told(telling)
        console.print(f"left {number}: {said}")


def _told(telling: Witness) -> str:
    return f"; {vector_text(telling)} -> {telling.d:#x}, and {telling.note}"


def print_certificate(console: Console, derivation: Derivation) -> None:
    """Every neighbour with what refutes it, why it is the same function, or where it was searched."""
    console.print("\n".join(certificate_lines(derivation)))


def print_comparison(console: Console, comparison: Comparison) -> None:
    """How the derived datapath stands to the shipped parameter file."""
    words = {
        "same": "the same as the shipped parameter file",
        "equivalent": "the shipped file says it in other words; none of "
        f"{counted(comparison.searched, 'vector')} tells them apart",
        "changed": "DIFFERS from the shipped parameter file",
        "new": "new; nothing is shipped for it",
        "not derived": "nothing was derived to compare with the shipped file",
    }
    console.print(f"shipped: {words[comparison.outcome]}")
    for line in comparison.lines:
        console.print(f"  {line}")
    if comparison.witness is not None:
        console.print(
            f"  witness: {vector_text(comparison.witness)} -> {comparison.witness.d:#x} ({comparison.witness.note})"
        )


def print_summary(console: Console, summary: Summary, saved: Path | None = None) -> None:
    """The verdict, counts by family, and the examples of mismatches; ``saved``: the file that holds these."""
    console.print(summary_line(summary))
    if summary.families:
        console.print(table(*_family_rows(summary)))
    if summary.batches.asked:
        console.print(str(summary.batches))
    if summary.screening is not None:
        console.print(str(summary.screening))
    for note in (*summary.notes, *coverage_lines({summary.instruction: summary.coverage})):
        console.print(note)
    _print_examples(console, summary, "" if saved is None else str(saved))


def _family_rows(summary: Summary) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """A row a family, and what it tells: where there are whole tiles also how many of the vectors are results of them,
    and how many times as unevenly mismatches lie there as among separate vectors."""
    rows = [
        {"generator": name, "vectors": c.vectors, "mismatches": c.mismatches, "in tiles": c.outputs,
         "dependence": f"x {dependences()[name]:.1f}" if c.tiles and name in dependences() else ""}
        for name, c in summary.families
    ]  # fmt: skip
    tiled = any(c.tiles for _, c in summary.families)
    return rows, ("generator", "vectors", "mismatches", *("in tiles", "dependence") * tiled)


def print_witnesses(console: Console, summaries: Sequence[Summary]) -> None:
    """One line in all, and for every instruction with a mismatch what was answered."""
    wrong = [summary for summary in summaries if summary.mismatches]
    vectors, seconds = sum(s.vectors for s in summaries), sum(s.seconds for s in summaries)
    asked, failing = (counted(len(each), "instruction") for each in (summaries, wrong))
    console.print(
        f"{asked}, {counted(vectors, 'witness')}: "
        f"{counted(sum(s.mismatches for s in wrong), 'mismatch')} in {failing}, "
        f"{seconds * 1000:.0f} ms on the devices"
    )
    for summary in wrong:
        console.print(f"{summary.instruction}: {summary.mismatches} of {summary.vectors} witnesses")
        _print_examples(console, summary)


def _print_examples(console: Console, summary: Summary, saved: str = "") -> None:
    for line in example_lines(summary, saved):
        console.print(line)


def summary_json(summary: Summary) -> dict[str, Any]:
    """A summary with its examples."""
    return summary.form() | {
        "instruction": summary.instruction,
        "verdict": summary.verdict,
        "seconds": round(summary.seconds, 3),
        "dependence": {name: dependences().get(name) for name, count in summary.families if count.tiles},
        "coverage": coverage_json(summary.coverage),
        "examples": [mismatch_to_json(example) for example in summary.examples],
    }
