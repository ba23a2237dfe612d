"""Trees of thousands of leaves: read back exactly, in O(K log K) calls."""

from __future__ import annotations

import json
import math
import os
from typing import Any

import pytest

from mmaprobe.cli import main
from mmaprobe.devices.base import open_device
from mmaprobe.errors import UsageError
from mmaprobe.probing.long_sums.masked_calls import MaskedCalls, NoTreeError
from mmaprobe.probing.long_sums.probe import BUDGET, probe_long_sum
from mmaprobe.probing.long_sums.reader import read_tree
from mmaprobe.probing.long_sums.tree_arrays import TreeArrays, from_json, to_json
from mmaprobe.report.pictures.notation import notation
from stand_ins.trees import TreeDevice, chain, pairwise, shuffled, tree_of


def interleaved(count: int, ways: int) -> Any:
    return pairwise([chain(range(way, count, ways)) for way in range(ways)])


def blocked(count: int, size: int) -> Any:
    return chain([interleaved_from(start, size, 8) for start in range(0, count, size)])


def interleaved_from(start: int, count: int, ways: int) -> Any:
    return pairwise([chain(range(start + way, start + count, ways)) for way in range(ways)])


def fused(count: int, width: int) -> Any:
    """Steps of ``width`` products and what came before, one rounding each."""
    out = tuple(range(width))
    for start in range(width, count, width):
        out = (out, *range(start, min(start + width, count)))
    return out


def open_calls(device: Any, instruction: Any, budget: int = BUDGET, seed: int = 0) -> MaskedCalls:
    calls = MaskedCalls(device, instruction, budget, seed)
    calls.prepare()
    return calls


KINDS: dict[str, Any] = {
    "chain": lambda n: chain(range(n)),
    "reversed": lambda n: chain(range(n)[::-1]),
    "pairwise": lambda n: pairwise(range(n)),
    "interleaved": lambda n: interleaved(n, 32),
    "blocked": lambda n: blocked(n, n // 8),
    "random": lambda n: shuffled(range(n), 7),
    "comb": lambda n: chain([(2 * i, 2 * i + 1) for i in range(n // 2)]),
    "fused steps": lambda n: fused(n, 16),
    "random, up to 5 wide": lambda n: shuffled(range(n), 8, 5),
}


LARGEST = list(KINDS) if os.environ.get("MMAPROBE_DEPTH") == "full" else ["chain", "interleaved", "random"]


@pytest.mark.sampled(7)
@pytest.mark.parametrize(
    ("kind", "count"),
    [*((kind, count) for kind in KINDS for count in (64, 600)), *((kind, 4096) for kind in LARGEST)],
)
def test_every_kind_of_tree_is_read_back_in_k_log_k_calls(kind: str, count: int) -> None:
    tree = tree_of(KINDS[kind](count))
    device = TreeDevice(tree)
    calls = open_calls(device, device.instruction)
    found = read_tree(calls)
    assert to_json(found) == to_json(tree)
    assert calls.calls == device.asked
    width = max(map(len, tree.nodes))
    assert calls.calls <= count * (2 * math.log2(count) + width / 2) + 60


@pytest.mark.parametrize("seed", range(20))
def test_random_trees_of_any_width_with_an_accumulator(seed: int) -> None:
    tree = tree_of(shuffled(range(50), seed, 2 + seed % 6))
    device = TreeDevice(tree, c=seed % 2 == 0)
    found = read_tree(open_calls(device, device.instruction, seed=seed))
    assert to_json(found, device.instruction.k) == to_json(tree, device.instruction.k)


NARROW = [(kind, *formats) for kind in ("chain", "pairwise", "interleaved", "random", "comb")
          for formats in (("bf16", "bf16", 700), ("bf16", "f32", 700))]  # fmt: skip


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("kind", "fmt", "within", "count"), [*NARROW, ("chain", "f16", "f16", 2200), ("random", "f16", "f16", 2200)]
)
def test_results_that_cannot_count_to_k(kind: str, fmt: str, within: str, count: int) -> None:
    tree = tree_of(KINDS[kind](count))
    device = TreeDevice(tree, fmt, within)
    calls = open_calls(device, device.instruction)
    assert calls.count < count
    assert to_json(read_tree(calls)) == to_json(tree)
    assert calls.calls <= 2.5 * count * math.log2(count)


def test_two_thousand_leaves_of_f64() -> None:
    tree = tree_of(interleaved(1 << 11, 16))
    device = TreeDevice(tree, "f64", "f64")
    assert to_json(read_tree(open_calls(device, device.instruction))) == to_json(tree)


def test_what_the_budget_does_not_reach_is_unknown() -> None:
    tree = tree_of(pairwise(range(256)))
    device = TreeDevice(tree)
    calls = open_calls(device, device.instruction, budget=600)
    found = read_tree(calls)
    assert device.asked == calls.calls <= 600
    open_sets = [found.below(node) for node in found.unknown]
    assert open_sets
    assert max(map(len, open_sets)) <= 64
    known = [node for node in range(256, found.root + 1) if node not in found.unknown]
    whole = {tuple(tree.below(node)) for node in range(256, tree.root + 1)}
    assert all(tuple(found.below(node)) in whole for node in [*known, *found.unknown])
    finding = probe_long_sum(device, device.instruction, budget=600)
    assert finding.status == "bounded"
    assert "600 calls left the order of" in finding.text
    assert probe_long_sum(device, device.instruction, budget=5).text == "a budget of 5 calls is too small to begin"


def test_a_sum_without_loss_shows_no_order() -> None:
    device = open_device("function:math:fsum?k=20&format=f64")
    found = probe_long_sum(device, device.instructions()[0])
    assert (found.status, found.answer) == ("inconclusive", None)
    assert "nothing is lost within 2,044 bits" in found.text


def test_a_device_that_is_no_tree_is_not_read_as_one() -> None:
    class Moody(TreeDevice):
        def run(self, instruction: Any, batch: Any) -> Any:
            self.tree = tree_of(chain(range(12)) if self.asked % 2 else pairwise(range(12)))
            return super().run(instruction, batch)

    device = Moody(tree_of(chain(range(12))))
    with pytest.raises(NoTreeError, match=r"leaves are lost|is no count of them"):
        read_tree(open_calls(device, device.instruction))


def test_json_is_flat_enough_and_comes_back() -> None:
    for kind, make in KINDS.items():
        tree = tree_of(make(1024))
        text = json.dumps(to_json(tree))
        assert to_json(from_json(json.loads(text), 1024)) == to_json(tree), kind


@pytest.mark.parametrize(
    ("leaves", "nodes"), [(2, ()), (3, ((0, 1),)), (2, ((0, 0),)), (3, ((0, 4), (1, 2))), (1, ((0,),))]
)
def test_a_tree_uses_everything_once(leaves: int, nodes: Any) -> None:
    with pytest.raises(UsageError, match="is used once"):
        TreeArrays(leaves, nodes)


def test_integers_and_wrong_places_are_refused() -> None:
    device = open_device("function:numpy:dot?format=s32")
    with pytest.raises(UsageError, match="no order shows"):
        open_calls(device, device.instructions()[0])
    device = open_device("function:numpy:matmul?m=2&n=3")
    with pytest.raises(UsageError, match="no element 2, 0 in 2 x 3"):
        probe_long_sum(device, device.instructions()[0], at=(2, 0))


@pytest.mark.parametrize(
    ("nested", "text"),
    [
        (chain(range(64)), "chain(64 by 1)"),
        (chain(range(64)[::-1]), "chain(64 by -1)"),
        (pairwise(range(64)), "pairwise(64 by 1)"),
        (interleaved(512, 8), "pairwise(8 by 1) of chain(64 by 8)"),
        (blocked(512, 64), "chain(8 by 64) of pairwise(8 by 1) of chain(8 by 8)"),
        (tuple(range(16)), "fused(16 by 1)"),
        (chain([lane + step for step in range(0, 64, 4) for lane in (3, 2, 1, 0)]), "chain(16 × [3, 2, 1, 0] by 4)"),
        ((((0, 4), (2, 6)), ((1, 5), (3, 7))), "folded(8 by 1)"),
        (chain([chain(range(32)), *range(32, 40)]), "chain(40 by 1)"),
        (
            chain([interleaved(32, 8), *range(32, 37)]),
            "chain[pairwise(8 by 1) of chain(4 by 8) from p0; 5 by 1 from p32]",
        ),
        ((pairwise(range(8)), (8, 9, 10)), "chain[pairwise(8 by 1) from p0; fused(3 by 1) from p8]"),
        ((0, 1), "pair(2 by 1)"),
    ],
)
def test_repeated_structure_is_said_once(nested: Any, text: str) -> None:
    assert str(notation(tree_of(nested))) == text


def test_the_command_prints_the_tree(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tree", "function:math:fsum?format=f64&k=9"]) == 4
    assert main(["tree", "function:numpy:add.reduce?operands=1&k=256"]) == 0
    assert "tree: pair(2 by 128) of pairwise(8 by 1) of chain(16 by 8)" in capsys.readouterr().out
    assert main(["tree", "function:numpy:add.reduce?operands=1&k=256", "--budget", "300", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["long_sum"]
    assert (found["status"], found["tiles"] <= 300) == ("bounded", True)
    assert main(["tree", "model:sm_90a"]) == 2
    assert main(["tree", "function:numpy:dot", "--at", "1"]) == 2
    assert "ROW,COLUMN" in capsys.readouterr().err
