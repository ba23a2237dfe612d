"""The kernel of an instruction: from the cache on disk, or rendered and compiled into it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import lowering
from mmaprobe.errors import CannotWriteError
from mmaprobe.evidence.files import write_bytes
from mmaprobe.toolchain.compiler import Compiler, RefusedError
from mmaprobe.toolchain.kernel import Kernel, file_name
from mmaprobe.toolchain.render import render
from mmaprobe.toolchain.source import Source
from mmaprobe.toolchain.vendors import compiler_for

CACHE = "MMAPROBE_CACHE"
"""The environment's name for the cache's folder; empty: no cache."""
DIGEST = 32
"""Bytes of a SHA-256."""


def folder() -> Path | None:
    """Where kernels are kept: MMAPROBE_CACHE, else ``mmaprobe`` in the user's cache; None where it is set empty."""
    given = os.environ.get(CACHE)
    if given is not None:
        return Path(given) if given else None
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "mmaprobe"


def kernel(instruction: Instruction, architecture: str, compiler: Compiler | None = None) -> Kernel:
    """The kernel that runs an instruction on batches.

    UsageError where the architecture lacks the instruction or a layout is open, NotHereError where
    the toolchain is missing, ``RefusedError`` where the compiler refuses it.
    """
    source = render(instruction, architecture)
    compiler = compiler or compiler_for(architecture)
    try:
        return kernel_of(source, compiler)
    except RefusedError as error:
        accepts = lowering(instruction, architecture).toolchain
        raise RefusedError(f"{error}; {accepts} accepts it: {compiler.NEWER}") from error


def kernel_of(source: Source, compiler: Compiler | None = None) -> Kernel:
    """A source's kernel, compiled once for each text, compiler and what that is told of it."""
    compiler = compiler or compiler_for(source.architecture)
    stamp = compiler.version()
    path = _path(source, (stamp, *compiler.options(source)))
    kept = None if path is None else _read(path)
    if kept is not None:
        return Kernel.of(source, kept, stamp)
    made = compiler.compile_source(source)
    if path is not None:
        _keep(path, made.binary)
    return made


def _path(source: Source, toolchain: tuple[str, ...]) -> Path | None:
    home = folder()
    key = hashlib.sha256("\0".join([*toolchain, source.architecture, source.text]).encode()).hexdigest()
    return None if home is None else home / key[:2] / file_name(key[2:], source.architecture)


def _read(path: Path) -> bytes | None:
    """A kept binary; None where there is none or it is damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, binary = content[:DIGEST], content[DIGEST:]
    return binary if hashlib.sha256(binary).digest() == digest else None


def _keep(path: Path, binary: bytes) -> None:
    """Keep a binary with its digest; without room for it the next run compiles again."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, hashlib.sha256(binary).digest() + binary)
    except (OSError, CannotWriteError):
        return
