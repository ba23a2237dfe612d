"""The pretended maker's part of the toolchain: a compiler that only counts, no disassembler, one family."""

from __future__ import annotations

from dataclasses import dataclass

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.errors import NotHereError
from mmaprobe.toolchain.compiler import Compiler
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.source import Source
from mmaprobe.toolchain.tools import Family, Listing


@dataclass(frozen=True)
class Ptdcc:
    NEWER: str = "get another one"

    def version(self) -> str:
        return "ptdcc 1"

    def options(self, source: Source) -> tuple[str, ...]:
        return ("--for", source.architecture)

    def check_architecture(self, architecture: str) -> None:
        """All are fine."""

    def compile_source(self, source: Source) -> Kernel:
        return Kernel.of(source, source.text.encode(), self.version())


def source(made: Instruction, architecture: str) -> Source:
    return Source(made.id, architecture, "a text")


FAMILIES = (Family(("ptd_",), source, (), ()),)


def compiler(architecture: str) -> Compiler:
    return Ptdcc()


def named(name: str) -> Compiler | None:
    return Ptdcc() if name == "ptdcc" else None


def disassembler() -> str:
    raise NotHereError("nothing disassembles for Pretend")


def listed(wanted: Instruction, architecture: str, made: Kernel) -> Listing:
    raise NotHereError("nothing disassembles for Pretend")
