"""What an instruction becomes on an architecture: primitives, and conversions and adds around them.

A lowering is a compiler's fact and carries the compiler's version.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mmaprobe.errors import UsageError

Kind = Literal["native", "split", "emulated"]
KINDS = ("native", "split", "emulated")
TARGETS = ("all", "family", "none")


@dataclass(frozen=True)
class Application:
    """One use of a primitive on some lanes of the instruction.

    ``lanes`` are the instruction's lanes in the primitive's lane order.
    ``start`` is what the primitive accumulates on: operand C (``c``), the
    application before it (``previous``) or ``zero``.
    """

    primitive: str
    lanes: tuple[int, ...]
    start: Literal["c", "previous", "zero"]


@dataclass(frozen=True)
class Lowering:
    """How one instruction runs on one architecture.

    ``native``: one primitive covers K.  ``split``: the same primitive several
    times, over M, N or K.  ``emulated``: conversions or a software routine
    around or instead of primitives; ``convert`` is the format that A and B are
    converted to first, ``add`` the scalar instruction that adds C at the end:
    to it every chain of applications, each from ``zero``, in order.
    ``unplaced`` are primitives that a called routine runs on lanes which the
    compiled code alone does not tell; such a lowering has no applications.
    ``convert_c`` and ``convert_d`` are the scalar instructions that convert C
    before the first and D after the last primitive.
    ``sort`` is the routine that orders sparse metadata (and A with it) first.
    ``targets`` are the compiler's other targets for the same silicon that
    accept the instruction: ``all``, those of a ``family``, or ``none``.
    ``count`` is the number of matrix instructions in the compiled code, M and
    N splits included.
    """

    instruction: str
    architecture: str
    kind: Kind
    applications: tuple[Application, ...]
    toolchain: str
    count: int = 1
    convert: str | None = None
    add: str | None = None
    note: str = ""
    unplaced: tuple[str, ...] = ()
    sort: str | None = None
    convert_c: str | None = None
    convert_d: str | None = None
    targets: str = "all"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UsageError(f"lowering of {self.instruction}: kind {self.kind!r}; it is one of {', '.join(KINDS)}")
        if self.targets not in TARGETS:
            raise UsageError(f"lowering of {self.instruction}: targets {self.targets!r}; one of {', '.join(TARGETS)}")
        if self.kind != "emulated" and (not self.applications or self.convert or self.add or self.unplaced):
            raise UsageError(f"lowering of {self.instruction}: {self.kind} means primitives and nothing else")
        if not self.primitives:
            raise UsageError(f"lowering of {self.instruction}: no primitive, neither placed on lanes nor unplaced")
        if self.applications and self.unplaced:
            raise UsageError(f"lowering of {self.instruction}: primitives are placed on lanes or unplaced, not both")

    @property
    def primitives(self) -> tuple[str, ...]:
        """The primitives used, each once, in order of use."""
        return tuple(dict.fromkeys([*(step.primitive for step in self.applications), *self.unplaced]))
