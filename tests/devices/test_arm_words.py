"""The words of Arm's instructions are LLVM's: few emulators run SME2 and FP8, so that nothing else shows a wrong one.

Of csrc/cpu/units/instructions_arm.cpp each word with its instruction beside it is what clang makes of that; the word of
each unit is what llvm-objdump reads as the instruction of its id, with its registers and the sizes of its elements.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from mmaprobe import formats
from mmaprobe.catalog.lookup import instruction
from mmaprobe.toolchain.amd import code_object
from mmaprobe.toolchain.amd.clang import Clang

SOURCE = (Path(__file__).parents[2] / "csrc" / "cpu" / "units" / "instructions_arm.cpp").read_text("utf-8")
UNITS = SOURCE[SOURCE.index("constexpr unsigned four_registers") :]
HEX = r"0x([0-9a-f]{8})"
BESIDE = re.compile(HEX + r'(?:;|\\n\\t"|")?\s+(?://|/\*) ([a-z].*?)(?: \*/.*)?$', re.MULTILINE)
"""A word, and the instruction in the comment behind it."""
NAMED = re.compile(r'"(arm\.[^"]+)", (?:"[^"]*"|wide), [^";]*?' + HEX)
PAIRED = re.compile(rf'(two_and_four|two_and_four_by_element)<{HEX}(?:, 8)?>\(\s*all,\s+"([^"]+)",\s+"([^"]+)"')
MADE = re.compile(
    r'id\("([\w.]+)", "(\w+)"(?:, "([\w=]*)")?(?:, "([\w=]+)")?\), "[^"]*", [^";]*?' + HEX + r"( \| four_registers)?"
)
"""How units are written: an id and a word; a word and two ids; the parts of an id and a word."""
FOUR_REGISTERS = {"two_and_four": 1 << 20, "two_and_four_by_element": 1 << 15}
SIZES = {8: "b", 16: "h", 32: "s", 64: "d"}
MARCH = "-march=armv9-a+sve2+sme2+fp8+sme-i16i64"
pytestmark = pytest.mark.needs("clang")


def listed(lines: list[str], folder: Path) -> list[tuple[int, str]]:
    """Each line of assembly as the word that clang makes and the instruction that llvm-objdump reads."""
    (folder / "words.s").write_text("\n".join([".text", *lines, ""]), "utf-8")
    make = [*Clang()._command(), "--target=aarch64-linux-gnu", MARCH, "-c", "words.s", "-o", "words.o"]
    subprocess.run(make, cwd=folder, check=True)
    read = [code_object.objdump(), "-d", "--mattr=+all", "words.o"]
    said = subprocess.run(read, cwd=folder, check=True, capture_output=True, text=True).stdout
    rows = re.findall(r"^ +[0-9a-f]+: ([0-9a-f]{8}) +\t(.*)$", said, re.MULTILINE)
    assert len(rows) == len(lines)
    return [(int(word, 16), " ".join(text.split())) for word, text in rows]


def units() -> dict[str, int]:
    """The word of every unit that is one, by id; of FP8 that of E4M3 times E4M3."""
    found = {name: int(word, 16) for name, word in NAMED.findall(UNITS)}
    for kind, word, of_two, of_four in PAIRED.findall(UNITS):
        found |= {of_two: int(word, 16), of_four: int(word, 16) | FOUR_REGISTERS[kind]}
    for name, d, registers, element, word, four in MADE.findall(UNITS):
        state = ",".join(filter(None, (element, registers)))
        spelled = f"arm.{name}.e4m3.e4m3.{d}" + (f"{{{state}}}" if state else "")
        found[spelled] = int(word, 16) | (FOUR_REGISTERS["two_and_four"] if four else 0)
    return found


def test_words_beside_which_their_instruction_stands(tmp_path: Path) -> None:
    beside = BESIDE.findall(SOURCE)
    assert len(beside) > 40
    made = listed([text for _, text in beside], tmp_path)
    assert [(f"{word:08x}", text) for (word, _), (_, text) in zip(made, beside, strict=True)] == beside


def test_words_of_units(tmp_path: Path) -> None:
    """Mnemonic, how many registers, the elements of the last source and of the destination."""
    words = units()
    assert len(re.findall(HEX, UNITS)) == len(words) - len(PAIRED.findall(UNITS))
    read = listed([f".inst {word:#x}" for word in words.values()], tmp_path)
    for name, (_, text) in zip(words, read, strict=True):
        known = instruction(name)
        mnemonic, d, b = known.opcode.split(".")[1], *(SIZES[formats.get(fmt).bits] for fmt in (known.d, known.b))
        if "neg_a" in known.modifier:
            mnemonic = mnemonic.replace("mopa", "mops")
        assert re.match(rf"{mnemonic} (za\d*|[zv]0)\.\d*{d}\b", text), (name, text)
        assert re.search(rf"\.\d*{b}(\[\d\])?$", text), (name, text)
        if ".za." in known.opcode:
            registers = known.modifier.get("vgx", "2")
            assert (f"vgx{registers}" in text) == (registers != "1"), (name, text)
        if "vdot" not in mnemonic:  # by element all
            assert text.endswith("[0]") == ("b" in known.modifier), (name, text)
