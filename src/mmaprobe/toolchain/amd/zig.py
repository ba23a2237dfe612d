"""The clang that the wheel ``ziglang`` holds: a compiler for AMD without root, and no disassembler.

It asks for a linker named ``lld``, which zig is only as ``zig ld.lld``: a script beside the source stands for it.
Source: tried with ziglang 0.17.1 (clang 22.1.8); the code is that of clang 22.1.8 from elsewhere.
"""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from pathlib import Path

WHEEL = "ziglang"


def command() -> tuple[str, ...]:
    """zig as clang; empty where the wheel is not installed."""
    found = find_spec(WHEEL)
    return (str(Path(found.origin).parent / "zig"), "clang") if found and found.origin else ()


def linker(zig: str, folder: Path) -> tuple[str, ...]:
    """The script put into a folder, and the option that has clang find it there."""
    script = folder / "lld"
    script.write_text(f'#!/bin/sh\n[ "$1" = -flavor ] && shift 2\nexec {shlex.quote(zig)} ld.lld "$@"\n')
    script.chmod(0o755)
    return ("-B", str(folder))
