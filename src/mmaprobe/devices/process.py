"""The device ``process:COMMAND``: another program that answers batches over its standard input and output.

The protocol is ``docs/process_device.md``.  The program is started when the
device is opened, started anew after a failure, and ended with the device.
Every exchange is bounded in time; a late, short, long or unreadable answer, or
the program's end, is a DeviceError that names the command and carries the last
lines of its standard error.

A program is no silicon unless its user says so (``silicon=yes``); an emulator is noticed where it can be, or named
(``emulator=NAME``).
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Mapping, Sequence

import numpy as np

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import architectures, instruction, instructions, lowering, parts
from mmaprobe.catalog.outside import add, parse_catalog
from mmaprobe.catalog.supplements import all_or_nothing
from mmaprobe.devices.base import Support
from mmaprobe.devices.child import Child
from mmaprobe.devices.emulators import of_program
from mmaprobe.errors import NotHereError, UsageError, near
from mmaprobe.evidence import silicon
from mmaprobe.formats import Format
from mmaprobe.operands.batch import Batch, Bits, check_batch

DESCRIBES = "2"
"""The protocol of a program that answers ``describe``."""
PROTOCOLS = ("1", DESCRIBES)
MOST_DESCRIPTION = 1 << 20
"""Bytes of a description at most: with every row of ours it is a fifth of that."""
FRAMINGS = ("text", "binary")
OPTIONS = ("timeout", "silicon", "emulator")
"""Words before the command, each with ``=`` and a value."""
NOTHING: Mapping[str, str] = {}
"""The options of a program of which its user says nothing."""
_OPTION = re.compile("([a-z]+)=(.*)", re.DOTALL)
CHUNK = 65536
"""Items of a batch in one exchange, so that the time limit bounds a bounded amount of work."""


def open_process(argument: str) -> Process:
    """The program with the shell-like words of ``argument``, after those that say something about it.

    ``timeout=SECONDS`` bounds an exchange, ``silicon=yes`` and ``emulator=NAME`` say what is behind it.

    UsageError for a wrong or contradictory one, and without a command.
    """
    words, options = shlex.split(argument), dict[str, str]()
    while words and (found := _OPTION.fullmatch(words[0])):
        key, value = found.groups()
        if key in options:
            raise UsageError(f"device process: {key}= is given twice")
        if key not in OPTIONS:
            raise UsageError(f"device process: unknown option {words[0]!r}{near(key, OPTIONS)}")
        options[key] = value
        del words[0]
    if not words:
        raise UsageError("device process needs a command: process:qemu-aarch64-static -cpu max ./arm_runner")
    timeout = _seconds(options["timeout"]) if "timeout" in options else 60.0
    return Process(words, timeout, options)


def _said(options: Mapping[str, str]) -> str:
    """What the user says of silicon, as an identity does; empty where that is nothing."""
    if options.get("silicon", "yes") != "yes":
        raise UsageError(f"device process: silicon={options['silicon']!r}; say silicon=yes, or nothing")
    if "silicon" in options and "emulator" in options:
        raise UsageError("device process: silicon=yes and emulator= contradict each other")
    if options.get("emulator") == "":
        raise UsageError("device process: emulator= needs a name")
    if "emulator" in options:
        return silicon.emulated(f"{options['emulator']}, says its user")
    return silicon.SAID if "silicon" in options else ""


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < float("inf"):
        raise UsageError(f"device process: timeout={text!r} is not a positive number of seconds")
    return value


class Process:
    """Device protocol over a child process."""

    def __init__(self, command: Sequence[str], timeout: float = 60.0, options: Mapping[str, str] = NOTHING) -> None:
        """``options``: what its user says of silicon, which is part of the device's name: another process opens the
        same by it."""
        said = _said(options)
        self.command = tuple(command)
        kept = [f"{key}={options[key]}" for key in ("silicon", "emulator") if key in options]
        self.name = f"process:{shlex.join([*kept, *self.command])}"
        self._child = Child(self.command, timeout, "; for a longer limit: process:timeout=SECONDS COMMAND")
        self._hello = self._greet()
        self.child_name, self.architecture, self.framing = self._hello[2:5]
        self._ids = frozenset(self._hello[5:])
        self._silicon = self._see(said)
        self._description = self._describe()
        if self._description:
            self._learn()

    def info(self) -> dict[str, str]:
        """Architecture and name as the program gives them, whether it is silicon, its command, the protocol, what it
        says of itself."""
        said = {
            "architecture": self.architecture,
            silicon.KEY: self._silicon,
            "name": self.child_name,
            "command": shlex.join(self.command),
            "protocol": f"{self._hello[1]} {self.framing}",
        }
        if self._description:
            said["description"] = f"sha256:{hashlib.sha256(self._description.encode()).hexdigest()}"
        return said

    def instructions(self) -> Sequence[Instruction]:
        """Every instruction of the program's architecture; where the catalog has none, those it names.

        DeviceError where it names one that no architecture has.
        """
        if self.architecture.partition("+")[0] in architectures():
            return instructions(self.architecture)
        try:
            return tuple(instruction(name) for name in sorted(self._ids))
        except UsageError as error:
            said = f"its hello line announces architecture {self.architecture!r}, which the catalog does not have"
            more = "it says what they are by protocol 2, or a file does: --catalog FILE (docs/new_unit.md)"
            raise self._child.failure(f"{said}, and an id that none has: {error}; {more}") from None

    def supports(self, instruction: Instruction) -> Support:
        """Whether the program named this id, control state included, when it started."""
        here = instruction.id in self._ids
        return Support(here, "" if here else f"not offered by {self.child_name}")

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        """D of shape (batch, [blocks,] M, N); DeviceError naming the command where the program fails."""
        ready = check_batch(instruction, batch)
        support = self.supports(instruction)
        if not support:
            offered = ", ".join(sorted(self._ids)) or "nothing"
            raise NotHereError(f"{instruction.id}: not here: {support.reason}, which runs {offered}")
        parts = [
            self._exchange(instruction, ready.slice(start, min(start + CHUNK, ready.size)))
            for start in range(0, ready.size, CHUNK)
        ]
        shape = (instruction.blocks,) if instruction.blocks > 1 else ()
        d = np.concatenate(parts) if parts else np.empty(0, instruction.formats()["d"].dtype)
        return d.reshape(ready.size, *shape, instruction.m, instruction.n)

    def close(self) -> None:
        """End the program."""
        self._child.stop()

    def _greet(self) -> list[str]:
        """Start the program; the words of its hello line."""
        words = self._child.start().split()
        if words[:1] != ["mmaprobe"] or len(words) < 5:
            raise self._child.failure(f"no hello line, but {' '.join(words)[:100]!r}")
        if words[1] not in PROTOCOLS:
            raise self._child.failure(f"speaks protocol {words[1]}; this version speaks {' and '.join(PROTOCOLS)}")
        if len({*words[5:]}) < len(words[5:]):
            twice = next(word for word in words[5:] if words.count(word) > 1)
            raise self._child.failure(f"announces {twice} twice")
        if words[4] not in FRAMINGS:
            raise self._child.failure(f"announces framing {words[4]!r}; it is one of {', '.join(FRAMINGS)}")
        return words

    def _see(self, said: str) -> str:
        """Whether it is silicon: what is seen of the program beside what its user said; UsageError where the two
        contradict each other."""
        found = of_program(self._child.session, self.command)
        if found and said == silicon.SAID:
            self.close()
            raise UsageError(f"{self.name}: silicon=yes, but {found} runs it; leave silicon=yes out")
        return said or (silicon.emulated(found) if found else silicon.UNKNOWN)

    def _greet_again(self) -> None:
        """Start the program anew; DeviceError where it is another than before."""
        if self._greet() != self._hello:
            raise self._child.failure("started anew, it says another hello line than before")
        if self._describe() != self._description:
            raise self._child.failure("started anew, it describes itself otherwise than before")

    def _describe(self) -> str:
        """What a program of protocol 2 says of its own instructions; "" of one that does not."""
        if self._hello[1] != DESCRIBES:
            return ""
        header, _, body = self._child.exchange(b"describe\n", lines=None, most=MOST_DESCRIPTION).partition(b"\n")
        if header != b"ok %d" % body.count(b"\n") or not body:
            raise self._child.failure(f"answered {header[:80]!r} to describe, where 'ok LINES' and these were due")
        return body.decode("utf-8", "replace")

    def _learn(self) -> None:
        """Add the description to the catalog.  DeviceError where it is wrong, contradicts what a file or another device
        says, or does not say what the hello line's architecture and ids are."""
        try:
            with all_or_nothing():
                add(parse_catalog(self._description, f"the description of {self.name}"))
                parts(self.architecture)
                for name in sorted(self._ids):
                    lowering(instruction(name, self.architecture), self.architecture)
        except UsageError as error:
            raise self._child.failure(f"describes itself wrongly: {error}; see docs/new_unit.md") from None

    def _exchange(self, instruction: Instruction, batch: Batch) -> Bits:
        if not self._child.running:
            self._greet_again()
        fmt = instruction.formats()["d"]
        count = batch.size * instruction.blocks * instruction.m * instruction.n
        request = f"run {instruction.id} {batch.size}\n".encode()
        if self.framing == "binary":
            payload = b"".join(little.tobytes() for little in _little_endian(batch))
            answer = self._child.exchange(request + payload, size=count * fmt.dtype.itemsize)
        else:
            answer = self._child.exchange(
                request + text_of(batch), lines=batch.size, most=4096 + count * 8 * fmt.dtype.itemsize
            )
        header, _, body = answer.partition(b"\n")
        if header.startswith(b"error"):
            raise self._child.failure(f"{instruction.id}: {header.decode('utf-8', 'replace')}")
        if header != f"ok {batch.size}".encode():
            raise self._child.failure(f"answered {header[:80]!r} where 'ok {batch.size}' was due")
        return self._results(body, fmt, count, batch.size)

    def _results(self, body: bytes, fmt: Format, count: int, lines: int) -> Bits:
        try:
            d = np.frombuffer(body, fmt.dtype.newbyteorder("<")).astype(fmt.dtype) if self.framing == "binary" else (
                items_of(body, fmt, count // lines))  # fmt: skip
        except ValueError as error:
            raise self._child.failure(f"an answer that cannot be read: {error}") from None
        if d.size and int(d.max()) >= fmt.code_limit:
            raise self._child.failure(f"answered {int(d.max()):#x}, outside {fmt.name}")
        return d


def _little_endian(batch: Batch) -> list[Bits]:
    return [value.astype(value.dtype.newbyteorder("<"), copy=False) for _, value in batch.items()]


def text_of(batch: Batch) -> bytes:
    """One line an item of the batch: its operands' elements in hexadecimal, a, b, c, ... each row-major."""
    columns = []
    for _, value in batch.items():
        digits = 2 * value.dtype.itemsize
        big = np.ascontiguousarray(value.reshape(batch.size, -1).astype(value.dtype.newbyteorder(">")))
        columns.append([big[i].tobytes().hex(" ", digits // 2) for i in range(batch.size)])
    return "".join(" ".join(parts) + "\n" for parts in zip(*columns, strict=True)).encode()


def items_of(body: bytes, fmt: Format, per_line: int) -> Bits:
    """The numbers of an answer in text; ValueError naming the first line that is not ``per_line`` of them."""
    values: list[int] = []
    for line in body.split(b"\n")[:-1]:
        try:
            items = [int(word, 16) for word in line.split()]
        except ValueError:
            items = []
        if len(items) != per_line or any(not 0 <= item < 1 << fmt.container_bits for item in items):
            raise ValueError(f"{line[:80]!r} is not {per_line} item(s) of {fmt.name} in hexadecimal")
        values += items
    return np.array(values, fmt.dtype)
