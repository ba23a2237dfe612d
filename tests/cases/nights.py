"""Evidence of nights that never were: folders with what a run would have written, made without running anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mmaprobe.catalog.lookup import instruction
from mmaprobe.evidence.records import Finding, Mismatch, Witness
from mmaprobe.evidence.steps import StepRecord
from mmaprobe.evidence.store import Header, Part, Store
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.mutate import mutate
from mmaprobe.parameters.table import to_table

BF16, MADD = "x86.vdpbf16ps", "x86.pmaddwd"
MODEL = {"architecture": "x86-64", "parameters": "sha256:0"}
GPU = {"architecture": "sm_90a", "uuid": "GPU-1", "model_name": "NVIDIA H100", "driver": "580", "clock_sm_mhz": "345"}
BEGUN = "2026-11-{:02}T03:00:00+00:00"


def night(
    path: Path,
    *parts: Part,
    day: int = 1,
    device: str = "model:x86-64",
    identity: Mapping[str, str] = MODEL,
    finished: bool = True,
    steps: Sequence[StepRecord] = (),
    **header: Any,
) -> Path:
    """The evidence folder of a run that began on a day of a month."""
    execution = {"begun": BEGUN.format(day), "nonce": f"{day:016x}"}
    given: dict[str, Any] = {"version": "1", "seed": day} | header
    store = Store.create(path, Header(device, identity, execution=execution, **given))
    for part in parts:
        store.save(part)
    for step in steps:
        store.save_step(step)
    if finished:
        store.finish()
    return path


def part(
    name: str = BF16, datapath: Datapath | None = None, *, vectors: int = 1000, wrong: int = 0, **more: Any
) -> Part:
    """What a run says of an instruction: compared, and derived to be a datapath if one is given."""
    counts = {"planned": vectors, "vectors": vectors, "mismatches": wrong,
              "families": {"uniform": {"vectors": vectors, "mismatches": wrong, "version": 1}}}  # fmt: skip
    form = None if datapath is None else {"datapath": to_table(datapath), "status": "exact", "reason": ""}
    given: dict[str, Any] = {
        "status": "partial" if wrong else "finished", "datapath": form, "validation": counts, "vectors": vectors,
        "mismatch_count": wrong,
    }  # fmt: skip
    return Part(name, **(given | more))


def shipped(name: str = BF16, *changes: tuple[str, str]) -> Datapath:
    """What ships for an instruction of x86-64, with some fields changed."""
    path = datapath_for("x86-64", instruction(name, "x86-64"))
    for field, value in changes:
        path = mutate(path, field, value)
    return path


KEEPS = ("operand_a.subnormals", "keep")
"""A change of ``BF16`` that vectors show."""


def mismatch(d: int = 1, expected: int = 2, name: str = BF16) -> Mismatch:
    """A vector of an instruction on which device and model differ, they say."""
    made = instruction(name, "x86-64")
    vector = Witness((0x3F80,) * made.k, (0x3F80,) * made.k, None if made.c is None else 0, d)
    return Mismatch(vector, expected, f"{name} uniform/1 seed 1 index 7", shrunk=vector, shrunk_expected=expected)


def layout(text: str, answer: Any, status: Any = "bounded") -> Finding:
    """The answer to the question where the operands go."""
    return Finding("layout", status, answer, text)


def answered(question: str, status: str, claim: str = "", finding: str = "", about: str = BF16) -> dict[str, Any]:
    """An answer to an open question, as a step keeps it."""
    words = {"question": question, "instruction": about, "status": status, "claim": claim, "finding": finding}
    return {**words, "vectors": 9, "witnesses": []}


def questions(*answers: dict[str, Any]) -> StepRecord:
    """The step that asks them."""
    return StepRecord("questions", "what is open", "finished", "", result={"answers": list(answers), "asked": []})
