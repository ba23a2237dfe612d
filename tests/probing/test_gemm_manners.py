"""In which manner a product is called: elements that are not written, alignment and a batch that change bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cases.random_products import Modelled, alone
from mmaprobe.derivation.schedules.identify import identify
from mmaprobe.devices.base import open_device
from mmaprobe.devices.callables import placed
from mmaprobe.devices.products import Manner, open_product
from mmaprobe.errors import UsageError
from mmaprobe.parameters.schedule import Accumulators, Join, Ranges
from mmaprobe.probing.gemm.calls import ProductCalls
from mmaprobe.probing.gemm.manners import MannerFinding, ask_manners
from mmaprobe.report.tables.schedules import identified_json, identified_lines

SHAPE = (5, 6, 9)
LIBRARY = """
import numpy as np


def product(a, b, out=None):
    return np.matmul(a, b, out=out)


def forgets(a, b, out=None):
    d = np.matmul(a, b)
    if out is None:
        return d
    out.reshape(-1)[: d.size - 2] = d.reshape(-1)[:-2]


def onto(a, b, out):
    kept = out.copy().view(np.uint32)
    np.matmul(a, b, out=out)
    out.view(np.uint32)[1, 2] ^= kept[1, 2] & 1


def by_address(a, b):
    return np.matmul(a, b) + np.float32(a.ctypes.data % 64 != 0)


def by_rows(a, b):
    return np.matmul(a, b) + np.float32(a.strides[-2] != a.shape[-1] * 4)


def by_lane(a, b):
    d = np.matmul(a, b)
    if d.ndim == 3:
        d[2, 0, 0] += 1
    return d


def flat(a, b):
    if a.ndim != 2:
        raise ValueError("two dimensions are expected")
    return np.matmul(a, b)
"""


@pytest.fixture
def library(tmp_path: Path) -> str:
    path = tmp_path / "library.py"
    path.write_text(LIBRARY, encoding="utf-8")
    return str(path)


def asked(name: str) -> dict[str, MannerFinding]:
    calls = ProductCalls(open_product(name), 20)
    return {each.question: each for each in ask_manners(calls, SHAPE, np.random.default_rng(1))}


@pytest.mark.parametrize("more", ["", "&threads=1"])
def test_a_product_whose_manner_does_not_matter(library: str, more: str) -> None:
    found = asked(f"function:{library}:product?out=1{more}")
    assert {name: each.status for name, each in found.items()} == dict.fromkeys(
        ("written", "alignment", "batch"), "same"
    )
    assert asked(f"function:{library}:product?m=2{more}").keys() == {"alignment", "batch"}


@pytest.mark.parametrize(
    ("name", "question", "said"),
    [
        ("forgets?out=1", "written", "D[4, 4] is not written; 2 of 30 elements have other bits"),
        ("onto?out=1", "written", "D[1, 2] depends on what stood in out before; 1 of 30 elements has other bits"),
        (
            "by_address?",
            "alignment",
            "with operands 1 element after an address that 64 divides 30 of 30 elements have other bits",
        ),
        ("by_rows?", "alignment", "rows 5 further apart 30 of 30 elements have other bits"),
        ("by_lane?", "batch", "as product 2 of 3 equal ones of a call 1 of 30 elements has other bits"),
        ("by_lane?threads=1", "batch", "as product 2 of 3 equal ones of a call 1 of 30 elements has other bits"),
        ("forgets?out=1&threads=1", "written", "D[4, 4] is not written; 2 of 30 elements have other bits"),
    ],
)
def test_what_matters_is_said(library: str, name: str, question: str, said: str) -> None:
    found = asked(f"function:{library}:{name}")
    assert found[question].status == "differs"
    assert found[question].said.endswith(said)


def test_a_product_without_batches_is_not_asked(library: str) -> None:
    found = asked(f"function:{library}:flat?m=3")
    assert found["batch"].status == "not asked"
    assert "two dimensions are expected" in found["batch"].said
    assert found["alignment"].status == "same"


def test_a_model_has_one_manner() -> None:
    plain = alone(Ranges(), Accumulators("f32"), Join("f32"))
    assert ask_manners(ProductCalls(Modelled(plain), 9), SHAPE, np.random.default_rng(0)) == []


def test_identifying_says_so_and_elements_that_are_not_written_are_no_product(library: str) -> None:
    found = identify(open_product(f"function:{library}:forgets?m=5&n=6&k=9&out=1"))
    assert found.status == "wrong"
    assert found.why[-1] == "D[4, 4] is not written; 2 of 30 elements have other bits"
    assert identified_json(found)["manners"][0]["question"] == "written"
    assert "alignment, same: the same bits at 2 other alignments of the operands" in identified_lines(found, None)


def test_operands_lie_where_a_manner_says() -> None:
    bits = np.arange(12, dtype=np.uint16).reshape(3, 4)
    for manner in (Manner(), Manner(shift=3), Manner(shift=1, pad=2), Manner(batch=2, pad=1)):
        found = placed(bits, manner)
        assert (found == bits).all()
        assert found.ctypes.data % 64 == 2 * manner.shift
        assert found.strides[-2:] == (2 * (4 + manner.pad), 2)
        assert found.shape == ((2, 3, 4) if manner.batch else (3, 4))


def test_out_goes_with_whole_products(library: str) -> None:
    with pytest.raises(UsageError, match="out goes with whole products"):
        open_device(f"function:{library}:product?out=1")
    with pytest.raises(UsageError, match="option out='2' must be 0 or 1"):
        open_product(f"function:{library}:product?out=2")
