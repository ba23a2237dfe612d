"""What is wrong with the arguments of a command is said before what is missing on the machine.

A command that ends because something is not here has its arguments checked as far as they can be without it; what is
wrong with them is then the error (exit 2 instead of 3).  ``arguments_first`` adds that to a command; here is one
function a command, which takes the command's own arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from mmaprobe.errors import NotHereError, UsageError

if TYPE_CHECKING:
    from mmaprobe.catalog.instruction import Instruction
    from mmaprobe.devices.base import Device

P = ParamSpec("P")
R = TypeVar("R")


def arguments_first(check: Callable[..., object]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A command whose arguments are checked where something is not here."""

    def decorate(command: Callable[P, R]) -> Callable[P, R]:
        @wraps(command)
        def checked(*args: P.args, **given: P.kwargs) -> R:
            try:
                return command(*args, **given)
            except NotHereError:
                check(**given)
                raise

        return checked

    return decorate


def opened(name: str) -> Device | None:
    """The device, None where it is not here; UsageError for a name that is none."""
    from mmaprobe.devices.base import open_device

    with suppress(NotHereError):
        return open_device(name)
    return None


def homes(name: str) -> tuple[str, ...]:
    """The architectures that a device may be of: its own, or those of its kind where it is not here."""
    from mmaprobe.catalog.lookup import architectures
    from mmaprobe.vendors import vendor_called

    device = opened(name)
    if device is not None:
        own = device.info().get("architecture", "")
        return (own,) if own else ()
    vendor = vendor_called(name.partition(":")[0])
    return tuple(filter(vendor.makes, architectures())) if vendor else ()


def instruction_of(device: str, pattern: str) -> Instruction | None:
    """The first instruction that an id or glob names of what a device may be; None where nothing is known of that.

    UsageError where it names none.
    """
    from mmaprobe.catalog.lookup import instruction, is_glob, match, matches

    here = opened(device)
    for made in here.instructions() if here is not None else ():
        if matches(made, pattern):
            return made
    every = homes(device)
    for home in every:
        with suppress(UsageError):
            return match(home, pattern)[0]
    if len(every) == 1:
        match(every[0], pattern)
    if every and not is_glob(pattern):
        instruction(pattern)  # says what is near
    if every:
        raise UsageError(f"no {device} has an instruction {pattern!r}; see: mmaprobe instructions")
    return None


def run(
    device: str | None,
    instruction: str,
    steps: str | None,
    pack: Path | None,
    baseline: Path | None = None,
    accept_change: list[str] | None = None,
    plan: str = "",
    **_: Any,
) -> None:
    from mmaprobe.baselines.gate import read_baseline
    from mmaprobe.campaigns.plan import read_plan
    from mmaprobe.campaigns.planned_run import PlannedRun
    from mmaprobe.runs.verbs import typed_steps

    typed_steps(steps)
    if plan:
        PlannedRun(read_plan(plan))
    read_baseline(baseline, accept_change or ())
    _pack(pack)
    if device is not None and instruction != "*":
        instruction_of(device, instruction)


def probe(
    instruction: str | None,
    device: str | None,
    question: list[str] | None,
    suite: str | None,
    questions: bool,
    pack: Path | None,
    **_: Any,
) -> None:
    from mmaprobe.probing.published.suites import suite as suite_of
    from mmaprobe.probing.suite import checked
    from mmaprobe.runs.open_questions.claims import named

    _pack(pack)
    if questions:
        named(tuple(question or ()))
        return
    if suite is not None:
        suite_of(suite)
    checked(question)
    if instruction is not None:
        instruction_of(device or "cpu", instruction)


def replay(what: str, device: str | None, ref: str | None, **_: Any) -> None:
    from mmaprobe.generators.recipe import Recipe, is_recipe
    from mmaprobe.validation.mismatch_file import read_saved

    recipe = is_recipe(what) and not Path(what).exists()
    asked = [Recipe.parse(what).instruction] if recipe else [saved.instruction for saved in read_saved(Path(what))]
    for name in filter(None, (device, ref)):
        for instruction in asked:
            instruction_of(name, instruction)


def validate(
    dut: str,
    ref: str,
    instruction: str,
    vectors: int,
    generator: list[str] | None,
    nan: str,
    plan: str,
    save: Path | None,
    baseline: Path | None = None,
    accept_change: list[str] | None = None,
    **_: Any,
) -> None:
    from mmaprobe.baselines.gate import read_baseline
    from mmaprobe.campaigns.plan import read_plan
    from mmaprobe.validation.mismatch_file import check_target
    from mmaprobe.validation.stream import check_generators, check_options

    check_options(vectors, nan=nan)
    if save is not None:
        check_target(save)
    read_baseline(baseline, accept_change or ())
    if plan:
        read_plan(plan)
    if not (plan or instruction):
        return  # two whole products, whose names are no devices'
    for device in filter(None, (dut, ref)):
        found = instruction_of(device, instruction or "*")
        if found is not None and instruction:
            check_generators(found, generator or ())


def derive(what: str, device: str | None, write: Path | None, **_: Any) -> None:
    from mmaprobe.catalog.lookup import parts
    from mmaprobe.catalog.names import architecture_of
    from mmaprobe.parameters.lookup import read_file

    if write is not None and write.exists():
        read_file(write)
    name = device or "cpu"
    try:
        architectures = {architecture_of(part) for part in parts(what)}
    except UsageError:
        instruction_of(name, what)
        return
    if not architectures & set(homes(name)):
        raise UsageError(f"no {name} is {what}; choose another with --device")


def kernels(
    architecture: str, instruction: str, compiler: str = "", folder: Path | None = None, source: str = "", **_: Any
) -> None:
    """Of ``compile`` and ``pack``."""
    from mmaprobe.catalog.lookup import architecture_base, match
    from mmaprobe.toolchain.bundle import requirement
    from mmaprobe.toolchain.pack import LIST, check_pack, open_pack
    from mmaprobe.toolchain.vendors import compiler_for, named_compiler

    home = architecture_base(architecture)
    with suppress(NotHereError):
        named_compiler(compiler, home) if compiler else compiler_for(home)
    match(home, instruction)
    if folder is not None and (folder / LIST).exists():
        check_pack(folder, home, open_pack(folder).toolchain)
    if source:
        requirement(home, source)


def tree(device: str, instruction: str | None, at: str, **_: Any) -> None:
    place(at)
    if instruction is not None:
        instruction_of(device, instruction)


def evidence_tables(folder: Path, plot: Path | None = None, **_: Any) -> None:
    """Of ``evidence export`` and ``trend``."""
    from mmaprobe.baselines.tables import are_tables

    if plot is not None and plot.suffix not in (".png", ".svg"):
        raise UsageError(f"--plot {plot} must end with .png or .svg")
    are_tables(folder)


def place(text: str) -> tuple[int, int]:
    """Row and column of a result."""
    row, _, column = text.partition(",")
    if not (row.strip().isdigit() and column.strip().isdigit()):
        raise UsageError(f"--at {text!r} must be ROW,COLUMN, as in 0,0")
    return int(row), int(column)


def _pack(folder: Path | None) -> None:
    from mmaprobe.toolchain.pack import open_pack

    if folder is not None:
        open_pack(folder)
