"""An instruction as the device's generators see it, written as C++."""

from __future__ import annotations

from collections.abc import Sequence

from mmaprobe.errors import UsageError

LAYOUTS = 5
"""Formats of a domain: a, b, c, d, scale."""
LAYOUT_NUMBERS = 14
"""Integers of each format."""
SPACE_NUMBERS = 15
"""Integers of the exponents and lanes, behind them."""

_UNSIGNED = {5, 10, 11, 12}
"""Which integers of a format have 64 bits without sign."""


def domain_text(packed: Sequence[int], name: str = "DOMAIN") -> str:
    """The constant of a domain for ``model/vectors.hpp``: integers in the order of ``domain.Domain``.

    UsageError where the numbers are no domain.
    """
    numbers = [int(number) for number in packed]
    if len(numbers) != LAYOUTS * LAYOUT_NUMBERS + SPACE_NUMBERS:
        raise UsageError(
            f"a domain has {LAYOUTS * LAYOUT_NUMBERS + SPACE_NUMBERS} integers "
            f"(generators.domain.Domain.packed), not {len(numbers)}"
        )
    rows = [
        ", ".join(
            f"{number % (1 << 64)}ull" if place in _UNSIGNED else str(number)
            for place, number in enumerate(numbers[first : first + LAYOUT_NUMBERS])
        )
        for first in range(0, LAYOUTS * LAYOUT_NUMBERS, LAYOUT_NUMBERS)
    ]
    rows.append(", ".join(map(str, numbers[LAYOUTS * LAYOUT_NUMBERS :])))
    space = "mmaprobe::MMAPROBE_BUILD::generators"
    inner = ",\n".join(f"    {{{row}}}" for row in rows)
    return (
        f"MMAPROBE_CONSTANT {space}::Domain {name} = {{\n{inner}}};\n"
        f'static_assert({space}::whole_items({name}), "operands across words of a vector\'s stream");\n'
    )
