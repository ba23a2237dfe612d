"""Products of libraries whose call is more than ``matmul(A, B)``: two matrices in, their product out, on one thread."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np


def onednn(a: Any, b: Any) -> Any:
    """oneDNN's inner product of PyTorch tensors."""
    import torch

    return torch.ops.mkldnn._linear_pointwise(a, b.t().contiguous(), None, "none", [], "")


def blis_gemm(a: Any, b: Any) -> Any:
    """BLIS' gemm."""
    import blis.py

    return blis.py.gemm(np.ascontiguousarray(a), np.ascontiguousarray(b))


def mlas(a: Any, b: Any) -> Any:
    """MatMul of ONNX Runtime's own library, both operands being inputs."""
    return _session(a.dtype.str).run(None, {"a": np.ascontiguousarray(a), "b": np.ascontiguousarray(b)})[0]


@cache
def _session(dtype: str) -> Any:
    import onnx
    import onnxruntime

    element = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    a, b, d = (onnx.helper.make_tensor_value_info(name, element, [None, None]) for name in "abd")
    graph = onnx.helper.make_graph([onnx.helper.make_node("MatMul", ["a", "b"], ["d"])], "product", [a, b], [d])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def mlas_integers(a: Any, b: Any) -> Any:
    """MatMulInteger of ONNX Runtime: integers of eight bits to sums of s32."""
    return _run(("MatMulInteger", a.dtype.str, b.dtype.str), (), a, b)


def mlas_integers_with_zeros(a: Any, b: Any) -> Any:
    """The same with zero points, 100 of A and -3 of B, or 3 where it has no sign."""
    zeros = np.array(100, a.dtype), np.array(-3 if b.dtype == np.int8 else 3, b.dtype)
    return _run(("MatMulInteger", a.dtype.str, b.dtype.str), zeros, a, b)


def mlas_integers_with_column_zeros(a: Any, b: Any, zero_a: int = 100, zero_b: Any = None) -> Any:
    """The same with a zero point for each column of B."""
    found = (np.arange(b.shape[1]) * 37 % 256 - 128 * (b.dtype == np.int8)) if zero_b is None else zero_b
    zeros = np.array(zero_a, a.dtype), found.astype(b.dtype)
    return _run(("MatMulInteger", a.dtype.str, b.dtype.str), zeros, a, b)


def mlas_integers_to_float(a: Any, b: Any) -> Any:
    """MatMulIntegerToFloat of ONNX Runtime: sums of s32 times a scale, 2^-3 of A and 0.01 of B."""
    scales = np.float32(0.125), np.float32(0.01)
    return _run(("MatMulIntegerToFloat", a.dtype.str, b.dtype.str), tuple(np.array(each) for each in scales), a, b)


SCALES = (0.5, 0.01, 8.0)
"""Scales of A, B and D where nothing else is said."""


def mlas_quantised(a: Any, b: Any, scales: tuple[float, ...] = SCALES, zero_a: int = 0, zero: int = 100) -> Any:
    """QLinearMatMul of ONNX Runtime: sums rescaled to u8."""
    of_a, of_b, of_d = map(np.float32, scales)
    given = (of_a, np.array(zero_a, a.dtype), of_b, np.array(0, b.dtype), of_d, np.uint8(zero))
    return _run(("QLinearMatMul", a.dtype.str, b.dtype.str), tuple(np.array(each) for each in given), a, b)


def mlas_quantised_gemm(
    a: Any, b: Any, scales: tuple[float, ...] = SCALES, zero_a: int = 0, zero: int = 100, bias: Any = None
) -> Any:
    """QGemm of ONNX Runtime: a bias of s32 is added, then rescaled to u8; of two scales alone, to f32."""
    of_a, of_b, *of_d = map(np.float32, scales)
    bias = biases(b.shape[1]) if bias is None else bias
    given = [of_a, np.array(zero_a, a.dtype), of_b, np.array(0, b.dtype), bias]
    given += [*of_d, np.uint8(zero)] if of_d else []
    return _run(("QGemm", a.dtype.str, b.dtype.str), tuple(np.array(each) for each in given), a, b)


def mlas_quantised_gemm_to_float(a: Any, b: Any) -> Any:
    """The same with a D of f32."""
    return mlas_quantised_gemm(a, b, SCALES[:2])


def mlas_integers_to_float_with_bias(a: Any, b: Any, scales: tuple[float, ...] = SCALES[:2], bias: Any = None) -> Any:
    """MatMulIntegerToFloat of ONNX Runtime with a bias of f32, which is added to D."""
    bias = (biases(b.shape[1]) * np.float32(scales[1] * 0.7)).astype(np.float32) if bias is None else bias
    given = (*map(np.float32, scales[:2]), np.array(100, a.dtype), np.array(0, b.dtype), bias)
    return _run(("MatMulIntegerToFloat", a.dtype.str, b.dtype.str), tuple(np.array(each) for each in given), a, b)


def mlas_dynamic(a: Any, b: Any, scale: float = SCALES[1], bias: Any = None) -> Any:
    """DynamicQuantizeMatMul of ONNX Runtime: A of f32 is quantised by its ends, D is f32."""
    given = [np.float32(scale), np.array(0, b.dtype), *([] if bias is None else [bias])]
    return _run(("DynamicQuantizeMatMul", a.dtype.str, b.dtype.str), tuple(np.array(each) for each in given), a, b)


def mlas_dynamic_with_bias(a: Any, b: Any) -> Any:
    """The same with a bias of f32."""
    return mlas_dynamic(a, b, bias=(biases(b.shape[1]) / 999).astype(np.float32))


def biases(n: int) -> Any:
    """Whole numbers of both signs for so many columns."""
    return ((np.arange(n) * 2654435761 % 8192) - 4096).astype(np.int32)


def fbgemm_quantised(a: Any, b: Any) -> Any:
    """PyTorch's quantised linear by FBGEMM: as ``mlas_quantised``."""
    return quantised("fbgemm", a, b)


def onednn_quantised(a: Any, b: Any) -> Any:
    """The same by oneDNN."""
    return quantised("onednn", a, b)


def qnnpack_quantised(a: Any, b: Any) -> Any:
    """The same by QNNPACK, whose sums are exact."""
    return quantised("qnnpack", a, b)


def qnnpack_quantised_with_bias(a: Any, b: Any) -> Any:
    """The same with a bias, a multiple of the product of the scales."""
    return quantised("qnnpack", a, b, bias=biases(b.shape[1]) * np.float32(SCALES[0] * SCALES[1]))


def fbgemm_quantised_with_bias(a: Any, b: Any) -> Any:
    """The same by FBGEMM, with one that is none."""
    scales = (0.3, 0.013, 7.7)
    return quantised("fbgemm", a, b, scales, bias=biases(b.shape[1]) * np.float32(scales[0] * scales[1] * 0.7))


def quantised(
    engine: str, a: Any, b: Any, scales: tuple[float, ...] = SCALES, zero_a: int = 0, zero: int = 100, bias: Any = None
) -> Any:
    """PyTorch's quantised linear by one of its engines; a bias is of f32."""
    import torch

    torch.backends.quantized.engine = engine
    x = torch._make_per_tensor_quantized_tensor(a.contiguous(), scales[0], zero_a)
    weights = torch._make_per_tensor_quantized_tensor(b.t().contiguous(), scales[1], 0)
    packed = torch.ops.quantized.linear_prepack(weights, None if bias is None else torch.from_numpy(bias.astype("f4")))
    return torch.ops.quantized.linear(x, packed, scales[2], zero).int_repr()


_ORDERS = {
    "MatMulInteger": "abcd", "MatMulIntegerToFloat": "abcdefg", "QLinearMatMul": "acdbefgh", "QGemm": "acdbefghi",
    "DynamicQuantizeMatMul": "abcde",
}  # fmt: skip
"""Inputs of an operation in order, as many as there are: a and b, and what is given besides, by letters from c on."""


def _run(what: tuple[str, str, str], given: tuple[Any, ...], a: Any, b: Any) -> Any:
    known = tuple((each.dtype.str, each.shape, each.tobytes()) for each in given)
    return _integer_session(*what, known).run(None, {"a": np.ascontiguousarray(a), "b": np.ascontiguousarray(b)})[0]


@cache
def _integer_session(
    operation: str, of_a: str, of_b: str, given: tuple[tuple[str, tuple[int, ...], bytes], ...]
) -> Any:
    import onnx
    import onnxruntime

    element = onnx.helper.np_dtype_to_tensor_dtype
    names = _ORDERS[operation][: 2 + len(given)]
    to = {"MatMulInteger": np.int32, "MatMulIntegerToFloat": np.float32, "QLinearMatMul": np.uint8}.get(operation)
    to = to or (np.uint8 if "i" in names else np.float32)
    a, b, y = (
        onnx.helper.make_tensor_value_info(name, element(np.dtype(each)), [None, None])
        for name, each in (("a", of_a), ("b", of_b), ("y", to))
    )
    held = [
        onnx.numpy_helper.from_array(np.frombuffer(raw, kind).reshape(shape), chr(ord("c") + i))
        for i, (kind, shape, raw) in enumerate(given)
    ]
    domain = "" if operation in ("MatMulInteger", "QLinearMatMul") else "com.microsoft"
    node = onnx.helper.make_node(operation, list(names), ["y"], domain=domain)
    graph = onnx.helper.make_graph([node], "product", [a, b], [y], held)
    sets = [onnx.helper.make_opsetid("", 13), onnx.helper.make_opsetid("com.microsoft", 1)]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    made = onnx.helper.make_model(graph, opset_imports=sets, ir_version=8).SerializeToString()
    return onnxruntime.InferenceSession(made, options, providers=["CPUExecutionProvider"])
