"""The device ``process:``: the example of its page, binary framing, and every way a program can fail."""

from __future__ import annotations

import re
import shlex
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mmaprobe.catalog.lookup import instruction
from mmaprobe.cli import main
from mmaprobe.devices import waiting
from mmaprobe.devices.base import is_device, open_device, run_vectors
from mmaprobe.errors import DeviceError, NotHereError, UsageError
from mmaprobe.operands.batch import Batch

PAGE = Path(__file__).parents[2] / "docs" / "process_device.md"
KNOWN = instruction("x86.vpdpwssd")
HELLO = "import sys\nprint('mmaprobe 1 example x86-64 text x86.vpdpwssd', flush=True)\n"
TAKE = "sys.stdin.readline(); sys.stdin.readline()\n"
BINARY = """
import sys, numpy as np
print("mmaprobe 1 raw x86-64 binary x86.vpdpwssd", flush=True)
while request := sys.stdin.buffer.readline():
    count = int(request.split()[2])
    a, b = (np.frombuffer(sys.stdin.buffer.read(4 * count), "<i2").reshape(-1, 2).astype("i8") for _ in "ab")
    c = np.frombuffer(sys.stdin.buffer.read(4 * count), "<i4")
    sys.stdout.buffer.write(b"ok %d\\n" % count + ((a * b).sum(1) + c).astype("<u4").tobytes())
    sys.stdout.flush()
"""


def example() -> str:
    found = re.search(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert found
    return found.group(1)


@pytest.fixture
def program(tmp_path):
    """A function that opens the device of a Python program."""
    opened = []

    def make(text, options=""):
        path = tmp_path / "child with space.py"
        path.write_text(text, "utf-8")
        device = open_device(f"process:{options}{shlex.join([sys.executable, str(path)])}")
        opened.append(device)
        return device

    yield make
    for device in opened:
        device.close()


def operands(count):
    rng = np.random.default_rng(count)
    a, b = (rng.integers(0, 1 << 16, (count, 2), dtype=np.uint16) for _ in "ab")
    return Batch(a, b, rng.integers(0, 1 << 32, count, dtype=np.uint32))


def expected(v):
    total = (v.a.view(np.int16).astype(np.int64) * v.b.view(np.int16)).sum(1) + v.c
    return (total & 0xFFFFFFFF).astype(np.uint32)


@pytest.mark.parametrize("text", [example(), BINARY], ids=["text", "binary"])
@pytest.mark.parametrize("count", [0, 1, 3, 70_000])
def test_results(program, text, count):
    """70,000 lines: more than one exchange, and more than a pipe holds while the program answers."""
    device = program(text)
    vectors = operands(count)
    np.testing.assert_array_equal(run_vectors(device, KNOWN, vectors), expected(vectors))


def test_is_a_device(program):
    device = program(example())
    assert is_device(device)
    assert device.info()["architecture"] == "x86-64"
    assert device.info()["protocol"] == "1 text"
    assert device.supports(KNOWN)
    assert KNOWN in device.instructions()
    other = instruction("x86.pmaddwd")
    assert device.supports(other).reason == "not offered by example"
    with pytest.raises(NotHereError, match="not here: not offered by example, which runs"):
        device.run(other, Batch(np.zeros((1, 1, 2), np.uint16), np.zeros((1, 2, 1), np.uint16)))


def test_big_endian_operands(program):
    device = program(BINARY)
    vectors = operands(5)
    swapped = Batch(**{name: value.astype(value.dtype.newbyteorder(">")) for name, value in vectors.items()})
    np.testing.assert_array_equal(run_vectors(device, KNOWN, swapped), expected(vectors))


ANSWERS = {
    "garbage": ("print('ok 1\\nxyz', flush=True)", "b'xyz' is not 1 item"),
    "too many items": ("print('ok 1\\n0 0', flush=True)", "b'0 0' is not 1 item"),
    "out of range": ("print('ok 1\\n100000000', flush=True)", "is not 1 item"),
    "negative": ("print('ok 1\\n-1', flush=True)", "is not 1 item"),
    "another count": ("print('ok 2\\n0', flush=True)", "answered b'ok 2' where 'ok 1' was due"),
    "no header": ("print('00000000', flush=True)", "answered b'00000000' where 'ok 1' was due"),
    "too long": ("print('ok 1\\n0\\n0', flush=True)", "answered 1 line more than was due"),
    "refusal": ("print('error no such luck', flush=True)", "error no such luck"),
    "exit": ("print('oops', file=sys.stderr, flush=True); sys.exit(3)", "ended with exit code 3.*oops"),
    "signal": ("import os; os.kill(os.getpid(), 11)", "ended by SIGSEGV"),
    "part": ("print('ok 1', flush=True); sys.exit(0)", "ended with exit code 0 after 5 bytes"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_bad_answers(program, name):
    code, message = ANSWERS[name]
    device = program(HELLO + TAKE + code + "\nsys.stdin.read()\n")
    with pytest.raises(DeviceError, match=rf"(?s)^process .*child with space.py.*{message}") as caught:
        run_vectors(device, KNOWN, operands(1))
    assert caught.value.exit_code == 5


def test_refusal_of_a_large_request(program):
    """The program's own words come through although it never reads the operands."""
    device = program(HELLO + "sys.stdin.readline(); print('error out of memory', flush=True); sys.exit(2)")
    with pytest.raises(DeviceError, match="error out of memory"):
        run_vectors(device, KNOWN, operands(60_000))


def test_an_interrupt_leaves_no_stale_answer(program, monkeypatch):
    device = program(example())

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("selectors.DefaultSelector.select", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_vectors(device, KNOWN, operands(1))
    vectors = operands(3)
    np.testing.assert_array_equal(run_vectors(device, KNOWN, vectors), expected(vectors))


@pytest.mark.parametrize("wait", ["sys.stdin.read()", "print('ok 1', flush=True)\nsys.stdin.read()"])
def test_late_answers(program, wait):
    device = program(HELLO + "print('thinking', file=sys.stderr, flush=True)\n" + TAKE + wait, "timeout=0.4 ")
    start = time.monotonic()
    with pytest.raises(DeviceError, match=r"(?s)no complete answer within 0\.4 s.*thinking"):
        run_vectors(device, KNOWN, operands(1))
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("print('hello')", "no hello line, but 'hello'"),
        ("print('mmaprobe 3 x x86-64 text')", "speaks protocol 3; this version speaks 1 and 2"),
        ("print('mmaprobe 1 x x86-64 morse')", "announces framing 'morse'; it is one of text, binary"),
        ("print('mmaprobe 1 x x86-64 text x86.dpps x86.pmaddwd x86.dpps')", "announces x86.dpps twice"),
        ("raise SystemExit('broken')", r"(?s)ended with exit code 1 after 0 bytes.*broken"),
    ],
)
def test_bad_hello(program, text, message):
    with pytest.raises(DeviceError, match=message):
        program(text)


def test_ids_that_nobody_has_are_the_programs_fault(program):
    """The error names the program and what it announced, not an id that the user never typed."""
    device = program("print('mmaprobe 1 x mips text mips.dot', flush=True); input()")
    with pytest.raises(DeviceError, match=r"process .*announces architecture 'mips'.*unknown instruction 'mips.dot'"):
        device.instructions()


def test_silent_start(program):
    with pytest.raises(DeviceError, match=r"no complete answer within 0\.3 s .*longer limit: process:timeout=SECONDS"):
        program("import sys; sys.stdin.read()", "timeout=0.3 ")


def test_starts_anew_after_a_failure(program, tmp_path):
    marker = tmp_path / "failed once"
    fail = f"import os\nif not os.path.exists({str(marker)!r}):\n    open({str(marker)!r}, 'w')\n    sys.exit(1)\n"
    device = program(
        example().replace('    print("ok", count)\n', "    " + fail.replace("\n", "\n    ") + 'print("ok", count)\n')
    )
    vectors = operands(2)
    with pytest.raises(DeviceError, match="exit code 1"):
        run_vectors(device, KNOWN, vectors)
    np.testing.assert_array_equal(run_vectors(device, KNOWN, vectors), expected(vectors))


def test_missing_program():
    with pytest.raises(NotHereError, match="cannot start /no/such/program: No such file"):
        open_device("process:/no/such/program")


@pytest.mark.parametrize(
    ("argument", "message"), [("", "needs a command"), ("timeout=-1 x", "positive"), ("timeout=soon x", "positive")]
)
def test_bad_arguments(argument, message):
    with pytest.raises(UsageError, match=message):
        open_device(f"process:{argument}")


@pytest.mark.parametrize(("framing", "answer"), [("text", "b'ok 1\\n1f\\n'"), ("binary", "b'ok 1\\n\\x1f'")])
def test_an_answer_outside_the_format(program, framing, answer):
    """0x1f in the eight bits that hold a result of four is no result."""
    read = "sys.stdin.buffer.readline(); sys.stdin.buffer.read(12)" if framing == "binary" else TAKE.strip()
    device = program(
        HELLO.replace("text", framing)
        + f"{read}\nsys.stdout.buffer.write({answer})\nsys.stdout.flush()\nsys.stdin.read()"
    )
    with pytest.raises(DeviceError, match="answered 0x1f, outside s4"):
        device.run(replace(KNOWN, d="s4"), Batch(*(np.ones((1, 1, 2), np.uint16).reshape(shape) for shape in
                   ((1, 1, 2), (1, 2, 1))), np.ones((1, 1, 1), np.uint32)))  # fmt: skip


def test_a_program_that_is_another_when_it_starts_anew(program, tmp_path):
    """It ended, and what starts in its place offers something else: nothing is asked of it."""
    marker = tmp_path / "begun once"
    device = program(
        f"import os, sys\nagain = os.path.exists({str(marker)!r})\nopen({str(marker)!r}, 'w')\n"
        "print('mmaprobe 1', 'other' if again else 'first', 'x86-64 text x86.vpdpwssd', flush=True)\n"
        "sys.stdin.readline() if not again else sys.stdin.read()\n",
        "timeout=3 ",
    )
    with pytest.raises(DeviceError, match="ended with exit code 0"):
        run_vectors(device, KNOWN, operands(1))
    with pytest.raises(DeviceError, match="started anew, it says another hello line than before"):
        run_vectors(device, KNOWN, operands(1))


def waiting_for(path: Path, times: int = 1) -> str:
    """A program that answers so many times, each time only once a file is there, which it takes away."""
    seen = f"import os, time\nwhile not os.path.exists({str(path)!r}): time.sleep(0.01)\nos.remove({str(path)!r})\n"
    return HELLO + f"{seen}{TAKE}print('ok 1\\n00000000', flush=True)\n" * times + "sys.stdin.read()\n"


def test_a_silent_program_is_said_once(program, tmp_path, monkeypatch):
    """It goes on when the line was said: the second answer comes as late as the first, and nothing is said again."""
    monkeypatch.setattr(waiting, "PATIENCE", 0.2)
    go, lines = tmp_path / "go", []

    def listener(line):
        lines.append(line)
        go.touch()

    device = program(waiting_for(go, 2), "timeout=50 ")
    with waiting.telling(listener):
        assert run_vectors(device, KNOWN, operands(1)).tolist() == [0]
        threading.Timer(0.5, go.touch).start()
        assert run_vectors(device, KNOWN, operands(1)).tolist() == [0]
    (line,) = lines
    assert line.startswith(f"waiting for {shlex.quote(sys.executable)} ")
    assert "silent for 0.2 s; it may take 50 s; for a longer limit: process:timeout=SECONDS COMMAND; Ctrl-C" in line


def test_a_program_that_answers_is_not_waited_for(program):
    lines = []
    with waiting.telling(lines.append):
        assert run_vectors(program(example()), KNOWN, operands(3)).size == 3
    assert lines == []


@pytest.mark.parametrize("as_json", [False, True])
def test_the_command_says_what_it_waits_for(tmp_path, monkeypatch, capsys, as_json):
    """A program that never says hello ends in one line; the one about waiting comes before, and not beside JSON."""
    monkeypatch.setattr(waiting, "PATIENCE", 0.1)
    (tmp_path / "mute.py").write_text("import time\ntime.sleep(60)\n", "utf-8")
    words = shlex.join([sys.executable, str(tmp_path / "mute.py")])
    assert main(["probe", KNOWN.id, "-d", f"process:timeout=1 {words}", *["--json"] * as_json]) == 5
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(" for ")[0] for line in said[:-1]] == ["mmaprobe: waiting"] * (not as_json)
    assert "no complete answer within 1 s" in said[-1]
