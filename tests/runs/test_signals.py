"""SIGTERM and SIGHUP end a command as Ctrl-C does: evidence, JUnit, one line, and no child is left."""

from __future__ import annotations

import fcntl
import os
import shlex
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mmaprobe.evidence.store import Store
from mmaprobe.evidence.unexpected_ends import interrupting

ROOT = Path(__file__).parents[2]
LONG = 60.0
MAIN = """
import signal, sys
from mmaprobe.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
sys.exit(main())
"""
"""A process in the background of a shell's script is born deaf to SIGINT, one under nohup to SIGHUP; these are not."""
COMMAND = [sys.executable, "-c", MAIN]
DEVICE = """
import os, sys, time
from pathlib import Path
folder = Path(__file__).parent
(folder / "child").write_text(str(os.getpid()))
print("mmaprobe 1 slow x86-64+intel text x86.pmaddwd", flush=True)
signed = lambda word: int(word, 16) - ((int(word, 16) & 0x8000) << 1)
total = 0
for line in sys.stdin:
    count = int(line.split()[2])
    total += count
    rows = [[signed(word) for word in sys.stdin.readline().split()] for _ in range(count)]
    if total > {beyond}:
        (folder / "many").touch()
        time.sleep({pause})
    print(f"ok {{count}}")
    print("\\n".join(f"{{(a * c + b * d) & 0xffffffff:x}}" for a, b, c, d in rows), flush=True)
"""
"""Answers ``x86.pmaddwd``; says so once it was asked more vectors than that, and is slow from then on."""


def until(true: Callable[[], bool], seconds: float = LONG) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "never"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Slow:
    """The device under a shell, and the processes that it consists of."""

    def __init__(self, folder: Path, beyond: int, pause: float) -> None:
        self.folder = folder
        (folder / "slow.py").write_text(DEVICE.format(beyond=beyond, pause=pause))
        program = shlex.join([sys.executable, str(folder / "slow.py")])
        self.name = f"process:{shlex.join(['sh', '-c', f'{program}; true'])}"

    def asked(self) -> bool:
        return (self.folder / "many").exists()

    def gone(self) -> bool:
        return not alive(int((self.folder / "child").read_text()))


@pytest.fixture
def slow(tmp_path: Path) -> Slow:
    """It takes a moment in a validation: before that nobody asks a million vectors."""
    return Slow(tmp_path, 1_000_000, 0.2)


@pytest.fixture
def stuck(tmp_path: Path) -> Slow:
    """It never answers."""
    return Slow(tmp_path, 0, 3600)


def ended(words: list[str], device: Slow, number: signal.Signals) -> tuple[int, str, str]:
    """The command's exit code and output when it gets a signal while its device is at work."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        until(lambda: device.asked() or process.poll() is not None)
        process.send_signal(number)
        out, err = process.communicate(timeout=LONG)
    finally:
        process.kill()
    until(device.gone, 5)
    return process.returncode, out, err


@pytest.mark.sampled(1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda each: each.name)
def test_a_run_keeps_what_it_found(tmp_path: Path, slow: Slow, number: signal.Signals) -> None:
    words = ["run", "-d", slow.name, "--seed", "1", "-n", "10000000", "--out", str(tmp_path / "e")]
    code, out, err = ended([*COMMAND, *words, "--junit", str(tmp_path / "junit.xml")], slow, number)
    assert code == 130, err
    assert err.splitlines()[-1] == "mmaprobe: interrupted"
    assert "ended early: interrupted; the same command with --resume" in out
    store = Store.open(tmp_path / "e")
    assert (store.finished, store.parts["x86.pmaddwd"].status) == (False, "partial")
    assert store.parts["x86.pmaddwd"].datapath
    error = ElementTree.parse(tmp_path / "junit.xml").getroot().find(".//error[@type='ended']")
    assert error is not None
    assert error.get("message") == "interrupted"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda each: each.name)
def test_a_child_that_never_answers_is_no_orphan(stuck: Slow, number: signal.Signals) -> None:
    code, out, err = ended([*COMMAND, "derive", "x86.pmaddwd", "-d", stuck.name], stuck, number)
    assert (code, out, err) == (130, "", "mmaprobe: interrupted\n")


def test_by_steps_it_is_the_same(tmp_path: Path, stuck: Slow) -> None:
    words = ["run", "-d", stuck.name, "--steps", "all", "--seed", "1", "--out", str(tmp_path / "e"), "--json"]
    code, _, err = ended([*COMMAND, *words, "--junit", str(tmp_path / "junit.xml")], stuck, signal.SIGTERM)
    assert code == 130, err
    assert err.splitlines()[-1] == "mmaprobe: interrupted"
    assert not Store.open(tmp_path / "e").finished
    assert 'message="interrupted"' in (tmp_path / "junit.xml").read_text()
    assert (tmp_path / "e" / "summary.json").exists()


@pytest.mark.long
def test_by_steps_in_the_middle_of_a_validation(tmp_path: Path, slow: Slow) -> None:
    """The step is left, not the one call of it."""
    words = [
        "run",
        "-d",
        slow.name,
        "--steps",
        "survey,validation,recording",
        "--seed",
        "1",
        "--out",
        str(tmp_path / "e"),
    ]
    code, _, err = ended([*COMMAND, *words], slow, signal.SIGTERM)
    assert code == 130, err
    steps = Store.open(tmp_path / "e").steps
    assert {name: step.status for name, step in steps.items()} == {"survey": "finished", "validation": "partial"}


@pytest.mark.long
def test_a_suite_ends_too(tmp_path: Path, stuck: Slow) -> None:
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "validation", "--seed", "1"]
    words += ["--device", stuck.name, "--junit-xml", str(tmp_path / "junit.xml")]
    code, out, err = ended(words, stuck, signal.SIGTERM)
    assert code == pytest.ExitCode.INTERRUPTED, out + err
    assert (tmp_path / "junit.xml").exists()


@pytest.mark.long
def test_a_terminal_that_hangs_up(tmp_path: Path, slow: Slow) -> None:
    """What is printed has nowhere to go; evidence and JUnit are written all the same."""
    master, terminal = os.openpty()

    def lead() -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    words = ["run", "-d", slow.name, "--seed", "1", "-n", "10000000", "--out", str(tmp_path / "e")]
    process = subprocess.Popen(
        [*COMMAND, *words, "--junit", str(tmp_path / "junit.xml")],
        stdin=terminal, stdout=terminal, stderr=terminal, cwd=ROOT, preexec_fn=lead,
    )  # fmt: skip
    os.close(terminal)
    try:
        os.set_blocking(master, False)
        until(lambda: slow.asked() or not _drained(master))
        os.close(master)
        assert process.wait(LONG) == 130
    finally:
        process.kill()
    until(slow.gone, 5)
    assert (tmp_path / "junit.xml").exists()
    assert Store.open(tmp_path / "e").parts


def _drained(master: int) -> bool:
    """Read what was printed, as a terminal does."""
    try:
        return bool(os.read(master, 1 << 16))
    except BlockingIOError:
        return True
    except OSError:
        return False


@pytest.fixture
def ignored() -> Iterator[None]:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("ignored")
def test_what_nohup_ignores_stays_ignored() -> None:
    with interrupting():
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) not in (signal.SIG_DFL, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_the_first_signal_alone_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found is being written then; one that comes much later interrupts again."""
    with interrupting():
        with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGHUP)
        monkeypatch.setattr("mmaprobe.evidence.unexpected_ends.GRACE", 0.0)
        with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
            signal.raise_signal(signal.SIGTERM)
