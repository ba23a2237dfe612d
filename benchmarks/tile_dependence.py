"""How much the results of a family's tiles depend on each other, measured: the table beside a comparison's counts.

Of five instructions, one of each kind of format, the mutants of ``kill_matrix.py --dependence``: by family the median
over those that die, of the instruction where it is the most.  ``--write`` puts it where reports read it
(``src/mmaprobe/generators/data/dependence.toml``).

    python benchmarks/tile_dependence.py --tiles 1024 --write
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import tomli_w
from kill_matrix import dependence_lines, dependences

from mmaprobe.generators import tiles
from mmaprobe.generators.families import TILE_VERSIONS

MEASURED = (
    ("sm_90a", "mma.m16n8k16.f32.f16.f16.f32"),
    ("sm_90a", "mma.m16n8k16.f32.bf16.bf16.f32"),
    ("sm_90a", "mma.m16n8k8.f32.tf32.tf32.f32"),
    ("sm_89", "mma.m16n8k32.f32.e4m3.e4m3.f32"),
    ("sm_90a", "mma.m8n8k4.f64.f64.f64.f64"),
)
TARGET = Path(tiles.__file__).with_name("data") / "dependence.toml"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiles", type=int, default=1024)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    most: dict[str, float] = {}
    for architecture, name in MEASURED:
        print(f"{architecture} {name}")
        found = list(dependences(architecture, name, given.tiles, given.seed))
        print("\n".join(f"  {line}" for line in dependence_lines(found, given.tiles)))
        for each in found:
            if each.ratios.size and each.version == TILE_VERSIONS.get(each.family):
                most[each.family] = max(most.get(each.family, 0.0), round(float(np.median(each.ratios)), 1))
    document = {"tiles": given.tiles, "instructions": [name for _, name in MEASURED], "dependence": most}
    print(tomli_w.dumps(document))
    if given.write:
        TARGET.parent.mkdir(exist_ok=True)
        TARGET.write_text(
            "# Written by benchmarks/tile_dependence.py, which says what it is.\n" + tomli_w.dumps(document)
        )


if __name__ == "__main__":
    main()
