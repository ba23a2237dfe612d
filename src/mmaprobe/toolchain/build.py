"""Compile instructions and look at what came out: one, or many on several cores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction, lowering
from mmaprobe.errors import NotHereError, UsageError
from mmaprobe.toolchain.compiler import Compiler, RefusedError
from mmaprobe.toolchain.kernel import Kernel
from mmaprobe.toolchain.kernel_cache import kernel, kernel_of
from mmaprobe.toolchain.render import render
from mmaprobe.toolchain.source import Source
from mmaprobe.toolchain.vendors import compiler_for, disassembler, listed

BuildStatus = Literal["compiled", "changed", "unread", "refused", "open"]
Pair = tuple[str, str]
"""Id of an instruction and an architecture."""


@dataclass(frozen=True)
class Built:
    """What became of an instruction on an architecture.

    ``compiled``: the disassembly holds the matrix instructions that the catalog's lowering states;
    ``changed``: it does not, ``reason`` says how; ``unread``: no disassembler is here, so that nobody knows;
    ``refused`` by the compiler; ``open``: a layout of it is.
    ``code`` is the hash of the disassembled instructions; ``campaign`` that of the source, where it is a campaign's;
    ``resources`` are what the kernel takes of a multiprocessor: registers, of AMD also spills and memory in bytes.
    """

    instruction: str
    architecture: str
    status: BuildStatus
    reason: str = ""
    kernel: Kernel | None = None
    opcodes: dict[str, int] = field(default_factory=dict)
    code: str = ""
    campaign: str = ""
    resources: dict[str, int] = field(default_factory=dict)


def build(pair: Pair, compiler: Compiler | None = None) -> Built:
    """Compile and disassemble one, by the vendor's own compiler where none is given; NotHereError without one."""
    name, architecture = pair
    wanted = instruction(name, architecture)
    lowering(wanted, architecture)
    return _built(wanted, architecture, lambda: kernel(wanted, architecture, compiler))


def build_campaign(source: Source, compiler: Compiler | None = None) -> Built:
    """``build`` of a campaign's source; in stages it has no matrix instruction of its own."""
    wanted = instruction(source.instruction, source.architecture)
    built = _built(wanted, source.architecture, lambda: kernel_of(source, compiler))
    if source.campaign == "staged" and built.status == "changed" and not built.opcodes:
        built = replace(built, status="compiled", reason="")
    return replace(built, campaign=source.hash)


def _built(wanted: Instruction, architecture: str, make: Callable[[], Kernel]) -> Built:
    name = wanted.id
    try:
        made = make()
    except RefusedError as error:
        return Built(name, architecture, "refused", str(error).removeprefix(f"{name} on {architecture}: "))
    except UsageError as error:
        return Built(name, architecture, "open", str(error).removeprefix(f"{name}: "))
    try:
        disassembler(architecture)
    except NotHereError as error:
        return Built(name, architecture, "unread", f"not held against the catalog: {error}", made)
    seen = listed(wanted, architecture, made)
    status: BuildStatus = "changed" if seen.differs else "compiled"
    return Built(
        name, architecture, status, "; ".join(seen.differs), made, seen.opcodes, seen.code, resources=seen.resources
    )


def refused(name: str, home: str, architecture: str) -> bool:
    """Whether the compiler refuses the source of an instruction, as it is for ``home``, for another architecture: with
    the group of lanes that it is for, and with one of 32, since some targets know no other."""
    source = replace(render(instruction(name, home), home), architecture=architecture)
    return all(_refused(replace(source, threads=threads)) for threads in dict.fromkeys((source.threads, 32)))


def _refused(source: Source) -> bool:
    try:
        compiler_for(source.architecture).compile_source(source)
    except RefusedError:
        return True
    return False


def build_all(pairs: Iterable[Pair], jobs: int = 1, compiler: Compiler | None = None) -> Iterator[Built]:
    """``build`` of each in order, ``jobs`` at once: the compiler and the disassembler work outside Python."""
    wanted = list(pairs)
    return _at_once(partial(build, compiler=compiler), wanted, [home for _, home in wanted], jobs, compiler)


def build_campaigns(sources: Iterable[Source], jobs: int = 1, compiler: Compiler | None = None) -> Iterator[Built]:
    """``build_campaign`` of each in the same way."""
    wanted = list(sources)
    homes = [source.architecture for source in wanted]
    return _at_once(partial(build_campaign, compiler=compiler), wanted, homes, jobs, compiler)


def _at_once(
    make: Callable[[Any], Built], given: Iterable[Any], homes: Iterable[str], jobs: int, compiler: Compiler | None
) -> Iterator[Built]:
    for home in dict.fromkeys(homes):
        (compiler or compiler_for(home)).version()  # imported before several threads do
    with ThreadPoolExecutor(max(jobs, 1)) as pool:
        yield from pool.map(make, given)
