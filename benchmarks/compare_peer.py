"""mmaprobe's models against mmasim 2.1.1, bit for bit, and how fast both are on the same work.

python benchmarks/compare_peer.py [--cache FOLDER] [--vectors N] [--only GLOB] [--no-speed | --rates LOG]
    [--out docs/peer.md]

Installs the peer in an environment of its own (a CPU build of torch first) and feeds it batches through its own
``dpa``: single vectors of every generator family for the bits, whole tiles for the speed, at its best batch size and
on one thread. Exits with 1 where a difference has no explanation below.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from peer_names import ARCHITECTURES, form_key, our_id
from peer_reasons import UNEXPLAINED, reason
from peer_table import document
from peer_timing import our_rates

import mmaprobe
from mmaprobe import _native, formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.errors import UsageError
from mmaprobe.generators import families_for, generate
from mmaprobe.generators.recipe import Recipe
from mmaprobe.generators.tiles import generate_tiles
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import Datapath, Exact

PACKAGES = ("torch==2.13.0", "mmasim==2.1.1")
PIECE = 1 << 15
TILES = 1024
OUTPUTS = 1 << 18
"""Outputs that a speed measurement works on at most."""


@dataclass
class Peer:
    """The peer's process, asked one question at a time."""

    python: Path
    folder: Path
    process: Any = field(init=False)

    def __post_init__(self) -> None:
        worker = Path(__file__).with_name("peer_worker.py")
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        environment["PATH"] = f"{self.python.parent}:{environment['PATH']}"  # its ninja builds its own kernels
        self.process = subprocess.Popen(
            [str(self.python), str(worker)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        """The answer to a request; UsageError with what the peer said where it failed."""
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise UsageError(f"the peer stopped; run {self.python} {Path(__file__).with_name('peer_worker.py')}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def with_operands(self, form: Form, given: Batch, do: str, **more: Any) -> dict[str, Any]:
        """A request about operands, which travel as files."""
        files = {}
        for name, value in peer_operands(form, given).items():
            file = self.folder / f"{name}.bin"
            file.write_bytes(np.ascontiguousarray(value).tobytes())
            files[name] = {"file": str(file), "shape": value.shape}
        return self.ask(
            **{"do": do, "class": form.kind, "arch": form.peer_arch, "name": form.name}, operands=files, **more
        )


def install(cache: Path) -> Path:
    """The Python of an environment that holds the peer."""
    python = cache / "peer" / "bin" / "python"
    if not python.is_file():
        print(f"installing {' and '.join(PACKAGES)} in {cache / 'peer'}", flush=True)
        venv.create(cache / "peer", with_pip=True)
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    index = ["--extra-index-url", os.environ["TORCH_INDEX"]] if "TORCH_INDEX" in os.environ else []
    for package in PACKAGES:
        name, version = package.split("==")
        shown = subprocess.run([str(python), "-m", "pip", "show", name], capture_output=True, text=True, check=False)
        if f"Version: {version}" not in shown.stdout:
            subprocess.run([*pip, *index, package], check=True)
    return python


@dataclass(frozen=True)
class Form:
    """A form that both have: the peer's names, ours, and how many of the peer's names differ in M and N alone."""

    kind: str
    peer_arch: str
    name: str
    variants: int
    arch: str
    instruction: Instruction
    datapath: Datapath


def peer_operands(form: Form, given: Batch) -> dict[str, Bits]:
    """Our codes as the peer holds them: 4-bit elements two a byte, or at bits 5 to 2 of one."""
    made, out = form.instruction, {}
    for name, theirs in (("a", "a"), ("b", "b"), ("c", "c"), ("scale_a", "alpha"), ("scale_b", "beta")):
        value = getattr(given, name)
        if value is None:
            continue
        if name in ("a", "b") and getattr(made, name) == "e2m1":
            value = value[..., 0::2] << 4 | value[..., 1::2] if made.k == 64 else value << 2
        out[theirs] = value
    return out


def shared_forms(peer: Peer, only: str) -> tuple[list[Form], list[str]]:
    """The forms that both have, one for all M and N, and what we have no model of."""
    groups: dict[tuple[str, ...], list[tuple[str, str, str]]] = {}
    for kind, arch, name in peer.ask(do="forms")["forms"]:
        groups.setdefault((kind, arch, form_key(kind, name)), []).append((kind, arch, name))
    forms, missing = [], []
    for members in groups.values():
        kind, arch, name = members[0]
        if not fnmatchcase(f"{arch}/{name}", only):
            continue
        try:
            models = [mmaprobe.model(ARCHITECTURES[arch], our_id(kind, each)) for *_, each in {members[0], members[-1]}]
        except UsageError as error:
            missing.append(f"{arch} {name}: {error}")
            continue
        assert len({model.datapath for model in models}) == 1, f"{name}: M and N matter"
        model = mmaprobe.model(ARCHITECTURES[arch], our_id(kind, name))
        forms.append(Form(kind, arch, name, len(members), ARCHITECTURES[arch], model.instruction, model.datapath))
    return forms, missing


@dataclass
class Compared:
    """What came out for a form: vectors, differences by reason with a first vector each, rates in M/s."""

    form: Form
    vectors: int = 0
    differing: int = 0
    reasons: dict[str, tuple[int, str]] = field(default_factory=dict)
    peer_rate: float = 0.0
    native_rate: float = 0.0
    python_rate: float = 0.0


SEED = 3


def batches(form: Form, count: int) -> Iterator[tuple[str, Batch]]:
    """Vectors of every family, and one of our own where a sum is exact."""
    for family in families_for(form.instruction):
        yield family, generate(form.instruction, family, SEED, 0, count)
    if isinstance(form.datapath.tree, Exact) and form.datapath.a == "bf16":
        a, b = np.zeros((2, 1, form.datapath.k), np.uint16)
        a[0, :2], b[0, :2] = NEAR_OVERFLOW
        yield "near overflow", Batch(a, b, np.array([0x7F7FFFFF], np.uint32))


NEAR_OVERFLOW = ((0x5759, 0x5259), (0x5B17, 0x5897))
"""217 2^40 and 217 2^30 times 151 2^48 and 151 2^43: with the largest f32, a sum that rounds to the largest f32."""


def name_of(form: Form, family: str, index: int) -> str:
    """The recipe of a vector, or which vector of our own it is."""
    if family not in families_for(form.instruction):
        return f"{form.instruction.id}, the vector near overflow"
    return str(Recipe.of(form.instruction, family, SEED, index))


def compare(peer: Peer, form: Form, count: int) -> Compared:
    """Every family of vectors through both."""
    out = Compared(form)
    model = mmaprobe.model(form.arch, form.instruction.id)
    file = peer.folder / "d.bin"
    for family, given in batches(form, count):
        ours = model.run_vectors(given)
        answer = peer.with_operands(form, given, "evaluate", out=str(file), piece=PIECE)
        if "error" in answer:
            raise UsageError(f"the peer failed on {form.peer_arch} {form.name}, {family}: {answer['error']}")
        theirs = np.frombuffer(file.read_bytes(), ours.dtype)
        out.vectors += given.size
        for i in np.flatnonzero(ours != theirs):
            out.differing += 1
            one = given.slice(int(i), int(i) + 1)
            why = reason(form.datapath, one, int(ours[i]), int(theirs[i]))
            seen, vector = out.reasons.get(why, (0, ""))
            digits = formats.get(form.instruction.d).container_bits // 4
            found = f"{int(ours[i]):0{digits}x} ours, {int(theirs[i]):0{digits}x} theirs"
            out.reasons[why] = (seen + 1, vector or f"`{name_of(form, family, int(i))}`: {found}")
    print(f"{form.peer_arch:14} {form.name:52} {out.vectors:8} {out.differing:6}", flush=True)
    return out


def measure_all(peer: Peer, results: list[Compared]) -> None:
    """The rates of every datapath once, on tiles of one block; of mixed operand formats none."""
    rates: dict[tuple[str, Datapath], tuple[float, float, float]] = {}
    for out in results:
        key = (out.form.kind, out.form.datapath)
        made = out.form.instruction
        if key not in rates and made.blocks == 1 and made.a == made.b:
            rates[key] = measure(peer, out.form)
            columns = " ".join(f"{value:9.3f}" for value in rates[key])
            print(f"{out.form.peer_arch:14} {out.form.name:52} {columns}", flush=True)
    for out in results:
        out.peer_rate, out.native_rate, out.python_rate = rates.get((out.form.kind, out.form.datapath), (0.0,) * 3)


def rates_of(log: Path, results: list[Compared]) -> None:
    """The rates that an earlier run printed, for its forms and for those with the same datapath."""
    printed = {}
    for line in log.read_text().splitlines():
        words = line.split()
        if len(words) > 4 and all("." in word and word.replace(".", "").isdigit() for word in words[-3:]):
            printed[" ".join(words[:-3])] = tuple(map(float, words[-3:]))
    rates = {}
    for out in results:
        found = printed.get(f"{out.form.peer_arch} {out.form.name}")
        if found:
            rates.setdefault((out.form.kind, out.form.datapath), found)
    for out in results:
        out.peer_rate, out.native_rate, out.python_rate = rates.get((out.form.kind, out.form.datapath), (0.0,) * 3)


def measure(peer: Peer, form: Form) -> tuple[float, float, float]:
    """The peer's, our native and our Python rate on the same tiles of clustered exponents, one thread."""
    made = form.instruction
    count = max(1, min(TILES, OUTPUTS // (made.m * made.n)))
    tiles = generate_tiles(made, "clustered", 1, 0, count)
    rows = dict(tiles.items())
    columns = {name: np.ascontiguousarray(rows[name].swapaxes(1, 2)) for name in ("b", "scale_b") if name in rows}
    answer = peer.with_operands(form, Batch(**(rows | columns)), "speed")
    if "error" in answer:
        raise UsageError(f"the peer failed on {form.peer_arch} {form.name}: {answer['error']}")
    return (answer["rate"], *our_rates(form.arch, form.instruction, form.datapath, tiles))


def processor() -> str:
    """The processor and what the engine was built for."""
    names = [line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]  # fmt: skip
    return f"Measured on {names[0] if names else 'an unnamed processor'}, engine build {_native.engine_builds()[-1]}."


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "mmaprobe")
    arguments.add_argument("--vectors", type=int, default=1 << 13, help="vectors a family and form")
    arguments.add_argument("--only", default="*", help="glob over ARCHITECTURE/NAME as the peer spells them")
    arguments.add_argument("--no-speed", action="store_true")
    arguments.add_argument("--rates", type=Path, help="what an earlier run printed, for its rates instead of new ones")
    arguments.add_argument("--out", type=Path, help="write the table here")
    given = arguments.parse_args()
    python = install(given.cache)
    with tempfile.TemporaryDirectory() as folder:
        peer = Peer(python, Path(folder))
        began = time.monotonic()
        forms, missing = shared_forms(peer, given.only)
        results = [compare(peer, form, given.vectors) for form in forms]
        if given.rates:
            rates_of(given.rates, results)
        elif not given.no_speed:
            measure_all(peer, results)
        print(f"{len(forms)} forms, {time.monotonic() - began:.0f} s; no model of ours: {len(missing)}")
    text = document(results, missing, processor() + " Bits and rates are of two runs." * bool(given.rates))
    if given.out:
        given.out.write_text(text)
    else:
        print(text)
    return 1 if any(UNEXPLAINED in result.reasons for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
