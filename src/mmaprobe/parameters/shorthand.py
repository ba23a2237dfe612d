"""How an aligned sum is written: what its terms share stands once, at the node.

A term that says nothing has the node's rule.  Where the terms differ each says
its own, and nothing reads the node's: the least number of fraction bits (none
where a term keeps every bit), rounding RZ and no zero exponent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mmaprobe.errors import UsageError
from mmaprobe.parameters.datapath import Encode, Fused, Node, Term, Zero

SHARED = ("fraction_bits", "rounding", "zero_exponent")
"""The rules of a term that a node can say for it."""
OWN = ("cutoff", "label_offset", "sticky_bits", "shift_limit")
"""Those that only a term can say."""
OF_SUM = ("to", "complement", "carry_bits", "carry")
"""What a node says of its sum."""


@dataclass(frozen=True)
class WrittenTerm:
    """A term as it is written, unchecked; None: as the node says, ``uncut``: every bit is kept, whatever it says."""

    of: Node
    fraction_bits: int | Literal["uncut"] | None = None
    rounding: str | None = None
    zero_exponent: int | None = None
    cutoff: int | None = None
    label_offset: int = 0
    sticky_bits: int | None = None
    shift_limit: int | None = None


@dataclass(frozen=True)
class WrittenFused:
    """An aligned sum as it is written: the rules of the terms that say none themselves."""

    terms: tuple[WrittenTerm, ...]
    fraction_bits: int | None
    rounding: str = "RZ"
    zero_exponent: int | None = None
    to: Encode | None = None
    complement: bool = False
    carry_bits: int | None = None
    carry: Literal["wrap", "saturate"] = "wrap"

    def read(self) -> Fused:
        """The sum, each term with rules of its own; UsageError for a rule that no term could have."""
        Term(Zero(), self.fraction_bits, self.rounding, self.zero_exponent)
        return Fused(tuple(self._read_term(i, term) for i, term in enumerate(self.terms)), **_said(self, OF_SUM))

    def _read_term(self, number: int, term: WrittenTerm) -> Term:
        rules = {name: getattr(self, name) if (own := getattr(term, name)) is None else own for name in SHARED}
        if rules["fraction_bits"] == "uncut":
            rules["fraction_bits"] = None
        try:
            return Term(term.of, **_said(term, OWN), **rules)
        except UsageError as error:
            raise UsageError(f"term {number}: {error}") from None


def written(node: Fused) -> WrittenFused:
    """The one way to write an aligned sum."""
    shared: dict[str, Any] = {name: _shared(name, [getattr(term, name) for term in node.terms]) for name in SHARED}
    own = [name for name in SHARED if any(getattr(term, name) != shared[name] for term in node.terms)]
    terms = tuple(_with_own(term, own) for term in node.terms)
    return WrittenFused(terms, **_said(node, OF_SUM), **shared)


def spelt_out(node: Fused) -> WrittenFused:
    """The sum with every rule at its term."""
    terms = tuple(_with_own(term, SHARED) for term in node.terms)
    return WrittenFused(terms, None, **_said(node, OF_SUM))


def _with_own(term: Term, own: Sequence[str]) -> WrittenTerm:
    """A term that says these rules, and what only a term can say."""
    return WrittenTerm(term.of, **_said(term, OWN), **_said(term, own))


def _said(record: Term | Fused | WrittenTerm | WrittenFused, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def _shared(name: str, values: list[Any]) -> Any:
    """What the node says."""
    if len(set(values)) == 1:
        return values[0]
    if name == "rounding":
        return "RZ"
    return None if name == "zero_exponent" or None in values else min(values)
