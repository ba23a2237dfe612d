"""Which numbers of the shipped datapaths stand for a class, by the certificate's arguments.

They are written to ``parameters/data/classes/shipped.toml``.

Datapaths that are in the file already are not looked at again; ``--all`` does, after a change of the arguments.
The same datapaths and arguments give the same bytes.

    python benchmarks/shipped_classes.py [--all] [--check]
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from pathlib import Path
from typing import Any

import tomli_w

import mmaprobe
from mmaprobe.catalog.lookup import architectures
from mmaprobe.equivalence.classes import number_classes
from mmaprobe.parameters.classes import FILE, digest
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.lookup import load

PATH = Path(mmaprobe.__file__).parent / "parameters" / "data" / FILE
HEAD = (
    "# Classes of the numbers in the shipped datapaths: every value of a class is provably the same function.\n"
    "# ``none`` at the end: the digests of those whose numbers are each alone.\n"
    "# Written by benchmarks/shipped_classes.py; docs/data_files.md says how to read it.\n\n"
)


def shipped() -> dict[Datapath, str]:
    """Every distinct datapath of the shipped files, with the first primitive that computes it."""
    found: dict[Datapath, str] = {}
    for architecture in (*architectures(), "x86-64+amd", "x86-64+intel"):
        for name, entry in load(architecture).entries.items():
            found.setdefault(entry.datapath, f"{architecture} {name}")
    return found


def text(before: str) -> str:
    """The file; what ``before``, the file so far, says of a datapath is taken over."""
    data = tomllib.loads(before)
    known = {key: {} for key in data.get("end", {}).get("none", [])}
    known |= {row["digest"]: row["classes"] for row in data.get("datapath", [])}
    rows: list[dict[str, Any]] = []
    for datapath, name in sorted(shipped().items(), key=lambda item: item[1]):
        key = digest(datapath)
        classes = known[key] if key in known else number_classes(datapath)
        rows.append({"primitive": name, "digest": key, "classes": classes})
    none = sorted(row["digest"] for row in rows if not row["classes"])
    return HEAD + tomli_w.dumps({"datapath": [row for row in rows if row["classes"]], "end": {"none": none}})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="look at every datapath again")
    parser.add_argument("--check", action="store_true", help="exit 1 where the file would change, and write nothing")
    options = parser.parse_args()
    before = PATH.read_text("utf-8") if PATH.exists() else ""
    after = text("" if options.all else before)
    if not options.check and after != before:
        PATH.write_text(after, "utf-8")
    return int(options.check and after != before)


if __name__ == "__main__":
    sys.exit(main())
