"""Long sums of real libraries: the tree found, run as a program, gives the library's bits."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmaprobe.devices.base import open_device
from mmaprobe.errors import UsageError
from mmaprobe.probing.long_sums.probe import VECTORS, probe_long_sum
from mmaprobe.probing.long_sums.proof import evaluate, round_to
from mmaprobe.probing.long_sums.steps import Arithmetic
from mmaprobe.probing.long_sums.tree_arrays import from_json
from mmaprobe.report.datapath.tree import text
from mmaprobe.report.pictures.long_sums import branch, draw_sum
from mmaprobe.report.pictures.notation import notation
from stand_ins.trees import TreeDevice, chain, pairwise, shuffled, tree_of

NUMPY = [
    "dot?k=4096",
    "dot?k=1000",
    "dot?k=77&format=f64",
    "dot?k=3000&format=f64",
    "dot?k=2048&format=f16",
    "dot?k=600&format=bf16",
    "sum?k=4096",
    "sum?k=777&format=f64",
    "sum?k=1024&format=f16",
    "sum?k=700&format=bf16",
    "einsum?subscripts=i,i->&k=4096",
    "einsum?subscripts=i,i->&k=1001&format=f64",
    "einsum?subscripts=i,i->&k=512&format=f16",
    "inner?k=300",
    "vdot?k=129",
    "matmul?k=500",
    "matmul?m=1&n=1&k=500",
    "matmul?m=5&n=7&k=1000",
    "matmul?m=16&n=16&k=600&format=f64",
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NUMPY)
def test_the_tree_of_numpy_gives_numpys_bits(name: str) -> None:
    device = open_device(f"function:numpy:{name}")
    (instruction,) = device.instructions()
    found = probe_long_sum(device, instruction)
    assert found.status == "exact", found.text
    assert found.answer["program"] == {"vectors": VECTORS, "equal": VECTORS}
    assert found.tiles <= instruction.k * (2 * instruction.k.bit_length() + 3) + VECTORS + 200


@pytest.mark.long
def test_numpys_pairwise_sum() -> None:
    device = open_device("function:numpy:sum?k=2048")
    found = probe_long_sum(device, device.instructions()[0])
    assert (
        str(notation(from_json(found.answer["tree"], 2048)))
        == "pairwise(16 by 128) of pairwise(8 by 1) of chain(16 by 8)"
    )


@pytest.mark.needs("torch")
@pytest.mark.parametrize("name", ["dot?k=1000", "matmul?k=4096", "sum?operands=1&k=1000", "matmul?m=8&n=8&k=1000"])
def test_the_tree_of_pytorch_gives_pytorchs_bits(name: str) -> None:
    device = open_device(f"function:torch:{name}")
    found = probe_long_sum(device, device.instructions()[0])
    assert found.status == "exact", found.text


def test_another_element_of_a_matrix_product() -> None:
    device = open_device("function:numpy:matmul?m=5&n=7&k=100")
    assert probe_long_sum(device, device.instructions()[0], at=(4, 6)).status == "exact"


def test_a_function_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "import numpy as np\n"
        "def dot(a, b):\n"
        "    d = np.float32(0)\n"
        "    for p in (a * b)[::-1]:\n"
        "        d = np.float32(d + p)\n"
        "    return d\n"
    )
    device = open_device(f"function:{path}:dot?k=40")
    found = probe_long_sum(device, device.instructions()[0])
    assert str(notation(from_json(found.answer["tree"], 40))) == "chain(40 by -1)"
    assert found.answer["steps"] == {
        "bits": 24,
        "other_bits": [],
        "rounded_products": [*range(40)],
        "open_products": [],
    }
    assert found.answer["program"]["equal"] == VECTORS


def test_integers_have_no_order_to_read_and_who_has_an_answer_is_said() -> None:
    device = open_device("gemm:mlas_avx2_u8s8?m=4&n=4&k=32")
    with pytest.raises(UsageError, match=r"no order shows; .* mmaprobe gemm identify DEVICE"):
        probe_long_sum(device, device.instructions()[0])


def test_steps_that_differ_from_place_to_place(tmp_path: Path) -> None:
    path = tmp_path / "mixed.py"
    path.write_text(
        "import numpy as np\n"
        "from ml_dtypes import bfloat16\n"
        "def dot(a, b):\n"
        "    p = a.astype(np.float64) * b\n"
        "    wide = p[0] + p[1] + p[2]\n"
        "    return np.float32((np.float32(wide) + np.float32(p[3])) + np.float32(bfloat16(p[4] + p[5])))\n"
    )
    device = open_device(f"function:{path}:dot?k=6")
    found = probe_long_sum(device, device.instructions()[0])
    assert found.answer["steps"]["rounded_products"] == [3]
    kept = {tuple(sorted(item["leaves"])): item["bits"] for item in found.answer["steps"]["other_bits"]}
    assert kept[4, 5] == 8


def test_a_step_that_the_tree_does_not_say_is_found_by_random_vectors() -> None:
    class Rounding(TreeDevice):
        def run(self, instruction: Any, batch: Any) -> Any:
            d = super().run(instruction, batch)
            return np.where(d & 7 == 7, d + 1, d)

    device = Rounding(tree_of(pairwise(range(16))))
    found = probe_long_sum(device, device.instruction)
    assert found.status == "bounded"
    assert 0 < found.answer["program"]["equal"] < VECTORS
    assert "as a program it differs on" in found.text


def test_fused_nodes_are_read_but_not_run() -> None:
    device = TreeDevice(tree_of(shuffled(range(40), 1, 5)))
    found = probe_long_sum(device, device.instruction)
    assert (found.status, found.answer["program"]) == ("exact", None)
    assert "not run as a program" in found.text


@pytest.mark.parametrize(("bits", "dtype"), [(24, np.float32), (53, np.float64), (11, np.float32), (8, np.float32)])
@pytest.mark.parametrize("kind", ["chain", "random"])
def test_the_program_rounds_as_exact_arithmetic_does(bits: int, dtype: Any, kind: str) -> None:
    rng = np.random.default_rng(bits)
    tree = tree_of(chain(range(12)) if kind == "chain" else shuffled(range(12), bits))
    leaf_pairs = {min(children) for children in tree.nodes if max(children) < 12}
    unrounded = frozenset(lane for lane in range(12) if lane not in leaf_pairs and lane % 3)
    a, b = (rng.standard_normal((200, 12)).astype(dtype).astype(np.float64) for _ in range(2))
    product_bits = 53 if bits == 53 else 24
    steps = Arithmetic((bits,) * len(tree.nodes), unrounded, frozenset())
    found = evaluate(tree, steps, a, b, None, product_bits)
    assert found is not None
    for row in range(200):
        values = [Fraction(x) * Fraction(y) for x, y in zip(a[row].tolist(), b[row].tolist(), strict=True)]
        values = [v if lane in unrounded else exact(v, product_bits) for lane, v in enumerate(values)]
        for children in tree.nodes:
            values.append(exact(sum(values[child] for child in children), bits))
        assert Fraction(found[row]) == values[-1]


def exact(value: Fraction, bits: int) -> Fraction:
    """To ``bits`` significant bits, ties to even."""
    if value == 0:
        return value
    top = abs(value.numerator).bit_length() - value.denominator.bit_length()
    for shift in (bits - 1 - top, bits - top):
        scaled = value * Fraction(2) ** shift
        if 2 ** (bits - 1) <= abs(scaled) < 2**bits:
            return round(scaled) / Fraction(2) ** shift  # Python rounds ties to even
    raise AssertionError(value)


def test_rounding_to_few_bits() -> None:
    values = np.array([1.0, 1 + 2.0**-8, 1 + 2.0**-8 + 2.0**-30, 3 + 2.0**-7, -0.1])
    assert round_to(values, 8).tolist() == [1.0, 1.0, 1 + 2.0**-7, 3.0, float(exact(Fraction(-0.1), 8))]


@pytest.mark.needs("matplotlib")
@pytest.mark.parametrize("shape", ["chain", "random", "bounded"])
def test_a_picture_stays_on_a_page(tmp_path: Path, shape: str) -> None:
    from matplotlib.image import imread

    tree = tree_of(shuffled(range(300), 2) if shape == "random" else chain(range(300)))
    device = TreeDevice(tree)
    found = probe_long_sum(device, device.instruction, budget=1100 if shape == "bounded" else 20_000, vectors=5)
    assert (found.status == "bounded") == (shape == "bounded")
    path = tmp_path / "sum.png"
    draw_sum(device.instruction, found, "a sum", path)
    height, width, _ = imread(path).shape
    assert 1000 < width < 6000
    assert 800 < height < 3000


def test_a_picture_says_repeated_parts_once() -> None:
    drawn = branch(notation(tree_of(pairwise([chain(range(way, 64, 8)) for way in range(8)]))))
    assert text(drawn).splitlines() == [
        "pairwise 8, 1 apart",
        "├─ chain 8, 8 apart",
        "│  ├─ a0·b0",
        "│  ├─ a8·b8",
        "│  ├─ …",
        "│  └─ a56·b56",
        "└─ 7 more, from p1 to p7",
    ]
