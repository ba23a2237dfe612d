"""A sparse instruction as the dense one of its kept lanes, so that a derivation needs to know no metadata.

Every dense vector becomes one sparse vector, always the same: metadata drawn
from the vector's own bits among all legal items, the kept lanes of B as they
come, and in the lanes that no item names what would show if it were read: NaNs,
infinities, the largest values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import lowering
from mmaprobe.catalog.sparsity import Items, kept_positions, legal_items
from mmaprobe.devices.base import Device, Support, run_vectors
from mmaprobe.errors import UsageError
from mmaprobe.models.model import evaluate_tiles
from mmaprobe.models.sparse import dense_vectors
from mmaprobe.operands.batch import Batch, Bits, Witness
from mmaprobe.operands.witness_batches import as_vectors

Words = NDArray[np.uint64]

_SEED = 0x5BA25E
"""The seed of the factors of a hash: no answer depends on it."""
_ITEM, _PICK, _PICKS = np.uint64(32), np.uint64(3), 8
"""The upper half of a chunk's word chooses its item, three bits below each lane's hostile code."""


def dense_form(instruction: Instruction) -> Instruction:
    """The dense instruction of the lanes that metadata keeps, under the same id; a dense instruction as it is."""
    if not instruction.chunk:
        return instruction
    size = instruction.scale_size * instruction.selected // instruction.k
    return replace(instruction, k=instruction.selected, chunk=0, unordered=False, scale_size=size)


def sorts(architecture: str, instruction: Instruction) -> bool:
    """Whether the compiler puts an instruction's metadata in order first, so that items may come in either order."""
    try:
        return instruction.unordered and lowering(instruction, architecture).sort is not None
    except UsageError:
        return False


def kept(architecture: str, instruction: Instruction, vectors: Batch) -> Batch:
    """The vectors of the dense form inside an instruction's vectors."""
    return dense_vectors(instruction, vectors, sorts(architecture, instruction)) if instruction.chunk else vectors


def asked(architecture: str, instruction: Instruction, vectors: Batch) -> Batch:
    """Vectors of the dense form as an instruction's own."""
    return lifted(instruction, vectors, sorts(architecture, instruction)) if instruction.chunk else vectors


def placed(instruction: Instruction, vectors: Batch, metadata: Items, others: Bits) -> Batch:
    """Dense vectors as sparse ones with this metadata (n, K/chunk); ``others`` (n, K): B in the lanes not named."""
    b = others.copy()
    b[np.arange(vectors.size)[:, None], kept_positions(instruction, metadata)] = vectors.b
    return replace(vectors, b=b, metadata=metadata)


def lifted(instruction: Instruction, vectors: Batch, unordered: bool = False) -> Batch:
    """Dense vectors as sparse ones, a function of each vector's bits; ``unordered``: items in either order."""
    words = _words(vectors, instruction.k // instruction.chunk)
    items = np.array(legal_items(instruction.chunk, unordered), np.uint8)
    metadata = items[((words >> _ITEM) * np.uint64(len(items)) >> _ITEM).astype(np.intp)]
    shifts = _PICK * np.arange(instruction.chunk, dtype=np.uint64)
    picks = (words[:, :, None] >> shifts & np.uint64(_PICKS - 1)).astype(np.intp)
    return placed(instruction, vectors, metadata, hostile(instruction.b)[picks].reshape(vectors.size, instruction.k))


def simplest_sparse(instruction: Instruction, vectors: Batch) -> Batch:
    """Dense vectors as the simplest sparse ones: the first legal item everywhere, zeros in the other lanes of B."""
    first = legal_items(instruction.chunk)[0]
    metadata = np.full((vectors.size, instruction.k // instruction.chunk), first, np.uint8)
    return placed(instruction, vectors, metadata, np.zeros((vectors.size, instruction.k), vectors.b.dtype))


@cache
def hostile(name: str) -> Bits:
    """Eight codes of a format that would show if they were multiplied, by anything but an integer's zero."""
    fmt = formats.get(name)
    ones = (fmt.code_limit - 1) >> fmt.padding << fmt.padding
    found = [fmt.nan_code, fmt.infinity_code, fmt.largest, ones, fmt.one]
    codes = [code for code in found if code is not None]
    codes += [code | fmt.sign_mask for code in codes]
    return np.array(list(dict.fromkeys(codes)) * _PICKS, fmt.dtype)[:_PICKS]


def _words(vectors: Batch, count: int) -> Words:
    """(n, count) words that look random, each a function of all the bits of its vector."""
    rng = np.random.default_rng(_SEED)
    total = np.zeros(vectors.size, np.uint64)
    for _, value in vectors.items():
        codes = value.reshape(vectors.size, -1).astype(np.uint64)
        total += _mixed(codes @ (rng.integers(0, 1 << 63, codes.shape[1], np.uint64) * np.uint64(2) + np.uint64(1)))
    steps = rng.integers(0, 1 << 63, count, np.uint64)
    return _mixed(total[:, None] ^ steps)


def _mixed(words: Words) -> Words:
    """The finaliser of splitmix64."""
    words = (words ^ words >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ words >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    mixed: Words = words ^ words >> np.uint64(31)
    return mixed


@dataclass(frozen=True)
class KeptLanes:
    """A device whose sparse instruction answers as the dense one of its kept lanes."""

    device: Device
    sparse: Instruction
    unordered: bool = False
    concurrent: ClassVar[bool] = False

    @classmethod
    def of(cls, device: Device, instruction: Instruction) -> KeptLanes:
        """The view of a sparse instruction, with items in either order where the device's compiler sorts them."""
        return cls(device, instruction, sorts(device.info().get("architecture", ""), instruction))

    @property
    def name(self) -> str:
        """The device's own name."""
        return self.device.name

    @property
    def dense(self) -> Instruction:
        """The dense instruction that it answers."""
        return dense_form(self.sparse)

    def info(self) -> dict[str, str]:
        """The device's own identity."""
        return self.device.info()

    def instructions(self) -> Sequence[Instruction]:
        """The one instruction."""
        return (self.dense,)

    def supports(self, instruction: Instruction) -> Support:
        """Its own instruction only."""
        return Support(instruction == self.dense, f"only the kept lanes of {self.sparse.id}")

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        """D of tiles, each pair of a row and a column a vector of its own."""
        return evaluate_tiles(lambda vectors: self.run_vectors(instruction, vectors), batch)

    def run_vectors(self, instruction: Instruction, vectors: Batch) -> Bits:
        """d (n,) of dense vectors, asked as sparse ones."""
        return run_vectors(self.device, self.sparse, self.lifted(vectors))

    def lifted(self, vectors: Batch) -> Batch:
        """The sparse vectors that are asked."""
        return lifted(self.sparse, vectors, self.unordered)

    def witness(self, witness: Witness) -> Witness:
        """A witness of the dense instruction as the sparse vector that was asked."""
        return Witness.of(self.lifted(as_vectors(self.dense, [witness])), witness.d, witness.note)

    def simplest(self, witness: Witness) -> Witness:
        """A witness as the simplest sparse vector where that has the same answer, else as the one that was asked."""
        vector = simplest_sparse(self.sparse, as_vectors(self.dense, [witness]))
        same = int(run_vectors(self.device, self.sparse, vector)[0]) == witness.d
        return Witness.of(vector, witness.d, witness.note) if same else self.witness(witness)
