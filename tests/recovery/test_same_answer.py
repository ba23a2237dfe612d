"""A unit's answers at several seeds are held against each other, and what was derived is not derived again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import same_answer
from same_answer import Answer

FOUND = [
    Answer(4, 1, "exact"), Answer(4, 0, "exact"),
    Answer(5, 0, "bounded", open=("step 2",)), Answer(5, 1, "inconclusive", reason="no answer"),
    Answer(7, 0, "bounded"), Answer(7, 1, "wrong"),
]  # fmt: skip


def test_units_that_end_alike_at_every_seed_are_counted() -> None:
    lines = same_answer.table(FOUND).splitlines()
    assert same_answer.alike(FOUND) == [4]
    assert [line.split()[2] for line in lines[1:4]] == ["yes", "no", "no"]
    assert lines[2].endswith("1 bounded (0), 1 inconclusive (1)")
    assert lines[-2:] == [
        "1 of 3 units: the same answer at every seed",
        "left open, wrong or broken: 7 at 1 (wrong)",
    ]


def run(monkeypatch: pytest.MonkeyPatch, out: Path, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["same_answer.py", "--units", "4-5", "--seeds", "0-1", "--out", str(out), *words])
    return same_answer.main()


def test_what_is_there_is_not_derived_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, asked = tmp_path / "of" / "answers.jsonl", list[same_answer.Asked]()

    def answer(each: same_answer.Asked, limit: float, allowance: int) -> Answer:
        asked.append(each)
        return Answer(*each, "exact")

    monkeypatch.setattr(same_answer, "answer", answer)
    assert run(monkeypatch, out, "--table", "--least", "1") == 1
    assert not asked
    assert run(monkeypatch, out, "--least", "2") == 0
    text = out.read_text()
    out.write_text(text[:-20])  # a process that was killed
    assert run(monkeypatch, out, "--least", "2") == 0
    assert asked == [(4, 0), (4, 1), (5, 0), (5, 1), (5, 1)]
    assert out.read_text() == text
    assert run(monkeypatch, out, "--least", "3") == 1


def test_an_answer_says_how_it_ended_and_what_is_open() -> None:
    """Integers, which no order of the lanes and no step shows."""
    first, other = (same_answer.answer((51004, seed)) for seed in (0, 1))
    assert (first.ended, first.open) == (other.ended, other.open) == ("exact", ())
    assert {change.partition(":")[0] for change in first.written} == {"step", "order"}
    assert first.work > 0
    assert first.vectors > 0
