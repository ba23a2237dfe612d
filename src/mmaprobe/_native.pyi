"""The native module: each subject's functions together, in the order of csrc/cpu/bindings/module.cpp."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_Array = NDArray[Any]
_Placed = tuple[_Array, NDArray[np.intp], NDArray[np.intp]]  # a matrix, its rows and its columns

# CPU instructions
cpu_default_control: int

def cpu_features() -> list[str]: ...
def cpu_identity() -> list[tuple[str, str]]: ...
def cpu_units() -> list[tuple[str, bool, str, str]]: ...
def cpu_trial(id: str) -> int: ...
def cpu_run(id: str, control: int, a: _Array, b: _Array, c: _Array | None, d: _Array) -> None: ...

# Generators
def generate(
    domain: NDArray[np.int64], family: int, stream: int, seed: int, start: int, count: int,
    outputs: list[_Array | None], build: str = "",
) -> None: ...  # fmt: skip
def generate_layout(
    domain: NDArray[np.int64], family: int, stream: int, seed: int, start: int, count: int, m: int, n: int,
    outputs: list[_Array | None], build: str = "", whole_m: int = 0, whole_n: int = 0,
) -> None: ...  # fmt: skip
def generator_builds() -> list[str]: ...
def generator_versions() -> list[tuple[str, int]]: ...
def tile_versions() -> list[tuple[str, int]]: ...

# Engine and comparison
def engine_evaluate(programs: list[_Array], operands: list[_Array | None], out: _Array, build: str = "") -> None: ...
def engine_evaluate_combinations(
    words: _Array, axes: list[tuple[_Array, _Array, _Array]], free: _Array, sums: _Array, lift: int,
    operands: list[_Array | None], out: _Array, build: str = "",
) -> None: ...  # fmt: skip
def engine_evaluate_layout(
    program: _Array, operands: list[_Array | None], out: _Array, count: int, m: int, n: int, build: str = ""
) -> bool: ...
def engine_evaluate_tiles(
    program: _Array, operands: list[_Array | None], out: _Array, count: int, m: int, n: int, build: str = ""
) -> bool: ...
def results(dtype: np.dtype[Any], shape: tuple[int, ...]) -> _Array: ...
def engine_builds() -> list[str]: ...
def runnable_builds() -> list[str]: ...
def engine_layout() -> dict[str, list[str]]: ...
def compare(x: _Array, y: _Array, limit: int = 16) -> tuple[int, NDArray[Any]]: ...

# Sparse operands
def select_lanes(b: _Array, metadata: NDArray[np.uint8], kept: NDArray[np.uint8], out: _Array) -> None: ...

# Generate, evaluate, compare
def silicon(
    domain: NDArray[np.int64],
    family: int,
    stream: int,
    seed: int,
    start: int,
    count: int,
    program: NDArray[np.int64],
    id: str,
    control: int,
    any_nan: bool = False,
    limit: int = 4,
    build: str = "",
) -> tuple[int, list[int]]: ...
def pipeline(
    domain: NDArray[np.int64], family: int, stream: int, seed: int, start: int, count: int, m: int, n: int,
    programs: list[_Array], answers: _Array | None = None, any_nan: bool = False, limit: int = 4, build: str = "",
    whole_m: int = 0, whole_n: int = 0,
) -> tuple[int, list[int]]: ...  # fmt: skip

# The roof
compiler: str

def roof(build: str = "") -> dict[str, float]: ...

# Matrix products by a schedule
def gemm(
    operations: NDArray[np.int64], programs: list[NDArray[np.int64]], order: NDArray[np.int64], a: _Placed, b: _Placed,
    values: Sequence[_Array | None], chained: int, inputs: Sequence[_Placed], d: _Placed, largest: NDArray[np.uint64],
    most_rows: int, most_columns: int, build: str = "",
) -> None: ...  # fmt: skip
def gemm_layout() -> dict[str, list[str]]: ...
