"""What a run derived, and on what grounds: for a person who asks where a parameter came from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from mmaprobe.baselines.facts import InstructionFacts, RunFacts
from mmaprobe.baselines.wording import differences
from mmaprobe.evidence.gate_record import RECORD, read_record
from mmaprobe.evidence.store import Store
from mmaprobe.report.datapath.known import folded
from mmaprobe.report.datapath.meaning import meaning
from mmaprobe.showing import counted


def head_lines(run: RunFacts) -> Iterator[str]:
    """Which run it is: of what, when, by which version and seed, with which driver, toolchain and settings."""
    header = run.header
    yield f"{run.name}; mmaprobe {header.version}, seed {header.seed}"
    for name, table in (("device", header.identity), ("toolchain", header.toolchain), ("settings", header.settings)):
        if table:
            yield f"  {name}: {', '.join(f'{key} {value}' for key, value in table.items())}"


def gate_lines(store: Store) -> Iterator[str]:
    """What the run came to beside its baseline, where it had one."""
    if not (store.path / RECORD).exists():
        return
    record = read_record(store.path / RECORD)
    changes = list(record["changes"])
    yield f"beside the baseline {record['baseline'].text}: {differences(len(changes))}"
    for each in changes:
        yield f"  {'accepted' if each['accepted'].value else 'not accepted'}: {each['name'].text}: {each['kind'].text}"
    for stale in record["stale"]:
        yield f"  accepted, but nothing changed: {stale.text}"


def derived_rows(run: RunFacts) -> list[dict[str, Any]]:
    """Of every instruction what was derived, its grounds, and how it stood to what shipped then."""
    return [
        {"instruction": name, "meaning": _meaning(facts), "grounds": _grounds(facts), "standing": _standing(facts)}
        for name, facts in sorted(run.instructions.items())
    ]


def derived_lines(run: RunFacts) -> Iterator[str]:
    """The same as text: instructions of which the same is said stand together."""
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for row in derived_rows(run):
        groups[row["meaning"], row["grounds"], row["standing"]].append(row["instruction"])
    for said, names in groups.items():
        yield folded(names)
        yield from (f"  {line}" for line in said if line)


def _meaning(facts: InstructionFacts) -> str:
    if facts.datapath is not None:
        return meaning(facts.datapath)
    return f"no datapath was derived: {facts.reason or 'nothing says why'}" if facts.asked else "not derived"


def _grounds(facts: InstructionFacts) -> str:
    """How the datapath was found: by a search with its certificate, or held against what others compute."""
    form = facts.part.datapath or {}
    if form.get("like"):
        return f"{counted(form.get('compared', 0), 'vector')} agree with what {' and '.join(form['like'])} computes"
    certificate: Mapping[str, Any] = form.get("certificate") or {}
    if not certificate:
        validation = facts.part.validation
        references = {str(run.get("ref")) for run in validation.get("runs", [validation]) if run.get("ref")}
        were = "was" if facts.part.vectors == 1 else "were"
        compared = f"{counted(facts.part.vectors, 'vector')} {were} held against {' and '.join(sorted(references))}"
        return compared if references and facts.part.vectors and not facts.asked else ""
    count = sum(map(len, certificate.get("open", {}).values()))
    refuted = counted(certificate.get("refuted", 0), "neighbour")
    said = f"derived from the device alone: {form.get('status')}; {refuted} refuted"
    fresh = counted(certificate.get("coverage", {}).get("fresh", 0), "fresh vector")
    return f"{said}, {certificate.get('equivalent', 0)} the same function, {count} open; {fresh} agree"


def _standing(facts: InstructionFacts) -> str:
    """How it stood to the parameters that shipped when it was run."""
    comparison = facts.part.comparison or {}
    words = {
        "same": "what ships says the same", "equivalent": "what ships says the same in other words",
        "changed": "not what ships", "new": "nothing ships for it",
    }  # fmt: skip
    said = words.get(str(comparison.get("outcome")), "")
    lines = comparison.get("decisive") or comparison.get("differences") or ()
    return f"{said}: {'; '.join(map(str, lines))}" if said == "not what ships" and lines else said
