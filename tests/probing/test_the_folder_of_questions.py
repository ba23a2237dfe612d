"""The folder of questions is their only list: a file more in it is asked, reported, documented and tested."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cases.linked_package import linked
from mmaprobe.probing import QUESTIONS
from mmaprobe.probing.questions import PROBES, __path__

ROOT = Path(__file__).parents[2]
NEW = '''"""Whether one and one are two."""

from mmaprobe.evidence.records import Finding
from mmaprobe.probing.session.probe import Probe
from mmaprobe.probing.session.session import ProbeSession


async def probe_one_and_one(session: ProbeSession) -> Finding:
    terms = dict.fromkeys(session.leaves[:2], 1)
    await session.witness(terms, "one and one")
    (total,) = await session.sums([terms])
    return session.finding("exact", int(total), f"one and one are {total}")


PROBE = Probe(
    order=15,
    asks="what one and one are",
    rivals="two, another number",
    experiment=probe_one_and_one,
    sound=lambda answer: answer == {sound},
)
'''
ASKED = """
import sys, runpy, pytest
print(*runpy.run_path("docs/probes.py")["lines"](), sep="\\n", flush=True)
from mmaprobe.cli import main
assert main(["probe", "x86.vdpbf16ps", "--device", "model:x86-64", "--question", "one_and_one"]) == 0
sys.exit(pytest.main(["probes", "--device", "model:x86-64", "--ref", "model:x86-64+amd", "-p", "no:cacheprovider",
                      "-v", "-k", "one_and_one and vdpbf16ps"]))
"""


def test_every_file_is_a_question() -> None:
    (folder,) = __path__
    assert set(QUESTIONS) == {path.stem for path in Path(folder).glob("*.py")} - {"__init__"}
    assert tuple(PROBES) == QUESTIONS
    orders = [probe.order for probe in PROBES.values()]
    assert orders == sorted(set(orders)), "two questions have one place in the order"
    assert all(probe.asks and probe.rivals for probe in PROBES.values())


@pytest.mark.parametrize("sound", ["2", pytest.param("3", marks=pytest.mark.long)])
def test_a_new_question_is_one_file(sound: str, tmp_path: Path) -> None:
    """The recipe of CONTRIBUTING.md: with this file alone the question is asked, reported, in the list and tested."""
    package = linked(tmp_path, "probing", "questions")
    (package / "probing" / "questions" / "one_and_one.py").write_text(NEW.replace("{sound}", sound))
    path = os.pathsep.join([str(package.parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", ASKED], cwd=ROOT, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path}
    )
    assert done.returncode == (0 if sound == "2" else 1), done.stdout + done.stderr
    assert "| `one_and_one` | what one and one are | two, another number |\n| `independence` |" in done.stdout
    assert "one and one are 2" in done.stdout.partition("test session starts")[0]
    assert f" {'passed' if sound == '2' else 'failed'}, " in done.stdout
