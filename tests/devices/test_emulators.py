"""An emulator is noticed where the system shows it: below HIP, below this process, below another program."""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mmaprobe.devices.amd.emulator import below_hip
from mmaprobe.devices.base import open_device
from mmaprobe.devices.emulators import (
    SAYS,
    System,
    of_machine,
    of_processor,
    of_program,
    versioned,
)
from mmaprobe.devices.process import Process
from mmaprobe.errors import UsageError
from mmaprobe.evidence import silicon
from stand_ins.fake_hip import FakeHip, device, machine, tree

HELLO = "print('mmaprobe 1 example x86-64 text x86.vpdpwssd', flush=True); input()"
PYTHON = "/usr/bin/python3"
MAPS = "7f00-7f01 r-xp 00000000 08:01 42 {}\n7f02-7f03 rw-p 00000000 00:00 0\n7ffe-7fff r-xp 00000000 00:00 0 [vdso]\n"
Open = Callable[..., Process]


def system(machine: str = "x86_64", links: dict[str, str] | None = None, **texts: str) -> System:
    """A process of Python, with other links, and texts by the last part of their path."""
    held = {"/proc/self/exe": PYTHON, "/proc/thread-self/exe": PYTHON} | (links or {})
    return System(
        link=lambda path: held.get(path, ""), text=lambda path: texts.get(Path(path).name, ""),
        entries=lambda path: [], environment={}, machine=machine,
    )  # fmt: skip


def emulator(folder: Path, name: str, version: str = "") -> Path:
    """A program that prints a version; without one it fails, as Spike does."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{f'echo {shlex.quote(version)}' if version else 'exit 1'}\n")
    path.chmod(0o755)
    return path


# Below this process


def test_a_processor_of_silicon() -> None:
    here = system(arch="x86_64\n", maps=MAPS.format("/usr/lib/libm.so.6"))
    assert of_processor("Intel(R) Xeon(R) Platinum 8480+", "unknown", here) == silicon.YES
    assert of_processor("unknown", "0x41", system("aarch64", arch="aarch64\n")) == silicon.YES
    assert of_processor("unknown", "unknown", system(links={"/proc/thread-self/exe": ""})) == silicon.YES


def test_an_emulator_of_processes_is_the_program_that_the_thread_runs(tmp_path: Path) -> None:
    """QEMU and Valgrind answer for /proc/self/exe alone."""
    qemu = emulator(tmp_path, "qemu-aarch64-static", "qemu-aarch64 version 7.2.22 (Debian 1:7.2)")
    links = {"/proc/self/exe": "/home/me/python3", "/proc/thread-self/exe": str(qemu)}
    assert of_processor("unknown", "0x41", system("aarch64", links)) == "no, emulated by qemu-aarch64-static 7.2.22"


@pytest.mark.parametrize(("model_name", "implementer", "here", "said"), [
    ("unknown", "unknown", system("aarch64", arch="x86_64\n"), "no, emulated by a program on x86_64"),
    ("unknown", "unknown", system("x86_64", arch="aarch64\n"), "no, emulated by a program on aarch64"),
    ("QEMU TCG CPU version 2.5+", "unknown", system(), "no, emulated by QEMU TCG CPU version 2.5+"),
    ("Fake M5 x86_64 CPU", "unknown", system(), "no, emulated by Fake M5 x86_64 CPU"),
    ("unknown", "0x00", system("aarch64"), "no, emulated by a processor of implementer 0x00"),
    ("QEMU Virtual CPU version 2.5+", "unknown", system(), silicon.UNKNOWN),
    ("Intel", "unknown", system(maps=MAPS.format("/sde/intel64/pinbin")),
     "no, emulated by a tool of Intel's Pin, pinbin, which cannot be read"),
])  # fmt: skip
def test_processors_that_are_none(model_name: str, implementer: str, here: System, said: str) -> None:
    assert of_processor(model_name, implementer, here) == said


def test_a_32_bit_process_is_no_emulation() -> None:
    assert of_processor("Intel", "unknown", system("i686", arch="x86_64\n")) == silicon.YES


def test_what_the_user_says_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the CPU and of GPUs, where nothing shows it."""
    assert of_machine(System(environment={})) == silicon.YES
    monkeypatch.setenv(SAYS, "sde 9.33")
    said = "no, emulated by sde 9.33, says its user"
    assert open_device("cpu").info()["silicon"] == device(FakeHip()).info()["silicon"] == said


def test_this_machine_is_silicon_unless_something_shows_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SAYS, raising=False)
    info = open_device("cpu").info()
    if os.readlink("/proc/self/exe") == os.readlink("/proc/thread-self/exe") and "QEMU" not in info["model_name"]:
        assert info["silicon"] == silicon.YES


# Below HIP


def test_rocjitsu_below_hip(tmp_path: Path) -> None:
    """By the library that is mapped, else preloaded, else by what its launchers set; with the library's digest."""
    library = tmp_path / "librocjitsu.so"
    library.write_bytes(b"ELF")
    said = f"no, emulated by rocjitsu, librocjitsu.so sha256:{hashlib.sha256(b'ELF').hexdigest()[:12]}"
    assert below_hip({}, MAPS.format(library)) == said
    assert below_hip({"LD_PRELOAD": f"libasan.so:{library} libx.so"}, "") == said
    for name in ("RJ_CONFIG", "RJ_SCHEMA", "ROCJITSU_RUNTIME_DIR"):
        assert below_hip({name: "x"}, "") == "no, emulated by rocjitsu, whose library is not seen"
    for environment in ({}, {"LD_PRELOAD": "/usr/lib/libjemalloc.so"}, {"RJ_OTHER": "x", "RJ_CONFIGS": "x"}):
        assert below_hip(environment, MAPS.format("/opt/rocm/lib/libamdhip64.so.7")) == ""


@pytest.mark.parametrize("shown", [
    {"LD_PRELOAD": "/usr/lib/librocjitsu_kmd.so"}, {"RJ_CONFIG": "gfx942_cdna3_kmd.json"}, {},
])  # fmt: skip
def test_an_emulated_gpu_says_so(shown: dict[str, str]) -> None:
    """HIP says the same of it as of silicon: name, chip, versions."""
    files = tree("gfx942") | ({} if shown else {"/proc/self/maps": MAPS.format("/usr/lib/librocjitsu.so")})
    hip = FakeHip()
    opened, real = device(hip, on=machine(hip, files, **shown)), device(FakeHip())
    said = opened.info()
    assert silicon.kind_of(opened.name, said) == "emulated"
    assert "rocjitsu" in said["silicon"]
    assert {**said, "silicon": "yes"} == real.info()


# Below another program


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Open]:
    """A function that opens the device of a program that says hello, by some words before its own."""
    opened: list[Process] = []
    path = tmp_path / "child.py"
    path.write_text(HELLO)

    def make(options: str = "", *words: object) -> Process:
        command = shlex.join([*map(str, words), sys.executable, str(path)])
        found = open_device(f"process:{options}{command}")
        assert isinstance(found, Process)
        opened.append(found)
        return found

    yield make
    for each in opened:
        each.close()


def test_a_program_is_no_silicon_unless_its_user_says_so(program: Open) -> None:
    """What he says is part of the device's name, by which another process opens the same."""
    plain, said = program(), program("timeout=9 silicon=yes ")
    assert plain.info()["silicon"] == silicon.UNKNOWN
    assert said.info()["silicon"] == silicon.SAID == "yes, says its user"
    assert said.name == plain.name.replace("process:", "process:silicon=yes ")
    again = open_device(said.name)
    assert again.info() == said.info()


def test_an_emulator_by_its_users_word(program: Open) -> None:
    said = program("'emulator=gem5 24.1' ")
    assert said.info()["silicon"] == "no, emulated by gem5 24.1, says its user"
    assert said.name.startswith("process:'emulator=gem5 24.1' ")


@pytest.mark.parametrize(("options", "message"), [
    ("silicon=no ", "silicon='no'; say silicon=yes, or nothing"),
    ("silicon=yes silicon=yes ", "silicon= is given twice"),
    ("silicon=yes emulator=spike ", "contradict each other"), ("emulator= ", "emulator= needs a name"),
    ("sillicon=yes ", "unknown option 'sillicon=yes'; did you mean silicon"),
])  # fmt: skip
def test_words_that_say_nothing(program: Open, options: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        program(options)


@pytest.mark.parametrize("name", ["qemu-riscv64", "spike", "gem5.opt", "FVP_Base_RevC-2xAEMvA", "sde64", "rocjitsu"])
def test_an_emulator_in_the_command(tmp_path: Path, program: Open, name: str) -> None:
    """Far away, behind a shell or ssh, its name is all there is to see."""
    shell = emulator(tmp_path, "far")
    shell.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n')
    words = (shell, f"bench /opt/{name} -x", "--")
    assert program("", *words).info()["silicon"] == f"no, emulated by {name}"
    with pytest.raises(UsageError, match=f"silicon=yes, but {name} runs it; leave silicon=yes out"):
        program("silicon=yes ", *words)
    assert program("emulator=mine ", *words).info()["silicon"] == "no, emulated by mine, says its user"


def test_an_emulator_that_the_command_does_not_name(tmp_path: Path) -> None:
    """As where the kernel starts it for a binary of another architecture: what the child's processes run."""
    qemu = emulator(tmp_path, "qemu-aarch64", "qemu-aarch64 version 9.1.0")
    links = {"/proc/7/exe": "/bin/sh", "/proc/8/exe": str(qemu), "/proc/9/exe": "/bin/cat"}
    stats = {f"/proc/{n}/stat": f"{n} (a ) b) S 1 7 {7 if n != 9 else 1} 0" for n in (7, 8, 9)}
    seen = System(lambda path: links.get(path, ""), lambda path: stats.get(path, ""),
                  lambda path: ["9", "8", "7", "self"], {}, "x86_64")  # fmt: skip
    assert of_program(7, ["./runner"], seen) == "qemu-aarch64 9.1.0"
    assert of_program(1, ["./runner"], seen) == of_program(-1, ["./runner"], seen) == ""
    maps = {"/proc/7/maps": MAPS.format("/x/librocjitsu.so")}
    below = System(lambda path: "/bin/hip", lambda path: (stats | maps).get(path, ""), lambda path: ["7"], {}, "x86_64")
    assert of_program(7, ["./hip"], below) == "librocjitsu.so, which cannot be read"


def test_the_version_of_an_emulator(tmp_path: Path) -> None:
    """What it prints, else the digest of the file; a program that hangs or is not there is no trouble."""
    assert versioned(str(emulator(tmp_path, "a", "gem5 version 24.1.0.2 ..."))) == "a 24.1.0.2"
    spike = emulator(tmp_path, "spike")
    assert versioned(str(spike)) == f"spike sha256:{hashlib.sha256(spike.read_bytes()).hexdigest()[:12]}"
    assert versioned(str(emulator(tmp_path, "b", "no number"))).startswith("b sha256:")
    assert versioned("/no/where") == "where, which cannot be read"


def test_a_program_that_ends_after_its_hello_is_looked_at_no_more(tmp_path: Path) -> None:
    path = tmp_path / "short.py"
    path.write_text(HELLO.partition(";")[0])
    opened = Process([sys.executable, str(path)])
    assert opened.info()["silicon"] == silicon.UNKNOWN
    opened.close()
