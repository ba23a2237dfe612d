"""The step ``product``: a device that multiplies whole matrices, held against a schedule, named or found first."""

from __future__ import annotations

from typing import Any

from mmaprobe.derivation.schedules.identify import identify
from mmaprobe.devices.base import Device
from mmaprobe.devices.gemm import GemmProduct
from mmaprobe.devices.products import MatrixProduct, is_product, open_product
from mmaprobe.errors import UsageError
from mmaprobe.exit_codes import IDENTIFIED
from mmaprobe.models.gemm import gemm
from mmaprobe.parameters.schedule import to_text
from mmaprobe.report.run_summary import PRODUCT
from mmaprobe.report.tables.products import verdict_json, verdict_line
from mmaprobe.report.tables.schedules import identified_json
from mmaprobe.runs.run_state import RunState, Work
from mmaprobe.runs.steps import LONGEST, RunStep
from mmaprobe.showing import counted
from mmaprobe.validation.products.comparing import products_of
from mmaprobe.validation.products.verdict import hold_against

FOUND = "identify"
"""In place of a schedule's name: find it first."""
FILE = "schedule.toml"
"""Name of the schedule in the evidence."""
ELEMENTS = 200_000
"""Elements of D that are compared at least."""


def product_step(device: Device, schedule: str) -> RunStep:
    """The step that holds a device to a schedule: the name of one that ships, a file, or ``identify``.

    UsageError for a device that multiplies no matrices of any shape, a schedule that is none, or other formats.
    """
    if not is_product(device.name):
        raise UsageError(
            f"--schedule goes with --device function:MODULE:NAME or gemm:FILE; {device.name} is no product"
        )
    product = open_product(device.name)
    stated = None if schedule == FOUND else _stated(product, schedule)
    purpose = "a whole matrix product beside a schedule, every element of D"

    def work(run: RunState) -> Work:
        return _held(run, product, stated)

    return RunStep(PRODUCT, purpose, LONGEST, work)


def _stated(product: MatrixProduct, schedule: str) -> GemmProduct:
    stated = GemmProduct(f"gemm:{schedule}", product.shape, gemm(schedule))
    products_of(product, stated)
    stated.schedule.scope.check(*product.shape)
    return stated


def _held(run: RunState, product: MatrixProduct, stated: GemmProduct | None) -> Work:
    """Find the schedule where none is stated, then compare every element of D at the device's shape and others."""
    result = run.result(PRODUCT)
    if stated is None:
        yield f"{product.name}: its schedule is looked for"
        stated = _found(run, product, result)
        if stated is None:
            return
    run.store.attach(FILE, to_text(stated.schedule).encode())
    yield f"{product.name}: held against its schedule"
    verdict = hold_against(product, stated, ELEMENTS, run.seed)
    result["verdict"], result["exit_code"] = verdict_json(verdict), verdict.exit_code
    result["text"] = verdict_line(verdict)


def _found(run: RunState, product: MatrixProduct, result: dict[str, Any]) -> GemmProduct | None:
    """The product of the schedule that asking found; None, and why, where there is none."""
    found = identify(product, seed=run.seed, hearing=lambda phase, count: run.say(f"{phase}, {counted(count, 'call')}"))
    result["identified"] = identified_json(found)
    if found.schedule is None or found.status != "exact":
        said = f": {found.why[-1]}" if found.why else ""
        result["text"], result["exit_code"] = f"its schedule is {found.status}{said}", IDENTIFIED[found.status]
        return None
    return GemmProduct(f"gemm:{FILE}", product.shape, gemm(found.schedule))
