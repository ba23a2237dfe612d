"""Numbers of shipped datapaths that stand for a class: all of it is provably the same function in these formats.

``data/classes/shipped.toml`` holds them by the digest of the datapath, so that a datapath that changes has none until
``benchmarks/shipped_classes.py`` finds its own.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources

from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.table import to_table

FILE = "classes/shipped.toml"


def digest(datapath: Datapath) -> str:
    """What names a datapath in the file: the first digits of SHA-256 of its table."""
    return hashlib.sha256(json.dumps(to_table(datapath), sort_keys=True).encode()).hexdigest()[:16]


def classes_of(datapath: Datapath) -> Mapping[str, str]:
    """By dotted path the class that a number stands for: ``>= 32``, ``<= -126, or none``; none for other datapaths."""
    return _shipped().get(digest(datapath), {})


@cache
def _shipped() -> Mapping[str, Mapping[str, str]]:
    text = (resources.files("mmaprobe.parameters") / "data" / FILE).read_text("utf-8")
    return {row["digest"]: row["classes"] for row in tomllib.loads(text).get("datapath", [])}
