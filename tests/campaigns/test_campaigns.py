"""Plans in shards: what is compared does not depend on how many there are, and nothing is merged that does not fit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import mmaprobe
from mmaprobe.campaigns import canaries, shard
from mmaprobe.campaigns.campaign import put_together, read_shards, write_campaign
from mmaprobe.campaigns.canaries import check_canary
from mmaprobe.campaigns.engines import EngineOptions, Order, WorkerDiedError, run_orders
from mmaprobe.campaigns.parts import Shard, parts_of, shard_named
from mmaprobe.campaigns.plan import ValidationPlan
from mmaprobe.campaigns.shard import PlanWork, run_shard, work_of
from mmaprobe.campaigns.shard_file import SHARDS, read_shard, shard_name, write_shard
from mmaprobe.campaigns.summary_rows import campaign_lines, summary_of_campaign
from mmaprobe.campaigns.verbs import CampaignOptions, carry_out
from mmaprobe.catalog import lookup
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.cli import main
from mmaprobe.devices.base import open_device
from mmaprobe.errors import InternalError, NotHereError, UsageError
from mmaprobe.evidence.cell_counts import coverage_of
from mmaprobe.evidence.files import json_text, sealed
from mmaprobe.evidence.store import Store
from mmaprobe.generators import families_for, plan
from mmaprobe.report.junit import to_junit
from mmaprobe.runs.kept import kept_summary
from mmaprobe.validation import validate
from mmaprobe.validation.summary import FamilyCount, Summary

X86 = "model:x86-64+intel"
DPPS, DOT = "x86.dpps", "x86.vpdpbusd"
WRONG = "mutant:x86-64+intel/DPPS[f32,f32->f32]/tree.x.to.rounding=RZ"
PLAN = ValidationPlan("mine", (DPPS, DOT), least_instructions=2, vectors=40_000, least_vectors=20_000, witnesses=True)


def work(plan: ValidationPlan = PLAN, dut: str = X86, seed: int = 3) -> PlanWork:
    return work_of(plan, open_device(dut), open_device(X86), seed)


def write_all(folder: Path, of: int, plan: ValidationPlan = PLAN, dut: str = X86) -> None:
    for number in range(of):
        write_shard(run_shard(work(plan, dut), Shard(number, of)), folder)


@pytest.fixture
def dated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")


def contents(folder: Path) -> dict[str, bytes]:
    """What lies in an evidence folder, without the shards it was made from."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and SHARDS not in path.parts
    }


@pytest.mark.parametrize("vectors", [1, 9_999, 10_000, 19_999, 20_000, 65_432, 10**9])
def test_parts_are_all_vectors_of_every_family_once(vectors: int) -> None:
    made = lookup.instruction(DOT)
    parts = parts_of(replace(PLAN, vectors=vectors, witnesses=False), [made], lambda _: None)
    assert [part.first for part in parts[1:]] == [part.first + part.vectors for part in parts[:-1]]
    assert sum(part.vectors for part in parts) == vectors
    ends = dict.fromkeys(families_for(made), 0)
    for part in parts:
        for family, start, count in plan(made, part.vectors, first=part.first):
            assert start == ends[family]
            ends[family] = start + count
    assert sum(ends.values()) == max(vectors, len(ends))


def test_a_part_compares_what_follows_the_one_before() -> None:
    device, made = open_device(X86), lookup.instruction(DPPS)
    whole = dict(validate(device, device, made, 5_000, 1).families)
    head, tail = (
        dict(validate(device, device, made, n, 1, first=at).families) for n, at in ((3_000, 0), (2_000, 3_000))
    )
    assert {name: head[name] + tail[name] for name in whole} == whole


def test_shards_share_the_parts_out() -> None:
    every = work().parts
    for of in (1, 2, 3, len(every)):
        taken = [part.number for number in range(of) for part in Shard(number, of).parts(every)]
        assert sorted(taken) == [part.number for part in every]
    assert [part.witnesses for part in every[:2]] == [True, True]


@pytest.mark.parametrize(
    "text", ["", "3", "3/", "/3", "-1/3", "3/3", "4/3", "0/0", "1/1000000", "0x1/2", "1/2/3", "¹/2"]
)
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        shard_named(text)


def test_more_shards_than_parts_are_refused() -> None:
    with pytest.raises(UsageError, match="plan mine has 6 parts here: at most so many shards"):
        run_shard(work(), Shard(0, 7))


def test_the_whole_does_not_depend_on_the_shards(tmp_path: Path, dated: None) -> None:
    found = []
    for of in (1, 2, 5):
        write_all(tmp_path / str(of), of, dut=WRONG)
        campaign = put_together(read_shards([tmp_path / str(of)]))
        write_campaign(campaign, tmp_path / f"all{of}")
        found.append(contents(tmp_path / f"all{of}"))
        assert campaign.exit_code == 1
    assert found[0] == found[1] == found[2]
    store = Store.open(tmp_path / "all1")
    assert store.parts[DPPS].mismatch_count > 0
    cells = coverage_of(store.parts[DPPS].validation)
    parts = [part for part in work().parts if part.instruction.id == DPPS and not part.witnesses]
    assert cells.sampled == sum(
        validate(
            open_device(X86), open_device(X86), part.instruction, part.vectors, 3, first=part.first
        ).coverage.sampled
        for part in parts
    )
    assert (len(parts), cells == campaign.rows[0].summary.coverage) == (2, True)
    assert len(store.parts[DPPS].mismatches) == 4
    assert store.parts[DOT].mismatch_count == 0


def test_a_mismatch_is_red_everywhere(tmp_path: Path) -> None:
    result = run_shard(work(dut=WRONG), Shard())
    campaign = put_together([("here", result)])
    assert (result.exit_code, campaign.exit_code) == (1, 1)
    assert campaign.mismatches == result.mismatches > 0
    rows = {row.instruction: row for row in campaign.rows}
    assert rows[DPPS].exit_code == 1
    assert rows[DPPS].vectors > 40_000
    again = read_shard(write_shard(result, tmp_path))
    assert (again.mismatches, again.exit_code) == (result.mismatches, 1)
    assert put_together([("there", again)]).rows == tuple(
        replace(row, summary=replace(row.summary, seconds=0.0)) for row in campaign.rows if row.summary is not None
    )


CHANGES = [
    (lambda path: path.unlink(), "1 of 3 shards is missing: 1/3; run each: mmaprobe validate ... --shard 1/3"),
    (lambda path: (path.parent / "again.shard.json").write_bytes(path.read_bytes()), "shard 1/3 is there twice"),
    (lambda path: path.write_bytes(path.read_bytes()[:-200]), "truncated, or not JSON"),
    (lambda path: path.write_text(path.read_text().replace('"seed": 3', '"seed": 4', 1)), "is not that of the rest"),
]


@pytest.mark.parametrize(("change", "said"), CHANGES, ids=["missing", "twice", "truncated", "tampered"])
def test_shards_that_are_not_whole_are_refused(tmp_path: Path, change: object, said: str) -> None:
    write_all(tmp_path, 3)
    change(tmp_path / shard_name(Shard(1, 3)))  # type: ignore[operator]
    with pytest.raises(UsageError, match=said):
        put_together(read_shards([tmp_path]))


@pytest.mark.parametrize(("second", "goes"), [("process:./a", True), ("process:./b", False)])
def test_shards_of_two_programs_do_not_go_together(tmp_path: Path, second: str, goes: bool) -> None:
    """Of GPUs and models the place may differ, of a program nobody knows what else does."""
    write_all(tmp_path, 2)
    for number, name in enumerate(("process:./a", second)):
        identity = {"architecture": "acme1", "silicon": "yes"}
        rewritten(tmp_path / shard_name(Shard(number, 2)), device={"name": name, "identity": identity})
    if goes:
        assert put_together(read_shards([tmp_path])).device.name == "process:./a"
        return
    with pytest.raises(UsageError, match=r"is of device process:\./b \(acme1, silicon\), .* of process:\./a \(acme1"):
        put_together(read_shards([tmp_path]))


@pytest.mark.parametrize(("place", "version", "said"), [
    ((), 7, "is of version 7 of its rule, and this package's is version 1: take the package that compared it"),
    ((), None, "is of no version of its rule, and this package's is version 1"),
    (("tiles",), 9, "is of version 9 of its rule, and this package's is version 2"),
])  # fmt: skip
def test_a_shard_of_other_rules_is_not_counted_by_these(
    tmp_path: Path, place: tuple[str, ...], version: int | None, said: str
) -> None:
    """Its counts would go on under the versions of this package, and its recipes name other vectors."""
    plan = ValidationPlan("tiles", ("mma.m16n8k16.f32.f16.f16.f32",), least_instructions=1, vectors=2000)
    model = open_device("model:sm_90a")
    shard = write_shard(run_shard(work_of(plan, model, model, 3), Shard()), tmp_path)
    document = json.loads(shard.read_text())
    (part,) = (each for each in document["done"] if "cancel" in each["compared"]["families"])
    rule = part["compared"]["families"]["cancel"]
    for name in place:
        rule = rule[name]
    rule |= {"version": version}
    if version is None:
        del rule["version"]
    shard.write_text(json_text(sealed(document)))
    with pytest.raises(UsageError, match=said):
        read_shard(shard)


def rewritten(path: Path, **changes: object) -> None:
    """A shard's file with other values, sealed anew."""
    document = json.loads(path.read_text()) | changes
    path.write_text(json_text(sealed(document)))


OTHERS = [
    ({"seed": 4}, "is of another seed than"),
    ({"version": "0.0.1"}, "is of another version than .*: '0.0.1', not"),
    ({"plan": {"name": "other"}}, "is of another plan than"),
    ({"parts": "0" * 64}, "is of another parts than"),
    ({"of": 4}, "names part|is one of 4 shards"),
    ({"device": {"name": "cuda:0", "identity": {"architecture": "sm_90a"}}}, r"is of device cuda:0 \(sm_90a, "),
    (
        {"device": {"name": X86, "identity": {"architecture": "x86-64+intel", "silicon": "no, emulated by sde 9"}}},
        r"is of device model:x86-64\+intel \(x86-64\+intel, emulated\), .*\(x86-64\+intel, model\)",
    ),
    ({"reference": {"name": X86, "identity": {"architecture": "x86-64+intel", "parameters": "x"}}}, "other|different"),
    ({"absent": [["x86.none", "no"]]}, "lacks other instructions"),
    ({"canaries": {}, "done": []}, "some are nowhere"),
    ({"done": [{"part": 2, "instruction": DPPS}]}, "names part 2, which is none of shard 1/3"),
    ({"schema": 99}, "this package reads up to 1"),
    ({"kind": "mmaprobe evidence"}, "kind is 'mmaprobe evidence'"),
    ({"ended": "bored"}, "ended is 'bored'"),
    ({"canaries": {DPPS: -1}}, "must not be negative"),
    ({"canaries": {}}, "has none of x86.dpps: that a difference would be reported is not shown"),
    ({"canaries": {DPPS: 0}}, "has none of x86.dpps: that a difference would be reported is not shown"),
    ({"canaries": {DPPS: 9, DOT: 9, "x86.pmaddwd": 1}}, "is of an instruction that the shard did not compare"),
    ({"left": [[1]]}, "must be a pair"),
    ({"seconds": "long"}, "must be a number of seconds"),
]


@pytest.mark.parametrize(("changes", "said"), OTHERS, ids=["-".join(changes) for changes, _ in OTHERS])
def test_shards_of_another_campaign_are_refused(tmp_path: Path, changes: dict[str, object], said: str) -> None:
    write_all(tmp_path, 3)
    rewritten(tmp_path / shard_name(Shard(1, 3)), **changes)
    with pytest.raises(UsageError, match=said):
        put_together(read_shards([tmp_path]))


def test_a_shard_is_written_once(tmp_path: Path) -> None:
    result = run_shard(work(), Shard(0, 2))
    path = write_shard(result, tmp_path)
    before = path.read_bytes()
    with pytest.raises(UsageError, match="is there already, and such a file never changes"):
        write_shard(result, tmp_path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_budget_that_ends_it_is_an_outcome_of_its_own(tmp_path: Path) -> None:
    ticks = iter(range(10**6))
    spent = run_shard(work(), Shard(), minutes=6 / 60, clock=lambda: next(ticks))
    assert spent.ended == "budget"
    assert spent.left
    campaign = put_together([("here", spent)])
    assert campaign.exit_code == 4
    assert DOT in campaign.below
    assert any(line.startswith("the budget was spent: ") for line in campaign_lines(campaign))
    enough = replace(PLAN, least_vectors=1)
    ticks = iter(range(10**6))
    some = put_together([("here", run_shard(work(enough), Shard(), minutes=38 / 60, clock=lambda: next(ticks)))])
    assert (some.ended, some.exit_code) == ("budget", 0), list(campaign_lines(some))
    assert write_campaign(some, tmp_path / "some").finished
    assert main(["evidence", "verify", str(tmp_path / "some")]) == 0
    for number, short in enumerate((campaign, replace(some, plan=some.plan | {"least_instructions": 3}))):
        assert short.exit_code == 4
        assert not write_campaign(short, tmp_path / str(number)).finished
        assert main(["evidence", "verify", str(tmp_path / str(number))]) == 4
        assert kept_summary(Store.open(tmp_path / str(number))).exit_code == 4


def test_a_shard_without_a_seed_is_refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would draw its own, and none could be merged."""
    monkeypatch.delenv("MMAPROBE_SEED", raising=False)
    assert main(["validate", X86, X86, DPPS, "--plan", "quick", "--shard", "0/2"]) == 2
    assert "a shard needs a seed, the same for all of them: --seed N" in capsys.readouterr().err


def test_what_was_not_reached_is_not_called_equal() -> None:
    """In no row, nor in JUnit: of one instruction its vectors, of the other none."""
    result = run_shard(work(), Shard())
    some = tuple(part for part in result.done if part.instruction == DPPS)
    left = tuple((part.number, part.instruction) for part in result.done if part.instruction == DOT)
    campaign = put_together([("here", replace(result, done=some, left=left, ended="budget"))])
    summary = summary_of_campaign(campaign)
    assert {row.instruction: row.outcome for row in summary.rows} == {DPPS: "equal", DOT: "inconclusive"}
    assert (campaign.exit_code, summary.exit_code) == (4, 4)
    assert not any("each instruction alone" in line for line in campaign_lines(campaign))
    assert to_junit(summary).count("<error") == 2


def test_fewer_instructions_than_the_plan_wants_are_red_in_every_report() -> None:
    plan = replace(PLAN, instructions=(DPPS,), states=True, vectors=1_000, least_vectors=1_000, witnesses=False)
    campaign = put_together([("here", run_shard(work(plan), Shard()))])
    summary = summary_of_campaign(campaign)
    assert (campaign.compared, len(summary.rows) > 2) == (1, True)
    assert (campaign.exit_code, summary.exit_code) == (4, 4)
    assert "1 instruction compared as the plan wants; at least 2 must be" in to_junit(summary)


def test_an_instruction_that_cannot_be_asked_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(dut: object, ref: object, made: Instruction, seed: int, enumerated: str) -> int:
        if made.id == DPPS:
            raise NotHereError("no compiler takes it")
        return 1

    monkeypatch.setattr(shard, "check_canary", broken)
    campaign = put_together([("here", run_shard(work(), Shard()))])
    rows = {row.instruction: row for row in campaign.rows}
    assert (rows[DPPS].error, rows[DPPS].exit_code, rows[DOT].exit_code) == ("no compiler takes it", 3, 0)
    assert campaign.exit_code == 4


def test_nothing_compared_is_never_green() -> None:
    ticks = iter(range(10**6))
    nothing = put_together([("here", run_shard(work(), Shard(), minutes=1e-9, clock=lambda: next(ticks)))])
    assert (nothing.vectors, nothing.exit_code, nothing.compared) == (0, 4, 0)


def test_a_planted_difference_that_is_not_reported_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    device, made = open_device(X86), lookup.instruction(DPPS)
    assert check_canary(device, device, made, 1) > 0

    def blind(*given: object, **more: object) -> Summary:
        count = FamilyCount(100, 0)
        return Summary(DPPS, "a", "b", 0, 100, 100, 0, (("tie", count),), (), 0.0)

    monkeypatch.setattr(canaries, "validate", blind)
    with pytest.raises(InternalError, match=r"was planted in model.* and not reported"):
        check_canary(device, device, made, 1)


def test_an_interrupt_while_something_is_planted_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*given: object, **more: object) -> Summary:
        return Summary(DPPS, "a", "b", 0, 100, 0, 0, (), (), 0.0, interrupted=True)

    monkeypatch.setattr(canaries, "validate", stopped)
    device = open_device(X86)
    with pytest.raises(KeyboardInterrupt):
        check_canary(device, device, lookup.instruction(DPPS), 1)


def test_each_part_is_asked_its_own_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []

    def noted(*given: object, first: int, **more: object) -> Summary:
        asked.append((first, int(str(given[3]))))
        return validate(*given, first=first, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(shard, "validate", noted)
    run_shard(work(replace(PLAN, instructions=(DPPS,), least_instructions=1)), Shard())
    assert asked == [(0, 10_000), (10_000, 30_000)]


def test_a_canary_is_planted_where_the_reference_is_no_model() -> None:
    device, made = open_device(X86), lookup.instruction(DPPS)
    vectors = check_canary(device, canaries.Serial(device), made, 1)
    assert 0 < vectors < canaries.VECTORS


@pytest.mark.parametrize("name", ["x86.vpdpbusd", "x86.vfmadd.f64", "x86.vdpbf16ps", "x86.pmaddwd"])
def test_canaries_of_all_kinds_are_reported(name: str) -> None:
    device = open_device(X86)
    assert check_canary(device, device, lookup.instruction(name), 1) > 0


@pytest.mark.parametrize(
    "name", ["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"]
)
def test_canaries_of_tiles_are_reported(name: str) -> None:
    device = open_device("model:sm_90a")
    assert check_canary(device, device, lookup.instruction(name), 1) > 0


@pytest.mark.long
def test_an_engine_of_processes_makes_the_same(tmp_path: Path, dated: None) -> None:
    options = CampaignOptions(seed=3, out=tmp_path / "two", shards=4, engine=EngineOptions(workers=2))
    campaign = carry_out(X86, X86, PLAN, options)
    write_all(tmp_path / "one", 1)
    write_campaign(put_together(read_shards([tmp_path / "one"])), tmp_path / "alone")
    assert campaign.exit_code == 0
    assert contents(tmp_path / "two") == contents(tmp_path / "alone")


def test_going_on_takes_what_is_there(tmp_path: Path, dated: None) -> None:
    out = tmp_path / "out"
    write_all(tmp_path / "all", 3)
    write_shard(read_shard(tmp_path / "all" / shard_name(Shard(1, 3))), out / SHARDS)
    with pytest.raises(UsageError, match="holds a campaign already; go on with --resume"):
        carry_out(X86, X86, PLAN, CampaignOptions(seed=3, out=out))
    with pytest.raises(UsageError, match="was begun with another seed"):
        carry_out(X86, X86, PLAN, CampaignOptions(seed=4, out=out, resume=True))
    with pytest.raises(UsageError, match="was begun with another plan"):
        carry_out(X86, X86, replace(PLAN, states=True), CampaignOptions(out=out, resume=True))
    campaign = carry_out(X86, X86, PLAN, CampaignOptions(out=out, resume=True))
    assert (campaign.seed, campaign.exit_code) == (3, 0)
    assert len(list((out / SHARDS).iterdir())) == 3
    assert carry_out(X86, X86, PLAN, CampaignOptions(out=out, resume=True)).exit_code == 0


@pytest.mark.long
def test_a_worker_that_dies_loses_its_shard_alone(tmp_path: Path) -> None:
    killer = tmp_path / "killer.py"
    killer.write_text(
        "import os, pathlib, signal\n"
        "def dot(a, b):\n"
        f"    once = pathlib.Path({str(tmp_path / 'once')!r})\n"
        "    if not once.exists():\n"
        "        once.touch()\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return (a * b).sum(-1)\n"
    )
    name = f"function:{killer}:dot?k=4"
    made = open_device(name).instructions()[0].id
    plan = ValidationPlan("dies", (made,), 1, vectors=60_000, least_vectors=60_000)
    folder = tmp_path / "shards"
    orders = [Order(plan, name, name, 1, Shard(number, 2), str(folder)) for number in range(2)]
    done: list[str] = []
    run_orders(orders, EngineOptions(workers=2), done.append)
    assert sorted(done) == [str(folder / shard_name(Shard(number, 2))) for number in range(2)]
    assert put_together(read_shards([folder])).exit_code == 0
    assert issubclass(WorkerDiedError, mmaprobe.DeviceError)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "dusk"}, "no engine 'dusk'; did you mean dask"),
        ({"workers": 0}, "0 workers; there must be 1 to"),
        ({"scheduler": "tcp://x"}, "it goes with --engine dask"),
        ({"partition": "gpu"}, "it goes with --engine slurm"),
    ],
)
def test_what_no_engine_takes_is_refused(changes: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        EngineOptions(**changes)  # type: ignore[arg-type]


def test_the_command_runs_shards_and_merges_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f'instructions = ["{DPPS}"]\nvectors = 30_000\nleast_instructions = 1\nreference = "{X86}"\n')
    words = ["validate", X86, "--plan", str(file), "--seed", "5", "--out", str(tmp_path / "shards")]
    assert [main([*words, "--shard", f"{number}/2"]) for number in range(2)] == [0, 0]
    assert "shard 1/2 of plan mine: " in capsys.readouterr().out
    assert main([*words, "--shard", "1/2"]) == 2
    assert (
        main(["merge", str(tmp_path / "shards"), "--out", str(tmp_path / "all"), "--junit", str(tmp_path / "j.xml")])
        == 0
    )
    said = capsys.readouterr().out
    assert "0 of 30,000: a fault rate above 3/30,000 of such vectors is excluded at 95 %" in said
    assert "<testcase" in (tmp_path / "j.xml").read_text()
    assert " cells that the formats can reach, by " in said
    assert "dead cells, which no sampled vector reached: " in said
    assert main(["merge", str(tmp_path / "shards" / shard_name(Shard(0, 2))), "--out", str(tmp_path / "half")]) == 2
    assert not (tmp_path / "half").exists()
    assert main(["validate", WRONG, "--plan", str(file), "--seed", "5", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["exit_code"] == 1
    assert document["coverage"][0].startswith("coverage: ")
    row = document["instructions"][0]["coverage"]
    assert row["hit"] + len(row["dead"]) == row["reachable"] == sum(map(len, row["cells"].values()))


WRONG_CALLS = [
    (["--plan", "qick"], "no plan 'qick'; did you mean quick"),
    (["--plan", "quick", "--vectors", "7"], "--vectors goes without --plan"),
    (["--shard", "0/2"], "--shard goes with --plan"),
    (["--plan", "quick", "--budget", "-1"], "--budget is -1"),
    (["--plan", "quick", "--resume"], "--resume needs the folder"),
    (["--plan", "quick", "--shard", "2/2"], "shard 2 of 2; it must be 0 to 1"),
    (["--plan", "quick", "--engine", "dusk"], "no engine 'dusk'"),
    (["--plan", "quick", "--workers", "2"], "need a folder: --out FOLDER"),
    (["--plan", "quick", "--shard", "0/2", "--workers", "2"], "--workers goes without --shard"),
    (["--plan", "quick", "--shard", "0/2", "--junit", "j.xml"], "--junit goes without --shard"),
]


@pytest.mark.parametrize(("words", "said"), WRONG_CALLS, ids=[said[:24] for _, said in WRONG_CALLS])
def test_wrong_words_are_one_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", X86, X86, DPPS, "--seed", "1", *words]) == 2
    told = capsys.readouterr().err.strip()
    assert said in told
    assert len(told.splitlines()) == 1
