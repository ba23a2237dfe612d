"""The pytest plug-in: its options, the suites that it begins, what is expected to differ, a GPU for each worker."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mmaprobe.campaigns.campaign import put_together
from mmaprobe.campaigns.parts import Shard
from mmaprobe.campaigns.plan import ValidationPlan
from mmaprobe.campaigns.shard import run_shard, work_of
from mmaprobe.catalog import lookup
from mmaprobe.devices import listed
from mmaprobe.devices.base import open_device
from mmaprobe.devices.replay import record
from mmaprobe.errors import UsageError
from mmaprobe.evidence.corpus import write_corpus
from mmaprobe.generators import generate
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.files import to_text
from mmaprobe.parameters.lookup import load
from mmaprobe.pytest_plugin import expected, pytest_xdist_auto_num_workers, workers

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
X86, AMD = "model:x86-64+intel", "model:x86-64+amd"
PAIR = ("--device", X86, "--ref", AMD, "--plan", "mine.toml")
PLAN = 'instructions = ["x86.pmadd*"]\nvectors = 1\nleast_instructions = 2\n'
PLAIN = """
def test_device(device, seed):
    assert (device.name, seed) == ("model:sm_90a", 7)

def test_reference(reference):
    assert reference.name == "model:sm_80"
"""
BEGINS = """
from mmaprobe.pytest_plugin.suites import Least, begin_suite, reference_of

def pytest_sessionstart(session):
    suite = begin_suite(session.config, "probes")
    reference_of(session.config, suite.device)
    Least(session.config, 2, "were asked")
"""
SUITE = """
import pytest
from mmaprobe.pytest_plugin.suites import answered
pytestmark = pytest.mark.suite("probes")

@pytest.mark.parametrize("question", ["one", "two"])
def test_question(instruction, question, record_property):
    answered(record_property, instruction)
    assert (instruction.id, question) != ("x86.pmaddwd", "two"), "it differs"

def test_that_breaks(instruction):
    if instruction.id == "x86.pmaddwd":
        raise RuntimeError("the device is gone")
"""


def says(pytester: pytest.Pytester, *options: str) -> tuple[int, str]:
    """Exit code and words of a session in this process."""
    done = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--seed", "7", *options)
    return int(done.ret), done.stdout.str() + done.stderr.str()


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with a suite of two instructions, of which one answers a question otherwise and breaks a test."""
    pytester.makeconftest(BEGINS)
    pytester.makepyfile(test_it=SUITE)
    Path("mine.toml").write_text(PLAN)
    return pytester


def test_fixtures_follow_the_options(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(PLAIN)
    code, said = says(pytester, "--device", "model:sm_90a", "--ref", "model:sm_80")
    assert code == 0, said


@pytest.mark.parametrize(("options", "message"), [
    (("--device", "cdua:0"), "unknown device"), (("--ref", "modle:sm_80"), "--ref modle:sm_80: unknown device"),
    (("--require-gpu",), "--require-gpu needs --device cuda:N or hip:N, not cpu"),
    (("--xfails-file", "absent.toml"), "absent.toml: No such file or directory"),
])  # fmt: skip
def test_wrong_options_end_the_run(pytester: pytest.Pytester, options: tuple[str, ...], message: str) -> None:
    pytester.makepyfile(PLAIN)
    code, said = says(pytester, *options)
    assert (code, message in said) == (4, True), said


@pytest.mark.long
def test_the_probes_refuse_a_device_that_cannot_be_opened_in_one_line() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:benchmark", "probes"]
    command += ["--device", "model:sm_9"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 4
    assert (done.stderr + done.stdout).strip().startswith("ERROR: unknown architecture 'sm_9'; did you mean")


ITSELF = [
    ("model:sm_90a", "model:sm_90a", "--ref model:sm_90a is the device itself"),
    ("model:H200", "model:sm_90a", "--ref model:sm_90a is the device itself"),
    ("model:sm_80", "model:./mine.toml", "--ref model:./mine.toml is the device itself"),
    ("cpu", "cpu", "--ref cpu is the device itself"),
    ("model:sm_90a", "", "model:sm_90a is a model itself: name the reference with --ref"),
]


@pytest.mark.parametrize(("device", "reference", "said"), ITSELF)
def test_a_device_is_not_its_own_reference(suite: pytest.Pytester, device: str, reference: str, said: str) -> None:
    shipped = replace(load("sm_80"), source="copied by hand")  # other words, the same datapaths
    Path("mine.toml").write_text(to_text(shipped))
    code, told = says(suite, "--device", device, *["--ref", reference] * bool(reference))
    assert (code, said in told, len(told.strip().splitlines())) == (4, True, 1), told


def test_ids_are_short_in_every_suite_and_a_state_is_marked(suite: pytest.Pytester) -> None:
    Path("mine.toml").write_text(
        'instructions = ["mma.m16n8k16*f32.f16.f16.f32", "wgmma*m64n8k16*f32.f16.f16"]\nvectors = 1\n'
        "least_instructions = 1\n"
    )
    words = ("--device", "model:sm_90a", "--ref", "model:sm_80", "--plan", "mine.toml", "--collect-only")
    told = says(suite, *words, "-k", "mma.m16n8k16.f32.f16.f16.f32-one]")[1]
    assert "test_it.py::test_question[mma.m16n8k16.f32.f16.f16.f32-one]" in told
    assert "wgmma" not in told
    Path("mine.toml").write_text(PLAN.replace("pmadd*", "vfmadd.f32") + "states = true\n")
    told = says(suite, *PAIR, "--collect-only", "-m", "not control_state")[1]
    assert [line for line in told.splitlines() if "[" in line] == [
        f"test_it.py::{name}" for name in (
            "test_question[x86.vfmadd.f32-one]", "test_question[x86.vfmadd.f32-two]", "test_that_breaks[x86.vfmadd.f32]"
        )
    ]  # fmt: skip


def test_a_suite_whose_folder_was_not_named_says_so(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE)
    code, told = says(pytester, *PAIR[:4])
    assert (code != 0, "the suite probes begins where its folder is named: pytest probes" in told) == (True, True)


def entry(kind: str, **said: str) -> str:
    return f"[[{kind}]]\n" + "".join(f'{key} = "{value}"\n' for key, value in said.items())


DIFFERS = entry("xfail", instruction="x86.pmaddwd", question="t*", reason="a known one")
BROKEN = "it is known to break; issue 7"


def expecting(suite: pytest.Pytester, text: str, *words: str) -> tuple[int, str]:
    Path("known.toml").write_text(text)
    return says(suite, *PAIR, "--xfails-file", "known.toml", "-rA", *words)


def test_what_is_expected_to_differ_is_not_red_and_says_why(suite: pytest.Pytester) -> None:
    code, told = expecting(suite, DIFFERS, "-k", "question")
    assert (code, "3 passed" in told, "1 xfailed" in told) == (0, True, True), told
    assert "XFAIL test_it.py::test_question[x86.pmaddwd-two] - a known one (known.toml: [[xfail]] 1)" in told
    assert "2 instructions were asked" in told


def test_a_device_that_fails_is_no_expected_difference(suite: pytest.Pytester) -> None:
    code, told = expecting(suite, DIFFERS + entry("xfail", instruction="x86.pmaddwd", reason=BROKEN), "-k", "breaks")
    assert (code, "FAILED test_it.py::test_that_breaks[x86.pmaddwd] - RuntimeError" in told) == (1, True), told


def test_what_is_skipped_says_why(suite: pytest.Pytester) -> None:
    skipped = entry("skip", instruction="*pmaddw?", suite="probes", reason=BROKEN)
    code, told = expecting(suite, skipped, "-k", "breaks or ubsw")
    assert (code, f"{BROKEN} (known.toml: [[skip]] 1)" in told) == (1, True), told  # one instruction is left, of two
    assert "1 instruction were asked; at least 2 must be" in told
    assert "FAILED" not in told


def test_an_expected_difference_that_is_gone_is_red(suite: pytest.Pytester) -> None:
    code, told = expecting(suite, DIFFERS.replace("t*", "*"), "-k", "question")
    assert (code, "FAILED test_it.py::test_question[x86.pmaddwd-one] - [XPASS(strict)]" in told) == (1, True)


STALE = [
    ("x86.pmaddwdx", "", True), ("x86.pmaddwd{daz}", "", True), ("x86.dpps", "probes", True),
    ("x86.dpps", "validation", False), ("x86.pmadd*", "", False),
]  # fmt: skip


@pytest.mark.parametrize(("instruction", "about", "red"), STALE)
def test_an_entry_without_a_test_is_red(suite: pytest.Pytester, instruction: str, about: str, red: bool) -> None:
    """But for one of another suite; what ``-k`` leaves out counts as there."""
    said = {"suite": about} if about else {}
    code, told = expecting(suite, entry("skip", instruction=instruction, reason="r", **said), "-k", "nothing")
    assert f"known.toml: [[skip]] 1: {instruction} names no test of this session" in told or not red, told
    assert "names no test" not in told or red, told
    assert code == 5  # nothing ran


def test_an_entry_without_a_test_turns_green_into_red(suite: pytest.Pytester) -> None:
    """But where single tests are named, nobody is judged."""
    stale = entry("skip", instruction="x86.pmaddwdx", reason="r")
    assert expecting(suite, stale, "-k", "one")[0] == 1
    one = [f"test_it.py::test_question[x86.{name}-one]" for name in ("pmaddubsw", "pmaddwd")]
    assert expecting(suite, stale, *one)[0] == 0


def test_workers_tell_which_entries_name_nothing(suite: pytest.Pytester) -> None:
    """As xdist's hooks carry it from a worker to the process that judges."""
    config: Any = SimpleNamespace(
        pluginmanager=SimpleNamespace(register=lambda it: None), args=["probes"], workeroutput={}
    )
    worker, judge = (expected.Expectations(config, ()) for _ in range(2))
    worker.unused = ["an entry"]
    session: Any = SimpleNamespace(exitstatus=pytest.ExitCode.OK)
    worker.pytest_sessionfinish(session)
    assert session.exitstatus == pytest.ExitCode.OK
    judge.pytest_testnodedown(SimpleNamespace(workeroutput=config.workeroutput))
    judge.pytest_testnodedown(SimpleNamespace())  # one that died tells nothing
    del config.workeroutput
    judge.pytest_sessionfinish(session)
    assert session.exitstatus == pytest.ExitCode.TESTS_FAILED


BAD = [
    ("[[xfial]]", "'xfial' is no kind of entry; did you mean xfail"),
    ("xfail = 3", "xfail must be a list of tables"),
    ("[xfail]\nreason = 'r'", "xfail must be a list of tables"),
    (entry("skip", instruction="x"), "[[skip]] 1 needs reason"),
    (entry("skip", reason="x"), "[[skip]] 1 needs instruction"),
    (entry("skip", instruction="x", reason=" "), "[[skip]] 1: reason is ' '; it must be a text that is not empty"),
    (DIFFERS + entry("xfail", instruction="x", reasn="x"), "[[xfail]] 2 has a key 'reasn'; did you mean reason"),
    (entry("skip", instruction="x", reason="y", suite="probe"), "suite is 'probe'; it must be probes or validation"),
    (entry("skip", instruction="x", reason="y", suite="validation", question="z"), "validation asks no question"),
    ("[[skip]\n", "known.toml: "), ("skip = 1" + "0" * 5000, "known.toml: "),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), BAD, ids=[said[:24] for _, said in BAD])
def test_a_bad_file_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "known.toml"
    file.write_text(text)
    with pytest.raises(UsageError) as refused:
        expected.read_expected(str(file))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with three GPUs of NVIDIA's, and none of AMD's."""
    here = {"cuda": ["cuda:0", "cuda:1", "cuda:2"], "hip": ["hip"]}
    monkeypatch.setattr(listed, "device_names", here.__getitem__)


@pytest.mark.parametrize(("device", "count"), [
    ("cuda", 3), ("cuda:", 3), ("cuda:?pack=p", 3), ("cuda:1", 1), ("cuda:0?pack=p", 1), ("hip", None),
    ("cpu", None), ("model:sm_90a", None), ("replay:cuda", None),
])  # fmt: skip
def test_auto_means_the_number_of_gpus(three: None, device: str, count: int | None) -> None:
    config: Any = SimpleNamespace(getoption=lambda name: device)
    assert pytest_xdist_auto_num_workers(config) == count


def test_each_worker_has_a_gpu_of_its_own(three: None) -> None:
    """Also one that takes the place of a worker that died, which has another number."""

    def node(name: str) -> Any:
        return SimpleNamespace(gateway=SimpleNamespace(id=name), workerinput={})

    each = workers.GpuEach(listed.gpu_names("cuda:?pack=p&timeout=5"))
    nodes = [node(f"gw{number}") for number in range(4)]
    for one in nodes[:3]:
        each.pytest_configure_node(one)
    held = [one.workerinput[workers.DEVICE] for one in nodes[:3]]
    assert held == [f"cuda:{number}?pack=p&timeout=5" for number in range(3)]
    with pytest.raises(pytest.UsageError, match="there are more workers than GPUs"):
        each.pytest_configure_node(nodes[3])
    each.pytest_testnodedown(nodes[1])
    each.pytest_configure_node(nodes[3])
    assert nodes[3].workerinput[workers.DEVICE] == held[1]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Of one instruction 300 vectors, of another one 20 that all are zero."""
    few, zeros = (generate(lookup.instruction(name), "uniform", 1, 0, count) for name, count in HELD)
    blank = Batch(**{name: np.zeros_like(value) for name, value in zeros.items()})
    made = [(lookup.instruction(name), vectors) for (name, _), vectors in zip(HELD, (few, blank), strict=True)]
    write_corpus(tmp_path / "c", record(open_device(X86), made), "a test")
    return tmp_path / "c"


HELD = (("x86.pmaddwd", 300), ("x86.vpdpbusd", 20))
QUICK = ValidationPlan("quick", ("*",), 2, vectors=50_000, least_vectors=50_000, witnesses=True)


def test_a_recording_is_validated_on_what_it_holds(recording: Path) -> None:
    work = work_of(QUICK, open_device(f"replay:{recording}"), open_device(AMD), 1)
    campaign = put_together([("here", run_shard(work, Shard()))])
    assert {row.instruction: row.vectors for row in campaign.rows} == dict(HELD)
    assert (campaign.exit_code, campaign.compared, campaign.left) == (0, 2, 0)
    with pytest.raises(UsageError, match="a recording is compared on what it holds"):
        work_of(replace(QUICK, vectors=0, least_vectors=0), open_device(f"replay:{recording}"), open_device(AMD), 1)


def test_the_suite_takes_a_recording(recording: Path, pytester: pytest.Pytester) -> None:
    words = (f"--rootdir={ROOT}", "-c", str(ROOT / "pyproject.toml"), "--device", f"replay:{recording}", "-rA")
    code, told = says(pytester, str(ROOT / "validation"), *words, "--ref", AMD)
    assert (code, "2 instructions compared as plan smoke wants" in told) == (0, True), told
    code, told = says(pytester, str(ROOT / "probes"), *words)
    assert (code, "a recording answers what it holds, and no probe: pytest validation" in told) == (4, True), told


FAKES = """
from dataclasses import replace
from mmaprobe import vendors
from mmaprobe.devices.base import open_device

class Fake:
    def __init__(self, number):
        self.number = number
        self.model = open_device("model:x86-64+intel")
        self.name = f"cuda:{number}"

    def __getattr__(self, name):
        return getattr(self.model, name)

    def siblings(self):
        return ["cuda:0", "cuda:1"]

vendors.VENDORS = (replace(vendors.NVIDIA, device="fakes:open_fake"), vendors.AMD)

def open_fake(argument):
    return Fake(int(argument or 0))
"""
ON_TWO = """
import time

def test_it(instruction, device, record_property):
    print("worker has", device.name)
    time.sleep(0.2)
"""


@pytest.mark.long
def test_workers_of_xdist_take_a_gpu_each(suite: pytest.Pytester) -> None:
    suite.makepyfile(fakes=FAKES, test_it="import pytest\npytestmark = pytest.mark.suite('probes')\n" + ON_TWO)
    suite.syspathinsert()
    suite.makeconftest(BEGINS.replace("2", "0"))
    words = ("--device", "cuda", "--ref", AMD, "--plan", "mine.toml", "-p", "fakes", "-rA")
    said = suite.runpytest_subprocess("-n", "auto", *words).stdout.str()
    assert {name in said for name in ("worker has cuda:0", "worker has cuda:1")} == {True}, said
    done = suite.runpytest_subprocess("-n", "3", *words)
    assert done.ret == 4
    assert "more workers than GPUs (cuda:0, cuda:1)" in done.stderr.str()
