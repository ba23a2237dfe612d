"""A Python callable found by name and called with bit patterns: in this process, or in a child of its own.

In a child the environment is set before the library loads, so that what it chooses then (threads, kernels) is chosen
as asked.  ``python -m mmaprobe.devices.callables TARGET ARRAY SUBSCRIPTS`` is the child: its first line is a JSON
object, ``{"operands": "2", "version": "2.4.6"}`` or ``{"error": ..., "exit": 2}``; a request is a line of JSON, the
operands' formats and shapes, the result's, and in which manner a product is called, and then their bytes; an answer is
``ok D`` and the bytes of D, or one line ``error ...``.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.devices.child import Child
from mmaprobe.devices.products import Manner
from mmaprobe.errors import DeviceError, MmaprobeError, NotHereError, UsageError, brief, near, printable
from mmaprobe.operands.batch import Bits
from mmaprobe.operands.edge import from_bits, held_as, to_host

TIMEOUT = 120.0
"""Seconds that one call of a function in a child may take."""
ALIGNED = 64
"""What divides the address of an operand that is not shifted, in bytes: a register's width."""
THREADS = (
    "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)  # fmt: skip
"""Variables by which libraries are told how many threads they may have."""


class Callee(Protocol):
    """What a device calls; ``version`` is that of its library, ``operands`` how many arrays it takes."""

    version: str
    operands: str

    def ready(self, bits: Bits, fmt: formats.Format) -> Sequence[Any]:
        """The items of an operand as ``call`` takes them."""
        ...

    def call(self, operands: Sequence[Any], fmt: formats.Format, shape: tuple[int, int]) -> Bits:
        """The bits of D; DeviceError where the callable raises, or returns something else."""
        ...

    def multiply(self, operands: Sequence[tuple[Bits, formats.Format]], fmt: formats.Format, manner: Manner) -> Bits:
        """The bits of D of two matrices, called in a manner; DeviceError likewise."""
        ...


class InProcess:
    """A callable of this process."""

    def __init__(self, name: str, target: str, array: str = "", subscripts: str = "") -> None:
        """``target`` is module:name; NotHereError where the module cannot be imported, UsageError for a wrong name."""
        self._name = name
        module, _, attribute = target.partition(":")
        call, self.version = _find(module, attribute)
        self._call = partial(call, subscripts) if subscripts else call
        self.operands = _operands(self._call)
        self._like = _like(array or ("torch" if module.partition(".")[0] == "torch" else "numpy"))

    def ready(self, bits: Bits, fmt: formats.Format) -> Sequence[Any]:
        """The operand in the array type that the callable takes."""
        arrays: Sequence[Any] = from_bits(np.ascontiguousarray(bits), fmt, True, self._like)
        return arrays

    def call(self, operands: Sequence[Any], fmt: formats.Format, shape: tuple[int, ...]) -> Bits:
        """The bits of D of this shape, of the callable's own result."""
        result = self._returned(operands)
        dtype = held_as(fmt) or fmt.dtype
        if result.dtype != dtype or (result.size != 1 if shape == (1, 1) else result.shape != shape):
            wanted = f"one {dtype}" if shape == (1, 1) else f"{dtype} of shape {shape}"
            raise DeviceError(
                f"{self._name}: returned {result.dtype} of shape {result.shape}, not {wanted}; "
                "name its format with the option result=, as in ?k=16&format=f32&result=f64"
            )
        return np.ascontiguousarray(result.reshape(shape)).view(fmt.dtype)

    def _returned(self, operands: Sequence[Any], **more: Any) -> NDArray[Any]:
        """What the callable returns, on the host; DeviceError where it raises."""
        try:
            with np.errstate(all="ignore"):  # overflows and NaNs are among the questions
                return np.asarray(to_host(self._call(*operands, **more)))
        except MmaprobeError:
            raise
        except Exception as error:
            raise DeviceError(f"{self._name}: {type(error).__name__}: {error}") from error

    def multiply(self, operands: Sequence[tuple[Bits, formats.Format]], fmt: formats.Format, manner: Manner) -> Bits:
        """The bits of D, or of what the callable left in ``out``."""
        given = [from_bits(placed(bits, manner), own, True, self._like) for bits, own in operands]
        shape = product_shape([bits.shape for bits, _ in operands], manner)
        if manner.fill is None:
            return self.call(given, fmt, shape)
        held = np.full(shape, manner.fill, fmt.dtype)
        out = from_bits(held, fmt, True, self._like)
        self._returned(given, out=out)
        return np.array(to_host(out)).view(fmt.dtype)


def placed(bits: Bits, manner: Manner) -> Bits:
    """A matrix where a manner of calling has it, in memory of its own."""
    stack = bits if not manner.batch else np.repeat(bits[None], manner.batch, axis=0)
    *rows, length = stack.shape
    count, row = math.prod(rows), length + manner.pad
    items = ALIGNED // bits.dtype.itemsize
    buffer = np.zeros(count * row + manner.shift + items, bits.dtype)
    start = -buffer.ctypes.data % ALIGNED // bits.dtype.itemsize + manner.shift
    place: Bits = buffer[start : start + count * row].reshape(*rows, row)[..., :length]
    place[:] = stack
    return place


def product_shape(shapes: Sequence[Sequence[int]], manner: Manner) -> tuple[int, ...]:
    """The shape of D of A and B of these shapes."""
    return (*(() if not manner.batch else (manner.batch,)), shapes[0][0], shapes[1][1])


class InChild:
    """The same callable in a child process with an environment of its own; started anew after a failure."""

    def __init__(
        self,
        name: str,
        target: str,
        array: str = "",
        subscripts: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Errors are those of ``InProcess``, met in the child."""
        self._name = name
        command = (sys.executable, "-m", "mmaprobe.devices.callables", target, array, subscripts)
        paths = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)])
        self._child = Child(command, TIMEOUT, environment={"PYTHONPATH": paths, **(environment or {})})
        said = self._greet()
        self.version, self.operands = said["version"], said["operands"]

    def _greet(self) -> dict[str, str]:
        line = self._child.start()
        try:
            said = json.loads(line)
        except ValueError:
            raise self._child.failure(f"began with {brief(line)}; a library of the function prints to it") from None
        if "error" in said:
            self._child.stop()
            kind = NotHereError if said["exit"] == NotHereError.exit_code else UsageError
            raise kind(said["error"])
        return {key: str(value) for key, value in said.items()}

    def ready(self, bits: Bits, fmt: formats.Format) -> Sequence[Any]:
        """The operand's items with the name of their format."""
        return [(fmt.name, np.ascontiguousarray(each)) for each in bits]

    def call(self, operands: Sequence[Any], fmt: formats.Format, shape: tuple[int, int]) -> Bits:
        """The bits of D of this shape."""
        return self._exchange({"result": [fmt.name, shape]}, operands, fmt, shape)

    def multiply(self, operands: Sequence[tuple[Bits, formats.Format]], fmt: formats.Format, manner: Manner) -> Bits:
        """The bits of D."""
        shape = product_shape([bits.shape for bits, _ in operands], manner)
        named = [(own.name, np.ascontiguousarray(bits)) for bits, own in operands]
        return self._exchange({"result": [fmt.name, shape], "manner": asdict(manner)}, named, fmt, shape)

    def _exchange(
        self, asked: dict[str, Any], operands: Sequence[Any], fmt: formats.Format, shape: tuple[int, ...]
    ) -> Bits:
        if not self._child.running:
            self._greet()
        asked = {**asked, "operands": [[name, bits.shape] for name, bits in operands]}
        request = b"".join([json.dumps(asked).encode(), b"\n", *(bits.tobytes() for _, bits in operands)])
        answer = self._child.exchange(request, size=math.prod(shape) * fmt.dtype.itemsize)
        if not answer.startswith(b"ok "):
            raise DeviceError(answer.decode("utf-8", "replace").removeprefix("error ").strip())
        return np.frombuffer(answer, fmt.dtype, offset=answer.index(b"\n") + 1).reshape(shape)


def threads_environment(count: int) -> dict[str, str]:
    """What tells libraries to have so many threads."""
    return dict.fromkeys(THREADS, str(count))


def _find(module_name: str, attribute: str) -> tuple[Callable[..., Any], str]:
    if module_name.endswith(".py") and not Path(module_name).exists():
        raise UsageError(f"function:{module_name}:{attribute}: {module_name}: No such file or directory")
    try:
        module = _from_file(module_name) if module_name.endswith(".py") else importlib.import_module(module_name)
    except Exception as error:
        raise NotHereError(
            f"function:{module_name}:{attribute}: {type(error).__name__}: {error}; install it, "
            "or put its folder into PYTHONPATH"
        ) from error
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise UsageError(f"{module_name} has no {attribute!r}{near(part, dir(found))}")
        found = getattr(found, part)
    if not callable(found):
        raise UsageError(f"{module_name}:{attribute} is {type(found).__name__}, which cannot be called")
    root = module if module_name.endswith(".py") else importlib.import_module(module_name.partition(".")[0])
    return found, str(getattr(root, "__version__", "unknown"))


def _from_file(path: str) -> Any:
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _operands(call: Callable[..., Any]) -> str:
    """1 where the signature requires exactly one argument, else 2."""
    try:
        every = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):
        return "2"
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [p for p in every if p.kind in positional and p.default is p.empty]
    return "1" if len(required) == 1 and not any(p.kind is p.VAR_POSITIONAL for p in every) else "2"


def _like(library: str) -> Any:
    """An array of the library that the function takes."""
    if library == "numpy":
        return np.zeros(0)
    if library != "torch":
        raise UsageError(f"option array={library!r} must be numpy or torch")
    try:
        return importlib.import_module("torch").zeros(0)
    except ImportError as error:
        raise NotHereError("option array=torch: PyTorch is not installed; pip install torch") from error


def _serve(target: str, array: str, subscripts: str) -> int:
    """Answer requests until there are none; what the library prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        callee = InProcess(f"function:{target}", target, array, subscripts)
    except MmaprobeError as error:
        said: dict[str, Any] = {"error": str(error), "exit": error.exit_code}
    else:
        said = {"version": callee.version, "operands": callee.operands}
    answers.write(json.dumps(said).encode() + b"\n")
    answers.flush()
    while "error" not in said and (line := sys.stdin.buffer.readline()):
        answers.write(_answer(callee, json.loads(line)))
        answers.flush()
    return 0


def _answer(callee: InProcess, asked: dict[str, Any]) -> bytes:
    """The answer to one request; an error where the callable fails."""
    given = []
    for name, shape in asked["operands"]:
        fmt = formats.get(name)
        bits = np.frombuffer(sys.stdin.buffer.read(math.prod(shape) * fmt.dtype.itemsize), fmt.dtype).reshape(shape)
        given.append((bits, fmt))
    name, shape = asked["result"]
    try:
        if "manner" in asked:
            d = callee.multiply(given, formats.get(name), Manner(**asked["manner"]))
        else:
            operands = [callee.ready(bits[None].copy(), fmt)[0] for bits, fmt in given]
            d = callee.call(operands, formats.get(name), tuple(shape))
    except MmaprobeError as error:
        return f"error {' '.join(printable(str(error)).split())}\n".encode()
    return b"ok D\n" + d.tobytes()


if __name__ == "__main__":
    sys.exit(_serve(*sys.argv[1:4]))
