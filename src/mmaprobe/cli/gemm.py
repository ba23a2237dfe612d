"""The commands of whole matrix products."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mmaprobe.cli.terminal import JsonOption, SeedOption, emit, gemm_app, out, path
from mmaprobe.errors import UsageError, brief
from mmaprobe.exit_codes import EQUAL, IDENTIFIED, INCONCLUSIVE, MISMATCH
from mmaprobe.vendors import every

if TYPE_CHECKING:
    from mmaprobe.report.fitted import FittedTable

OURS = ", ".join(f"{vendor.scheme}-gemm:0" for vendor in every() if vendor.products)
"""Devices that are products of our own."""
ELEMENTS = 200_000
"""Elements that ``diff`` compares at least, where nothing else is said."""


@gemm_app.command()
def identify(
    product: Annotated[str, typer.Argument(help="function:numpy:matmul?m=256&n=256&k=1000&threads=1, gemm:FILE?...")],
    output: Annotated[
        Path | None, typer.Option("--out", "-o", parser=path, help="Write the schedule that was found: FILE.toml.")
    ] = None,
    budget: Annotated[int, typer.Option(help="Calls to make at most.", min=1)] = 2000,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> int:
    """Find the schedule of a matrix product: in which order it adds, which elements, for every shape that was tried."""
    from mmaprobe.derivation.schedules.identify import identify as search
    from mmaprobe.devices.products import open_product
    from mmaprobe.evidence.files import write_bytes
    from mmaprobe.parameters.schedule import to_text
    from mmaprobe.report.progress import CallsProgress
    from mmaprobe.report.tables import schedules

    opened = open_product(product)
    with CallsProgress(budget) as bar:
        found = search(opened, budget, seed, bar)
    if output is not None and found.schedule is not None:
        write_bytes(output, to_text(found.schedule).encode(), "choose another file with --out")
    if as_json:
        emit(schedules.identified_json(found))
    else:
        out().print("\n".join(schedules.identified_lines(found, output)))
    return IDENTIFIED[found.status]


@gemm_app.command("map")
def map_(
    product: Annotated[str, typer.Argument(help="A product: function:numpy:matmul?n=256&k=1000, gemm:FILE, ...")],
    m: Annotated[str, typer.Option("--m", help="Rows of D, one after the other: 1,2,8.")] = "1,2,3,8,32,128",
    n: Annotated[str, typer.Option("--n", help="Columns of D; without it those that PRODUCT says.")] = "",
    k: Annotated[
        str, typer.Option("--k", help="Products that an element adds; without it those that PRODUCT says.")
    ] = "",
    threads: Annotated[str, typer.Option(help="Threads of a function: 1,2.")] = "",
    schedule: Annotated[list[str] | None, typer.Option(help="Hold it against this schedule, too: FILE.toml.")] = None,
    budget: Annotated[int, typer.Option(help="Calls to make at most.", min=1)] = 4000,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> int:
    """Say in which order a matrix product adds at which shape, and whether a row keeps its bits in every batch."""
    from mmaprobe.derivation.schedules.mapping import map_product
    from mmaprobe.devices.products import open_product
    from mmaprobe.parameters.schedule import known_schedules, schedule_named
    from mmaprobe.report.tables import product_maps

    name = full(product)
    numbers = _numbers("--threads", threads)
    if numbers and (not name.startswith("function:") or "threads=" in name):
        raise UsageError("--threads goes with function: whose name says no threads")
    asked = {count: open_product(f"{name}{'&' if '?' in name else '?'}threads={count}") for count in numbers}
    asked = asked or {0: open_product(name)}
    _, columns, lanes = next(iter(asked.values())).shape
    shapes = [
        (rows, across, depth)
        for depth in _numbers("--k", k) or [lanes]
        for across in _numbers("--n", n) or [columns]
        for rows in _numbers("--m", m)
    ]
    tried = {each: schedule_named(each) for each in (*known_schedules(), *(schedule or ()))}
    found = map_product(asked, shapes, tried, budget, seed, name)
    if as_json:
        emit(product_maps.map_json(found))
    else:
        _print(product_maps.map_lines(found))
    return EQUAL if found.rows else INCONCLUSIVE


def _numbers(option: str, text: str) -> list[int]:
    """Whole numbers that commas separate, each once."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not all(word.isascii() and word.isdigit() and 0 < len(word) < 10 and int(word) for word in words):
        raise UsageError(f"{option} is {brief(text)}; it must be whole numbers above 0, such as 1,2,8")
    return list(dict.fromkeys(map(int, words)))


@gemm_app.command()
def diff(
    p: Annotated[str, typer.Argument(help="A product (function:..., gemm:...), the name of a schedule, or FILE.toml.")],
    q: Annotated[str, typer.Argument(help="Another one; it is asked at the shapes of the first.")],
    elements: Annotated[int, typer.Option(help="Elements of D to compare at least.", min=1)] = ELEMENTS,
    family: Annotated[
        list[str] | None, typer.Option("--family", help="Only these kinds of values. May be repeated.")
    ] = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> int:
    """Tell two matrix products apart: where they differ, and the smallest product that shows it."""
    return hold(full(p), full(q), elements, seed, family, as_json)


@gemm_app.command()
def kernel(
    product: Annotated[str, typer.Argument(help=f"{OURS}?m=136&n=136&k=200&stages=4.")],
    arch: Annotated[str, typer.Option("--arch", "-a", help="Exact architecture or product of the GPU.")],
    output: Annotated[
        Path | None, typer.Option("--out", "-o", parser=path, help="Write its schedule: FILE.toml.")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Compile a product of our own, read its machine code without a GPU, and hold its order to its schedule."""
    from mmaprobe.catalog.lookup import architecture_base
    from mmaprobe.devices.product_kernels import read_kernel
    from mmaprobe.evidence.files import write_bytes
    from mmaprobe.parameters.schedule import to_text

    found = read_kernel(product, architecture_base(arch))
    if output is not None:
        write_bytes(output, to_text(found.schedule).encode(), "choose another file with --out")
    if as_json:
        rows = [{"order": order, "elements": count} for order, count in found.kinds]
        what = {"kernel": found.what, "toolchain": found.toolchain, "states": found.states}
        emit({**what, "wrong": list(found.wrong), "rows": rows})
    else:
        ring = f"its ring has {found.states:,} states, and none breaks a rule" if found.states else ""
        lines = [
            f"{found.what}, by {found.toolchain}",
            *(f"{count:,} elements: {order}" for order, count in found.kinds),
        ]
        said = found.wrong or ("every element adds as the schedule says", *filter(None, [ring]))
        _print([*lines, *said])
    return MISMATCH if found.wrong else EQUAL


def hold(p: str, q: str, elements: int, seed: int, families: list[str] | None, as_json: bool) -> int:
    """Hold one product against another, and say what came of it; the exit code."""
    from mmaprobe.devices.products import open_product
    from mmaprobe.report.tables import products
    from mmaprobe.validation.products.verdict import hold_against

    found = hold_against(open_product(p), open_product(q), elements, seed, families or ())
    if as_json:
        emit(products.verdict_json(found))
        return found.exit_code
    _print(products.verdict_lines(found))
    return found.exit_code


def _print(lines: Iterable[str | FittedTable]) -> None:
    for each in lines:
        out().print(each)


def full(name: str) -> str:
    """The name of a product; that of a schedule, or its file, may stand alone."""
    from mmaprobe.devices.products import is_product
    from mmaprobe.parameters.schedule import known_schedules

    target = name.partition("?")[0]
    alone = target in known_schedules() or (target.endswith(".toml") and not is_product(name))
    return f"gemm:{name}" if alone else name
