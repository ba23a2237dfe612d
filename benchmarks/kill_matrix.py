"""Which single-field changes of a datapath the default validation kills, and within how many vectors.

For every neighbour of a primitive's datapath: the number of vectors of the
default mix after which the first one differs, and the family that shows it.
The mix is made of separate vectors, or of what a validation between two models
compares: whole tiles and few vectors (``--tiles now``), or as before rows aimed
(``--tiles vectors``: tiles of vectors, a quarter alone).  Results of a tile
depend on each other, so that ``--dependence`` says by family in how many of its
vectors a mutant dies, of how many tiles, and how much more the kills of a tile
vary than those of independent vectors: the median and the most over mutants
that die in a hundredth of them.

    python benchmarks/kill_matrix.py sm_90a mma.m16n8k16.f32.f16.f16.f32 --vectors 1000000 --tiles now
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction
from mmaprobe.equivalence.arguments import argument
from mmaprobe.generators import families_for, generate, generate_tiles, plan
from mmaprobe.generators.tiles import tile_version, tile_window
from mmaprobe.models.engine import evaluate_many
from mmaprobe.operands.batch import Batch, outputs_of
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.neighbours import Neighbour, neighbours
from mmaprobe.validation.batches import TILES_OF, Chunk, even

CHUNK = 1 << 13
LIKELY = 0.01
"""Share of a family's vectors that kill a mutant whose dependence counts: of fewer kills it is not known."""


def chunks_of(wanted: Instruction, family: str, count: int, tiles: str) -> Iterator[Chunk]:
    """How a validation cuts a family's vectors: alone, as between models now, or as before rows aimed."""
    outputs, side = wanted.m * wanted.n, max(wanted.m, wanted.n)
    if tiles == "now":
        yield from even(wanted, family, 0, count, CHUNK)
        return
    whole = count * (TILES_OF - 1) // TILES_OF // outputs if tiles == "vectors" else 0
    step = max(1, CHUNK // outputs)
    for at in range(0, whole, step):
        here = min(step, whole - at)
        yield Chunk(family, at * side, here * outputs, here)
    for at in range(0, count - whole * outputs, CHUNK):
        yield Chunk(family, whole * side + at, min(CHUNK, count - whole * outputs - at))


def vectors_of(wanted: Instruction, chunk: Chunk, seed: int) -> Batch:
    """The vectors of a chunk."""
    if not chunk.tiles:
        return generate(wanted, chunk.family, seed, chunk.start, chunk.count)
    made = generate_tiles(wanted, chunk.family, seed, chunk.start, chunk.tiles, chunk.version, chunk.window)
    return outputs_of(made)


@dataclass(frozen=True)
class FamilyDependence:
    """How the results of a family's tiles depend on each other: of each mutant that dies in a hundredth of them the
    ``ratios``; and the most that die in tiles and alone."""

    family: str
    version: int
    ratios: NDArray[np.float64]
    share: float
    alone: float


def dependences(architecture: str, name: str, tiles: int, seed: int) -> Iterator[FamilyDependence]:
    """What ``--dependence`` says."""
    wanted = instruction(name, architecture)
    datapath = datapath_for(architecture, wanted)
    paths = [datapath, *(near.datapath for near in neighbours(datapath))]
    for family in families_for(wanted):
        version = tile_version(wanted, family, windows=True)
        made = outputs_of(generate_tiles(wanted, family, seed, 0, tiles, version, tile_window(wanted)))
        share, ratio = _spread(paths, made, tiles)
        alone = _spread(paths, generate(wanted, family, seed, 0, made.size), tiles)[0]
        yield FamilyDependence(family, version, ratio[share > LIKELY], share.max(), alone.max())


def dependence_lines(found: Iterable[FamilyDependence], tiles: int) -> Iterator[str]:
    """The same as text."""
    for each in found:
        size = each.ratios.size
        told = f"{np.median(each.ratios):5.1f}, at most {each.ratios.max():5.1f}" if size else "no mutant dies"
        killed = f"{each.share:6.1%} of the results of {tiles:,} tiles, {each.alone:6.1%} alone"
        yield f"{each.family}.{each.version:<3} {killed}; {told}"


def _spread(paths: list[Datapath], vectors: Batch, tiles: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of each neighbour the share of kills, and the variance of kills a tile over that of independent vectors."""
    answers = evaluate_many(paths, vectors)
    kills = (answers[1:] != answers[0]).reshape(len(paths) - 1, tiles, -1)
    share = kills.mean(axis=(1, 2))
    alone = np.maximum(kills.shape[2] * share * (1 - share), 1e-12)
    return share, kills.sum(axis=2).var(axis=1) / alone


def first_kills(
    architecture: str, name: str, vectors: int, seed: int, tiles: str = "none"
) -> list[tuple[Neighbour, int | None, str]]:
    """(neighbour, vectors of the mix until the first difference, family) of every neighbour; None: survived."""
    wanted = instruction(name, architecture)
    datapath = datapath_for(architecture, wanted)
    near = neighbours(datapath)
    found: dict[int, tuple[int, str]] = {}
    for family, _, count in plan(wanted, vectors):
        left, offset = list(range(len(near))), 0
        for chunk in chunks_of(wanted, family, count, tiles):
            left = [i for i in left if i not in found or found[i][0] > offset * vectors // count]
            if not left:
                break
            batch = vectors_of(wanted, chunk, seed)
            answers = evaluate_many([datapath, *(near[i].datapath for i in left)], batch)
            differ = answers[1:] != answers[0]
            for row in np.flatnonzero(differ.any(axis=1)):
                needed = (offset + int(differ[row].argmax()) + 1) * vectors // count
                i = left[row]
                if i not in found or needed < found[i][0]:
                    found[i] = needed, family
            left = [i for row, i in enumerate(left) if not differ[row].any()]
            offset += chunk.count
    return [(neighbour, *found.get(i, (None, ""))) for i, neighbour in enumerate(near)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("architecture")
    parser.add_argument("instruction")
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tiles", choices=("none", "vectors", "now"), default="none")
    parser.add_argument("--dependence", type=int, metavar="TILES")
    given = parser.parse_args()
    if given.dependence:
        found = dependences(given.architecture, given.instruction, given.dependence, given.seed)
        for line in dependence_lines(found, given.dependence):
            print(line)
        return
    kills = first_kills(given.architecture, given.instruction, given.vectors, given.seed, given.tiles)
    datapath = datapath_for(given.architecture, instruction(given.instruction, given.architecture))
    for neighbour, needed, family in sorted(kills, key=lambda kill: (kill[1] is None, kill[1] or 0)):
        why = argument(datapath, neighbour)
        fate = f"{needed:>9,} vectors ({family})" if needed else f"equivalent: {why}" if why else "survived"
        print(f"{neighbour.field + ' = ' + neighbour.value:45} {fate}")
    dead = sum(needed is not None for _, needed, _ in kills)
    print(f"{dead} of {len(kills)} killed by {given.vectors:,} vectors of the default mix, seed {given.seed}")


if __name__ == "__main__":
    main()
