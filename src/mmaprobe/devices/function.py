"""The device ``function:module:name``: any Python callable that computes a dot product or a sum.

``function:numpy:dot?k=16&format=f32`` calls ``numpy.dot(a, b)`` with two
one-dimensional float32 arrays of 16 elements, once a vector;
``function:path/to/file.py:name`` a function of that file.  Options:

* ``k`` (16): lanes of a vector;
* ``format`` (f32): format of a and b;
* ``result`` (that of a and b): format of what comes back;
* ``c`` (none): format of an accumulator; given, the call is ``dot(a, b, c)``;
* ``random`` (none): format of an operand of random bits, u8, u16 or u32; given, it is the last argument;
* ``operands`` (1 where the function requires one argument, else 2): 1 for a sum, ``sum(a)``; every b must be 1 then;
* ``m``, ``n`` (none): given, a is an (m, k) matrix, b (k, n) and the result (m, n): libraries have other code for
  other shapes;
* ``subscripts`` (none): a first argument, as ``einsum`` takes one;
* ``array`` (numpy; torch for a function of PyTorch): what the function takes.

NumPy functions get ml_dtypes types for bf16 and the 8-, 6- and 4-bit formats.
The result must be one number, or (m, n), in the type of ``result``: nothing is
converted, so that every bit is the function's own.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import platform
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction, spell
from mmaprobe.catalog.outside import add_instruction
from mmaprobe.devices.base import Support
from mmaprobe.devices.options import split_options, whole
from mmaprobe.errors import DeviceError, MmaprobeError, NotHereError, UsageError, near
from mmaprobe.evidence import silicon
from mmaprobe.operands.batch import PER_RESULT, Batch, Bits, check_batch
from mmaprobe.operands.edge import from_bits, held_as, to_host

ARCHITECTURE = "function"
MOST_ELEMENTS = 1 << 20
"""Elements of one operand or result at most: a batch has many of them."""
OPTIONS = ("array", "c", "format", "k", "m", "n", "operands", "random", "result", "subscripts")


class Function:
    """A callable as a device with one instruction, ``function.module:name{format=f32,k=16}``."""

    def __init__(self, name: str, call: Callable[..., Any], instruction: Instruction, like: Any, version: str) -> None:
        self.name = name
        self.instruction = instruction
        self._call = call
        self._like = like
        self._version = version
        add_instruction(instruction, ARCHITECTURE, name)

    def info(self) -> dict[str, str]:
        """The function, the version of its library, and Python's; what is behind it nobody knows."""
        return {
            "architecture": ARCHITECTURE,
            silicon.KEY: silicon.UNKNOWN,
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
        """D (batch, M, N), one call each; DeviceError where the function raises or returns something else.

        UsageError for a b that is not 1 where the function takes a alone.
        """
        support = self.supports(instruction)
        if not support:
            raise UsageError(support.reason)
        ready = check_batch(instruction, batch)
        fmt, given = instruction.formats(), dict(ready.items())
        if instruction.modifier.get("operands") == "1" and (given.pop("b") != fmt["b"].one).any():
            raise UsageError(f"{self.name} takes one array: every element of b must be 1")
        if "m" not in instruction.modifier:
            given = {
                name: value.reshape(ready.size, *((-1,) if name not in PER_RESULT else ()))
                for name, value in given.items()
            }
        inputs = [self._arrays(value, fmt[name]) for name, value in given.items()]
        d = np.empty((ready.size, instruction.m, instruction.n), fmt["d"].dtype)
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
        m, n = self.instruction.m, self.instruction.n
        if result.dtype != dtype or (result.size != 1 if m == n == 1 else result.shape != (m, n)):
            wanted = f"one {dtype}" if m == n == 1 else f"{dtype} of shape ({m}, {n})"
            raise DeviceError(
                f"{self.name}: returned {result.dtype} of shape {result.shape}, not {wanted}; "
                "name its format with the option result=, as in ?k=16&format=f32&result=f64"
            )
        return np.ascontiguousarray(result.reshape(m, n)).view(fmt.dtype)


def open_function(argument: str) -> Function:
    """The device ``function:module:name?k=16&format=f32`` (options: see the module).

    NotHereError where the module cannot be imported, UsageError for a name
    that it lacks, a thing that cannot be called, or a wrong option.
    """
    target, options = split_options(argument, OPTIONS)
    module_name, _, attribute = target.partition(":")
    if not module_name or not attribute:
        raise UsageError(f"function:{argument}: the name is function:module:name, as in function:numpy:dot?k=16")
    _instruction(target, {"operands": "2"} | options)  # what is wrong with them is said before what is missing
    call, version = _find(module_name, attribute)
    if "subscripts" in options:
        call = partial(call, options["subscripts"])
    options.setdefault("operands", _operands(call, options))
    instruction = _instruction(target, options)
    library = options.get("array", "torch" if module_name.partition(".")[0] == "torch" else "numpy")
    return Function(f"function:{argument}", call, instruction, _like(library), version)


def _find(module_name: str, attribute: str) -> tuple[Callable[..., Any], str]:
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


def _operands(call: Callable[..., Any], options: dict[str, str]) -> str:
    """1 where the signature requires exactly one argument and no matrix or accumulator is asked for, else 2."""
    try:
        every = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):
        return "2"
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [p for p in every if p.kind in positional and p.default is p.empty]
    variable = any(p.kind is p.VAR_POSITIONAL for p in every)
    return "1" if len(required) == 1 and not variable and not options.keys() & {"c", "random", "m", "n"} else "2"


def _instruction(target: str, options: dict[str, str]) -> Instruction:
    a = options.get("format", "f32")
    d, c = options.get("result", a), options.get("c")
    for name in filter(None, (a, d, c)):
        if held_as(formats.get(name)) is None and formats.get(name).is_float:
            raise UsageError(f"function: no array type holds {name}")
    k, m, n = (whole(options, name, default, 1) for name, default in (("k", 16), ("m", 1), ("n", 1)))
    if max(m * k, k * n, m * n) > MOST_ELEMENTS:
        raise UsageError(f"function: an array of more than {MOST_ELEMENTS:,} elements; choose a smaller k, m or n")
    random = options.get("random")
    more = {"c": c, "random": random, "result": None if d == a else d, "subscripts": options.get("subscripts")}
    if options.keys() & {"m", "n"}:
        more |= {"m": str(m), "n": str(n)}
    if options["operands"] not in ("1", "2"):
        raise UsageError(f"option operands={options['operands']!r} must be 1 or 2")
    if options["operands"] == "1":
        more["operands"] = "1"
        if c or random or "m" in more:
            raise UsageError("function: a function of one array takes no c, random bits, m or n")
    modifiers = {"format": a, "k": str(k), **{key: value for key, value in more.items() if value is not None}}
    pairs = tuple(sorted(modifiers.items()))
    opcode = f"function.{target}"
    return Instruction(spell(opcode, pairs), opcode, "function", m, n, k, a, a, c, d, pairs, random=random)


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
