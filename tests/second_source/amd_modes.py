"""The rounding mode in which every instruction of an AMD kernel runs, by the paths through its disassembly."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from mmaprobe.toolchain.amd.code_object import objdump
from mmaprobe.toolchain.source import ENTRY

NEAREST = 0
"""Binary32 and binary64 to nearest even, as a kernel starts; ``hwreg(HW_REG_MODE, 0, 4)``."""
_DESCRIPTOR = 64
"""Bytes of a kernel's descriptor (LLVM 22, AMDGPU usage)."""
_LABEL = re.compile(r"^<(\w+)>:$")
_SET = re.compile(r"^s_setreg\w* hwreg\((\w+), (\d+), (\d+)\), (\S+)$")
_BRANCH = re.compile(r"^(s_branch|s_cbranch\w*) (\w+)$")


def modes(code: bytes, wave: int) -> list[tuple[str, frozenset[int]]]:
    """Each instruction that can be reached, and the rounding modes that it may run in."""
    lines, labels = _lines(code, wave)
    seen: list[set[int]] = [set() for _ in lines]
    todo = [(0, NEAREST)]
    while todo:
        at, mode = todo.pop()
        if mode in seen[at]:
            continue
        seen[at].add(mode)
        todo += [(following, _after(lines[at], mode)) for following in _following(lines[at], at, labels)]
    return [(line, frozenset(found)) for line, found in zip(lines, seen, strict=True) if found]


def instructions(code: bytes, wave: int) -> list[str]:
    """All of them, reached or not."""
    return _lines(code, wave)[0]


def starting_modes(code: bytes) -> dict[str, int]:
    """How a kernel's waves start, by its descriptor: rounding (0: nearest even) and subnormals (3: kept)."""
    place = re.search(rf"^([0-9a-f]+) .* {ENTRY}\.kd$", _printed(code, "-t"), re.MULTILINE)
    assert place
    first = int(place[1], 16)  # other constants may follow: the printer reads a descriptor that stands alone
    text = _printed(code, "-D", "-j", ".rodata", f"--start-address={first}", f"--stop-address={first + _DESCRIPTOR}")
    return {name: int(value) for name, value in re.findall(r"\.amdhsa_float_(\w+_mode_\w+) (\d+)", text)}


def _printed(code: bytes, *options: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.co"
        path.write_bytes(code)
        command = [objdump(), "-d", "--no-show-raw-insn", "--no-leading-addr", *options, str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _lines(code: bytes, wave: int) -> tuple[list[str], dict[str, int]]:
    lanes = f"--mattr={'+' if wave == 64 else '-'}wavefrontsize64"
    lines: list[str] = []
    labels: dict[str, int] = {}
    for raw in _printed(code, "--symbolize-operands", lanes).splitlines():
        line = raw.partition("//")[0].strip()
        label = _LABEL.match(line)
        if label:
            labels[label[1]] = len(lines)
        elif raw.startswith("\t") and line:
            lines.append(line)
    return lines, labels


def _after(line: str, mode: int) -> int:
    if not line.startswith("s_setreg"):
        return mode
    register, first, bits, value = _read_set(line)
    if not register.endswith("MODE") or first > 3:
        return mode
    assert (first, bits) == (0, 4), line
    return int(value, 0)


def _read_set(line: str) -> tuple[str, int, int, str]:
    found = _SET.match(line)
    assert found, line
    return found[1], int(found[2]), int(found[3]), found[4]


def _following(line: str, at: int, labels: dict[str, int]) -> list[int]:
    assert not line.startswith(("s_swappc", "s_setpc", "s_call", "s_round_mode")), line
    if line.startswith("s_endpgm"):
        return []
    branch = _BRANCH.match(line)
    if branch:
        return [labels[branch[2]], *([] if branch[1] == "s_branch" else [at + 1])]
    assert "branch" not in line, line
    return [at + 1]
