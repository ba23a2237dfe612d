"""Commands that need a compiler and no GPU: kernels put into a pack, and a bundle for a machine without network."""

from __future__ import annotations

import os
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmaprobe.cli import argument_checks
from mmaprobe.cli.terminal import GlobOption, JsonOption, app, emit, out, path
from mmaprobe.showing import counted
from mmaprobe.vendors import compilers

if TYPE_CHECKING:
    from mmaprobe.toolchain.build import Built
    from mmaprobe.toolchain.compiler import Compiler

Architecture = Annotated[str, typer.Option("--arch", "-a", help="Exact architecture or product: sm_90a, H200, gfx942.")]
CompilerName = Annotated[
    str,
    typer.Option("--compiler", help=f"{compilers()}; default: what is here."),
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Cores to use; 0: all.", min=0, max=1024)]
Campaign = Annotated[
    bool,
    typer.Option(
        "--campaign", help="Also kernels that make, run and compare vectors on the GPU itself (seconds each)."
    ),
]
Variants = Annotated[
    bool,
    typer.Option(
        "--variants", help="Also other sizes, and every placement and modifier, of each form, as a run needs them."
    ),
]
SHOWN = ("changed", "refused", "open")
ENDS = (("changed", 1), ("unread", 4), ("refused", 3), ("compiled", 0))
"""The exit code of a compilation: that of the first status which some kernel has."""


@app.command("compile")
@argument_checks.arguments_first(argument_checks.kernels)
def compile_kernels(
    architecture: Architecture,
    instruction: GlobOption = "*",
    folder: Annotated[
        Path | None, typer.Option("--out", "-o", parser=path, help="Pack to put the kernels into.")
    ] = None,
    jobs: Jobs = 0,
    compiler: CompilerName = "",
    campaign: Campaign = False,
    variants: Variants = False,
    as_json: JsonOption = False,
) -> int:
    """Compile kernels for an architecture, hold their disassembly against the catalog, and put them into a pack."""
    from mmaprobe.toolchain.pack import check_pack, write_pack

    home, chosen = _target(architecture, compiler)
    stamp = chosen.version()
    if folder is not None:
        check_pack(folder, home, stamp)
    built = _build(home, instruction, jobs, chosen, campaign, variants)
    if folder is not None:
        write_pack(folder, home, stamp, built)
    rows = [_row(each) for each in built]
    counts: Counter[str] = Counter(each.status for each in built)
    if as_json:
        emit({"architecture": architecture, "kernels": rows, "counts": dict(counts)})
    else:
        for row in rows:
            if row["status"] in SHOWN:
                out().print(f"{row['status']}: {row['instruction']}: {row['reason']}")
        _unread(built)
        said = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
        out().print(f"{architecture}: {said}" + (f"; pack in {folder}" if folder else ""))
    return next((code for status, code in ENDS if counts[status]), 4)


@app.command("pack")
@argument_checks.arguments_first(argument_checks.kernels)
def pack(
    architecture: Architecture,
    bundle: Annotated[
        Path, typer.Option("--bundle", "-b", parser=path, help="Folder for wheels, kernels and install script.")
    ],
    instruction: GlobOption = "*",
    source: Annotated[str, typer.Option(help="Checkout or wheel of mmaprobe; default: where it came from.")] = "",
    jobs: Jobs = 0,
    campaign: Campaign = False,
    variants: Variants = False,
    as_json: JsonOption = False,
) -> int:
    """Put mmaprobe, all that it needs and kernels for an architecture into a folder for a machine without network."""
    from mmaprobe.toolchain import bundle as made
    from mmaprobe.toolchain.pack import check_pack, write_pack

    home, compiler = _target(architecture, "")
    stamp = compiler.version()
    check_pack(bundle / made.KERNELS, home, stamp)
    wheels = made.gather(bundle, made.requirement(home, source))
    built = _build(home, instruction, jobs, compiler, campaign, variants)
    kernels = write_pack(bundle / made.KERNELS, home, stamp, built).kernels
    script = made.write_script(bundle, home)
    left_out = sum(each.status in ("refused", "open") for each in built)
    if as_json:
        emit({"folder": str(bundle), "wheels": len(wheels), "kernels": len(kernels), "architecture": home,
              "compiler": str(stamp), "left_out": left_out, "script": script.name})  # fmt: skip
    else:
        out().print(
            f"{bundle}: {counted(len(wheels), 'wheel')}, {counted(len(kernels), 'kernel')} for {home} by {stamp}, "
            f"{left_out} left out; on the other machine: sh {script.name}",
        )
        _unread(built)
    found = {each.status for each in built}
    return 1 if "changed" in found else 4 if "unread" in found or not kernels else 0


def _target(architecture: str, named: str) -> tuple[str, Compiler]:
    """The catalog's name of an architecture, and a compiler that knows it: the one ``named``, or what is here."""
    from mmaprobe.catalog.lookup import architecture_base
    from mmaprobe.toolchain.vendors import compiler_for, named_compiler

    home = architecture_base(architecture)
    compiler = named_compiler(named, home) if named else compiler_for(home)
    compiler.check_architecture(home)
    return home, compiler


def _build(home: str, instruction: str, jobs: int, compiler: Compiler, campaign: bool, variants: bool) -> list[Built]:
    """Every form that the glob names, with its variants, or the one instruction of that id, compiled; where a layout
    is open, by each of its claims as well."""
    from mmaprobe.catalog.layouts import claims
    from mmaprobe.catalog.lookup import forms
    from mmaprobe.catalog.lookup import instruction as instruction_of
    from mmaprobe.catalog.variants import asked
    from mmaprobe.report.progress import KernelProgress
    from mmaprobe.toolchain.build import build_all, build_campaigns
    from mmaprobe.validation.fused import shipped_campaigns

    names = [form.first.id for form in forms(home, instruction)]
    if not names:
        names = [instruction_of(instruction, home).id]

    def by_claims(plain: list[str]) -> list[str]:
        return [*plain, *(made.id for name in plain for made in claims(instruction_of(name, home), home))]

    sources = list(shipped_campaigns(by_claims(names), home)) if campaign else []
    if variants:
        more = [made.id for found in asked(home, instruction).values() for made in found]
        names = list(dict.fromkeys((*names, *more)))
    names = by_claims(names)
    workers = jobs or os.cpu_count() or 1
    with KernelProgress(len(names) + len(sources)) as bar:
        built = []
        batches = build_all([(name, home) for name in names], workers, compiler)
        for each in chain(batches, build_campaigns(sources, workers, compiler)):
            built.append(each)
            bar(each.instruction)
    return built


def _unread(built: list[Built]) -> None:
    """Say once why kernels were not looked at."""
    reason = next((each.reason for each in built if each.status == "unread"), "")
    if reason:
        out().print(reason)


def _row(built: Built) -> dict[str, Any]:
    return {
        "instruction": built.instruction,
        "campaign": bool(built.campaign),
        "status": built.status,
        "reason": built.reason,
        "opcodes": built.opcodes,
        "code": built.code,
        "resources": built.resources,
        "bytes": len(built.kernel.binary) if built.kernel else 0,
    }
