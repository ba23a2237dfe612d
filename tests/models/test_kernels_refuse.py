"""A kernel takes the datapath that it computes: a field of any record that it does not know makes it refuse."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import fields, is_dataclass, make_dataclass, replace
from typing import Any

import pytest

from cases.engine import DATAPATHS, C
from mmaprobe.catalog.lookup import instruction
from mmaprobe.models.kernels import (
    CHAIN,
    EXACT_SUM,
    FLUSHED_CHAIN,
    FUSED,
    GROUPED,
    INTEGER_SATURATES,
    INTEGER_WRAPS,
    INTERPRETER,
    KERNELS,
    LATE_C,
    PAIRS,
    SHORT_SUMS,
    TREE,
    TWO_STAGE,
    kernel,
)
from mmaprobe.parameters.datapath import (
    NODES,
    Datapath,
    Encode,
    Fma,
    Operand,
    Product,
    Scale,
    Special,
    Term,
    Zero,
)
from mmaprobe.parameters.lookup import datapath_for

RECORDS = (*(node for node in NODES if node is not Zero), Datapath, Encode, Operand, Product, Scale, Special, Term)
"""Every record that a datapath of some kernel holds."""
CASES = [
    (FUSED, DATAPATHS["T-FDPA f16"]), (FUSED, DATAPATHS["mxf8f6f4"]),
    (CHAIN, Datapath("f32", "f32", "f32", "f32", 4, Fma(C, (0, 1, 2, 3), Encode()))),
    (TWO_STAGE, DATAPATHS["CDNA3 bf16"]), (TWO_STAGE, DATAPATHS["CDNA3 fp8"]), (GROUPED, DATAPATHS["mxf4nvf4"]),
    (EXACT_SUM, DATAPATHS["CDNA1 f16"]),
    (PAIRS, datapath_for("gfx90a", instruction("v_mfma_f32_16x16x16f16", "gfx90a"))),
    (SHORT_SUMS, datapath_for("gfx1100", instruction("v_wmma_f32_16x16x16_f16", "gfx1100"))),
    (SHORT_SUMS, datapath_for("gfx1201", instruction("v_wmma_bf16_16x16x16_bf16", "gfx1201"))),
    (FLUSHED_CHAIN, datapath_for("x86-64+intel", instruction("x86.vdpbf16ps"))),
    (LATE_C, datapath_for("sm_90a", instruction("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "sm_90a"))),
    (TREE, datapath_for("x86-64+intel", instruction("x86.dpps"))),
    (TREE, datapath_for("x86-64+intel", instruction("x86.tdpfp16ps"))),
    (INTEGER_WRAPS, DATAPATHS["s8"]), (INTEGER_WRAPS, DATAPATHS["b1 xor"]),
    (INTEGER_SATURATES, DATAPATHS["s16 saturating"]),
]  # fmt: skip


def changed(value: Any, record: type) -> Iterator[Any]:
    """The value with the new field of one record in it set, for each such record."""
    if isinstance(value, record):
        yield replace(value, novelty=1)  # type: ignore[call-arg]
    if is_dataclass(value):
        for field in fields(value):
            for part in changed(getattr(value, field.name), record):
                yield replace(value, **{field.name: part})  # type: ignore[type-var]
    elif isinstance(value, tuple):
        for i, item in enumerate(value):
            for part in changed(item, record):
                yield (*value[:i], part, *value[i + 1 :])


@pytest.fixture(params=RECORDS, ids=lambda record: record.__name__)
def record(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> type:
    """A record with one more field, ``novelty``, which is 0 where nothing is said."""
    wider = make_dataclass("Wider", [("novelty", int, 0)], bases=(request.param,), frozen=True)
    for name in ("__init__", "__eq__", "__hash__", "__dataclass_fields__"):
        monkeypatch.setattr(request.param, name, wider.__dict__[name])
    monkeypatch.setattr(request.param, "novelty", 0, raising=False)
    found: type = request.param
    return found


def test_every_kernel_has_a_case() -> None:
    assert {number for number, _ in CASES} == set(range(len(KERNELS))) - {INTERPRETER}


def test_a_field_that_no_kernel_knows_is_refused(record: type) -> None:
    refused = 0
    for number, path in CASES:
        path = deepcopy(path)  # without the hashes that its records kept from before they had one more field
        assert kernel(path) == number
        for other in changed(path, record):
            assert other != path
            assert kernel(other) == INTERPRETER, f"{KERNELS[number]} takes {record.__name__}"
            refused += 1
    assert refused
