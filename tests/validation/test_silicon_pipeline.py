"""A unit of this CPU beside its model in native code finds what the same question by arrays finds, batch by batch."""

from __future__ import annotations

import re
import signal
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mmaprobe import _native
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction, instructions
from mmaprobe.devices import cpu
from mmaprobe.devices.base import run_vectors
from mmaprobe.devices.model import DatapathDevice, open_model
from mmaprobe.errors import DeviceError, NotHereError
from mmaprobe.generators import generate
from mmaprobe.generators.domain import domain
from mmaprobe.generators.families import FAMILIES, stream_number
from mmaprobe.models import engine
from mmaprobe.models.program import program
from mmaprobe.parameters.datapath import Datapath, Encode
from mmaprobe.validation import Summary, validate
from mmaprobe.validation.native import SiliconPipeline, pipeline

HERE = cpu.open_cpu("")
MODEL = open_model(HERE.architecture)


def is_lane_wise(made: Instruction) -> bool:
    return made.lane_wise and bool(HERE.supports(made)) and bool(MODEL.supports(made)) and not made.chunk


UNITS = [made for made in instructions(HERE.architecture) if is_lane_wise(made)]
VFMADD = "x86.vfmadd.f32"
vfmadd = pytest.mark.skipif(
    VFMADD not in {made.id for made in UNITS}, reason=f"{VFMADD}; this machine is {HERE.architecture}"
)


class ByArrays(cpu.Cpu):
    """The same CPU, which the native path does not know."""


def rounded(path: Datapath, rounding: str) -> Datapath:
    """A datapath with a seeded fault: its last sum rounds another way."""
    to = path.tree.to
    assert isinstance(to, Encode)
    return replace(path, tree=replace(path.tree, to=replace(to, rounding=rounding)))


def bare(summary: Summary) -> Summary:
    return replace(summary, seconds=0.0)


@pytest.mark.parametrize("made", UNITS, ids=lambda made: made.id)
def test_every_unit_agrees_with_its_model_and_with_the_way_by_arrays(made: Instruction) -> None:
    assert type(pipeline(HERE, MODEL, made)) is SiliconPipeline
    native, arrays = (validate(device, MODEL, made, 6007, 3) for device in (HERE, ByArrays()))
    assert (native.vectors, native.mismatches) == (6007, 0)
    assert bare(native) == bare(arrays)
    assert native.batches.asked > native.batches.again > 0


@vfmadd
@pytest.mark.parametrize("nan", ["bits", "any"])
def test_a_fault_is_found_vector_for_vector(nan: str) -> None:
    """Counts of every family, examples, witnesses: what arrays find; and by either device's place."""
    made = instruction(VFMADD)
    wrong = DatapathDevice(made, rounded(MODEL.datapath(made), "RZ"))
    native, arrays = (validate(device, wrong, made, 9001, 5, nan=nan) for device in (HERE, ByArrays()))
    assert native.mismatches > 1000
    assert bare(native) == bare(arrays)
    assert validate(wrong, HERE, made, 9001, 5, nan=nan).mismatches == native.mismatches


@vfmadd
def test_any_nan_lets_codes_differ_and_bits_do_not() -> None:
    made = instruction(VFMADD)
    path = MODEL.datapath(made)
    other = DatapathDevice(made, replace(path, special=replace(path.special, nan="canonical", code=0x7FC00000)))
    assert validate(HERE, other, made, 20_000, generators=["specials"]).mismatches > 1000
    assert validate(HERE, other, made, 20_000, generators=["specials"], nan="any").mismatches == 0


@vfmadd
def test_a_unit_that_computes_something_else_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seeded fault in the unit: it runs under another control register, or not every lane of it is the model's."""
    made = instruction(VFMADD)
    honest = cpu.Cpu.unit
    for bits in (3 << 13, 1 << 15 | 1 << 6):
        monkeypatch.setattr(cpu.Cpu, "unit", lambda self, known, b=bits: (VFMADD, honest(self, known)[1] | b))
        summary = validate(HERE, MODEL, made, 20_000)
        assert summary.mismatches > 20
        assert summary.exit_code == 1


@vfmadd
def test_each_control_state_is_the_instructions_own_and_is_put_back() -> None:
    for state in ("{daz}", "{ftz}", "{rounding=rd}", "{daz,ftz,rounding=rz}"):
        made = instruction(VFMADD + state)
        assert type(pipeline(HERE, MODEL, made)) is SiliconPipeline
        assert validate(HERE, MODEL, made, 5003, generators=["tiny", "subnormals", "tie"]).mismatches == 0
    assert np.float32(1e-40) * np.float32(0.5) != 0


@vfmadd
@pytest.mark.parametrize("count", [0, 1, 3, 15, 16, 17, 2047, 2048, 2049, 5000])
def test_places_are_counted_across_pieces(count: int) -> None:
    """A batch of any size, beside a model that negates: how many are wrong, and the first places."""
    made = instruction(VFMADD)
    native = pipeline(HERE, MODEL, made)
    assert native is not None
    path = MODEL.datapath(made)
    flipped = replace(path, operand_a=replace(path.operand_a, sign="flip"))
    words, vectors = program(flipped), generate(made, "ulp", 1, 5, count)
    assert words is not None
    differ = np.flatnonzero(run_vectors(HERE, made, vectors) != engine.evaluate(flipped, vectors))
    bad, where = native.compare("ulp", 1, 5, count, 0, None, "bits", 4)
    assert (bad, where.tolist()) == (0, [])
    bad, where = replace(native, programs=(words,)).compare("ulp", 1, 5, count, 0, None, "bits", 4)
    assert (bad, where.tolist()) == (len(differ), differ[:4].tolist())
    assert bad or count < 10


def silicon_call(made: Instruction, **change: Any) -> Any:
    given: dict[str, Any] = {
        "domain": domain(made).packed(), "family": FAMILIES.index("uniform"), "stream": stream_number("uniform"),
        "seed": 0, "start": 0, "count": 10, "program": program(MODEL.datapath(made)), "id": made.id,
        "control": _native.cpu_default_control,
    }  # fmt: skip
    return _native.silicon(**{**given, **change})


@vfmadd
@pytest.mark.parametrize(("change", "message"), [
    ({"count": -1}, "a batch has 0 to 1048576 vectors"),
    ({"count": (1 << 20) + 1}, "a batch has 0 to 1048576 vectors"),
    ({"id": "x86.nothing"}, "this CPU has no instruction x86.nothing"),
    ({"id": "x86.pmaddwd"}, "x86.pmaddwd: the program's operands are not the unit's"),
    ({"program": np.zeros(200, np.int64)}, "not a program"),
    ({"domain": np.zeros(3, np.int64)}, "domain is not one of"),
    ({"domain": np.zeros(85, np.int64)}, "the program's operands are not the unit's"),
    ({"build": "sse"}, "no engine build sse"),
])  # fmt: skip
def test_wrong_calls_are_refused(change: dict[str, Any], message: str) -> None:
    assert silicon_call(instruction(VFMADD)) == (0, [])
    with pytest.raises(ValueError, match=re.escape(message)):
        silicon_call(instruction(VFMADD), **change)


@vfmadd
def test_a_masked_or_missing_instruction_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    made = instruction(VFMADD)
    cpu._trial.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(_native, "cpu_trial", lambda unit: int(signal.SIGILL))
        with pytest.raises(DeviceError, match="a virtual machine masks it"):
            validate(HERE, MODEL, made, 1000)
    units = [(name, False, "needs some-feature", "some-feature") for name, *_ in _native.cpu_units()]
    monkeypatch.setattr(_native, "cpu_units", lambda: units)
    with pytest.raises(NotHereError, match="not here: needs some-feature"):
        validate(cpu.Cpu(), MODEL, made, 1000)


def test_what_has_no_such_path() -> None:
    for made in UNITS[:1]:
        assert type(pipeline(ByArrays(), MODEL, made)) is not SiliconPipeline
        assert pipeline(HERE, HERE, made) is None
