"""Which emulator this process or another program runs under, as far as the system shows it.

QEMU's user emulation, Valgrind and their like show the emulated program as ``/proc/self/exe`` and themselves as
``/proc/thread-self/exe``; the kernel's own architecture is another one than the process'.  Whole emulated machines are
known by the names of their processors.  What shows nothing of itself is said by its user:
``MMAPROBE_EMULATOR=NAME``.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mmaprobe.evidence.silicon import UNKNOWN, YES, emulated

SAYS = "MMAPROBE_EMULATOR"
"""The environment variable by which a user says that this machine is emulated, and by what."""
_PROGRAM = re.compile(
    r"^(qemu-|FEX|FVP_|box64|rocjitsu|valgrind|(spike|sde|sde64|pinbin|armie|drrun|gem5(\.\w+)?)$"
    r"|(memcheck|none|lackey|\w+grind|drd|massif|dhat)-\w+-linux$)"
)
"""File names of emulators: QEMU, FEX, Arm's models, box64, rocjitsu, Valgrind and its tools, Spike, Intel's SDE, Arm's
instruction emulator, gem5."""
_PIN = re.compile("^pinbin$")
_BELOW_PROGRAMS = re.compile(f"rocjitsu|{_PIN.pattern}")
"""Libraries that put themselves below the program that maps them."""
_PROCESSORS = re.compile(r"QEMU TCG CPU|Fake M5 ")
"""How the names of emulated processors begin: QEMU's without KVM, gem5's."""
_NOT_TELLING = "QEMU Virtual CPU"
"""A processor's name with KVM, which executes, and without, which emulates."""
_ARCHITECTURES = ("x86_64", "aarch64")
"""What the kernel and Python call the two architectures whose instructions run in this process."""
_OF_SOFTWARE = ("0x0", "0x00")
"""Arm's implementer code that is reserved for software: QEMU's processor ``max``."""
_SECONDS = 5
"""How long an emulator may take to say its version."""


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _text(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", "replace")
    except OSError:
        return ""


def _entries(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []


@dataclass(frozen=True)
class System:
    """What this process can see of itself and of others; a test puts other facts there."""

    link: Callable[[str], str] = _link
    text: Callable[[str], str] = _text
    entries: Callable[[str], list[str]] = _entries
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    machine: str = field(default_factory=platform.machine)


def of_machine(system: System | None = None) -> str:
    """What an identity says of hardware in this machine: silicon, unless its user names an emulator."""
    name = (system or System()).environment.get(SAYS, "")
    return emulated(f"{name}, says its user") if name else YES


def of_processor(model_name: str, implementer: str, system: System | None = None) -> str:
    """The same of this process' own instructions; ``implementer`` is Arm's, of which 0x00 is software's."""
    system = system or System()
    own, real = system.link("/proc/self/exe"), system.link("/proc/thread-self/exe")
    if own and real and own != real:
        return emulated(versioned(real))
    kernel = system.text("/proc/sys/kernel/arch").strip()
    if {kernel, system.machine} == {*_ARCHITECTURES}:
        return emulated(f"a program on {kernel}")
    if below := next(mapped(system.text("/proc/self/maps"), _PIN), ""):
        return emulated(f"a tool of Intel's Pin, {digested(below)}")
    if _PROCESSORS.match(model_name):
        return emulated(model_name)
    if implementer.strip().lower() in _OF_SOFTWARE:
        return emulated(f"a processor of implementer {implementer.strip()}")
    return UNKNOWN if model_name.startswith(_NOT_TELLING) else of_machine(system)


def of_program(session: int, command: Sequence[str], system: System | None = None) -> str:
    """The emulator among the processes of a session or the words of its command, with its version; empty where none is
    seen.  ``session`` is the process id of a child that was started in a session of its own."""
    system = system or System()
    for process in _of_session(session, system):
        program = system.link(f"/proc/{process}/exe")
        if named(program, _PROGRAM):
            return versioned(program)
        if library := next(mapped(system.text(f"/proc/{process}/maps"), _BELOW_PROGRAMS), ""):
            return digested(library)
    words = (part for word in command for part in word.split())
    return next((Path(word).name for word in words if named(word, _PROGRAM)), "")


def versioned(program: str) -> str:
    """A program's file name with the version that ``--version`` prints, or else its digest."""
    found = re.search(r"\d+\.\d+[.\d]*", _said(program))
    return f"{Path(program).name} {found[0].rstrip('.')}" if found else digested(program)


def digested(path: str) -> str:
    """A file's name with 12 digits of its SHA-256."""
    try:
        return f"{Path(path).name} sha256:{hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]}"
    except OSError:
        return f"{Path(path).name}, which cannot be read"


def mapped(maps: str, wanted: re.Pattern[str]) -> Iterator[str]:
    """The files mapped into a process whose names have a pattern: the sixth field of each line, if any."""
    for line in maps.splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and named(fields[5], wanted):
            yield fields[5]


def named(path: str, wanted: re.Pattern[str]) -> bool:
    """Whether a file's name has a pattern."""
    return bool(wanted.search(Path(path).name))


def _said(program: str) -> str:
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, timeout=_SECONDS, check=True)  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.partition("\n")[0]


def _of_session(session: int, system: System) -> Iterator[int]:
    """The processes of a session, the oldest first: the fourth field of ``stat`` behind the program's name."""
    for process in sorted(int(name) for name in system.entries("/proc") if name.isdecimal()):
        fields = system.text(f"/proc/{process}/stat").rpartition(")")[2].split()
        if len(fields) > 3 and fields[3] == str(session):
            yield process
