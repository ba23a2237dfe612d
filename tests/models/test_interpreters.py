"""Engine, NumPy stages and oracle on every distinct datapath of the shipped parameter files.

Three checks a datapath: structured vectors through engine and stages, fewer through engine and oracle, and for
operands of at most 8 bits every pair of codes with one live lane beside the values of C that matter.
``MMAPROBE_DEPTH`` is how deep they go: quick, ci or full (``nox -s interpreters``). ``MMAPROBE_SHARD=2/8`` takes the
second eighth of the datapaths; ``MMAPROBE_FINISHED`` is a folder that remembers what was equal, so that the same
code does not compare it again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from test_oracle import by_oracle

from cases.engine_layout import run_groups, run_interpreter
from mmaprobe import _native, formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.formats import Format
from mmaprobe.generators import generate
from mmaprobe.generators.families import plan
from mmaprobe.models import engine, stages
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.lookup import load
from mmaprobe.parameters.table import to_table


@dataclass(frozen=True)
class Depth:
    """Vectors a datapath through engine and stages, through engine and oracle; how pairs of codes meet C.

    One of ``pairs_apart`` pairs is taken, of ``oracle_pairs_apart`` by the oracle, each with every value of C or with
    one by turns. Steps between pairs are primes, so that no bit of either code stands still.
    """

    stages: int
    oracle: int
    pairs_apart: int
    oracle_pairs_apart: int
    every_c: bool = False


DEPTHS = {
    "quick": Depth(400, 24, 293, 16_411),
    "ci": Depth(100_000, 2_000, 1, 719),
    "full": Depth(10_000_000, 20_000, 1, 499, every_c=True),
}
DEPTH = DEPTHS[os.environ.get("MMAPROBE_DEPTH", "quick")]
SHARD, SHARDS = (int(number) for number in os.environ.get("MMAPROBE_SHARD", "1/1").split("/"))
FINISHED = os.environ.get("MMAPROBE_FINISHED")
PIECE = 1 << 14
ROOT = Path(__file__).parents[2]


def distinct() -> dict[str, Datapath]:
    """Every different datapath of the shipped files, under the first name it has."""
    data = resources.files("mmaprobe.parameters") / "data"
    architectures = sorted(path.name.removesuffix(".toml") for path in data.iterdir() if path.name.endswith(".toml"))
    known: dict[Datapath, str] = {}
    for architecture in architectures:
        for primitive, entry in load(architecture).entries.items():
            known.setdefault(entry.datapath, f"{architecture}/{primitive}")
    return {name: datapath for datapath, name in list(known.items())[SHARD - 1 :: SHARDS]}


DATAPATHS = distinct()


@cache
def code_version() -> str:
    """A digest of everything that has a part in an answer or in the comparison."""
    rooms = [f"src/mmaprobe/{room}/*.py" for room in ("formats", "operands", "generators", "models", "parameters")]
    tests = [
        "tests/oracle/*.py",
        "tests/cases/engine_layout.py",
        "tests/models/test_oracle.py",
        "tests/models/test_interpreters.py",
    ]
    files = sorted(path for part in ("csrc/**/*.?pp", *rooms, *tests) for path in ROOT.glob(part))
    build = os.environ.get("MMAPROBE_ISA") or _native.engine_builds()[-1]
    return sha256(build.encode() + b"".join(path.read_bytes() for path in files)).hexdigest()


@contextmanager
def once(what: str, name: str) -> Iterator[Datapath]:
    """The datapath to compare; skipped where this code has found it equal before and ``FINISHED`` remembers."""
    datapath = DATAPATHS[name]
    if FINISHED is None:
        yield datapath
        return
    key = f"{what} {DEPTH} {to_table(datapath)} {code_version()}"
    mark = Path(FINISHED) / sha256(key.encode()).hexdigest()
    if mark.exists():
        pytest.skip("equal in an earlier run of this code")
    yield datapath
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.write_text(f"{what} {name}\n")


def dot_product(datapath: Datapath) -> Instruction:
    """An instruction whose vectors are the datapath's, for the generators."""
    scale = datapath.scale
    return Instruction(
        "dot", "dot", "dot", 1, 1, datapath.k, datapath.a, datapath.b, datapath.c, datapath.d,
        scale=scale.format if scale else None, scale_size=scale.size if scale else 0,
    )  # fmt: skip


def structured(datapath: Datapath, seed: int, count: int) -> Iterator[Batch]:
    """``mixed`` vectors of a datapath."""
    return mixed(dot_product(datapath), seed, count)


def mixed(made: Instruction, seed: int, count: int) -> Iterator[Batch]:
    """At least ``count`` vectors, every family by its weight, in pieces."""
    for family, start, share in plan(made, count):
        for at in range(start, start + share, PIECE):
            yield generate(made, family, seed, at, min(PIECE, start + share - at))


def check(datapath: Datapath, vectors: Batch, expected: Bits) -> None:
    """The engine answers what is expected: on rows, on its own layout where there is a kernel, and without kernels."""
    ways = {"rows": engine.evaluate, "layout": run_groups, "interpreter": run_interpreter}
    for way, run in ways.items():
        found = run(datapath, vectors)
        if found is not None and (wrong := np.flatnonzero(found != expected)).size:
            i = wrong[0]
            one = {name: value[i].tolist() for name, value in vectors.items()}
            said = f"{wrong.size} of {vectors.size} on {way}: {found[i]:#x} for {expected[i]:#x}"
            raise AssertionError(f"{said}\n{one}\n{to_table(datapath)}")


@pytest.mark.sampled(120)
@pytest.mark.parametrize("name", DATAPATHS)
def test_engine_is_the_stages(name: str) -> None:
    with once("stages", name) as datapath:
        assert engine.refusal(datapath) is None
        seen = 0
        for vectors in structured(datapath, 1, DEPTH.stages):
            check(datapath, vectors, stages.evaluate(datapath, vectors))
            seen += vectors.size
        assert seen >= DEPTH.stages


@pytest.mark.sampled(120)
@pytest.mark.parametrize("name", DATAPATHS)
def test_engine_is_the_oracle(name: str) -> None:
    with once("oracle", name) as datapath:
        for vectors in structured(datapath, 2, DEPTH.oracle):
            check(datapath, vectors, np.array(by_oracle(datapath, vectors), formats.get(datapath.d).dtype))


def operand_c(fmt: Format) -> list[int]:
    """+0, -0, 1, the largest, the smallest subnormal, infinity, NaN; of an integer format 0, 1, -1 and both ends."""
    if not fmt.is_float:
        ends = [fmt.sign_mask, fmt.sign_mask - 1] if fmt.signed else [fmt.code_limit - 1]
        return [0, 1, fmt.code_limit - 1, *ends]
    special = [code for code in (fmt.infinity_code, fmt.nan_code) if code is not None]
    return [0, fmt.sign_mask, fmt.one, fmt.largest, 1 << fmt.padding, *special]


NARROW = [name for name, path in DATAPATHS.items() if max(formats.get(f).bits for f in (path.a, path.b)) <= 8]


def pairs(datapath: Datapath, apart: int) -> Iterator[Batch]:
    """Every ``apart``-th pair of codes of a and b, C by turns or each: one lane live, by turns, and scales of 1."""
    a, b = formats.get(datapath.a), formats.get(datapath.b)
    values = np.array([0] if datapath.c is None else operand_c(formats.get(datapath.c)), np.uint64)
    square = a.code_limit * b.code_limit
    count = square * values.size if DEPTH.every_c else square
    for start in range(0, count, apart * PIECE):
        index = np.arange(start, min(count, start + apart * PIECE), apart)
        code_a, code_b, turn = index % a.code_limit, index // a.code_limit % b.code_limit, index // square
        lane = (code_a + 5 * code_b + turn) % datapath.k
        items = {}
        for name, fmt, code in (("a", a, code_a), ("b", b, code_b)):
            items[name] = np.zeros((index.size, datapath.k), fmt.dtype)
            items[name][np.arange(index.size), lane] = code << fmt.padding
        if datapath.c is not None:
            items["c"] = values[(code_a + code_b + turn) % values.size].astype(formats.get(datapath.c).dtype)
        if datapath.scale is not None:
            scale, groups = formats.get(datapath.scale.format), datapath.k // datapath.scale.size
            items |= {name: np.full((index.size, groups), scale.one, scale.dtype) for name in ("scale_a", "scale_b")}
        yield Batch(**items)


@pytest.mark.parametrize("name", NARROW)
def test_every_pair_of_narrow_operands(name: str) -> None:
    """With one live lane: engine against stages, and a share of them against the oracle."""
    with once("pairs", name) as datapath:
        for vectors in pairs(datapath, DEPTH.pairs_apart):
            check(datapath, vectors, stages.evaluate(datapath, vectors))
        for vectors in pairs(datapath, DEPTH.oracle_pairs_apart):
            check(datapath, vectors, np.array(by_oracle(datapath, vectors), formats.get(datapath.d).dtype))
