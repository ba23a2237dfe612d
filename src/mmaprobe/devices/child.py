"""A child process that is asked and answers, each exchange bounded in time."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import shlex
import signal
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import IO

from mmaprobe.devices import waiting
from mmaprobe.errors import DeviceError, NotHereError
from mmaprobe.showing import counted

_TAIL = 600
"""Characters of standard error that a message carries."""
_LAST_BREATH = 30.0
"""Seconds that a killed child may take: a driver ends what it has on the device first."""


class LateError(DeviceError):
    """A child did not answer within its time limit."""


class EndlessError(DeviceError):
    """A killed child does not end: the kernel's driver holds it."""


MOST_HELLO = 1 << 20
"""Bytes of a first line at most, with the ids of every instruction."""
_STARTING = threading.Lock()
_STOPPING: list[bool] = []
_RUNNING: weakref.WeakSet[subprocess.Popen[bytes]] = weakref.WeakSet()


@contextlib.contextmanager
def no_children() -> Iterator[None]:
    """Every child is killed and none is started inside: what waits for one on another thread of an interrupted process
    has its answer, a DeviceError, at once."""
    with _STARTING:
        _STOPPING.append(True)
        for process in list(_RUNNING):
            _kill(process)
    try:
        yield
    finally:
        _STOPPING.pop()


class Child:
    """One command; ``start`` it, then ``exchange`` requests for answers.  After a failure it is stopped."""

    def __init__(
        self, command: tuple[str, ...], timeout: float, late: str = "", environment: Mapping[str, str] | None = None
    ) -> None:
        """``late`` is said where an answer is late: what to do about it; ``environment`` is set besides one's own."""
        self._command = command
        self._environment = None if environment is None else {**os.environ, **environment}
        self._timeout, self._late = timeout, late
        self._waited = False
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None

    @property
    def session(self) -> int:
        """The session of the running child and of all that it has started; -1 where none runs."""
        return self._process.pid if self._process is not None else -1

    def start(self) -> str:
        """Start the command; the first line it prints."""
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115
        with _STARTING:
            if _STOPPING:
                raise DeviceError(f"process {shlex.join(self._command)}: not started, the run is being interrupted")
            try:
                self._process = subprocess.Popen(
                    self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr, bufsize=0,
                    start_new_session=True, env=self._environment,
                )  # fmt: skip
            except OSError as error:
                raise NotHereError(f"cannot start {shlex.join(self._command)}: {error.strerror or error}") from error
            _RUNNING.add(self._process)
        weakref.finalize(self, _end, self._process)
        for pipe in self._pipes():
            os.set_blocking(pipe.fileno(), False)
        line = self._talk(b"", self._line)
        if len(line) > MOST_HELLO:
            raise self.failure(f"its first line is longer than {MOST_HELLO} bytes")
        return line.decode("utf-8", "replace")

    @staticmethod
    def _line(answer: bytearray) -> bool:
        return answer.endswith(b"\n") or len(answer) > MOST_HELLO

    def exchange(self, request: bytes, *, size: int | None = None, lines: int | None = 0, most: int = 1 << 30) -> bytes:
        """Send ``request``; the answer's first line, then ``size`` bytes or ``lines`` lines (an error line alone).

        ``lines`` None: as many as the first line says, ``ok LINES``.
        Lines of over ``most`` bytes in all are a failure: an answer without end is not read.
        """

        def complete(answer: bytearray) -> bool:
            if answer.startswith(b"error") or not answer.startswith(b"ok "[: len(answer)]):
                return answer.endswith(b"\n") or len(answer) > 4096
            if len(answer) > (most if size is None else MOST_HELLO + size):
                return True  # more than any answer: refused below
            if size is None:
                return answer.endswith(b"\n") and answer.count(b"\n") >= 1 + (
                    _announced(answer) if lines is None else lines
                )
            first = answer.find(b"\n")
            return first >= 0 and len(answer) >= first + 1 + size

        answer = self._talk(request, complete)
        lines = _announced(answer) if lines is None else lines
        if size is None and not answer.endswith(b"\n") and answer.startswith(b"ok "):
            raise self.failure(f"answered {len(answer)} bytes and no end of a line; {lines} lines were due")
        body = answer.partition(b"\n")[2]
        extra = len(body) - size if size is not None else body.count(b"\n") - lines
        if answer.startswith(b"ok ") and extra:
            raise self.failure(f"answered {counted(extra, 'byte' if size is not None else 'line')} more than was due")
        return answer

    def _talk(self, request: bytes, complete: Callable[[bytearray], bool]) -> bytes:
        """Write and read at once until the answer is complete; an interrupt stops the child, whose answer is lost."""
        try:
            return self._converse(request, complete)
        except KeyboardInterrupt:
            self.stop()
            raise

    def _converse(self, request: bytes, complete: Callable[[bytearray], bool]) -> bytes:
        stdin, stdout = self._pipes()
        deadline = time.monotonic() + self._timeout
        rest, answer = memoryview(request), bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            if rest:
                selector.register(stdin, selectors.EVENT_WRITE)
            silent = time.monotonic() + waiting.PATIENCE
            while not complete(answer) or (rest and answer.startswith(b"ok ")):
                until = deadline if self._waited else min(deadline, silent)
                left = until - time.monotonic()
                ready = selector.select(left) if left > 0 else []
                if not ready and until < deadline:
                    self._wonder()
                    continue
                if not ready:
                    said = f"no complete answer within {self._timeout:g} s ({len(answer)} bytes came){self._late}"
                    raise self.failure(said, LateError)
                silent = time.monotonic() + waiting.PATIENCE
                for key, _ in ready:
                    if key.fileobj is stdin:
                        rest = _write(stdin, rest)
                        if not rest:
                            selector.unregister(stdin)
                    elif piece := stdout.read(1 << 20):
                        answer += piece
                    else:
                        raise self.failure(f"{self._death()} after {len(answer)} bytes of its answer")
        return bytes(answer)

    def _wonder(self) -> None:
        """Say once of what nothing comes."""
        self._waited = True
        limit = f"it may take {self._timeout:g} s{self._late}"
        waiting.tell(
            f"waiting for {shlex.join(self._command)}, which has been silent for {waiting.PATIENCE:g} s; {limit}; "
            "Ctrl-C ends it"
        )

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        """The running child's standard input and output."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise DeviceError(f"process {shlex.join(self._command)}: not running")
        return process.stdin, process.stdout

    def _death(self) -> str:
        try:
            code = self._process.wait(5) if self._process else 0
        except subprocess.TimeoutExpired:
            return "closed its pipes"
        return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"

    def failure(self, what: str, kind: type[DeviceError] = DeviceError) -> DeviceError:
        """Stop the child; the error to raise, with the tail of its standard error."""
        self.stop()
        tail = ""
        if self._stderr is not None:
            self._stderr.seek(max(0, self._stderr.seek(0, os.SEEK_END) - _TAIL))
            tail = self._stderr.read().decode("utf-8", "replace").strip()
        said = f"; its standard error ends: {tail}" if tail else ""
        return kind(f"process {shlex.join(self._command)}: {what}{said}")

    def stop(self) -> None:
        """End the child now, if it runs; EndlessError where it cannot be ended."""
        process, self._process = self._process, None
        if process is not None and not _end(process):
            raise EndlessError(
                f"process {shlex.join(self._command)}: killed, it has not ended within {_LAST_BREATH:g} s; the "
                f"kernel's driver holds it; see: ps -o pid,stat,wchan -p {process.pid}"
            )


def _announced(answer: bytes | bytearray) -> int:
    """How many lines an answer's first line, ``ok LINES``, announces; 0 where it says no number."""
    words = answer.partition(b"\n")[0].split()
    return int(words[1]) if len(words) == 2 and re.fullmatch(rb"[0-9]{1,9}", words[1]) else 0


def _write(stdin: IO[bytes], rest: memoryview) -> memoryview:
    """Write a piece; what is left, or nothing where the child reads no more (its output says why)."""
    try:
        return rest[stdin.write(rest[: 1 << 20]) or 0 :]
    except BrokenPipeError:
        return rest[:0]


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # a session of its own: the whole pipeline of a shell


def _end(process: subprocess.Popen[bytes]) -> bool:
    """Kill a child and what it has started; whether it ended."""
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if pipe is not None:
                pipe.close()
    _kill(process)
    try:
        process.wait(_LAST_BREATH)
    except subprocess.TimeoutExpired:
        return False
    return True
