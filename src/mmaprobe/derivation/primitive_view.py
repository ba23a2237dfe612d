"""The instruction that is searched: the one recorded, or the primitive inside where the compiler adds to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instructions, lowering
from mmaprobe.derivation.dense_view import dense_form, kept
from mmaprobe.errors import UsageError
from mmaprobe.operands.batch import Batch
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.files import Entry, ParameterFile
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.modified import changes


@dataclass(frozen=True)
class Frame:
    """``inner`` is an instruction that runs ``primitive`` as it is; without one it is ``instruction`` itself.

    Both have dense forms, of their kept lanes where they are sparse: ``made`` and ``searched``.
    """

    architecture: str
    instruction: Instruction
    inner: Instruction
    primitive: str = ""

    @property
    def made(self) -> Instruction:
        """The instruction as the dense one of its kept lanes."""
        return dense_form(self.instruction)

    @property
    def searched(self) -> Instruction:
        """The instruction inside, likewise."""
        return dense_form(self.inner)

    def whole(self, path: Datapath) -> Datapath:
        """What ``instruction`` computes where ``inner`` computes ``path``."""
        if not self.primitive:
            return path
        entry = Entry(self.primitive, path, "predicted", "a hypothesis")
        file = ParameterFile(self.architecture, {self.primitive: entry})
        return datapath_for(self.architecture, self.instruction, file)

    def composed(self, paths: Iterable[Datapath]) -> Iterator[tuple[Datapath, Datapath]]:
        """Each datapath of ``inner`` with the whole; without those that the lowering cannot put together."""
        for path in paths:
            try:
                yield path, self.whole(path)
            except UsageError:
                continue

    def dense(self, vectors: Batch) -> Batch:
        """What the datapath sees of the vectors: of sparse ones the selected lanes."""
        return kept(self.architecture, self.instruction, vectors)


def frame_of(architecture: str, instruction: Instruction) -> Frame:
    """The frame of an instruction on an architecture that may be unknown to the catalog."""
    alone = Frame(architecture, instruction, instruction)
    try:
        way = lowering(instruction, architecture)
    except UsageError:
        return alone
    if bare_primitive(architecture, instruction) is not None or len(way.primitives) != 1:
        return alone
    for made in instructions(architecture):
        if bare_primitive(architecture, made) == way.primitives[0]:
            return Frame(architecture, instruction, made, way.primitives[0])
    return alone


def bare_primitive(architecture: str, instruction: Instruction) -> str | None:
    """The primitive whose datapath the instruction's is; None where the compiler puts something around it."""
    try:
        way = lowering(instruction, architecture)
    except UsageError:
        return None
    bare = way.kind != "emulated" and len(way.applications) == 1 and not (way.convert_c or way.convert_d)
    return way.primitives[0] if bare and not changes(instruction) else None
