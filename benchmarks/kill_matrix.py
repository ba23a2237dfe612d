"""Which single-field changes of a datapath the default validation kills, and within how many vectors.

For every neighbour of a primitive's datapath: the number of vectors of the
default mix after which the first one differs, and the family that shows it.

    python benchmarks/kill_matrix.py sm_90a mma.m16n8k16.f32.f16.f16.f32 --vectors 1000000
"""

from __future__ import annotations

import argparse

import numpy as np

from mmaprobe.catalog.lookup import instruction
from mmaprobe.equivalence.arguments import argument
from mmaprobe.generators import generate, plan
from mmaprobe.models.engine import evaluate_many
from mmaprobe.parameters.lookup import datapath_for
from mmaprobe.parameters.neighbours import Neighbour, neighbours

CHUNK = 1 << 13


def first_kills(architecture: str, name: str, vectors: int, seed: int) -> list[tuple[Neighbour, int | None, str]]:
    """(neighbour, vectors of the mix until the first difference, family) of every neighbour; None: survived."""
    wanted = instruction(name, architecture)
    datapath = datapath_for(architecture, wanted)
    near = neighbours(datapath)
    found: dict[int, tuple[int, str]] = {}
    for family, start, count in plan(wanted, vectors):
        left = list(range(len(near)))
        for offset in range(0, count, CHUNK):
            left = [i for i in left if i not in found or found[i][0] > offset * vectors // count]
            if not left:
                break
            batch = generate(wanted, family, seed, start + offset, min(CHUNK, count - offset))
            answers = evaluate_many([datapath, *(near[i].datapath for i in left)], batch)
            differ = answers[1:] != answers[0]
            for row in np.flatnonzero(differ.any(axis=1)):
                needed = (offset + int(differ[row].argmax()) + 1) * vectors // count
                i = left[row]
                if i not in found or needed < found[i][0]:
                    found[i] = needed, family
            left = [i for row, i in enumerate(left) if not differ[row].any()]
    return [(neighbour, *found.get(i, (None, ""))) for i, neighbour in enumerate(near)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("architecture")
    parser.add_argument("instruction")
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    kills = first_kills(given.architecture, given.instruction, given.vectors, given.seed)
    datapath = datapath_for(given.architecture, instruction(given.instruction, given.architecture))
    for neighbour, needed, family in sorted(kills, key=lambda kill: (kill[1] is None, kill[1] or 0)):
        why = argument(datapath, neighbour)
        fate = f"{needed:>9,} vectors ({family})" if needed else f"equivalent: {why}" if why else "survived"
        print(f"{neighbour.field + ' = ' + neighbour.value:45} {fate}")
    dead = sum(needed is not None for _, needed, _ in kills)
    print(f"{dead} of {len(kills)} killed by {given.vectors:,} vectors of the default mix, seed {given.seed}")


if __name__ == "__main__":
    main()
