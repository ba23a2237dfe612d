"""The device ``gemm:SCHEDULE?m=M&n=N&k=K``: the matrix product of a schedule, as a device with one instruction.

``SCHEDULE`` is the name of one that ships, or the path of a file, which ends in ``.toml``.  ``m``, ``n`` and ``k`` are
the shape; without C, or with ``c=1`` where the schedule takes one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from mmaprobe.catalog.instruction import Instruction, spell
from mmaprobe.catalog.outside import MOST_ELEMENTS, add_instruction
from mmaprobe.devices.base import Support
from mmaprobe.devices.options import split_options, whole
from mmaprobe.devices.products import SCHEMES
from mmaprobe.errors import UsageError, brief
from mmaprobe.evidence import silicon
from mmaprobe.models.gemm import Gemm, gemm
from mmaprobe.operands.batch import Batch, Bits, check_batch
from mmaprobe.parameters.schedule import Schedule, Scope, known_schedules, to_text

ARCHITECTURE = "gemm"
OPTIONS = ("c", "k", "m", "n")
MOST_OF_PRODUCT = 1 << 26
"""Elements of an operand or result of one whole product at most: a call has one of each."""
MEANT = 256
"""M, N and K of a whole product where its name says nothing."""


class GemmDevice:
    """A schedule at one shape; its instruction is ``gemm.NAME{k=K,m=M,n=N}``.  Which NaN comes out it does not say."""

    concurrent: ClassVar[bool] = True
    claims_nans: ClassVar[bool] = False

    def __init__(self, name: str, product: Gemm, instruction: Instruction) -> None:
        self.name = name
        self.instruction = instruction
        self._product = product
        add_instruction(instruction, ARCHITECTURE, name)

    @property
    def schedule(self) -> Schedule:
        """The schedule."""
        return self._product.schedule

    def info(self) -> dict[str, str]:
        """The digest of the schedule."""
        digest = hashlib.sha256(to_text(self._product.schedule).encode()).hexdigest()
        return {"architecture": ARCHITECTURE, silicon.KEY: silicon.MODEL, "schedule": f"sha256:{digest}"}

    def instructions(self) -> Sequence[Instruction]:
        """The one instruction."""
        return (self.instruction,)

    def supports(self, instruction: Instruction) -> Support:
        """Yes for its own instruction, and for that of any other device that is a product of these formats in the
        schedule's scope: so a schedule is the reference of a library."""
        made = self._product.schedule
        wanted = (instruction.a, instruction.b, instruction.c or self.instruction.c, instruction.d)
        if not _is_product(instruction) or wanted != (made.a, made.b, self.instruction.c, made.d):
            c = f", C {self.instruction.c}" if self.instruction.c else ""
            takes = f"A {made.a}, B {made.b}{c}, D {made.d}"
            return Support(False, f"{self.name} runs {self.instruction.id} and other products of {takes}")
        try:
            made.scope.check(instruction.m, instruction.n, instruction.k)
        except UsageError as error:
            return Support(False, f"{self.name}: {error}")
        return Support(True, "")

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        """D (batch, M, N)."""
        support = self.supports(instruction)
        if not support:
            raise UsageError(support.reason)
        ready = check_batch(instruction, batch)
        return self._product.run(ready.a, ready.b, ready.c)


def _is_product(instruction: Instruction) -> bool:
    """Whether an instruction is a whole product A B, or A B + C, as a function and a schedule are."""
    return instruction.family in SCHEMES and "operands" not in instruction.modifier and instruction.random is None


@dataclass(frozen=True)
class GemmProduct:
    """A schedule as a whole matrix product of every shape in its scope; ``shape`` (M, N, K) is that of its name."""

    name: str
    shape: tuple[int, int, int]
    _product: Gemm = field(repr=False)
    version: ClassVar[str] = ""

    @property
    def a(self) -> str:
        """Format of A."""
        return self._product.schedule.a

    @property
    def b(self) -> str:
        """Format of B."""
        return self._product.schedule.b

    @property
    def d(self) -> str:
        """Format of D."""
        return self._product.schedule.d

    @property
    def schedule(self) -> Schedule:
        """The schedule."""
        return self._product.schedule

    @property
    def threads(self) -> int:
        """Those of its scope."""
        return self._product.schedule.scope.threads

    @property
    def environment(self) -> tuple[str, ...]:
        """That of its scope."""
        return self._product.schedule.scope.environment

    def multiply(self, a: Bits, b: Bits) -> Bits:
        """D (M, N) of A (M, K) and B (K, N); UsageError for a shape outside of the scope."""
        d: Bits = self._product.run(a[None], b[None])[0]
        return d


def open_product(argument: str) -> GemmProduct:
    """The product of a schedule as something to ask; ``m``, ``n`` and ``k`` are the shape that is meant (``MEANT``,
    or what of its scope is nearest)."""
    target, options = split_options(argument, ("k", "m", "n"))
    product = gemm(target)
    m, n, k = (whole(options, name, _meant(product.schedule.scope, name), 1) for name in "mnk")
    if max(m * k, k * n, m * n) > MOST_OF_PRODUCT:
        raise UsageError(f"gemm: an array of more than {MOST_OF_PRODUCT:,} elements; choose a smaller k, m or n")
    product.schedule.scope.check(m, n, k)
    return GemmProduct(f"gemm:{argument}", (m, n, k), product)


def _meant(scope: Scope, axis: str) -> int:
    least, most = getattr(scope, f"least_{axis}"), getattr(scope, f"most_{axis}")
    return int(max(least, min(MEANT, most)))


def open_gemm(argument: str) -> GemmDevice:
    """The device ``gemm:SCHEDULE?m=M&n=N&k=K`` (see the module).

    UsageError for an unknown schedule, a broken file, a wrong option, or a shape that the schedule does not hold for.
    """
    target, options = split_options(argument, OPTIONS)
    if not target:
        known = ", ".join(known_schedules())
        raise UsageError(f"gemm: of which schedule? Type gemm:NAME?m=8&n=8&k=1000, NAME one of {known} or FILE.toml")
    product = gemm(target)
    made = product.schedule
    if made.inputs:
        names = ", ".join(each.name for each in made.inputs)
        raise UsageError(
            f"gemm: the schedule takes {names}, which a device is not handed; call mmaprobe.gemm from Python"
        )
    m, n, k = (whole(options, name, default, 1) for name, default in (("m", 8), ("n", 8), ("k", 16)))
    if max(m * k, k * n, m * n) > MOST_ELEMENTS:
        raise UsageError(f"gemm: an array of more than {MOST_ELEMENTS:,} elements; choose a smaller k, m or n")
    made.scope.check(m, n, k)
    wanted = options.get("c", "0")
    if wanted not in ("0", "1") or (wanted == "1" and made.c is None):
        raise UsageError(f"option c={brief(wanted)} must be 0" + (" or 1" if made.c else ": the schedule takes no C"))
    c = made.c if wanted == "1" else None
    pairs = tuple(sorted({"k": str(k), "m": str(m), "n": str(n), **({"c": made.c} if c and made.c else {})}.items()))
    opcode = f"gemm.{target}"
    one = Instruction(spell(opcode, pairs), opcode, "gemm", m, n, k, made.a, made.b, c, made.d, pairs)
    return GemmDevice(f"gemm:{argument}", product, one)
