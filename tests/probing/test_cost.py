"""What probing costs: questions side by side, a few launches, tiles that grow with K and not with its square."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from mmaprobe.catalog import lookup
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import open_device
from mmaprobe.evidence.records_json import finding_to_json
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Fma, Fused, Node, Products
from mmaprobe.probing import QUESTIONS, probe
from mmaprobe.probing.session.bench import Bench
from mmaprobe.probing.session.codes import Codes
from mmaprobe.probing.session.rounds import Asking, Request, together, wait
from mmaprobe.probing.session.vectors import Vector
from stand_ins.probed import Path, Standin, arithmetic, make_instruction

C = Accumulator()
FORMS = [
    ("sm_80", "mma.m16n8k16.f32.f16.f16.f32"), ("sm_90a", "mma.m16n8k16.f16.f16.f16.f16"),
    ("sm_90a", "wgmma.mma_async.m64n8k32.f32.e4m3.e4m3"), ("sm_80", "mma.m8n8k4.f64.f64.f64.f64"),
    ("sm_120a", "mma.m16n8k64.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"),
    ("gfx942", "v_mfma_f32_16x16x32_fp8_fp8"), ("gfx90a", "v_mfma_f32_16x16x16bf16_1k"),
]  # fmt: skip


@pytest.mark.parametrize(("architecture", "name"), FORMS)
def test_a_full_probe_is_at_most_twenty_launches(architecture: str, name: str) -> None:
    found = probe(open_device(f"model:{architecture}"), lookup.instruction(name, architecture))
    assert sum(finding.launches for finding in found.values()) <= 20


class Counting(Standin):
    """Counts its calls and their tiles."""

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        self.calls = getattr(self, "calls", Counter())
        self.calls.update(launches=1, tiles=batch.size)
        return super().run(instruction, batch)


def counting(k: int, form: Any) -> Counting:
    instruction = make_instruction("bf16", k, "f32", "f32", m=4)
    return Counting(instruction, arithmetic(instruction, form).dot)


def chain(k: int) -> Any:
    tree: Any = "c"
    for lane in range(k):
        tree = (tree, lane)
    return tree


RZ = Encode("f32", rounding="RZ")


def paths(k: int) -> dict[str, Datapath]:
    """A chain of FMAs, one fused sum, fused steps of eight."""
    trees: dict[str, tuple[Node, int]] = {
        "chain": (Fma(C, tuple(range(k)), RZ), k),
        "fused": (Fused.alike((Products(tuple(range(k))), C), 25, to=RZ), k),
        "steps": (Fused.alike((Products(tuple(range(8))), C), 25, to=RZ), 8),
    }
    return {name: Datapath("bf16", "bf16", "f32", "f32", k, tree, step=step) for name, (tree, step) in trees.items()}


@pytest.mark.parametrize("form", ["chain", "fused", "steps"])
def test_the_tree_of_a_chain_or_of_fused_steps_costs_tiles_in_proportion_to_k(form: str) -> None:
    tiles = []
    for k in (32, 64):
        device = Path(paths(k)[form])
        found = probe(device, device.instruction, ("summation_tree",))["summation_tree"]
        assert found.status == "exact"
        tiles.append(found.tiles)
    assert tiles[1] < 2.3 * tiles[0]
    assert tiles[1] < 65 * 64 / 2 * 2 / 8  # all pairs, each asked twice


@pytest.mark.long
def test_costs_add_up_to_what_was_run() -> None:
    device = counting(4, chain(4))
    found = probe(device, device.instruction, QUESTIONS[2:])
    assert sum(finding.tiles for finding in found.values()) == device.calls["tiles"]
    assert sum(finding.launches for finding in found.values()) == device.calls["launches"]


def test_the_same_device_gets_the_same_questions() -> None:
    asked: list[list[bytes]] = []
    for _ in range(2):
        device = counting(3, chain(3))
        calls: list[bytes] = []
        run = device.run

        def keep(instruction: Instruction, batch: Batch, run: Any = run, calls: list[bytes] = calls) -> Bits:
            calls.append(batch.a.tobytes() + batch.b.tobytes())
            return np.asarray(run(instruction, batch))

        device.run = keep  # type: ignore[method-assign]
        first = probe(device, device.instruction, ("summation_tree", "overflow", "result_rounding", "subnormals"))
        asked.append([*calls, repr({n: finding_to_json(f) for n, f in first.items()}).encode()])
    assert asked[0] == asked[1]


def test_what_several_tasks_ask_in_a_round_is_one_launch() -> None:
    device = counting(2, chain(2))
    bench = Bench(device, device.instruction)

    async def ask(name: str, rounds: int) -> int:
        for number in range(rounds):
            await wait([Request(name, [Vector(Codes.listed((number, 0)), Codes(2, 0), 0)])])
        return rounds

    async def all_of_them() -> list[int]:
        return await together(ask("first", 3), together(ask("second", 1), ask("third", 2)), nothing())

    async def nothing() -> int:
        return 0

    task: Asking[list[Any]] = all_of_them()
    assert bench.run(task) == [3, [1, 2], 0]
    assert bench.launches == {"first": 3}
    assert device.calls["launches"] == 3
    assert len(bench.answers) == 3


def test_an_error_in_one_task_ends_the_others() -> None:
    device = counting(2, chain(2))
    closed = []

    async def patient() -> None:
        try:
            await wait([])
            await wait([])
        finally:
            closed.append(True)

    async def fails() -> None:
        await wait([])
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        Bench(device, device.instruction).run(together(patient(), fails()))
    assert closed == [True]
