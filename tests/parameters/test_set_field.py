"""One field of a datapath is set where it stands, as if the whole had been written, edited and read."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from cases.engine import DATAPATHS
from mmaprobe.errors import UsageError
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.table import fields, from_table, set_field, spelt_out_table, to_table


def through_the_table(datapath: Datapath, path: str, value: Any, own: bool) -> Datapath:
    """The same by way of the table of everything."""
    table = spelt_out_table(datapath) if own else to_table(datapath, full=True)
    holder: Any = table
    *parents, last = path.split(".")
    for key in parents:
        holder = holder[int(key)] if isinstance(holder, list) else holder[key]
    holder[int(last) if isinstance(holder, list) else last] = value
    return from_table(table)


def said(change: Any, *arguments: Any) -> Any:
    """What a change makes, or says."""
    try:
        return change(*arguments)
    except UsageError as error:
        return str(error)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", DATAPATHS)
@pytest.mark.parametrize("own", [False, True], ids=["as the node", "of its own"])
def test_a_field_is_set_as_in_the_whole_table(name: str, own: bool) -> None:
    """Every field with its value, and with what only some fields take: the same datapath, or the same words."""
    path = DATAPATHS[name]
    for field, value in fields(path):
        for other in (value, 3, "none", "RNE", "f32", -1):
            arguments = (path, field, other, own)
            assert said(set_field, *arguments) == said(through_the_table, *arguments), (field, other)


def test_a_value_that_lies_too_deep_is_refused() -> None:
    deep: Any = "c"
    for _ in range(3000):
        deep = {"node": "exact", "terms": [deep]}
    for field in ("tree", "tree.terms.0.of"):
        with pytest.raises(UsageError, match=f"{field}: lists or tables lie deeper in each other than"):
            set_field(DATAPATHS["T-FDPA f16"], field, deep)


def test_a_kept_hash_stays_in_its_process() -> None:
    """Another process has another hash of the same text."""
    for path in DATAPATHS.values():
        assert hash(path) == hash(path)
        assert "_hash" in vars(path)
        again = pickle.loads(pickle.dumps(path))
        assert "_hash" not in vars(again)
        assert "_hash" not in vars(again.tree)
        assert (again, hash(again)) == (path, hash(path))
