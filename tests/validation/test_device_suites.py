"""``pytest validation`` and ``pytest probes``: what compares nothing, or too little, is red and says why."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mmaprobe.campaigns.campaign import put_together
from mmaprobe.campaigns.parts import Shard
from mmaprobe.campaigns.plan import PLANS, plan_from_text, plan_names, read_plan, targets_of
from mmaprobe.campaigns.shard import run_shard, work_of
from mmaprobe.catalog.toml import shipped
from mmaprobe.devices.base import open_device
from mmaprobe.errors import UsageError

ROOT = Path(__file__).parents[2]
X86 = "model:x86-64+intel"
AMD = "model:x86-64+amd"
PAIR = ("--device", X86, "--ref", AMD)
"""Two that compute integers alike."""
PLAN = 'vectors = 500\ninstructions = ["x86.pmadd*"]\nleast_instructions = 2\n'
EMPTY = "print('mmaprobe 1 empty x86-64+intel text', flush=True); input()"


def pytest_says(*words: str) -> tuple[int, str]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:benchmark",
        "--seed",
        "1",
        *words,
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    return tmp_path / "mine.toml"


@pytest.mark.parametrize("suite", ["validation", "probes"])
def test_a_runner_without_its_gpu_is_red(suite: str) -> None:
    code, said = pytest_says(suite, "--device", "cuda:99", "--require-gpu")
    assert code == 4
    assert said.startswith("ERROR: --require-gpu: cuda:99: ")


def test_without_that_demand_it_skips() -> None:
    code, said = pytest_says("validation", "--device", "cuda:99", "-rs")
    assert (code, "SKIPPED [1]" in said, "cuda:99: " in said) == (0, True, True), said


@pytest.mark.sampled(1)
@pytest.mark.parametrize("suite", ["validation", "probes"])
def test_a_device_that_offers_nothing_is_red(suite: str, tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text(EMPTY)
    program = shlex.join([sys.executable, str(tmp_path / "empty.py")])
    code, said = pytest_says(suite, "--device", f"process:{program}")
    assert code == 4
    assert "offers no instruction: not offered by empty" in said


def test_a_model_without_a_reference_is_red() -> None:
    assert pytest_says("validation", "--device", "model:sm_90a") == (
        4, "ERROR: model:sm_90a is a model itself: name the reference with --ref\n\n",
    )  # fmt: skip
    code, said = pytest_says("validation", "--device", X86, "--ref", "model:sm_90a")
    assert code == 4
    assert "model:sm_90a has none of the plan's instructions: x86." in said


BAD = [
    (("x86.pmadd*", "x86.pmad"), "has no instruction 'x86.pmad'; did you mean x86.pmaddwd"),
    (("500", "500\nleast_vectors = 501"), "least_vectors is 501, more than its vectors"),
    (("500\n", "500\nminutes = 0\n"), "minutes is 0; it must be minutes, of more than 0"),
    (("500\n", '500\ngenerators = ["unifrom"]\n'), "no generator 'unifrom'; did you mean uniform"),
    (
        ("500\n", '500\ngenerators = ["tie", "ulp"]\n'),
        "of its generators tie, ulp none fits its instructions",
    ),
    (("least_instructions", "least_instruction"), "no plan has a key 'least_instruction'; did you mean"),
    (("least_instructions = 2", ""), "a plan needs least_instructions"),
    (("500", "0"), "vectors is 0; it must be"),
    (("500", ""), "mine.toml: "),
    (('["x86.pmadd*"]', '"x86.pmadd*"'), "instructions is 'x86.pmadd*'; it must be a list"),
]


@pytest.mark.parametrize(("change", "said"), BAD, ids=[said[:30] for _, said in BAD])
def test_a_plan_that_names_what_is_not_there_is_refused(plan: Path, change: tuple[str, str], said: str) -> None:
    plan.write_text(PLAN.replace(*change))
    with pytest.raises(UsageError) as refused:
        targets_of(read_plan(str(plan)), open_device(X86))
    assert said in str(refused.value)


def test_a_refused_plan_is_red_in_one_line(plan: Path) -> None:
    plan.write_text(PLAN.replace(*BAD[0][0]))
    code, told = pytest_says("validation", *PAIR, "--plan", str(plan))
    assert (code, BAD[0][1] in told, len(told.strip().splitlines())) == (4, True, 1)


@pytest.mark.parametrize("workers", [(), pytest.param(("-n", "1"), marks=pytest.mark.long)], ids=["", "xdist"])
def test_a_plan_says_what_must_be_compared_at_least(plan: Path, workers: tuple[str, ...]) -> None:
    plan.write_text(PLAN)
    assert pytest_says("validation", *PAIR, "--plan", str(plan), *workers)[0] == 0
    plan.write_text(PLAN.replace("= 2", "= 3"))
    code, told = pytest_says("validation", *PAIR, "--plan", str(plan), *workers)
    assert code == 1
    assert "2 instructions compared as plan mine wants; at least 3 must be" in told


def test_fewer_vectors_than_the_plan_demands_are_red(plan: Path) -> None:
    plan.write_text(PLAN + "minutes = 1e-9\n")
    code, told = pytest_says("validation", *PAIR, "--plan", str(plan))
    assert (code, "fewer vectors were compared than the plan demands" in told) == (1, True)


def test_a_mismatch_is_shown_as_validate_shows_it(plan: Path) -> None:
    """Bits, carets, what a retest found and the command that repeats it."""
    plan.write_text(PLAN.replace("x86.pmadd*", "x86.vdpbf16ps").replace("= 2", "= 1"))
    device = f"mutant:{X86.removeprefix('model:')}/VDPBF16PS[bf16,bf16->f32]/tree.to.rounding=RZ"
    code, told = pytest_says("validation", "--device", device, "--ref", X86, "--plan", str(plan))
    assert code == 1
    for line in (
        "mismatch (stable: 64 of 64 times): x86.vdpbf16ps/", "differs in ", "smallest, ", "again: mmaprobe replay x86",
        "device: as if rounding of the result of the sum RZ, not RNE",
    ):  # fmt: skip
        assert re.search(rf"(?m)^E? *{re.escape(line)}", told), (line, told)


@pytest.mark.long
def test_a_question_that_is_answered_otherwise_shows_the_vectors() -> None:
    device = f"mutant:{X86.removeprefix('model:')}/VDPBF16PS[bf16,bf16->f32]/tree.to.rounding=RZ"
    only = "result_rounding and x86.vdpbf16ps and not width"
    code, told = pytest_says("probes", "--device", device, "--ref", X86, "-k", only)
    assert code == 1, told
    assert re.search(r"(?m)^E? *mismatch \(stable: 64 of 64 times\): witness \d+ of the question \w+$", told), told
    assert re.search(r"(?m)^E? *differs in +\^", told), told


def test_no_generator_is_replaced_by_all(plan: Path) -> None:
    """One that fits some instructions of a plan is not run as every generator on the others."""
    plan.write_text(PLAN.replace("x86.pmadd*", "x86.v*").replace("500\n", '500\ngenerators = ["tie"]\n'))
    code, told = pytest_says("validation", *PAIR, "--plan", str(plan), "-k", "vpdpwssd]")
    assert (code, "none of the plan's generators fits x86.vpdpwssd" in told) == (1, True), told


@pytest.mark.parametrize("workers", [(), pytest.param(("-n", "1"), marks=pytest.mark.long)], ids=["", "xdist"])
def test_a_generator_that_fits_no_instruction_is_named_and_not_red(plan: Path, workers: tuple[str, ...]) -> None:
    """Floats' generators on an integers' device: what fits is compared, what does not is said."""
    plan.write_text(PLAN.replace("500\n", '500\ngenerators = ["tie", "uniform", "zlad"]\n'))
    code, told = pytest_says("validation", *PAIR, "--plan", str(plan), *workers)
    assert code == 0, told
    assert "2 instructions compared as plan mine wants" in told
    said = "plan mine: generators that fit none of these instructions (u8 x s8, s16 x s16), so not run: tie, zlad"
    assert told.count(said) == 1, told


def test_a_plan_whose_generators_all_fit_says_nothing_of_them(plan: Path) -> None:
    plan.write_text(PLAN.replace("500\n", '500\ngenerators = ["uniform"]\n'))
    code, told = pytest_says("validation", *PAIR, "--plan", str(plan))
    assert (code, "fit none" in told) == (0, False), told


@pytest.mark.parametrize("name", sorted(plan_names()))
def test_every_plan_of_ours_is_green_on_an_integers_device(name: str) -> None:
    few = re.sub(r"(?m)^(vectors|least_vectors) = .*$", r"\1 = 500", shipped(*PLANS)[f"{name}.toml"])
    few = few.replace('"*"', '"x86.pmadd*", "x86.vpdpb*"')
    device = open_device(X86)
    work = work_of(plan_from_text(few, name, name), device, device, 1)
    campaign = put_together([("here", run_shard(work, Shard()))])
    compared = 7 if name == "exhaustive" else 8  # pairs of 16 bits cannot be counted through
    assert (campaign.exit_code, campaign.compared, campaign.left) == (0, compared, 0)
    assert campaign.vectors >= (500 * 8 if "vectors = " in few else 8)


def test_a_selection_of_nothing_is_red() -> None:
    assert pytest_says("validation", *PAIR, "-k", "nothing_of_this_name")[0] == 5


@pytest.mark.parametrize("suite", ["validation", "probes"])
def test_a_device_that_contradicts_itself_is_no_expected_difference(suite: str, plan: Path, tmp_path: Path) -> None:
    """An entry of what is expected to differ hides no answers that change."""
    plan.write_text('vectors = 20_000\ninstructions = ["x86.dpps"]\nleast_instructions = 1\n')
    (tmp_path / "expected.toml").write_text('[[xfail]]\ninstruction = "x86.dpps"\nreason = "it is said so"\n')
    given = ("--ref", AMD, "--plan", str(plan), "--xfails-file", str(tmp_path / "expected.toml"))
    more = ("-k", "ordering or determinism or special") if suite == "probes" else ()
    code, said = pytest_says(suite, "--device", f"misbehaving:flaky?p=0.05&of={AMD}", *given, *more)
    assert code == 1, said
    assert "DeviceError: " in said
