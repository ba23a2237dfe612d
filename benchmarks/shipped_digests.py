"""The digests of the parameters that ship, by architecture: what ``parameters show`` holds a file against.

python benchmarks/shipped_digests.py [--check]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import tomli_w

import mmaprobe
from mmaprobe.catalog.lookup import architectures
from mmaprobe.parameters.lookup import DIGESTS, load

PATH = Path(mmaprobe.__file__).parent / "parameters" / DIGESTS
HEAD = (
    "# SHA-256 of the canonical text of each architecture's parameters, inherited and shared entries included.\n"
    "# Written by benchmarks/shipped_digests.py; a file that means something else says `edited`.\n\n"
)


def text() -> str:
    """The file."""
    found = {name: load(name) for name in (*architectures(), "x86-64+amd", "x86-64+intel")}
    return HEAD + tomli_w.dumps({name: file.digest for name, file in sorted(found.items()) if file.entries})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit 1 where the file would change, and write nothing")
    options = parser.parse_args()
    before, after = PATH.read_text("utf-8") if PATH.exists() else "", text()
    if not options.check and after != before:
        PATH.write_text(after, "utf-8")
    return int(options.check and after != before)


if __name__ == "__main__":
    sys.exit(main())
