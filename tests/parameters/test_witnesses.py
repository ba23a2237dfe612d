"""Every witness in a shipped parameter file is what engine, stages and oracle all compute."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import oracle
from mmaprobe import formats
from mmaprobe.models import engine, stages
from mmaprobe.operands.batch import Batch, Witness
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.files import Entry
from mmaprobe.parameters.lookup import load
from mmaprobe.parameters.table import to_table

ARCHITECTURES = (
    "x86-64",
    "x86-64+intel",
    "x86-64+amd",
    "aarch64",
    "sm_70",
    "sm_75",
    "sm_80",
    "sm_89",
    "sm_90a",
    "sm_100a",
)


def entries() -> Iterator[Entry]:
    for architecture in ARCHITECTURES:
        yield from (entry for entry in load(architecture).entries.values() if entry.witnesses)


def batch(datapath: Datapath, witnesses: tuple[Witness, ...]) -> Batch:
    def codes(name: str, values: object) -> np.ndarray:
        return np.array(values, formats.get(name).dtype)

    c = None if datapath.c is None else codes(datapath.c, [w.c for w in witnesses])
    a, b = codes(datapath.a, [w.a for w in witnesses]), codes(datapath.b, [w.b for w in witnesses])
    return Batch(a=a, b=b, c=c)


FOUND = list({(entry.origin, entry.primitive): entry for entry in entries()}.values())


def test_measured_parameters_come_with_witnesses() -> None:
    assert len(FOUND) >= 18
    assert sum(len(entry.witnesses) for entry in FOUND) > 200


@pytest.mark.parametrize("entry", FOUND, ids=lambda entry: f"{entry.origin}/{entry.primitive}")
def test_witnesses_are_computed_alike(entry: Entry) -> None:
    vectors, expected = batch(entry.datapath, entry.witnesses), [w.d for w in entry.witnesses]
    assert engine.evaluate(entry.datapath, vectors).tolist() == expected
    assert stages.evaluate(entry.datapath, vectors).tolist() == expected
    table = to_table(entry.datapath)
    assert [oracle.evaluate(table, w.a, w.b, w.c) for w in entry.witnesses] == expected
