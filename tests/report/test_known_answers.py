"""An answer that nobody expects of arithmetic comes with whether it is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

import mmaprobe
from mmaprobe.cli import main
from mmaprobe.report.known_answers import with_known

HOPPER = "mma.m16n8k16.f32.f16.f16.f32"
ASKED = "monotonicity"


def test_a_decrease_that_models_have_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    found = mmaprobe.probe("model:sm_90a", HOPPER, questions=[ASKED])
    text = with_known(HOPPER, found)[ASKED].text
    assert text.startswith("a larger operand gives a smaller result, as is known of this instruction on sm_90a")
    assert main(["probe", "-d", "model:sm_90a", HOPPER, "-q", ASKED]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "as is known of this instruction on sm_90a" in said
    assert "1 question, " in said


def test_one_that_no_model_has_is_said_so() -> None:
    finding = mmaprobe.probe("model:sm_90a", HOPPER, questions=[ASKED])[ASKED]
    other = replace(finding, witnesses=tuple(replace(each, d=each.d ^ 1) for each in finding.witnesses))
    text = with_known(HOPPER, {ASKED: other})[ASKED].text
    assert text == "a larger operand gives a smaller result, unlike any that is known of this instruction"


def test_other_findings_stay_as_they_are() -> None:
    found = mmaprobe.probe("model:x86-64", "x86.vdpbf16ps", questions=[ASKED, "determinism"])
    assert with_known("x86.vdpbf16ps", found) == dict(found)


def test_questions_speak_in_sentences() -> None:
    """What a reader sees of products and results beyond the range, and of the smallest term that counts."""
    names = ["overflow", "product_range", "sticky_reach"]
    hopper = {name: each.text for name, each in mmaprobe.probe("model:sm_90a", HOPPER, questions=names).items()}
    assert hopper["overflow"] == (
        "no result of these operands is beyond the largest number; there are no partial sums; "
        "no product reaches beyond it"
    )
    assert hopper["product_range"] == "large products: none exceeds the result's range; small ones: none is below it"
    assert hopper["sticky_reach"] == "a term 25 bits below the result still lowers it when it is subtracted"
    wide = {n: e.text for n, e in mmaprobe.probe("model:x86-64", "x86.vdpbf16ps", questions=names).items()}
    assert wide["overflow"] == (
        "beyond the largest number, of either sign: an infinity; partial sums beyond it become infinite; "
        "a product beyond it stays finite"
    )
    assert "a term 36 bits below the result still breaks a tie" in wide["sticky_reach"]
