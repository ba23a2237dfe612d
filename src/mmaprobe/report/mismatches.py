"""What a mismatch looks like to a person: both answers bit by bit, what was found of it, and the command that asks
again.

One form for the terminal and for the failures of pytest: plain lines, in which a caret marks a bit that differs.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mmaprobe import formats
from mmaprobe.errors import UsageError, printable
from mmaprobe.evidence.records import Finding, Mismatch, Retest, Witness
from mmaprobe.evidence.records_json import mismatch_to_json
from mmaprobe.evidence.store import part_name
from mmaprobe.formats import Format
from mmaprobe.generators.recipe import is_recipe
from mmaprobe.models.hexfloat import code_value
from mmaprobe.report.vectors import vector_text
from mmaprobe.showing import counted, mismatches_in, per_second
from mmaprobe.survey.smoke import FAMILY
from mmaprobe.validation import Summary
from mmaprobe.validation.classify import kinds
from mmaprobe.validation.pair import Pair
from mmaprobe.validation.replaying import Replayed, differing_witnesses, runs_no_program

DIFFERS = "differs in"


def summary_line(summary: Summary) -> str:
    """The verdict of a comparison, its counts, and between whom."""
    rate = f", {per_second(summary.vectors / summary.seconds)}" if summary.seconds else ""
    return (
        f"{summary.instruction}: {summary.verdict}: {mismatches_in(summary.mismatches, summary.vectors)} "
        f"({summary.dut} against {summary.ref}, seed {summary.seed}, nan={summary.nan}, "
        f"{summary.seconds:.1f} s{rate})"
    )


def failure_text(summary: Summary) -> str:
    """What a failing test says: the verdict, where vectors were compared, and each mismatch that was kept."""
    where = summary.screening or summary.batches
    return printable("\n".join([summary_line(summary), str(where), *example_lines(summary)]))


def disagreement_text(found: Finding, expected: Finding, pair: Pair) -> str:
    """What a failing test of a question says: both answers, and the witnesses of either on which the devices differ."""
    said = [f"{pair.dut.name}: {found.text}; {pair.ref.name}: {expected.text}"]
    witnesses = (*found.witnesses, *expected.witnesses)
    for mismatch in differing_witnesses(witnesses, pair, f"the question {found.question}"):
        said += mismatch_lines(mismatch)
    return printable("\n".join(said))


def example_lines(summary: Summary, saved: str = "") -> Iterator[str]:
    """The lines of every mismatch that was kept of a comparison; ``saved``: the file that holds them."""
    for example in summary.examples:
        yield from mismatch_lines(example, again_command(summary, example, saved), _explaining(summary, example))


def mismatch_lines(mismatch: Mismatch, again: str = "", why: str = "") -> list[str]:
    """A mismatch: recipe and retest, kinds and places, the vector with both answers, its smallest form, the reason, the
    command that asks it ``again``, and the one that says ``why``."""
    said = [f"mismatch ({outcome_words(mismatch)}): {mismatch.recipe}"]
    said += [f"  {line}" for line in ("; ".join(mismatch.kinds), place_words(mismatch), mismatch.vector.note) if line]
    said += _answers(vector_text(mismatch.vector), mismatch.vector, mismatch.expected, mismatch.format)
    if mismatch.shrunk is not None and mismatch.shrunk_expected is not None:
        head = ", ".join(("smallest", *smallest_kinds(mismatch)))
        vector = f"{head}: {vector_text(mismatch.shrunk)}"
        said += _answers(vector, mismatch.shrunk, mismatch.shrunk_expected, mismatch.format)
    if mismatch.reference_says:
        said.append(f"  reference: {mismatch.reference_says}")
    if mismatch.device_as:
        said.append(f"  device: as if {mismatch.device_as}")
    return said + [f"  {name}: {command}" for name, command in (("again", again), ("why", why)) if command]


def shown_in_row(name: str, mismatch: Mismatch, again: str, places: str = "") -> tuple[str, ...]:
    """The lines of a mismatch as those of an instruction in a table; ``places``: where more of them were found."""
    head, *rest = mismatch_lines(mismatch, again)
    return (f"{name}: {head}{places}", *rest)


def in_short(mismatch: Mismatch) -> str:
    """A mismatch in one line, by its smallest form where that differs, too."""
    vector, expected, how = mismatch.vector, mismatch.expected, mismatch.kinds
    smallest, other = mismatch.shrunk, mismatch.shrunk_expected
    if smallest is not None and other is not None and smallest.d != other:
        vector, expected, how = smallest, other, smallest_kinds(mismatch)
    found = "; ".join((outcome_words(mismatch), *how))
    return f"{vector_text(vector)} gives {vector.d:#x}, expected {expected:#x} ({mismatch.recipe}; {found})"


def outcome_words(mismatch: Mismatch) -> str:
    """What a retest made of it, in words; evidence of older versions knows no counts."""
    if mismatch.retests:
        return _counted(mismatch.retests[0])
    return "stable" if mismatch.stable else "NOT STABLE on a retest"


def _counted(retest: Retest) -> str:
    if retest.outcome == "gone":
        return f"GONE: right {retest.asked} of {retest.asked} times when asked again"
    if retest.outcome == "stable":
        return f"stable: {retest.asked} of {retest.asked} times"
    others = f", {retest.other} of them with another answer" if retest.other else ""
    return f"{retest.outcome.upper()} when asked again{others}"


def smallest_kinds(mismatch: Mismatch) -> tuple[str, ...]:
    """How the answers to the smallest form differ."""
    if mismatch.shrunk is None or mismatch.shrunk_expected is None:
        return ()
    codes = mismatch.shrunk.d, mismatch.shrunk_expected
    fmt = format_of(mismatch.format, *codes)
    return kinds(fmt, *codes) if fmt is not None else ()


def place_words(mismatch: Mismatch) -> str:
    """Where it was seen and what was found elsewhere; places that found the same are told together."""
    by_outcome: dict[str, list[str]] = {}
    for retest in mismatch.retests[1:]:
        by_outcome.setdefault("right" if retest.outcome == "gone" else retest.outcome, []).append(retest.where)
    told = [f"on {', '.join(places)}: {outcome}" for outcome, places in by_outcome.items()]
    return "; ".join(([f"seen on {mismatch.seen}"] if mismatch.seen else []) + told)


def _answers(vector: str, witness: Witness, expected: int, name: str) -> list[str]:
    """A vector, then one code below the other."""
    lines = [f"  {vector}"]
    if witness.d == expected:
        return [*lines, f"    {witness.d:#x} when asked again, as expected; not all its answers to this vector are"]
    fmt = format_of(name, witness.d, expected)
    if fmt is None:
        return [*lines, f"    answer {witness.d:#x}, expected {expected:#x}"]
    return [*lines, *(f"    {line}" for line in bit_lines(fmt, witness.d, expected))]


def bit_lines(fmt: Format, answer: int, expected: int) -> list[str]:
    """Both codes as hexadecimal, as fields of bits and as values, and below them a caret for every bit that differs."""
    digits = -(-(fmt.code_limit.bit_length() - 1) // 4)
    rows = [(name, f"{code:#0{digits + 2}x}", bit_fields(fmt, code), code_value(fmt, code))
            for name, code in (("answer", answer), ("expected", expected))]  # fmt: skip
    widths = [max(len(name) for name in ("answer", "expected", DIFFERS)), digits + 2]
    text = [f"{name:{widths[0]}}  {code:{widths[1]}}  {bits}  {value}" for name, code, bits, value in rows]
    marks = "".join("^" if one != other else " " for one, other in zip(rows[0][2], rows[1][2], strict=True))
    return [*text, f"{DIFFERS:{widths[0]}}  {'':{widths[1]}}  {marks}".rstrip()]


def bit_fields(fmt: Format, code: int) -> str:
    """The bits of a code: those that are ignored above, sign, exponent, fraction, those that are ignored below; of an
    integer in fours."""
    length = fmt.code_limit.bit_length() - 1
    text = f"{code:0{length}b}"
    if fmt.is_float:
        sizes = [fmt.ignored_high, int(fmt.signed), fmt.exponent_bits, fmt.fraction_bits, fmt.padding]
    else:
        sizes = [length % 4, *[4] * (length // 4)]
    ends = np.cumsum(sizes).tolist()
    return " ".join(text[end - size : end] for size, end in zip(sizes, ends, strict=True) if size)


def format_of(name: str, *codes: int) -> Format | None:
    """The format of this name; None where there is none, or where one of the codes is none of it."""
    try:
        fmt = formats.get(name) if name else None
    except UsageError:
        return None
    return fmt if fmt is not None and all(0 <= code < fmt.code_limit for code in codes) else None


def part_command(folder: Path, instruction: str, dut: str) -> str:
    """The command that asks every mismatch of an instruction's part of evidence again."""
    return file_command(folder / part_name(instruction), dut)


def file_command(file: Path, dut: str) -> str:
    """The command that asks every mismatch of a file again."""
    return shlex.join(["mmaprobe", "replay", str(file), *_named("--device", dut)])


def _named(option: str, device: str) -> list[str]:
    """The option that names a device, where no file may choose it."""
    return [] if runs_no_program(device) else [option, device]


def again_command(summary: Summary, example: Mismatch, saved: str = "") -> str:
    """The command that asks a mismatch again; ``saved``: the file that holds it."""
    if saved:
        words = ["replay", saved, *_named("--device", summary.dut), *_named("--ref", summary.ref)]
    elif is_recipe(example.recipe):
        words = ["replay", example.recipe, "--device", summary.dut, "--ref", summary.ref]
    else:
        plan = ["--plan", "witnesses"] if FAMILY in dict(summary.families) else []
        words = ["validate", summary.dut, summary.ref, summary.instruction, *plan]
    return shlex.join(["mmaprobe", *words])


def _explaining(of: Summary | Replayed, example: Mismatch) -> str:
    """The command that follows the reference's model, else the device's, through the smallest form, step by step."""
    for device in (of.ref, of.dut):
        scheme, _, architecture = device.partition(":")
        if scheme == "model" and "?" not in architecture:
            words = vector_text(example.shrunk or example.vector).split()
            return shlex.join(["mmaprobe", "explain", architecture, of.instruction, *words])
    return ""


def replay_lines(found: Sequence[Replayed]) -> Iterator[str]:
    """What became of vectors that were asked again, below the devices that were asked."""
    asked = ""
    for each in found:
        devices = f"{each.instruction}: {each.dut} against {each.ref}"
        if devices != asked:
            yield devices
        asked = devices
        yield from _replayed(each)


def _replayed(found: Replayed) -> Iterator[str]:
    now, before = found.now, found.before
    of = f"{found.outcome}{', in its smallest form' if found.smallest else ''}"
    was = "" if before is None else f"; it was {before.vector.d:#x}, expected {before.expected:#x}"
    if found.outcome != "right now":
        yield of + was
        yield from (f"  {line}" for line in mismatch_lines(now, why=_explaining(found, now)))
    else:
        changed = "; the reference changed" if before is not None and now.expected != before.expected else ""
        times = f"{now.expected:#x}, {now.retests[0].asked} times"
        yield f"{of}: {now.recipe}: {vector_text(now.vector)} -> {times}{was}{changed}"


def replay_json(found: Replayed) -> dict[str, Any]:
    """The same as JSON."""
    said: dict[str, Any] = {name: getattr(found, name) for name in ("outcome", "smallest", "instruction", "dut", "ref")}
    before = {} if found.before is None else {"before": mismatch_to_json(found.before)}
    return {**said, "now": mismatch_to_json(found.now), **before}


def wrong_devices(found: Iterable[tuple[Mapping[str, str], Sequence[Summary]]]) -> list[str]:
    """Of several devices, each by its identity (``Device.info``) and what was compared on it, those that were wrong: a
    line each, with UUID and multiprocessors or cores."""
    return [line for identity, summaries in found if (line := _wrong_device(identity, summaries))]


def _wrong_device(identity: Mapping[str, str], summaries: Sequence[Summary]) -> str:
    wrong = [summary for summary in summaries if summary.mismatches or summary.unstable]
    if not wrong:
        return ""
    counts: dict[str, int] = {}
    for screening in filter(None, (summary.screening for summary in wrong)):
        for number, count in screening.wrong.items():
            place = f"{screening.called} {number}"
            counts[place] = counts.get(place, 0) + count
    seen = {example.seen for summary in wrong for example in summary.examples if example.seen and not counts}
    where = ", ".join(
        [f"{count:,} on {place}" for place, count in counts.items()] + [f"on {each}" for each in sorted(seen)]
    )
    name = " ".join(filter(None, (wrong[0].dut, identity.get("uuid", ""), identity.get("model_name", ""))))
    total = mismatches_in(sum(s.mismatches for s in wrong), sum(s.vectors for s in summaries))
    return f"{name}: {total} of {counted(len(summaries), 'instruction')}, {len(wrong)} of them wrong" + (
        f": {where}" if where else ""
    )
