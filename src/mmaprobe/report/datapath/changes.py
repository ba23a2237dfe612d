"""What a parameter file would say anew, in sentences: each change with a vector that shows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.errors import UsageError
from mmaprobe.parameters.datapath import Accumulator, Datapath, Fused, Products, walk
from mmaprobe.parameters.diff import TERM_FIELD, datapath_changes, diff, in_words
from mmaprobe.parameters.files import ParameterFile
from mmaprobe.parameters.mutate import mutate
from mmaprobe.report.vectors import vector_text
from mmaprobe.survey.comparison import compare, difference
from mmaprobe.survey.survey_rows import Survey


def change_lines(old: ParameterFile, new: ParameterFile, runs: Mapping[str, Instruction], seed: int) -> list[str]:
    """The changes of meaning from ``old`` to ``new``; ``runs`` names an instruction of a primitive, whose vectors
    show them."""
    lines: list[str] = []
    for name in dict.fromkeys(change.primitive for change in diff(old, new)):
        before, after = old.entries.get(name), new.entries.get(name)
        if before is None or after is None:
            lines.append(f"{name}: {f'new ({after.basis})' if after else 'gone'}")
            continue
        if name in runs and before.datapath != after.datapath:
            lines += (f"{name}: {line}" for line in differences(runs[name], before.datapath, after.datapath, seed))
        for word in ("basis", "follows"):
            if getattr(before, word) != getattr(after, word):
                lines.append(f"{name}: {in_words(word)} {getattr(after, word)}, was {getattr(before, word)}")
    return lines


def shipped_lines(survey: Survey) -> list[str]:
    """The changes of every instruction that computes something else than the shipped parameter file says."""
    found: list[str] = []
    for row in survey.rows:
        comparison = compare(survey.architecture, row.instruction, row.datapath, survey.seed)
        if comparison.changed and comparison.shipped is not None and row.datapath is not None:
            lines = differences(row.instruction, comparison.shipped, row.datapath, survey.seed)
            found += (f"{row.instruction.id}: {line}" for line in lines)
    return found


def differences(instruction: Instruction, old: Datapath, new: Datapath, seed: int) -> Iterator[str]:
    """A sentence for each field that alone changes an answer, with the vector; the other fields in one more.

    Where only all of them together change one, the vector follows the whole.
    """
    silent: list[str] = []
    told = False
    for field, before, after in datapath_changes(old, new):
        sentence = said(field, before, after, new)
        proof = _proof(instruction, _with_old(old, new, field, before), new, seed)
        told = told or bool(proof)
        if proof:
            yield f"{sentence}: {proof}"
        else:
            silent.append(sentence)
    if not told:
        proof = _proof(instruction, old, new, seed) or "no vector found that shows it"
        yield f"{'; '.join(silent)}: {proof}"
    elif silent:
        yield f"said otherwise, without a vector that shows it alone: {'; '.join(silent)}"


def _with_old(old: Datapath, new: Datapath, field: str, value: str) -> Datapath:
    """The new datapath with one field as it was; the old one where that is no datapath."""
    try:
        return mutate(new, field, value, own=TERM_FIELD.fullmatch(field) is not None)
    except UsageError:
        return old


def _proof(instruction: Instruction, old: Datapath, new: Datapath, seed: int) -> str:
    found = difference(instruction, old, new, seed)
    return f"vector {vector_text(found[0])} gives {found[0].d:#x}, not {found[1]:#x}" if found else ""


def said(field: str, old: Any, new: Any, datapath: Datapath) -> str:
    """One change of a field as a sentence: ``the products keep 25 fraction bits, were 24``."""
    last = field.rpartition(".")[2]
    if last == "fraction_bits":
        kept = "are not cut" if new == "none" else f"keep {new} fraction bits"
        return f"{_who(field, datapath)} {kept}, {'were not cut' if old == 'none' else f'kept {old}'}"
    if last == "zero_exponent":
        shown = "takes no part in the alignment" if new == "none" else f"counts as 2^{new}"
        return f"{_zero(field, datapath)} {shown}, {'took none' if old == 'none' else f'was 2^{old}'}"
    if last == "step":
        return f"a step takes {_lanes(new)} lanes, took {_lanes(old)}"
    return f"{in_words(field)} {new}, was {old}"


def _lanes(value: Any) -> str:
    return "all" if str(value) == "0" else str(value)


def _term(field: str, datapath: Datapath) -> str:
    """``the products`` or ``C`` where the field is that of one term of the outermost sum."""
    parts = field.split(".")
    root = datapath.tree
    if parts[:2] == ["tree", "terms"] and len(parts) == 4 and isinstance(root, Fused) and parts[2].isdigit():
        of = root.terms[int(parts[2])].of if int(parts[2]) < len(root.terms) else None
        return "the products" if isinstance(of, Products) else "C" if isinstance(of, Accumulator) else ""
    return ""


def _who(field: str, datapath: Datapath) -> str:
    alone = sum(isinstance(node, Fused) for node in walk(datapath.tree)) == 1 and field == "tree.fraction_bits"
    inner = isinstance(datapath.tree, Fused) and any(isinstance(t.of, Accumulator) for t in datapath.tree.terms)
    place = ("the products and C" if inner else "the products") if alone else ""
    return _term(field, datapath) or place or in_words(field.rpartition(".")[0])


def _zero(field: str, datapath: Datapath) -> str:
    term = _term(field, datapath)
    return f"a zero of {term}" if term else "a zero"
