"""A unit that no catalog has: the program of docs/new_unit.md, and a parameter file of it made by hand."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

from mmaprobe.catalog.lookup import instruction
from mmaprobe.catalog.outside import parse_catalog
from mmaprobe.operands.batch import Witness
from mmaprobe.parameters.files import Entry, ParameterFile
from mmaprobe.parameters.lookup import entry_for, load

PAGE = (Path(__file__).parents[2] / "docs" / "new_unit.md").read_text("utf-8")
PRIMITIVE = "FMA[f32,f32->f32]"
CATALOG = f"""\
schema = 1

[architectures]
acme9 = {{}}

[[row]]
family = "acme"
opcode = "acme.fma"
m = 1
n = 1
k = 1
a = "f32"
b = "f32"
c = "f32"
d = "f32"
[[row.on]]
architectures = ["acme9"]
primitive = "{PRIMITIVE}"
"""


def program() -> str:
    """The page's program, ``acme.py``."""
    found = re.search(r"```python\n(# acme\.py.*?)```", PAGE, re.DOTALL)
    assert found
    return found[1]


def device_of(path: Path) -> str:
    """The name of the device that a program in Python is."""
    return f"process:{shlex.join([sys.executable, str(path)])}"


def parameters() -> ParameterFile:
    """Of ``acme.fma`` on acme9: a multiply-add of f32, with a witness; the file carries its row along."""
    datapath = entry_for("x86-64", instruction("x86.vfmadd.f32"), load("x86-64")).datapath
    witness = Witness(a=(0x3F800001,), b=(0x3F800001,), c=0xBF800002, d=0x28800000)
    entry = Entry(PRIMITIVE, datapath, "published", "a manual", witnesses=(witness,))
    tables = parse_catalog(CATALOG, "acme.toml").data
    return ParameterFile("acme9", {PRIMITIVE: entry}, catalog=(tables,))
