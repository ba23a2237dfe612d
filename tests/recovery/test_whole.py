"""A run of all random architectures goes on where it was interrupted, by the same sources only."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import whole
from outcomes import Outcome

UNMET = 4600
"""The first seed that no search had met when the record began anew."""


def derive(seeds: range) -> list[Outcome]:
    """What such a run may come to, without deriving anything."""
    ends = [("recovered", "exact"), ("recovered", "bounded"), ("inconclusive", ""), ("stopped", "")]
    odd = {203: ("wrong", "exact"), 204: ("left open", "bounded")}
    chosen = [odd.get(seed, ends[seed % 4]) for seed in seeds]
    return [
        Outcome(f"seed_{seed}", "fused", verdict, status, seconds=float(seed % 7))
        for seed, (verdict, status) in zip(seeds, chosen, strict=True)
    ]


def test_finished_hundreds_are_not_run_again(tmp_path: Path) -> None:
    record, asked = tmp_path / "of" / "all.jsonl", []

    def counted(seeds: range) -> list[Outcome]:
        asked.append(seeds)
        return derive(seeds)

    assert len(list(whole.sit(record, 250, "abc", counted, time.monotonic() + 60))) == 3
    text = record.read_text()
    record.write_text(text[:-20])  # a process that was killed
    said = list(whole.sit(record, 250, "abc", counted, time.monotonic() + 60))
    assert said == ["200-249: 12 exact, 13 bounded, 1 left open, 12 inconclusive, 11 stopped, 1 wrong"]
    assert asked == [range(100), range(100, 200), range(200, 250), range(200, 250)]
    assert record.read_text() == text
    assert [row["name"] for each in whole.read(record) for row in each.bad] == ["seed_203", "seed_204"]


def test_a_run_begins_with_the_seeds_that_it_is_told(tmp_path: Path) -> None:
    record = tmp_path / "all.jsonl"
    said = list(whole.sit(record, 500, "abc", derive, time.monotonic() + 60, start=300))
    assert [line.partition("-")[0] for line in said] == ["300", "400", "0", "100", "200"]
    assert [each.first for each in whole.read(record)] == [0, 100, 200, 300, 400]


def test_the_record_that_is_kept_is_of_one_search_and_holds_nothing_wrong() -> None:
    hundreds = whole.read(whole.ROOT / "validation" / "recorded" / "random_units.jsonl")
    firsts = [each.first for each in hundreds]
    again = sum(first < UNMET for first in firsts)  # of the seeds that the search before met, from 0 on; none left out
    assert firsts == [*range(0, 100 * again, 100), *range(UNMET, UNMET + 100 * (len(firsts) - again), 100)]
    assert len({each.search for each in hundreds}) == 1
    assert all(len(each.ends) == whole.HUNDRED and set(each.ends) <= set(whole.ENDS) for each in hundreds)
    assert not [row for each in hundreds for row in each.bad]
    assert not set("".join(each.ends for each in hundreds)) & set("OWX")


def test_time_that_is_up_begins_nothing(tmp_path: Path) -> None:
    assert list(whole.sit(tmp_path / "all.jsonl", 250, "abc", derive, time.monotonic())) == []


def test_a_record_of_other_sources_is_not_continued(tmp_path: Path) -> None:
    record = tmp_path / "all.jsonl"
    list(whole.sit(record, 100, "abc", derive, time.monotonic() + 60))
    with pytest.raises(SystemExit, match=r"begun by other sources \(abc; these are def\)"):
        list(whole.sit(record, 200, "def", derive, time.monotonic() + 60))


def test_the_table_counts_by_kind_and_by_lanes(tmp_path: Path) -> None:
    record = tmp_path / "all.jsonl"
    list(whole.sit(record, 210, "abc", derive, time.monotonic() + 60))
    lines = whole.table(whole.read(record)).splitlines()
    rows = {line[:10].strip(): [int(word) for word in line[10:].split()] for line in lines[1:-2]}
    assert rows["all"] == [210, 52, 53, 1, 52, 51, 1, 0]
    for names in (whole.KINDS, [name for name in rows if name.startswith("K =")]):
        assert [sum(column) for column in zip(*(rows[name] for name in names if name in rows), strict=True)] == rows[
            "all"
        ]
    assert lines[-1] == "left open, wrong or broken: seed_203 (wrong), seed_204 (left open)"


def test_the_digest_is_of_what_decides() -> None:
    files = {path.relative_to(whole.ROOT).as_posix() for pattern in whole.SOURCES for path in whole.ROOT.glob(pattern)}
    assert {"src/mmaprobe/derivation/certify.py", "csrc/model/sum.hpp", "tests/recovery/judge.py"} <= files
    assert len(whole.digest()) == 16
