"""What an instruction is asked before it is said to compute a datapath that was derived from another one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.derivation.dense_view import asked, dense_form
from mmaprobe.derivation.deriving import usual_fresh
from mmaprobe.derivation.vectors.mixtures import cancelled_vectors, edge_vectors, hard_vectors, special_vectors
from mmaprobe.derivation.vectors.rivals import attack_vectors, can_attack
from mmaprobe.generators import families_for
from mmaprobe.models.model import run_vectors as computed
from mmaprobe.operands.batch import Batch, Bits, join
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.neighbours import neighbours

DIRECTED = 2000
"""Vectors of each kind that is directed."""
AIMED = 8000
"""Vectors aimed at the neighbours of the datapath."""
KEPT = 12
"""So many sets are kept with their answers, since the next instructions have the same formats as a rule."""


class Equality:
    """The vectors of an architecture's instructions, with the answers of datapaths; ``fresh`` of all families, or
    those of a derivation."""

    def __init__(self, architecture: str, seed: int, fresh: int | None = None) -> None:
        self.architecture, self.seed, self.fresh = architecture, seed, fresh
        self._kept: OrderedDict[Hashable, tuple[Batch, Bits]] = OrderedDict()

    def held(self, instruction: Instruction, datapath: Datapath, sorts: bool) -> tuple[Batch, Bits]:
        """As many fresh vectors as a derivation takes, of every family, and directed ones: products that cancel beside
        a subnormal, special operands, the ends of the range, and what tells the datapath's neighbours; with its
        answers."""
        made = instruction
        formats_of = (made.a, made.b, made.c, made.d, made.k, made.chunk, made.scale, made.scale_size)
        key = (*formats_of, made.random, made.modifiers, made.unordered, sorts, datapath)
        if key not in self._kept:
            vectors = self._vectors(made, datapath)
            self._kept[key] = vectors, computed(made, datapath, vectors, sorts)
        self._kept.move_to_end(key)
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return self._kept[key]

    def _vectors(self, instruction: Instruction, datapath: Datapath) -> Batch:
        seed, dense = self.seed + 2, dense_form(instruction)
        fresh = usual_fresh(dense) if self.fresh is None else self.fresh
        found = [hard_vectors(instruction, families_for(instruction), seed, fresh)]
        if formats.get(instruction.d).is_float:
            kinds = (cancelled_vectors, special_vectors, edge_vectors)
            found += [asked(self.architecture, instruction, make(dense, seed, DIRECTED)) for make in kinds]
        if can_attack(dense):
            rivals = [near.datapath for near in neighbours(datapath)]
            aimed = attack_vectors(dense, datapath, rivals, seed, AIMED)
            found.append(asked(self.architecture, instruction, aimed))
        return join(found)
