"""The device ``function:module:name``: any Python callable that computes a dot product.

``function:numpy:dot?k=16&format=f32`` calls ``numpy.dot(a, b)`` with two
one-dimensional float32 arrays of 16 elements, once a vector.  Options:

* ``k`` (16): lanes of a vector;
* ``format`` (f32): format of a and b;
* ``result`` (that of a and b): format of what comes back;
* ``c`` (none): format of an accumulator; given, the call is ``dot(a, b, c)``;
* ``array`` (numpy; torch for a function of PyTorch): what the function takes.

NumPy functions get ml_dtypes types for bf16 and the 8-, 6- and 4-bit formats.
The result must be one number in the type of ``result``: nothing is converted,
so that every bit is the function's own.
"""

from __future__ import annotations

import importlib
import platform
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mmaprobe import formats
from mmaprobe.catalog.batch import Batch, Bits, check_batch
from mmaprobe.catalog.edge import from_bits, held_as, to_host
from mmaprobe.catalog.instruction import Instruction, spell
from mmaprobe.devices.base import Support
from mmaprobe.devices.options import split_options, whole
from mmaprobe.errors import DeviceError, MmaprobeError, NotHereError, UsageError, near

OPTIONS = ("array", "c", "format", "k", "result")


class Function:
    """A callable as a device with one lane-wise instruction, ``function.module:name{format=f32,k=16}``."""

    def __init__(self, name: str, call: Callable[..., Any], instruction: Instruction, like: Any, version: str) -> None:
        self.name = name
        self.instruction = instruction
        self._call = call
        self._like = like
        self._version = version

    def info(self) -> dict[str, str]:
        """The function, the version of its library, and Python's."""
        return {
            "architecture": "function",
            "function": self.instruction.opcode.removeprefix("function."),
            "version": self._version,
            "python": platform.python_version(),
            "machine": platform.machine(),
        }

    def instructions(self) -> Sequence[Instruction]:
        """The one instruction."""
        return (self.instruction,)

    def supports(self, instruction: Instruction) -> Support:
        """Yes for its own instruction."""
        own = instruction == self.instruction
        return Support(own, "" if own else f"{self.name} runs {self.instruction.id} only")

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        """D (batch, 1, 1), one call a vector; DeviceError where the function raises or returns something else."""
        support = self.supports(instruction)
        if not support:
            raise UsageError(support.reason)
        ready = check_batch(instruction, batch)
        fmt = instruction.formats()
        inputs = [self._arrays(ready.a[:, 0], fmt["a"]), self._arrays(ready.b[:, :, 0], fmt["b"])]
        if ready.c is not None:
            inputs.append(self._arrays(ready.c[:, 0, 0], fmt["c"]))
        d = np.empty((ready.size, 1, 1), fmt["d"].dtype)
        with np.errstate(all="ignore"):  # overflows and NaNs are among the questions
            for index in range(ready.size):
                d[index] = self._one([operand[index] for operand in inputs], fmt["d"])
        return d

    def _arrays(self, bits: Bits, fmt: formats.Format) -> Any:
        return from_bits(np.ascontiguousarray(bits), fmt, True, self._like)

    def _one(self, operands: list[Any], fmt: formats.Format) -> Any:
        try:
            result = np.asarray(to_host(self._call(*operands)))
        except MmaprobeError:
            raise
        except Exception as error:
            raise DeviceError(f"{self.name}: {type(error).__name__}: {error}") from error
        dtype = held_as(fmt) or fmt.dtype
        if result.dtype != dtype or result.size != 1:
            raise DeviceError(
                f"{self.name}: returned {result.dtype} of shape {result.shape}, not one {dtype}; "
                "name its format with the option result=, as in ?k=16&format=f32&result=f64"
            )
        return result.reshape(1).view(fmt.dtype)


def open_function(argument: str) -> Function:
    """The device ``function:module:name?k=16&format=f32`` (options: see the module).

    NotHereError where the module cannot be imported, UsageError for a name
    that it lacks, a thing that cannot be called, or a wrong option.
    """
    target, options = split_options(argument, OPTIONS)
    module_name, _, attribute = target.partition(":")
    if not module_name or not attribute:
        raise UsageError(f"function:{argument}: the name is function:module:name, as in function:numpy:dot?k=16")
    call, version = _find(module_name, attribute)
    instruction = _instruction(target, options)
    library = options.get("array", "torch" if module_name.partition(".")[0] == "torch" else "numpy")
    return Function(f"function:{argument}", call, instruction, _like(library), version)


def _find(module_name: str, attribute: str) -> tuple[Callable[..., Any], str]:
    try:
        module = importlib.import_module(module_name)
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
    root = importlib.import_module(module_name.partition(".")[0])
    return found, str(getattr(root, "__version__", "unknown"))


def _instruction(target: str, options: dict[str, str]) -> Instruction:
    a = options.get("format", "f32")
    d, c = options.get("result", a), options.get("c")
    for name in filter(None, (a, d, c)):
        if held_as(formats.get(name)) is None and formats.get(name).is_float:
            raise UsageError(f"function: no array type holds {name}")
    k = whole(options, "k", 16, 1)
    more = {"c": c, "result": None if d == a else d}
    modifiers = {"format": a, "k": str(k), **{key: value for key, value in more.items() if value is not None}}
    pairs = tuple(sorted(modifiers.items()))
    opcode = f"function.{target}"
    return Instruction(spell(opcode, pairs), opcode, "function", 1, 1, k, a, a, c, d, pairs)


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
