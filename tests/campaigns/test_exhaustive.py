"""The plan ``exhaustive``: every vector of every enumeration, once, or it is not green; what is not counted is said."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mmaprobe.campaigns import canaries, parts
from mmaprobe.campaigns.campaign import Campaign, put_together, read_shards, write_campaign
from mmaprobe.campaigns.canaries import check_canary
from mmaprobe.campaigns.parts import Shard
from mmaprobe.campaigns.plan import ValidationPlan, plan_from_text, read_plan
from mmaprobe.campaigns.shard import Exhausted, PlanWork, ShardResult, run_shard, work_of
from mmaprobe.campaigns.shard_file import write_shard
from mmaprobe.campaigns.summary_rows import campaign_json, campaign_lines
from mmaprobe.catalog import lookup
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.cli import main
from mmaprobe.devices.base import Device, Serial, open_device
from mmaprobe.errors import UsageError
from mmaprobe.evidence.store import Store
from mmaprobe.generators import generate
from mmaprobe.generators.enumerations import enumerations_of
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.validation import stream, validate

X86, GPU = "model:x86-64+intel", "model:sm_90a"
BYTES, WIDE = "x86.pmaddubsw", "x86.dpps"
NIBBLES = "mma.sync.aligned.m8n8k32.row.col.s32.s4.u4.s32"
SPARSE_F16 = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


class OnePair(Serial):
    """The device, but for one pair of codes in one lane: the last of pmaddubsw with A 0x81 and B 0x7f."""

    def _run_vectors(self, instruction: Instruction, vectors: Batch) -> Bits:
        found = super()._run_vectors(instruction, vectors)
        wrong = (vectors.a[:, 1] == 0x81) & (vectors.b[:, 1] == 0x7F)
        return found ^ wrong.astype(found.dtype)


def plan_of(*names: str) -> ValidationPlan:
    return replace(read_plan("exhaustive"), instructions=names)


def work(plan: ValidationPlan, dut: Device, seed: int = 1) -> PlanWork:
    return work_of(plan, dut, dut, seed)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of a few thousand vectors."""
    monkeypatch.setattr(parts, "PIECE", 10_000)


@pytest.fixture
def nibbles(small: None) -> ShardResult:
    return run_shard(work(plan_of(NIBBLES, SPARSE_F16), open_device(GPU)), Shard())


def campaign_of(result: ShardResult) -> Campaign:
    return put_together([("here", result)])


def test_parts_are_every_enumeration_without_gap_or_overlap(small: None) -> None:
    plan, device = plan_of("*s4*", "mma.sp*f16*"), open_device(GPU)
    every = work(plan, device).parts
    ends: dict[tuple[str, str], int] = {}
    for part in every:
        key = part.instruction.id, part.enumerated
        assert part.first == ends.get(key, 0)
        assert 0 < part.vectors <= 10_000
        ends[key] = part.first + part.vectors
    targets = {part.instruction for part in every}
    assert ends == {(made.id, each.name): each.size for made in targets for each in enumerations_of(made)}
    for of in (1, 3, 7):
        taken = [part.number for number in range(of) for part in Shard(number, of).parts(every)]
        assert sorted(taken) == list(range(len(every)))


def test_the_count_is_the_space_and_is_shown(nibbles: ShardResult, tmp_path: Path) -> None:
    campaign = campaign_of(nibbles)
    assert (campaign.exit_code, campaign.vectors, campaign.below) == (0, 24_576 + 48, ())
    said = "\n".join(campaign_lines(campaign))
    assert "pairs: 24,576 of 24,576 vectors, each once: 256 pairs of s4 and u4 x 32 lanes x 3 addends" in said
    assert "selections: 48 of 48 vectors, each once: 2 stored elements x 6 items of metadata x 4 chunks" in said
    assert f"not counted through: 2^32 pairs of f16 and f16 in each of 8 lanes ({SPARSE_F16})" in said
    assert "a fault rate" not in said
    told = campaign_json(campaign)["exhausts"]
    assert told[NIBBLES]["spaces"]["pairs"]["compared"] == told[NIBBLES]["spaces"]["pairs"]["vectors"] == 24_576
    assert told[SPARSE_F16]["left_out"][0] == "2^32 pairs of f16 and f16 in each of 8 lanes"
    write_campaign(campaign, tmp_path / "all")
    kept = Store.open(tmp_path / "all").parts[NIBBLES].validation
    assert kept["exhausts"]["spaces"]["pairs"]["vectors"] == 24_576


def test_what_is_counted_does_not_depend_on_the_shards(small: None, nibbles: ShardResult, tmp_path: Path) -> None:
    here = work(plan_of(NIBBLES, SPARSE_F16), open_device(GPU))
    for number in range(3):
        write_shard(run_shard(here, Shard(number, 3)), tmp_path)
    shards = read_shards([tmp_path])
    campaign = put_together(shards)
    assert (campaign.exit_code, campaign.exhausts) == (0, nibbles.exhausts)
    assert {row.instruction: row.families for row in campaign.rows} == {
        row.instruction: row.families for row in campaign_of(nibbles).rows
    }
    other = replace(shards[1][1], exhausts={})
    with pytest.raises(UsageError, match="is of another exhausts than"):
        put_together([shards[0], ("other", other), shards[2]])


def test_a_budget_that_ends_it_is_never_green(small: None) -> None:
    ticks = iter(range(10**6))
    result = run_shard(work(plan_of(NIBBLES), open_device(GPU)), Shard(), minutes=5 / 60, clock=lambda: next(ticks))
    campaign = campaign_of(result)
    assert 0 < campaign.vectors < 24_576
    assert (campaign.ended, campaign.exit_code, campaign.below) == ("budget", 4, (NIBBLES,))
    assert "vectors, NOT ALL: 256 pairs" in "\n".join(campaign_lines(campaign))


def test_one_vector_fewer_than_there_are_is_not_green(nibbles: ShardResult) -> None:
    more = Exhausted({"pairs": (24_577, "one more")}, ())
    campaign = campaign_of(replace(nibbles, exhausts={**nibbles.exhausts, NIBBLES: more}))
    assert (campaign.exit_code, campaign.compared, campaign.below) == (4, 1, (NIBBLES,))


def test_one_wrong_pair_in_one_lane_is_found() -> None:
    device = open_device(X86)
    found = validate(OnePair(device), device, lookup.instruction(BYTES), 131_072, 0, enumerated="pairs")
    assert found.mismatches == 1
    assert found.examples[0].recipe.startswith(f"{BYTES}/pairs.1/0/")


def test_what_is_asked_is_counted_once() -> None:
    device, made = open_device(GPU), lookup.instruction(NIBBLES)
    found = validate(device, device, made, 4_000, 0, enumerated="pairs", first=20_576)
    assert (found.vectors, dict(found.families)["pairs"].vectors) == (4_000, 4_000)
    with pytest.raises(UsageError, match="pairs has 24,576 vectors, not 24,577"):
        validate(device, device, made, 4_001, 0, enumerated="pairs", first=20_576)


def test_each_piece_is_asked_its_own_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    device, seen = open_device(GPU), []

    def noted(made: Instruction, family: str, seed: int, start: int, count: int) -> Batch:
        seen.extend(range(start, start + count))
        return generate(made, family, seed, start, count)

    monkeypatch.setattr(stream, "generate", noted)
    validate(device, device, lookup.instruction(NIBBLES), 4_000, 0, enumerated="pairs", first=20_000)
    assert {*seen} == {*range(20_000, 24_000)}


def test_what_is_too_wide_is_named() -> None:
    device = open_device(X86)
    absent = dict(work(plan_of(BYTES, WIDE), device).absent)
    assert absent == {WIDE: "nothing is counted through: 2^64 pairs of f32 and f32 in each of 4 lanes"}
    with pytest.raises(UsageError, match=r"2\^64 pairs of f32 and f32 .*; take a plan of generators, such as quick"):
        work(plan_of(WIDE), device)


def test_a_planted_difference_is_reported_by_what_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    device, asked = open_device(GPU), []

    def noted(*given: object, **more: object) -> object:
        asked.append((given[3], more["enumerated"]))
        return validate(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(canaries, "validate", noted)
    assert check_canary(device, device, lookup.instruction(SPARSE_F16), 1, "selections") > 0
    assert check_canary(device, device, lookup.instruction(NIBBLES), 1, "pairs") > 0
    assert asked == [(48, "selections"), (canaries.VECTORS, "pairs")]


@pytest.mark.parametrize(
    ("key", "value"),
    [("vectors", "7"), ("least_vectors", "7"), ("witnesses", "true"), ("generators", '["tie"]'), ("cores", "true")],
)
def test_an_exhaustive_plan_says_no_more(key: str, value: str) -> None:
    text = f'instructions = ["*"]\nexhaustive = true\nleast_instructions = 1\n{key} = {value}\n'
    with pytest.raises(UsageError, match=f"mine.toml: {key} goes without exhaustive = true"):
        plan_from_text(text, "mine", "mine.toml")


def test_a_plan_that_is_not_exhaustive_needs_vectors() -> None:
    with pytest.raises(UsageError, match="needs vectors, or witnesses = true, or exhaustive = true"):
        plan_from_text('instructions = ["*"]\nexhaustive = false\nleast_instructions = 1\n', "mine", "mine.toml")


def test_the_command_counts_through(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", GPU, GPU, NIBBLES, "--plan", "exhaustive", "--seed", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["exhausts"][NIBBLES]["spaces"]["pairs"]["compared"] == 24_576
    assert main(["validate", X86, X86, WIDE, "--plan", "exhaustive"]) == 2
    assert "nothing is counted through" in capsys.readouterr().err
