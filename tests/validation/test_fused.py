"""Validation by a fused campaign, on a device whose launches run the campaign's own source on the host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from emulator.campaign import HostCampaign
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.devices.base import open_device, run_blocks, run_vectors
from mmaprobe.devices.gpu.campaign import NOWHERE, LaunchOrder, LaunchResult, read_found
from mmaprobe.devices.model import DatapathDevice, ModelDevice
from mmaprobe.errors import DeviceError, MmaprobeError, NotHereError
from mmaprobe.generators import regenerate
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.mutate import mutate
from mmaprobe.toolchain.compiler import RefusedError
from mmaprobe.toolchain.source import Source
from mmaprobe.validation import fused, validate

MADE = instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
VECTORS = 20_000
Unit = Callable[[Batch, int], Bits]


class HostGpu:
    """A GPU of four multiprocessors; ``unit`` answers tiles on one of them, as the model does where it is None."""

    name, multiprocessors = "cuda:0", 4
    multiprocessor = "multiprocessor"

    def __init__(
        self, unit: Unit | None = None, *, lacks: MmaprobeError | None = None, judges: bool = True, seed: int = 0,
        form: tuple[str, str] = (MADE.id, "sm_90a"),
    ) -> None:  # fmt: skip
        name, self.architecture = form
        self.made_of, self.model = instruction(name, self.architecture), _model(self.architecture)
        self.unit, self.lacks, self.judges, self.seed = unit, lacks, judges, seed
        self.orders: list[LaunchOrder] = []
        self.made: HostCampaign | None = None

    def info(self) -> dict[str, str]:
        return {"architecture": self.architecture}

    def instructions(self) -> list[Instruction]:
        return [self.made_of]

    def supports(self, made: Instruction) -> bool:
        return made == self.made_of

    def run(self, made: Instruction, batch: Batch) -> Bits:
        return self.model.run(made, batch) if self.unit is None else self.unit(batch, 2)

    def settled(self, instruction: Instruction) -> Instruction:
        return instruction

    def prepare_campaign(self, source: Source) -> None:
        if self.lacks is not None:
            raise self.lacks
        self.made = self.made or HostCampaign(source, self.made_of)

    def run_campaign(self, source: Source, order: LaunchOrder) -> LaunchResult:
        assert self.made is not None
        self.orders.append(order)
        sabotaged = order.sabotaged if self.judges else NOWHERE
        done = replace(order, seed=order.seed + self.seed, sabotaged=sabotaged)
        return read_found(self.name, self.made.run(done, self._answer, self.multiprocessors))

    def _answer(self, batch: Batch, number: int) -> Bits:
        return run_blocks(self.model, self.made_of, batch) if self.unit is None else self.unit(batch, number)


def _model(architecture: str = "sm_90a") -> ModelDevice:
    device = open_device(f"model:{architecture}")
    assert isinstance(device, ModelDevice)
    return device


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmaprobe.validation.stream.LEAST", 1000)
    monkeypatch.setattr("mmaprobe.validation.stream.ALONE", 300)
    monkeypatch.setattr(fused, "FIRST", 1 << 10)


@pytest.fixture
def reference() -> DatapathDevice:
    return DatapathDevice(MADE, datapath_for("sm_90a", MADE))


def test_every_vector_is_counted(reference: DatapathDevice) -> None:
    """All families, a few vectors the ordinary way, the rest fused, each family proven; every multiprocessor worked."""
    gpu = HostGpu()
    summary = validate(gpu, reference, MADE, VECTORS, seed=5)
    assert (summary.vectors, summary.mismatches, summary.exit_code) == (VECTORS, 0, 0)
    proofs = [order for order in gpu.orders if order.tiles == fused.PROOF]
    assert len(proofs) == 2 * len(summary.families)
    compared = sum(order.tiles for order in gpu.orders) - fused.PROOF * len(proofs)
    assert compared * 128 > VECTORS // 2
    assert summary.screening is not None
    assert (summary.screening.present, summary.screening.covered, summary.screening.wrong) == (4, 4, {})
    for family in {order.family for order in gpu.orders}:
        spans = sorted(
            (o.start, o.start + 16 * o.tiles) for o in gpu.orders if o.family == family and o.tiles != fused.PROOF
        )
        assert all(end <= start for (_, end), (start, _) in pairwise(spans)), "vectors twice"


def test_a_faulty_multiprocessor_is_named(reference: DatapathDevice) -> None:
    """One of four flips a bit; the mismatch is the recipe of an output of a tile, and does not come again elsewhere."""
    model = _model()

    def unit(batch: Batch, number: int) -> Bits:
        d = model.run(MADE, batch)
        if number == 3:
            d[:, 5, 2] ^= 1
        return d

    summary = validate(HostGpu(unit), reference, MADE, VECTORS, generators=["clustered"])
    assert summary.screening is not None
    assert list(summary.screening.wrong) == ["3"]
    assert summary.mismatches == summary.screening.wrong["3"] > 0
    assert summary.exit_code == 5, "the same vectors come out right on another multiprocessor"
    assert summary.examples[0].recipe.endswith("@5,2")
    recipe, number, d, expected = summary.screening.first[0]
    assert (recipe, number, d ^ expected) == (summary.examples[0].recipe, 3, 1)
    vector = regenerate(recipe)
    assert int(run_vectors(model, MADE, vector)[0]) == expected


BLOCKS = [("v_dot2_f32_bf16", "gfx1100"), ("v_mfma_f32_4x4x4_16b_f16", "gfx942")]


@pytest.mark.parametrize("form", BLOCKS)
def test_a_block_is_a_tile(form: tuple[str, str]) -> None:
    """Dot products of lanes too; where the kernel fails, blocks fill the items of the ordinary way."""
    made, model = instruction(*form), _model(form[1])

    def unit(batch: Batch, number: int) -> Bits:
        d = run_blocks(model, made, batch)
        d[:, -1, -1] ^= d.dtype.type(number == 3)
        return d

    wrong = HostGpu(unit, form=form)
    wrong.run = model.run  # type: ignore[method-assign]
    for gpu in (HostGpu(form=form), HostGpu(judges=False, form=form), wrong):
        summary = validate(gpu, model, made, 3000, generators=["clustered"])
        assert (summary.vectors, bool(summary.notes)) == (3000, not gpu.judges)
        assert (summary.mismatches > 0) == (gpu is wrong)
        assert all(order.tiles * made.m * made.n >= 768 for order in gpu.orders[:2])
    assert summary.screening is not None
    recipe, number, d, expected = summary.screening.first[0]
    assert (recipe.endswith(f"@{made.m - 1},{made.n - 1}"), number, d ^ expected) == (True, 3, 1)
    assert int(run_vectors(model, made, regenerate(recipe, made))[0]) == expected


@pytest.mark.long
def test_a_wrong_model_is_seen_and_shrunk() -> None:
    """The reference rounds otherwise than the unit."""
    reference = DatapathDevice(MADE, mutate(datapath_for("sm_90a", MADE), "tree.fraction_bits", "24"))
    summary = validate(HostGpu(), reference, MADE, VECTORS)
    assert summary.exit_code == 1
    assert summary.examples[0].shrunk is not None


@pytest.mark.parametrize(
    ("gpu", "message"),
    [(HostGpu(judges=False), "does not compare"), (HostGpu(seed=1), "not those of the CPU")],
    ids=["never compares", "other vectors"],
)
def test_a_kernel_that_does_not_prove_itself(gpu: HostGpu, message: str, reference: DatapathDevice) -> None:
    """Nothing it says counts; every vector is compared the ordinary way, and a note says so."""
    summary = validate(gpu, reference, MADE, VECTORS, generators=["tie"])
    assert (summary.vectors, summary.mismatches, summary.screening) == (VECTORS, 0, None)
    assert message in summary.notes[0]


def test_a_kernel_that_fails_late(reference: DatapathDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it compared before counts; the tiles after it are compared as they are without it, and each once."""
    gpu, told = HostGpu(), []
    run = gpu.run_campaign

    def fails(source: Source, order: LaunchOrder) -> LaunchResult:
        if len(gpu.orders) > 5:
            raise DeviceError("the kernel counts 7 tiles, of 8 ordered")
        return run(source, order)

    monkeypatch.setattr(gpu, "run_campaign", fails)
    monkeypatch.setattr(fused, "MOST", 1 << 10)
    summary = validate(gpu, reference, MADE, VECTORS, said=told.append)
    assert (summary.vectors, summary.mismatches) == (VECTORS, 0)
    assert summary.families == validate(HostGpu(), reference, MADE, VECTORS).families
    assert summary.screening is not None
    assert list(summary.notes) == told
    assert told == ["compared the ordinary way, not by the fused kernel: the kernel counts 7 tiles, of 8 ordered"]


def test_answers_that_do_not_repeat_are_the_gpus_fault(reference: DatapathDevice) -> None:
    """No other way of comparing would make them right."""
    model, calls = _model(), [0]

    def unit(batch: Batch, number: int) -> Bits:
        calls[0] += 1
        return model.run(MADE, batch) ^ np.uint32(calls[0] % 7 == 0)

    gpu = HostGpu(unit)
    gpu.run = model.run  # type: ignore[method-assign]
    with pytest.raises(DeviceError, match="the GPU's answers do not repeat"):
        validate(gpu, reference, MADE, VECTORS, generators=["tie"])


@pytest.mark.parametrize("lacks", [NotHereError("the pack has no campaign"), RefusedError("not by this compiler")])
def test_without_a_campaign_the_ordinary_way_serves(lacks: MmaprobeError, reference: DatapathDevice) -> None:
    gpu = HostGpu(lacks=lacks)
    summary = validate(gpu, reference, MADE, VECTORS, generators=["tie"])
    assert (summary.vectors, summary.mismatches, summary.screening) == (VECTORS, 0, None)
    assert np.all(gpu.orders == [])
