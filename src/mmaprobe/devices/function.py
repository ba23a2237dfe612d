"""The device ``function:module:name``: any Python callable that computes a dot product or a sum.

``function:numpy:dot?k=16&format=f32`` calls ``numpy.dot(a, b)`` with two
one-dimensional float32 arrays of 16 elements, once a vector;
``function:path/to/file.py:name`` a function of that file.  Options:

* ``k`` (16): lanes of a vector;
* ``format`` (f32): format of a and b;
* ``format_b`` (that of a): format of b, of whole products;
* ``result`` (that of a and b): format of what comes back;
* ``c`` (none): format of an accumulator; given, the call is ``dot(a, b, c)``;
* ``random`` (none): format of an operand of random bits, u8, u16 or u32; given, it is the last argument;
* ``operands`` (1 where the function requires one argument, else 2): 1 for a sum, ``sum(a)``; every b must be 1 then;
* ``m``, ``n`` (none): given, a is an (m, k) matrix, b (k, n) and the result (m, n): libraries have other code for
  other shapes;
* ``subscripts`` (none): a first argument, as ``einsum`` takes one;
* ``array`` (numpy; torch for a function of PyTorch): what the function takes;
* ``out`` (0): 1 for a whole product that is called with ``out=``, and writes D there;
* ``threads`` (none), ``env.NAME`` (none): the function runs in a child process, in which its library is told to have so
  many threads, or this environment variable is set, before it loads.

NumPy functions get ml_dtypes types for bf16 and the 8-, 6- and 4-bit formats.
The result must be one number, or (m, n), in the type of ``result``: nothing is
converted, so that every bit is the function's own.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction, spell
from mmaprobe.catalog.outside import add_instruction
from mmaprobe.devices.base import Support
from mmaprobe.devices.callables import Callee, InChild, InProcess, threads_environment
from mmaprobe.devices.options import split_options, whole
from mmaprobe.devices.products import Manner
from mmaprobe.devices.waiting import wondering
from mmaprobe.errors import UsageError
from mmaprobe.evidence import silicon
from mmaprobe.operands.batch import PER_RESULT, Batch, Bits, check_batch
from mmaprobe.operands.edge import held_as

ARCHITECTURE = "function"
MOST_ELEMENTS = 1 << 20
"""Elements of one operand or result at most: a batch has many of them."""
MOST_OF_PRODUCT = 1 << 26
"""Elements of an operand or result of one whole product at most: a call has one of each."""
MOST_THREADS = 1024
"""Threads that an option may ask for."""
ENVIRONMENT = "env."
"""What options that set a variable of the environment begin with."""
OPTIONS = (
    "array", "c", "format", "format_b", "k", "m", "n", "operands", "out", "random", "result", "subscripts", "threads",
)  # fmt: skip


class Function:
    """A callable as a device with one instruction, ``function.module:name{format=f32,k=16}``."""

    def __init__(self, name: str, callee: Callee, instruction: Instruction) -> None:
        self.name = name
        self.instruction = instruction
        self._callee = callee
        add_instruction(instruction, ARCHITECTURE, name)

    def info(self) -> dict[str, str]:
        """The function, the version of its library, and Python's; what is behind it nobody knows."""
        return {
            "architecture": ARCHITECTURE,
            silicon.KEY: silicon.UNKNOWN,
            "function": self.instruction.opcode.removeprefix("function."),
            "version": self._callee.version,
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
        inputs = [self._callee.ready(value, fmt[name]) for name, value in given.items()]
        shape = instruction.m, instruction.n
        d = np.empty((ready.size, *shape), fmt["d"].dtype)
        with wondering(f"{self.name}, which has been silent") as alive:
            for index in range(ready.size):
                d[index] = self._callee.call([operand[index] for operand in inputs], fmt["d"], shape)
                alive()
        return d


@dataclass(frozen=True)
class FunctionProduct:
    """A callable as a whole matrix product of any shape; ``shape`` (M, N, K) is the one that its name says."""

    name: str
    a: str
    b: str
    d: str
    shape: tuple[int, int, int]
    version: str
    threads: int
    environment: tuple[str, ...]
    writes: bool
    _callee: Callee = field(repr=False)

    def multiply(self, a: Bits, b: Bits) -> Bits:
        """D (M, N) of A (M, K) and B (K, N), bit patterns; DeviceError where the function fails."""
        if self.writes:
            return self.multiply_so(a, b, Manner(fill=0))
        operands = [
            self._callee.ready(a[None], formats.get(self.a))[0],
            self._callee.ready(b[None], formats.get(self.b))[0],
        ]
        with wondering(f"{self.name}, which has been silent"):
            return self._callee.call(operands, formats.get(self.d), (a.shape[0], b.shape[1]))

    def multiply_so(self, a: Bits, b: Bits, manner: Manner) -> Bits:
        """D of one call in another manner."""
        given = [(a, formats.get(self.a)), (b, formats.get(self.b))]
        with wondering(f"{self.name}, which has been silent"):
            return self._callee.multiply(given, formats.get(self.d), manner)


def open_function(argument: str) -> Function:
    """The device ``function:module:name?k=16&format=f32`` (options: see the module).

    NotHereError where the module cannot be imported, UsageError for a name
    that it lacks, a thing that cannot be called, or a wrong option.
    """
    target, options = _read(argument)
    for name in ("format_b", "out"):
        if name in options:
            raise UsageError(f"function:{argument}: {name} goes with whole products, such as those of mmaprobe gemm")
    _instruction(target, {"operands": "2"} | options)  # what is wrong with them is said before what is missing
    callee = _callee(argument, target, options)
    matrix = options.keys() & {"c", "random", "m", "n"}
    options.setdefault("operands", "2" if matrix else callee.operands)
    return Function(f"function:{argument}", callee, _instruction(target, options))


def open_product(argument: str) -> FunctionProduct:
    """The same callable as a whole product, ``m``, ``n`` and ``k`` being the shape that is meant (256 each)."""
    target, options = _read(argument)
    for name in ("c", "random", "operands", "subscripts"):
        if name in options:
            raise UsageError(f"function:{argument}: a whole product takes no option {name}")
    m, n, k = (whole(options, name, 256, 1) for name in "mnk")
    _check_size(m, n, k, MOST_OF_PRODUCT)
    a = options.get("format", "f32")
    b, d = options.get("format_b", a), options.get("result", a)
    _check_held(a, b, d)
    if options.get("out", "0") not in ("0", "1"):
        raise UsageError(f"option out={options['out']!r} must be 0 or 1")
    environment = tuple(f"{name}={value}" for name, value in sorted(_environment(options).items()))
    callee = _callee(argument, target, options)
    threads = whole(options, "threads", 0, 1) if "threads" in options else 0
    return FunctionProduct(
        f"function:{argument}",
        a,
        b,
        d,
        (m, n, k),
        callee.version,
        threads,
        environment,
        options.get("out", "0") == "1",
        callee,
    )


def _read(argument: str) -> tuple[str, dict[str, str]]:
    target, options = split_options(argument, OPTIONS, ENVIRONMENT)
    module, _, attribute = target.partition(":")
    if not module or not attribute:
        raise UsageError(f"function:{argument}: the name is function:module:name, as in function:numpy:dot?k=16")
    if "threads" in options and whole(options, "threads", 1, 1) > MOST_THREADS:
        raise UsageError(f"option threads={options['threads']} must be at most {MOST_THREADS}")
    for name, value in _environment(options).items():
        if "=" in name or "\0" in name + value:
            raise UsageError(f"function:{argument}: {ENVIRONMENT}{name} is no variable of an environment")
    return target, options


def _environment(options: dict[str, str]) -> dict[str, str]:
    """The variables that options set."""
    return {key.removeprefix(ENVIRONMENT): value for key, value in options.items() if key.startswith(ENVIRONMENT)}


def _callee(argument: str, target: str, options: dict[str, str]) -> Callee:
    """The callable: in a child where something has to be set before its library loads."""
    name, array, subscripts = f"function:{argument}", options.get("array", ""), options.get("subscripts", "")
    environment = _environment(options)
    if "threads" in options:
        environment = threads_environment(whole(options, "threads", 1, 1)) | environment
    if environment:
        return InChild(name, target, array, subscripts, environment)
    return InProcess(name, target, array, subscripts)


def _check_held(*names: str) -> None:
    for name in names:
        if held_as(formats.get(name)) is None and formats.get(name).is_float:
            raise UsageError(f"function: no array type holds {name}")


def _check_size(m: int, n: int, k: int, most: int) -> None:
    if max(m * k, k * n, m * n) > most:
        raise UsageError(f"function: an array of more than {most:,} elements; choose a smaller k, m or n")


def _instruction(target: str, options: dict[str, str]) -> Instruction:
    a = options.get("format", "f32")
    d, c = options.get("result", a), options.get("c")
    _check_held(*filter(None, (a, d, c)))
    k, m, n = (whole(options, name, default, 1) for name, default in (("k", 16), ("m", 1), ("n", 1)))
    _check_size(m, n, k, MOST_ELEMENTS)
    random = options.get("random")
    more = {"c": c, "random": random, "result": None if d == a else d, "subscripts": options.get("subscripts")}
    more |= {key: value for key, value in options.items() if key == "threads" or key.startswith(ENVIRONMENT)}
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
