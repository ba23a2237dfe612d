"""What commands share: their groups, common options, and how they print."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated, Any, TextIO
from urllib.parse import quote

import typer
from rich.console import Console

import mmaprobe
from mmaprobe.cli.catalog_option import Commands
from mmaprobe.errors import CannotWriteError, UsageError, printable
from mmaprobe.exit_codes import CANNOT_WRITE, EQUAL
from mmaprobe.report.console import ENDLESS, PlainConsole, folded
from mmaprobe.vendors import gpus, vendor_called

if TYPE_CHECKING:
    from mmaprobe.baselines.gate import GateVerdict

app = Commands(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Find out, bit for bit, what a matrix unit computes, and prove it.",
    epilog="Begin with mmaprobe doctor, which says what is here, and mmaprobe run, which asks this machine's own unit. "
    "Each command says more with --help.",
)
corpus_app = Commands(help="Recorded outputs of real hardware: import, list and check them.")
vectors_app = Commands(help="Test vectors by the name that a mismatch prints, its recipe.")
parameters_app = Commands(help="What is known of each unit, as files: show, write and compare them.")
evidence_app = Commands(help="What runs left behind: list, show, verify and compare it.")
plot_app = Commands(help="Draw instructions, errors and runs, as PNG or SVG.")
gemm_app = Commands(help="Whole matrix products: in which order a library adds.")
app.add_typer(corpus_app, name="corpus")
app.add_typer(evidence_app, name="evidence")
app.add_typer(gemm_app, name="gemm")
app.add_typer(vectors_app, name="vectors")
app.add_typer(parameters_app, name="parameters")
app.add_typer(plot_app, name="plot")

SCHEMA = 1
"""Of the JSON documents that commands print; it counts up when a key that they have goes or means something else."""
JSON = "--json"
"""The option of ``JsonOption``."""
MOST_SEED = 2**63 - 1
"""The largest seed: a signed 64-bit integer, which every reader of JSON and TOML takes."""


def path(text: str) -> Path:
    """The path of an option or argument; an empty one, such as an unset variable gives, would be the current folder."""
    if not text:
        raise typer.BadParameter("is empty; name a file or folder")
    return Path(text)


def seed_number(text: str | int) -> int:
    """The seed of an option."""
    try:
        seed = int(text)
    except ValueError:
        seed = -1
    if not 0 <= seed <= MOST_SEED:
        raise typer.BadParameter(f"{text} is no whole number from 0 to {MOST_SEED}")
    return seed


DeviceOption = Annotated[
    str | None,
    typer.Option(
        "--device", "-d", help=f"What to ask: cpu, {gpus(0)}, model:ARCH, replay:PATH, ...; all: mmaprobe devices."
    ),
]
MarkdownOption = Annotated[Path | None, typer.Option("--markdown", parser=path, help="Write a Markdown file too.")]
PackOption = Annotated[
    Path | None,
    typer.Option("--pack", parser=path, help=f"Kernels from this pack, for {gpus('N', ' or ')}; no compiler needed."),
]
BaselineOption = Annotated[
    Path | None,
    typer.Option(
        "--baseline", metavar="RUN", parser=path, help="An older run; exit 1 also where it found something else."
    ),
]
AcceptOption = Annotated[
    list[str] | None,
    typer.Option(
        "--accept-change",
        metavar="CHANGE",
        help="With --baseline: a change that is expected; an instruction id, a glob or a question.",
    ),
]
GlobOption = Annotated[
    str, typer.Option("--instruction", "-i", metavar="ID", help="Instruction id, or a glob such as 'mma.*'.")
]
SeedOption = Annotated[
    int, typer.Option(metavar="N", parser=seed_number, help="Start of all that is random: same seed, same vectors.")
]
DrawnSeedOption = Annotated[
    int | None,
    typer.Option(
        "--seed",
        metavar="N",
        parser=seed_number,
        help="Start of all that is random: same seed, same vectors; without one it is drawn and printed.",
    ),
]
JsonOption = Annotated[bool, typer.Option(JSON, help="Print JSON on standard output.")]
VectorsOption = Annotated[int, typer.Option("--vectors", "-n", help="Vectors to compare.")]


typed: list[str] = []
"""The words of the command under way."""
emitted: list[Any] = []
"""The JSON document of the command under way, where it has printed one."""
ends: list[str] = []
"""What is said where it is interrupted, besides that it is."""


def out() -> Console:
    """Standard output; a line is a line where it is no terminal."""
    return PlainConsole(width=None if sys.stdout.isatty() else ENDLESS)


def tell(text: str) -> None:
    """A line on standard error, where that can be written; on a terminal it breaks between words."""
    if sys.stderr is None:
        return
    line = printable(text)
    if sys.stderr.isatty():
        line = folded(line, get_terminal_size().columns)
    encoding = sys.stderr.encoding or "utf-8"
    try:
        print(line.encode(encoding, "backslashreplace").decode(encoding), file=sys.stderr, flush=True)
    except OSError:
        leave_nothing(sys.stderr)


def leave_nothing(stream: TextIO) -> None:
    """What a stream did not take is not written at the interpreter's end either, which would change the exit code."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def emit(value: Any) -> None:
    """Print a JSON document with the number of its schema; rows stand under ``rows``."""
    emitted.append(value)
    document = value if isinstance(value, dict) else {"rows": value}
    sys.stdout.write(json.dumps({"schema": SCHEMA, **document}, indent=2, sort_keys=True) + "\n")


def _version(wanted: bool) -> None:
    if wanted:
        out().print(f"mmaprobe {mmaprobe.__version__}")
        raise typer.Exit


@app.callback()
def every_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Find out, bit for bit, what a matrix unit computes, and prove it."""


def drawn(seed: int | None) -> int:
    """The seed of a command; drawn where nobody fixed one: then standard error gets the command that repeats it."""
    from mmaprobe.generators.seeds import fixed, seed_of

    known = fixed(seed)
    if known is not None:
        return known
    seed = seed_of(None)
    again = shlex.join(["mmaprobe", *typed[:1], "--seed", str(seed), *typed[1:]])
    tell(f"seed {seed}; the same vectors again: {again}")
    return seed


@contextmanager
def going_on(folder: Path | None, seed: int | None) -> Iterator[None]:
    """Ctrl-C inside comes with the one command that goes on in the folder."""
    try:
        yield
    except KeyboardInterrupt:
        if folder is not None:
            seeded = [] if seed is None or "--seed" in typed else ["--seed", str(seed)]
            again = [*typed, *["--resume"] * ("--resume" not in typed), *seeded]
            ends[:] = [f"the shards that are there stay; this goes on: {shlex.join(['mmaprobe', *again])}"]
        raise


def print_verdict(verdict: GateVerdict | None) -> None:
    """What a run came to beside its baseline, where it has one."""
    from mmaprobe.baselines.wording import verdict_lines

    if verdict is not None:
        out().print("\n".join(verdict_lines(verdict)))


def show(rows: Sequence[dict[str, Any]], as_json: bool, columns: Sequence[str]) -> int:
    """Print rows as a table or as JSON."""
    from mmaprobe.report.tables.listing import table

    if as_json:
        emit(list(rows))
    else:
        out().print(table(rows, columns))
    return 0


def refuse(context: typer.Context, names: Iterable[str], why: str) -> None:
    """UsageError where one of these options was given: it would be ignored without a word."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in names and source is not None and source.name == "COMMANDLINE":
            raise UsageError(f"{parameter.opts[0]} {why}")


def check_files(junit: Path | None, markdown: Path | None) -> None:
    """CannotWriteError where a file that is written when all is done could not be, before hours are spent."""
    from mmaprobe.evidence.files import check_place

    for place, option in ((junit, "--junit"), (markdown, "--markdown")):
        if place is not None:
            check_place(place, f"choose another file with {option}")


def written(*writes: Callable[[], object]) -> int:
    """Write files beside what is printed: 6 where one cannot be, which a line says, else 0."""
    code = EQUAL
    for write in writes:
        try:
            write()
        except CannotWriteError as error:
            tell(f"mmaprobe: {error}")
            code = CANNOT_WRITE
    return code


def packed(device: str | None, pack: Path | None) -> str | None:
    """The device's name with the pack among its options."""
    if pack is None:
        return device
    if device is None or vendor_called(device.partition(":")[0]) is None:
        raise UsageError(f"--pack holds kernels for a GPU; {device or 'cpu'} is none: --device {gpus(0)}")
    return f"{device}{'&' if '?' in device else '?'}pack={quote(str(pack.resolve()))}"
