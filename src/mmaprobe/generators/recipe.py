"""A recipe names a vector for ever: instruction, family and version, seed, index."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mmaprobe.catalog import lookup
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.errors import UsageError, near
from mmaprobe.generators.enumerations import ENUMERATED
from mmaprobe.generators.families import FAMILIES, TILE_VERSIONS, VERSIONS, generate, versions_of
from mmaprobe.generators.tiles import generate_tiles, vector_at
from mmaprobe.operands.batch import Batch

_FORM = re.compile(
    r"(?P<instruction>.+)/(?P<family>[^/.]+)\.(?P<version>\d+)/(?P<seed>\d+)/(?P<index>\d+)"
    r"(@(?P<row>\d+),(?P<column>\d+))?"
)


@dataclass(frozen=True)
class Recipe:
    """``<instruction id>/<family>.<version>/<seed>/<index>``, and ``@<row>,<column>`` for an output of a whole tile.

    The tile is the one whose first vector is ``index``, made by the rule of that version (``generators.tiles``).
    """

    instruction: str
    family: str
    version: int
    seed: int
    index: int
    place: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        known = (*FAMILIES, *ENUMERATED)
        if self.family not in known:
            raise UsageError(f"recipe: unknown generator family {self.family!r}{near(self.family, known)}")
        if self.version == TILE_VERSIONS.get(self.family):
            if self.place is None:
                named = f"{self.family}.{self.version}"
                raise UsageError(f"recipe: {named} makes whole tiles; name an output, @ROW,COLUMN")
        elif self.version not in versions_of(self.family):
            made = " and ".join(f"{self.family}.{version}" for version in versions_of(self.family))
            raise UsageError(f"recipe: this package makes {made}, not version {self.version}")
        if not 0 <= self.seed < 1 << 64 or not 0 <= self.index < 1 << 64:
            raise UsageError(f"recipe: seed {self.seed} and index {self.index} must fit 64 bits")

    def __str__(self) -> str:
        place = "" if self.place is None else f"@{self.place[0]},{self.place[1]}"
        return f"{self.instruction}/{self.family}.{self.version}/{self.seed}/{self.index}{place}"

    @classmethod
    def of(
        cls, instruction: Instruction, family: str, seed: int, index: int, place: tuple[int, int] | None = None,
        version: int | None = None,
    ) -> Recipe:  # fmt: skip
        """The recipe of a vector that ``generate`` makes now, or of the output at ``place`` of a tile; of the version
        of the family's vectors where none is named."""
        return cls(instruction.id, family, version or (VERSIONS | ENUMERATED).get(family, 0), seed, index, place)

    @classmethod
    def parse(cls, text: str) -> Recipe:
        """The recipe written as ``text``; UsageError naming what is wrong."""
        match = _FORM.fullmatch(text.strip())
        if match is None:
            raise UsageError(
                f"not a recipe: {text!r}; the form is INSTRUCTION/FAMILY.VERSION/SEED/INDEX, "
                "for example x86.vdpbf16ps/tie.1/0/17"
            )
        version, seed, index = (int(match[key]) for key in ("version", "seed", "index"))
        place = None if match["row"] is None else (int(match["row"]), int(match["column"]))
        return cls(match["instruction"], match["family"], version, seed, index, place)


def is_recipe(text: str) -> bool:
    """Whether a text has the form of a recipe; it may still name a family that there is none of."""
    return _FORM.fullmatch(text.strip()) is not None


def regenerate(recipe: Recipe | str, instruction: Instruction | None = None) -> Batch:
    """The one vector that a recipe names, in one-vector shapes with n = 1.

    ``instruction`` saves the look-up in the catalog.  Raises UsageError for a
    recipe that is not one, or that names an instruction unknown or other.
    """
    found = Recipe.parse(recipe) if isinstance(recipe, str) else recipe
    instruction = instruction or lookup.instruction(found.instruction)
    if instruction.id != found.instruction:
        raise UsageError(f"recipe {found} is for {found.instruction}, not for {instruction.id}")
    if found.place is None:
        return generate(instruction, found.family, found.seed, found.index, 1, found.version)
    row, column = found.place
    if row >= instruction.m or column >= instruction.n:
        raise UsageError(f"recipe {found}: {instruction.id} has tiles of {instruction.m} rows, {instruction.n} columns")
    tile = generate_tiles(instruction, found.family, found.seed, found.index, 1, found.version)
    return vector_at(tile, 0, row, column)
