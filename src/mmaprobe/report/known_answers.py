"""Whether an answer that ought to surprise is known: of the same instruction, by the models that ship."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from mmaprobe.catalog import lookup
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.dense_view import kept
from mmaprobe.errors import UsageError
from mmaprobe.evidence.records import Finding
from mmaprobe.models.engine import evaluate_many
from mmaprobe.operands.witness_batches import as_vectors
from mmaprobe.parameters.lookup import datapath_for

SURPRISING = {"monotonicity": ("monotone", False)}
"""Questions with the answer that nobody expects of arithmetic."""
NAMED = 3
"""Architectures that are named; others are counted."""


def with_known(instruction: str, findings: Mapping[str, Finding]) -> dict[str, Finding]:
    """The findings, a surprising one with what is known of such answers."""
    return {name: _told(instruction, name, each) for name, each in findings.items()}


def _told(instruction: str, name: str, finding: Finding) -> Finding:
    key, value = SURPRISING.get(name, ("", None))
    if not key or finding.answer is None or finding.answer.get(key) is not value or not finding.witnesses:
        return finding
    made = lookup.instruction(instruction)
    return replace(finding, text=f"{finding.text}, {_known(list(_answering(made, finding)))}")


def _answering(made: Instruction, finding: Finding) -> Iterator[str]:
    """The architectures whose model of an instruction answers every witness of a finding as the device did."""
    vectors, wanted = as_vectors(made, finding.witnesses), [each.d for each in finding.witnesses]
    for architecture in lookup.homes(made):
        with suppress(UsageError):  # no datapath is known there
            (answers,) = evaluate_many([datapath_for(architecture, made)], kept(architecture, made, vectors))
            if answers.tolist() == wanted:
                yield architecture


def _known(architectures: list[str]) -> str:
    if not architectures:
        return "unlike any that is known of this instruction"
    more = f" and {len(architectures) - NAMED} more" if len(architectures) > NAMED else ""
    return f"as is known of this instruction on {', '.join(architectures[:NAMED])}{more}"
