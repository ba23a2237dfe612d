"""Write ``layouts.json``: what CuTe's headers, compiled on the CPU, print for layouts, named and random ones.

``python print_layouts.py PATH/TO/CUTLASS [--cuda INCLUDE]`` needs a C++17 compiler ($CXX, else g++), a checkout of
CUTLASS and the headers of a CUDA toolkit; no GPU, and nothing of CUTLASS is copied.  Questions that the headers
refuse (a static assertion) are left out: a compilation that fails names their lines, the next one has the rest.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
SEED = 22
"""The seed of the random layouts."""
FIRST = 256
"""How many offsets of a swizzle are asked for."""
Argument = str | list[str]
Question = tuple[str, list[Argument]]

NAMED: list[Question] = [
    ("coalesce", ["(2,(1,6)):(1,(6,2))"]),
    ("coalesce", ["((2,4),(1,2)):((1,2),(4,8))"]),
    ("composition", ["(6,2):(8,2)", "(4,3):(3,1)"]),
    ("composition", ["20:2", "(5,4):(4,1)"]),
    ("composition", ["(10,2):(16,4)", "(5,4):(1,5)"]),
    ("composition", ["(12,(4,8)):(59,(13,1))", ["3:4", "8:2"]]),
    ("composition", ["(6,2):(1,100)", "4:4"]),
    ("composition", ["(6,4):(1,100)", "4:4"]),
    ("composition", ["(2,2):(2,1)", "(2,2):(1,1)"]),
    ("complement", ["4:1", "24"]),
    ("complement", ["6:4", "24"]),
    ("complement", ["(4,6):(1,4)", "24"]),
    ("complement", ["4:2", "24"]),
    ("complement", ["(2,4):(1,6)", "24"]),
    ("complement", ["(2,2):(1,6)", "24"]),
    ("complement", ["4:4", "16"]),
    ("complement", ["(2,2):(1,3)", "12"]),
    ("logical_divide", ["(4,2,3):(2,1,8)", "4:2"]),
    ("logical_divide", ["(9,(4,8)):(59,(13,1))", ["3:3", "(2,4):(1,8)"]]),
    ("zipped_divide", ["(9,(4,8)):(59,(13,1))", ["3:3", "(2,4):(1,8)"]]),
    ("tiled_divide", ["(9,(4,8)):(59,(13,1))", ["3:3", "(2,4):(1,8)"]]),
    ("flat_divide", ["(9,(4,8)):(59,(13,1))", ["3:3", "(2,4):(1,8)"]]),
    ("logical_product", ["(2,2):(4,1)", "6:1"]),
    ("logical_product", ["(2,2):(4,1)", "(4,2):(2,1)"]),
    ("logical_product", ["(2,5):(5,1)", ["3:5", "4:6"]]),
    ("blocked_product", ["(2,5):(5,1)", "(3,4):(1,3)"]),
    ("raked_product", ["(2,5):(5,1)", "(3,4):(1,3)"]),
    ("logical_divide", ["7:1", "4:1"]),
    ("flat_divide", ["(8,6):(6,1)", ["4:1"]]),
    ("tiled_divide", ["(8,6):(6,1)", ["4:1"]]),
    ("zipped_divide", ["((8,2),6):((6,48),1)", [["4:1", "2:1"], "3:1"]]),
    ("flat_product", ["(8,6):(6,1)", ["4:1"]]),
    ("raked_product", ["(2):(12)", "(2):(1)"]),
    ("blocked_product", ["2:1", "(2):(1)"]),
]
SWIZZLES = [
    (0, 4, 3),
    (1, 4, 3),
    (2, 4, 3),
    (3, 4, 3),
    (3, 3, 3),
    (2, 0, 2),
    (2, 0, 3),
    (2, 1, -2),
    (1, 0, -3),
    (2, 5, 2),
]
TRAITS = [
    "SM70_8x8x4_F32F16F16F32_TN", "SM75_16x8x8_F32F16F16F32_TN", "SM80_16x8x8_F32F16F16F32_TN",
    "SM80_16x8x16_F32F16F16F32_TN", "SM80_16x8x8_F32TF32TF32F32_TN", "SM80_8x8x4_F64F64F64F64_TN",
    "SM80_16x8x32_S32S8S8S32_TN", "SM80_16x8x64_S32S4S4S32_TN", "SM80_16x8x256_S32U1U1S32_TN_XORPOPC",
    "SM90::GMMA::MMA_64x64x16_F32F16F16_RS<SM90::GMMA::Major::K,SM90::GMMA::Major::K>",
]  # fmt: skip
WIDTHS = ("INTER", "SW32", "SW64", "SW128")


class Layouts:
    """Random layouts, in CuTe's notation."""

    def __init__(self) -> None:
        self.dice = random.Random(SEED)

    def leaves(self, most: int, sizes: tuple[int, ...] = (1, 2, 2, 3, 4, 4, 6, 8)) -> list[list[int]]:
        """Sizes, with strides that are those of a permuted array, with gaps, or anything."""
        made = [[self.dice.choice(sizes), 0] for _ in range(self.dice.randint(1, most))]
        step, kind = 1, self.dice.choice(("compact", "compact", "gaps", "any"))
        for leaf in self.dice.sample(made, len(made)):
            step *= self.dice.choice((1, 1, 2, 3)) if kind == "gaps" else 1
            leaf[1] = self.dice.choice((0, 1, 2, 3, 4, 6, 8, 12)) if kind == "any" else step
            step *= leaf[0]
        return made

    def layout(self, most: int = 4) -> str:
        """A layout of up to so many leaves, some of them nested."""
        leaves = self.leaves(most)
        if len(leaves) == 1 and self.dice.random() < 0.7:
            return f"{leaves[0][0]}:{leaves[0][1]}"
        parts: list[tuple[str, str]] = []
        while leaves:
            count = self.dice.choice((1, 1, 1, 2))
            some, leaves = leaves[:count], leaves[count:]
            texts = [",".join(str(leaf[half]) for leaf in some) for half in (0, 1)]
            parts.append((texts[0], texts[1]) if len(some) == 1 else (f"({texts[0]})", f"({texts[1]})"))
        return ":".join(f"({','.join(part[half] for part in parts)})" for half in (0, 1))

    def small(self) -> str:
        """A tile of one or two leaves."""
        leaves = self.leaves(2, (2, 2, 3, 4))
        if len(leaves) == 1:
            return f"{leaves[0][0]}:{leaves[0][1]}"
        return f"({leaves[0][0]},{leaves[1][0]}):({leaves[0][1]},{leaves[1][1]})"


def questions() -> Iterator[Question]:
    """Every question, the named ones first."""
    yield from NAMED
    layouts = Layouts()
    for _ in range(12):
        one = layouts.layout()
        yield from ((name, [one]) for name in ("size", "cosize", "rank", "depth", "offsets"))
    for name, count in (("coalesce", 30), ("right_inverse", 30), ("left_inverse", 30)):
        yield from ((name, [layouts.layout()]) for _ in range(count))
    for _ in range(70):
        yield "composition", [layouts.layout(), layouts.layout(2)]
    for _ in range(40):
        yield "complement", [layouts.layout(3), str(layouts.dice.choice((12, 24, 48, 64, 96)))]
    for name in ("logical_divide", "zipped_divide", "tiled_divide", "flat_divide"):
        yield from ((name, [layouts.layout(), layouts.small()]) for _ in range(24 if name == "logical_divide" else 8))
        yield from ((name, _by_mode(layouts)) for _ in range(10))
    for name in ("logical_product", "zipped_product", "tiled_product", "flat_product"):
        yield from ((name, [layouts.layout(3), layouts.small()]) for _ in range(16 if name == "logical_product" else 6))
        yield from ((name, _by_mode(layouts)) for _ in range(6))
    for name in ("blocked_product", "raked_product"):
        yield from ((name, [layouts.layout(3), layouts.small()]) for _ in range(12))
    for bits, base, shift in SWIZZLES:
        yield "offsets", [f"Sw<{bits},{base},{shift}>"]
        yield "composition", [f"Sw<{bits},{base},{shift}>", "(8,(4,8)):(32,(1,4))"]
        yield "offsets", [f"Sw<{bits},{base},{shift}> o 0 o (8,8):(8,1)"]
    for trait in TRAITS:
        yield from ((f"{operand}Layout", [trait]) for operand in "ABC")
    for major in ("K", "MN"):
        yield from (("atom", [f"SM90::GMMA::Layout_{major}_{width}_Atom<uint8_t>"]) for width in WIDTHS)


def _by_mode(layouts: Layouts) -> list[Argument]:
    tiles: list[str] = [layouts.small() for _ in range(2)]
    columns = layouts.dice.choice(("8):(1,16)", "9):(9,1)", "(4,6)):(1,(16,64))"))
    return [f"({layouts.dice.choice((8, 12))},{columns}", tiles]


def cpp(argument: Argument) -> str:
    """A layout, swizzle, number or tiler as an expression of C++."""
    if isinstance(argument, list):
        return f"make_tile({', '.join(map(cpp, argument))})"
    if " o " in argument:
        swizzle, _, layout = argument.split(" o ")
        return f"composition({cpp(swizzle)}, {cpp(layout)})"
    if argument.startswith("Sw"):
        return f"Swizzle{argument[2:]}{{}}"
    if ":" not in argument:
        return f"Int<{argument}>{{}}"
    shape, stride = (re.sub(r"\d+", r"Int<\g<0>>", half).replace("(", "tuple<").replace(")", ">")
                     for half in argument.split(":"))  # fmt: skip
    return f"Layout<{shape}, {stride}>{{}}"


def asked(question: Question) -> str:
    """A question as an expression of C++."""
    name, arguments = question
    if name.endswith("Layout"):
        return f"typename MMA_Traits<{arguments[0]}>::{name}{{}}"
    if name == "atom":
        return f"{arguments[0]}{{}}"
    made = ", ".join(map(cpp, arguments))
    if name == "offsets":
        plain = "o" not in str(arguments[0]) and ":" not in str(arguments[0])
        return f"offsets({made}, {FIRST if plain else f'int(size({made}))'})"
    return f"{name}({made})"


def compiled(every: dict[int, Question], folder: Path, command: list[str]) -> set[int]:
    """The numbers of the questions that the headers refuse; none where there is a program."""
    numbers = list(every)
    lines = [f"QUESTION({number}, {asked(question)});" for number, question in every.items()]
    (folder / "questions.inc").write_text("\n".join(lines) + "\n")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    refused = {numbers[int(line) - 1] for line in re.findall(r"questions\.inc:(\d+):", done.stderr)}
    if done.returncode and not refused:
        raise SystemExit(done.stderr[-4000:])
    return refused


def _plain(found: re.Match[str]) -> str:
    """What CuTe prints for a static number, or for a pointer that a layout of bytes waits for, as plain text."""
    return "" if found[0] == "_" else "0"


def main() -> None:
    """Ask, compile, run, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cutlass", type=Path)
    parser.add_argument("--cuda", type=Path, default=Path("/usr/local/cuda/include"))
    given = parser.parse_args()
    every = dict(enumerate(questions()))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [os.environ.get("CXX", "g++"), "-std=c++17", "-O0", "-w", "-fmax-errors=0", f"-I{name}",
                   f"-I{given.cutlass / 'include'}", f"-I{given.cuda}", f"-I{given.cuda / 'cccl'}",
                   str(HERE / "print_layouts.cpp"), "-o", str(folder / "print_layouts")]  # fmt: skip
        while refused := compiled(every, folder, command):
            every = {number: question for number, question in every.items() if number not in refused}
        said = subprocess.run([folder / "print_layouts"], capture_output=True, text=True, check=True).stdout
    answers = dict(line.split("\t") for line in said.splitlines())
    rows = [
        json.dumps([function, arguments, re.sub(r"_|smem_ptr\[8b\]\(unset\)", _plain, answers[str(number)])])
        for number, (function, arguments) in every.items()
    ]
    (HERE / "layouts.json").write_text("[\n" + ",\n".join(rows) + "\n]\n")
    print(f"{len(rows)} answers")


if __name__ == "__main__":
    main()
