"""A schedule as a device: what ``tree`` reads of it is the order that its file says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mmaprobe
from mmaprobe.devices.gemm import open_gemm
from mmaprobe.errors import UsageError
from mmaprobe.operands.batch import Batch

FILE = """
schema = 1
a = "f32"
b = "f32"
d = "f32"
c = "f32"
scope = { library = "none", most_k = 64 }
regions = [{ kernel = "x" }]

[[kernels]]
name = "x"
ranges = { cut = "halve_last", length = 8, unit = 2 }
join = { format = "f32", order = "pairwise" }
accumulators = { format = "f32", count = 4, join = "halves" }
step = { by = "multiply_add" }
"""


def leaves(form: Any) -> Any:
    """A tree as sets in sets: the order of an addition's operands is not read."""
    if not isinstance(form, dict):
        return form
    first, *rest = map(leaves, form["terms"])
    for each in rest:
        first = frozenset((first, each))
    return first


def added(*terms: Any) -> Any:
    return leaves({"terms": terms})


def test_the_tree_that_is_read_is_that_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(FILE, encoding="utf-8")
    device = open_gemm(f"{path}?m=2&n=2&k=21")
    found = mmaprobe.read_tree(device, device.instruction, vectors=50)

    def part(lanes: range) -> Any:
        x = [added(*lanes[i::4]) for i in range(4)]
        return added(added(x[0], x[2]), added(x[1], x[3]))

    ranges = [part(range(8)), part(range(8, 14)), part(range(14, 21))]
    assert found.answer is not None
    assert leaves(found.answer["tree"]) == added(added(ranges[0], ranges[1]), ranges[2])
    assert found.answer["program"] == {"vectors": 50, "equal": 50}


@pytest.mark.parametrize(("at", "ways"), [((0, 0), 2), ((8, 0), 1)])
def test_openblas_in_both_regions(at: tuple[int, int], ways: int) -> None:
    device = open_gemm("openblas_haswell_f32?m=12&n=16&k=700")
    found = mmaprobe.read_tree(device, device.instruction, at=at, vectors=20)

    def part(lanes: range) -> Any:
        whole = lanes.stop - len(lanes) % 8
        first = added(*range(lanes.start, whole, ways), *range(whole, lanes.stop))
        return first if ways == 1 else added(first, added(*range(lanes.start + 1, whole, 2)))

    assert found.answer is not None
    assert leaves(found.answer["tree"]) == added(*map(part, (range(320), range(320, 512), range(512, 700))))


def test_c_and_what_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(FILE, encoding="utf-8")
    device = open_gemm(f"{path}?m=1&n=1&k=1&c=1")
    one = np.full((1, 1, 1), 0x3F800000, np.uint32)
    assert device.run(device.instruction, Batch(a=one, b=one, c=one)).tolist() == [[[0x40000000]]]
    for argument, said in (
        (f"{path}?k=65", "K is 65; the schedule holds for K from 0 to 64"),
        ("openblas_haswell_f32?c=1", "the schedule takes no C"),
        ("openblas_haswell_f32?k=many", "option k='many'"),
        ("openblas_haswell_f32?threads=2", "unknown option 'threads'"),
        ("?k=3", "gemm: of which schedule?"),
        ("openblas?k=3", "no schedule 'openblas' ships"),
    ):
        with pytest.raises(UsageError) as error:
            open_gemm(argument)
        assert said in str(error.value)
