"""Hold a tag against each file that names the version: ``python .ci/release_version.py v0.1.0``; 1 if one differs."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def versions() -> dict[str, str]:
    """What each file says the version is."""
    changes = re.search(r"(?m)^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text("utf-8"))
    cited = re.search(r"(?m)^version: (\S+)", (ROOT / "CITATION.cff").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    return {
        "pyproject.toml": project,
        "CHANGELOG.md": changes[1] if changes else "none",
        "CITATION.cff": cited[1] if cited else "none",
    }


def main(tag: str) -> int:
    """One line for each file that says another version than the tag."""
    wrong = {file: said for file, said in versions().items() if f"v{said}" != tag}
    for file, said in wrong.items():
        print(f"{file} says {said}, the tag is {tag}")
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
