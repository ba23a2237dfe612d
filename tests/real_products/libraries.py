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
