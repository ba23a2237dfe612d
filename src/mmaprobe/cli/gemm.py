"""The commands of whole matrix products."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mmaprobe.cli.terminal import JsonOption, SeedOption, emit, gemm_app, out, path
from mmaprobe.exit_codes import DEVICE_FAILED, EQUAL, INCONCLUSIVE

CODES = {"exact": EQUAL, "bounded": INCONCLUSIVE, "wrong": DEVICE_FAILED}
"""Exit codes by status."""


@gemm_app.command()
def identify(
    product: Annotated[str, typer.Argument(help="function:numpy:matmul?m=256&n=256&k=1000&threads=1, gemm:FILE?...")],
    output: Annotated[
        Path | None, typer.Option("--out", "-o", parser=path, help="Write the schedule that was found: FILE.toml.")
    ] = None,
    budget: Annotated[int, typer.Option(help="Most calls.", min=1)] = 2000,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> int:
    """Find the schedule of a matrix product: in which order it adds, which elements, for every shape that was tried."""
    from mmaprobe.derivation.schedules.identify import identify as search
    from mmaprobe.devices.products import open_product
    from mmaprobe.evidence.files import write_bytes
    from mmaprobe.parameters.schedule import to_text
    from mmaprobe.report.tables import schedules

    found = search(open_product(product), budget, seed)
    if output is not None and found.schedule is not None:
        write_bytes(output, to_text(found.schedule).encode(), "choose another file with --out")
    if as_json:
        emit(schedules.identified_json(found))
    else:
        out().print("\n".join(schedules.identified_lines(found, output)), markup=False, soft_wrap=True)
    return CODES[found.status]
