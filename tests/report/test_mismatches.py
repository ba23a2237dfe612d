"""What a mismatch looks like: bits one below the other, carets below those that differ, the command that repeats it."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases.validated import DOT, HMMA, MODEL, TILE, Changed
from mmaprobe import formats
from mmaprobe.cli import main
from mmaprobe.devices.base import open_device
from mmaprobe.evidence.records import Finding, Mismatch, Retest, Witness
from mmaprobe.report.mismatches import (
    bit_lines,
    disagreement_text,
    example_lines,
    failure_text,
    in_short,
    mismatch_lines,
    part_command,
    wrong_devices,
)
from mmaprobe.survey.smoke import validate_witnesses
from mmaprobe.validation import Summary, validate
from mmaprobe.validation.pair import Pair
from mmaprobe.validation.summary import FamilyCount, Screening

FOUND = Mismatch(
    Witness((0x3C00, 0), (1, 2), 3, 0x3F800001), 0x3F800000, "recipe", True, Witness((0, 0), (0, 0), 1, 1), 0,
    (Retest(64, 64), Retest(64, 0, 0, "core 0"), Retest(64, 0, 0, "core 2"), Retest(64, 9, 1, "core 3")),
    ("1 ulp", "one bit (bit 0)"), "core 1", "sum 0x1p+0", "rounding RZ, not RNE", 0, "f32",
)  # fmt: skip


def test_every_line_of_a_mismatch() -> None:
    assert mismatch_lines(FOUND, "mmaprobe replay m.json") == [
        "mismatch (stable: 64 of 64 times): recipe",
        "  1 ulp; one bit (bit 0)",
        "  seen on core 1; on core 0, core 2: right; on core 3: intermittent 10/64",
        "  a=0x3c00,0x0 b=0x1,0x2 c=0x3",
        "    answer      0x3f800001  0 01111111 00000000000000000000001  0x1.000002p+0",
        "    expected    0x3f800000  0 01111111 00000000000000000000000  0x1p+0",
        "    differs in                                               ^",
        "  smallest, 1 ulp, one bit (bit 0): a=0x0*2 b=0x0*2 c=0x1",
        "    answer      0x00000001  0 00000000 00000000000000000000001  0x1p-149",
        "    expected    0x00000000  0 00000000 00000000000000000000000  0",
        "    differs in                                               ^",
        "  reference: sum 0x1p+0",
        "  device: as if rounding RZ, not RNE",
        "  again: mmaprobe replay m.json",
    ]
    assert in_short(FOUND) == (
        "a=0x0*2 b=0x0*2 c=0x1 gives 0x1, expected 0x0 (recipe; stable: 64 of 64 times; 1 ulp; one bit (bit 0))"
    )


def test_one_line_says_how_the_answers_differ_that_it_shows() -> None:
    """The smallest form differs otherwise than the vector that was found; where it does not differ, that one stands."""
    apart = replace(FOUND, shrunk=Witness((1, 0), (1, 0), 0, 5), shrunk_expected=2)
    assert (
        in_short(apart) == "a=0x1,0x0 b=0x1,0x0 c=0x0 gives 0x5, expected 0x2 (recipe; stable: 64 of 64 times; 3 ulps)"
    )
    once = replace(FOUND, shrunk=Witness((0, 0), (0, 0), 1, 0))
    assert in_short(once).startswith("a=0x3c00,0x0 b=0x1,0x2 c=0x3 gives 0x3f800001, expected 0x3f800000 (recipe; ")
    assert in_short(once).endswith("1 ulp; one bit (bit 0))")


@pytest.mark.parametrize(("retest", "said"), [
    (Retest(64, 3), "INTERMITTENT 3/64 when asked again"),
    (Retest(64, 3, 2), "INTERMITTENT 5/64 when asked again, 2 of them with another answer"),
    (Retest(64, 0), "GONE: right 64 of 64 times when asked again"),
])  # fmt: skip
def test_what_does_not_stay_is_said_loudly(retest: Retest, said: str) -> None:
    assert mismatch_lines(replace(FOUND, stable=False, retests=(retest,)))[0] == f"mismatch ({said}): recipe"


def test_evidence_of_an_older_version_is_shown_without_bits() -> None:
    old = Mismatch(Witness((1,), (2,), 3, 5), 4, "recipe")
    assert mismatch_lines(old) == [
        "mismatch (stable): recipe", "  a=0x1 b=0x2 c=0x3", "    answer 0x5, expected 0x4",
    ]  # fmt: skip
    assert mismatch_lines(replace(old, format="no format"))[-1] == "    answer 0x5, expected 0x4"
    wide = replace(old, expected=1 << 16, format="f16", shrunk=replace(old.vector, d=-1), shrunk_expected=4)
    assert [line for line in mismatch_lines(wide) if "expected" in line] == [
        "    answer 0x5, expected 0x10000", "    answer -0x1, expected 0x4",
    ], "codes that are none of the format"  # fmt: skip


NAMES = ["f64", "f32", "f16", "bf16", "tf32", "e4m3", "e5m2fnuz", "ue4m3", "ue8m0", "e2m1", "s32", "u8", "s4", "s64"]


@given(st.sampled_from(NAMES), st.data())
def test_a_caret_is_below_every_bit_that_differs(name: str, data: st.DataObject) -> None:
    fmt = formats.get(name)
    codes = st.integers(0, fmt.code_limit - 1)
    one, other = data.draw(st.tuples(codes, codes))
    answer, expected, marks = bit_lines(fmt, one, other)
    start = answer.index("0x")
    digits = len(answer[start:].split()[0])
    field = slice(start + digits + 2, None)
    bits = ["".join(itertext(line[field], fmt)) for line in (answer, expected)]
    assert [int(text, 2) for text in bits] == [one, other]
    assert marks.startswith("differs in")
    assert marks.count("^") == (one ^ other).bit_count()
    for at, mark in enumerate(marks):
        if mark == "^":
            assert {answer[at], expected[at]} == {"0", "1"}


def itertext(line: str, fmt: formats.Format) -> list[str]:
    """The bits at the beginning of a line, the blanks between its fields left out."""
    length = fmt.code_limit.bit_length() - 1
    return [letter for letter in line if letter != " "][:length]


def test_the_command_that_is_printed_repeats_the_mismatch(capsys: pytest.CaptureFixture[str]) -> None:
    device = f"misbehaving:zeros?of={MODEL.name}"
    text = failure_text(validate(open_device(device), MODEL, DOT, 2000))
    (command, *_) = [line.partition("again: ")[2] for line in text.splitlines() if "again: " in line]
    words = shlex.split(command)
    assert words[:2] == ["mmaprobe", "replay"]
    assert words[3:] == ["--device", device, "--ref", MODEL.name]
    assert main(words[1:]) == 1
    assert "wrong again" in capsys.readouterr().out
    (summary,) = validate_witnesses(open_device(device), MODEL, DOT.id)
    text = failure_text(summary)
    assert f"again: mmaprobe validate '{device}' {MODEL.name} {DOT.id} --plan witnesses" in text
    assert "stable: 64 of 64 times" in text


def test_a_saved_mismatch_names_its_file(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "my mismatches.json"
    device = f"misbehaving:zero?of={MODEL.name}"
    assert main(["validate", device, MODEL.name, DOT.id, "-n", "2000", "--seed", "1", "--save", str(path)]) == 1
    said = capsys.readouterr().out
    assert said.count(f"  again: mmaprobe replay '{path}'\n") == 4
    assert "  sign of zero; one bit (bit 31)\n" in said
    assert main(["replay", str(path)]) == 1


def test_a_program_is_named_in_the_command_since_no_file_may_choose_it() -> None:
    found = replace(summary(1, examples=(FOUND,)), dut="process:my unit", ref="model:sm_90a", examples=(FOUND,))
    again, why = list(example_lines(found, "m.json"))[-2:]
    assert again == "  again: mmaprobe replay m.json --device 'process:my unit'"
    assert why.startswith(f"  why: mmaprobe explain sm_90a {found.instruction} 'a=0x0*2' ")
    assert part_command(Path("e"), "x86.dpps", "cpu") == "mmaprobe replay e/instructions/x86.dpps.json"
    assert part_command(Path("e"), "x86.dpps", "process:u").endswith("dpps.json --device process:u")


def test_a_finding_that_differs_shows_the_vectors() -> None:
    wrong = Changed(lambda made, batch, d: d ^ d.dtype.type(1))
    found = Finding("order", "exact", 1, "one", (Witness((1, 0), (0, 0), 0, 1),))
    said = disagreement_text(found, replace(found, text="another"), Pair(wrong, MODEL, DOT)).splitlines()
    assert said[0] == f"changed: one; {MODEL.name}: another"
    assert said[1] == "mismatch (stable: 64 of 64 times): witness 0 of the question order"
    assert any(line.startswith("    differs in") for line in said)


def summary(mismatches: int, screening: Screening | None = None, examples: tuple[Mismatch, ...] = ()) -> Summary:
    count = FamilyCount(1000, mismatches)
    return Summary(TILE.id, "cuda:1", "model", 0, 1000, 1000, mismatches, (("tie", count),), examples, 1.0,
                   screening=screening)  # fmt: skip


def test_of_several_gpus_the_wrong_one_is_named() -> None:
    sound, wrong = {"uuid": "GPU-a", "model_name": "H200"}, {"uuid": "GPU-b", "model_name": "H200"}
    bad = summary(12, Screening(132, 132, {"17": 11, "18": 1}))
    assert wrong_devices([(sound, [summary(0)]), (wrong, [summary(0), bad, bad])]) == [
        "cuda:1 GPU-b H200: 24 mismatches in 3,000 vectors of 3 instructions, 2 of them wrong: "
        "22 on multiprocessor 17, 2 on multiprocessor 18"
    ]
    unsteady = summary(1, examples=(replace(FOUND, stable=False, retests=()),))
    assert wrong_devices([({}, [unsteady])]) == [
        "cuda:1: 1 mismatch in 1,000 vectors of 1 instruction, 1 of them wrong: on core 1"
    ]
    assert wrong_devices([]) == wrong_devices([(sound, [summary(0)])]) == []


def test_a_mutant_is_shown_with_its_field() -> None:
    mutant = open_device(f"mutant:sm_90a/{HMMA}/tree.fraction_bits=24")
    text = failure_text(validate(mutant, open_device("model:sm_90a"), TILE, 2000))
    assert "  device: as if fraction bits kept below the largest exponent of the sum 24, not 25\n" in text
