"""The device function: any callable, its bits untouched, its failures named."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mmaprobe.devices.base import open_device, run_vectors
from mmaprobe.devices.function import Function, open_function
from mmaprobe.errors import DeviceError, NotHereError, UsageError
from mmaprobe.operands.batch import Batch


def bits(values: Any, dtype: Any) -> Any:
    array = np.array(values, dtype)
    return array.view(f"u{array.itemsize}")


@pytest.fixture
def define(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Make a callable importable as ``handmade:dot``."""
    module = types.ModuleType("handmade")
    monkeypatch.setitem(sys.modules, "handmade", module)
    return lambda call: setattr(module, "dot", call)


def test_numpys_dot_product_runs_as_it_is() -> None:
    device = open_device("function:numpy:dot?k=3&format=f64")
    (instruction,) = device.instructions()
    assert (instruction.id, instruction.k, instruction.c) == ("function.numpy:dot{format=f64,k=3}", 3, None)
    a, b = bits([[1, 2, 3], [np.inf, np.inf, 0]], "f8"), bits([[1, 1, 1], [1, -1, 0]], "f8")
    d = run_vectors(device, instruction, Batch(a, b))
    assert d[0] == bits(6.0, "f8")
    assert np.isnan(d.view("f8")[1])
    assert device.info()["version"] == np.__version__


def test_the_defaults_are_sixteen_lanes_of_f32() -> None:
    assert open_function("numpy:dot").instruction.id == "function.numpy:dot{format=f32,k=16}"


def test_an_accumulator_and_a_result_of_another_format(define: Callable[[Any], None]) -> None:
    seen: list[Any] = []

    def dot(a: Any, b: Any, c: Any) -> Any:
        seen.append((a.dtype, a.shape, c.dtype, np.shape(c)))
        return (a.astype(np.float32) * b.astype(np.float32)).sum(dtype=np.float32) + c

    define(dot)
    device = open_function("handmade:dot?k=2&format=bf16&c=f32&result=f32")
    assert device.instruction.id == "function.handmade:dot{c=f32,format=bf16,k=2,result=f32}"
    a = bits([[1.5, 2.0]], ml_dtypes.bfloat16)
    d = run_vectors(device, device.instruction, Batch(a, a, bits([0.25], "f4")))
    assert d.tolist() == bits([6.5], "f4").tolist()
    assert seen == [(np.dtype(ml_dtypes.bfloat16), (2,), np.dtype("f4"), ())]


def test_a_nan_payload_passes_unchanged(define: Callable[[Any], None]) -> None:
    define(lambda a, b: a[0])
    device = open_function("handmade:dot?k=1")
    strange = np.array([[0xFFA12345]], np.uint32)
    assert run_vectors(device, device.instruction, Batch(strange, strange)).tolist() == [0xFFA12345]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda a, b: np.dot(a, b).astype(np.float64), r"returned float64 of shape \(\).*result=f64"),
        (lambda a, b: 1.5, "returned float64"),
        (lambda a, b: a, r"returned float32 of shape \(2,\)"),
        (lambda a, b: "five", "returned <U4"),
        (lambda a, b: 1 // 0, "ZeroDivisionError"),
        (lambda a, b, c: a, "TypeError: .* missing 1 required positional argument"),
    ],
)
def test_failures_and_other_answers_are_device_errors(define: Callable[[Any], None], answer: Any, message: str) -> None:
    define(answer)
    device = open_function("handmade:dot?k=2")
    ones = bits([[1, 1]], "f4")
    with pytest.raises(DeviceError, match=message):
        run_vectors(device, device.instruction, Batch(ones, ones))


@pytest.mark.parametrize(
    ("argument", "error", "message"),
    [
        ("numpy", UsageError, "function:module:name"),
        ("no_such_module:dot", NotHereError, "No module named 'no_such_module'; install it, or put.*PYTHONPATH"),
        ("numpy:dott", UsageError, "numpy has no 'dott'; did you mean dot"),
        ("numpy:pi", UsageError, "cannot be called"),
        ("numpy:dot?k=0", UsageError, "k='0' must be a whole number from 1 on"),
        ("numpy:dot?k=four", UsageError, "k='four'"),
        ("numpy:dot?k=4&k=5", UsageError, "given twice"),
        ("numpy:dot?formt=f32", UsageError, "unknown option 'formt'; did you mean format"),
        ("numpy:dot?format=f33", UsageError, "unknown format 'f33'"),
        ("numpy:dot?format=e8m13", UsageError, "no array type holds e8m13"),
        ("numpy:dot?array=cupy", UsageError, "must be numpy or torch"),
    ],
)
def test_wrong_names_are_explained(argument: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        open_function(argument)


def test_a_module_that_breaks_on_import_is_not_here(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_module.py").write_text("raise RuntimeError('no driver')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(NotHereError, match="RuntimeError: no driver"):
        open_function("broken_module:dot")


@pytest.mark.needs("torch")
def test_pytorchs_dot_product_runs_on_tensors() -> None:
    import torch

    device = open_function("torch:dot?k=2&format=bf16")
    a = bits([[1.5, 2.0]], ml_dtypes.bfloat16)
    assert run_vectors(device, device.instruction, Batch(a, a)).tolist() == bits([6.25], ml_dtypes.bfloat16).tolist()
    assert device.info()["version"] == torch.__version__


def test_it_runs_its_own_instruction_only() -> None:
    device, other = open_function("numpy:dot?k=2"), open_function("numpy:dot?k=3")
    assert isinstance(device, Function)
    assert not device.supports(other.instruction)
    with pytest.raises(UsageError, match=r"runs function.numpy:dot\{format=f32,k=2\} only"):
        run_vectors(device, other.instruction, Batch(*(bits([[1, 1, 1]], "f4"),) * 2))


@pytest.mark.parametrize("options", ["k=1000000000000", "k=" + "9" * 5000, "k=2048&m=2048", "m=99999&n=99999"])
def test_operands_of_gigabytes_are_a_wrong_option(options: str) -> None:
    with pytest.raises(UsageError, match=r"choose a smaller k|must be a whole number"):
        open_device(f"function:numpy:dot?{options}")
