"""The figures of ``mmaprobe bench``: what is measured, and what a roof is."""

from __future__ import annotations

import threading

import pytest

from mmaprobe import _native
from mmaprobe.errors import UsageError
from mmaprobe.models.kernels import INTERPRETER, KERNELS, kernel
from mmaprobe.report.tables.speeds import bench, cells
from mmaprobe.validation.native import has_kernel
from mmaprobe.validation.speed import ROOFS, Stopwatch, TimedForm, forms, measure, roof_rate

HOPPER = {made.id: (made, path) for made, path in forms("sm_90a", "mma*")}


def test_forms_have_distinct_datapaths() -> None:
    paths = [path for _, path in HOPPER.values()]
    assert len(paths) == len(set(paths)) > 10
    assert not any(made.chunk for made, _ in HOPPER.values())


@pytest.mark.parametrize("number", sorted(ROOFS))
def test_each_kernel_with_a_roof(number: int) -> None:
    """Every rate is there; a share is the engine's; two threads are asked for two roofs."""
    for architecture in ("sm_90a", "sm_120a", "gfx942", "gfx908", "gfx1201"):
        found = next(((made, path) for made, path in forms(architecture) if kernel(path) == number), None)
        if found:
            break
    assert found, KERNELS[number]
    made, path = found
    speed = measure(made, path, smoke=True)
    assert speed.kernel == KERNELS[number].lower()
    assert speed.engine
    assert speed.roof
    assert speed.compared
    assert speed.share == speed.engine / speed.roof
    double = measure(made, path, threads=2, smoke=True)
    assert double.roof == 2 * speed.roof
    assert roof_rate(path, made.m * made.n > 1) == speed.roof


def test_items_of_vectors_are_work_of_their_own() -> None:
    made, path = next(forms("gfx1100", "v_dot2_f32_f16"))
    assert measure(made, path, smoke=True).roof == roof_rate(path, tiled=False)
    assert (roof_rate(path, tiled=False) or 0) < 0.7 * (roof_rate(path) or 0)


def test_where_no_kernel_is_there_is_no_native_figure() -> None:
    made, path = next((made, path) for made, path in HOPPER.values() if kernel(path) == INTERPRETER)
    speed = measure(made, path, smoke=True)
    assert (speed.engine, speed.compared, speed.roof, speed.share) == (None, None, None, None)
    assert speed.call > 0


def test_compared_calls_compare_with_right_answers() -> None:
    for made, path in HOPPER.values():
        form = TimedForm(made, path, "uniform")
        if form.words is None or not has_kernel(form.words):
            continue
        call, results = form.compared_call(300)
        assert results >= 128
        assert call() == (0, pytest.approx([])), made.id


def test_threads_call_at_once() -> None:
    meeting = threading.Barrier(3, timeout=20)
    assert Stopwatch(3, 0.0).rate(meeting.wait, 5) > 0


@pytest.mark.parametrize("build", _native.engine_builds())
def test_a_roof_has_every_mix(build: str) -> None:
    found = _native.roof(build)
    assert {mix for mix, *_ in ROOFS.values()} | {"lane"} <= set(found)
    assert all(seconds > 0 for seconds in found.values())


def test_the_table() -> None:
    found = bench("sm_90a", "mma*m16n8k16*f16.f16.f32", 1, True)
    assert [given["instruction"] for given in cells(found)] == [row["instruction"] for row in found["rows"]]
    assert all(given["share"].endswith("%") for given in cells(found) if given["engine"] != "-")
    with pytest.raises(UsageError, match="matches"):
        bench("sm_90a", "nosuch*", 1, True)
