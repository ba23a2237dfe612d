"""An operand of random bits on its way: written and read, in batches, tiles, recordings, programs and functions."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mmaprobe.catalog import lookup
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import open_device, run_tiles, run_vectors
from mmaprobe.devices.model import DatapathDevice
from mmaprobe.devices.no_random_bits import NoRandomBits
from mmaprobe.devices.replay import record
from mmaprobe.errors import UsageError
from mmaprobe.evidence.corpus import write_corpus
from mmaprobe.evidence.files import FileValue
from mmaprobe.evidence.records_json import witness_from_json, witness_to_json
from mmaprobe.generators import generate
from mmaprobe.generators.tiles import generate_tiles, vector_at
from mmaprobe.models.model import bind
from mmaprobe.operands.batch import Batch, Witness, check_vectors
from mmaprobe.operands.literal import parse_vector
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Exact, Products, Special
from mmaprobe.probing.suite import probe
from mmaprobe.report.datapath.explain import text
from mmaprobe.report.vectors import vector_text
from mmaprobe.toolchain.campaign import takes
from mmaprobe.toolchain.render import render
from mmaprobe.validation.native import pipeline
from mmaprobe.validation.stream import validate

TO = Encode("f16", "RZ", random_bits=8)
PATH = Datapath(
    "f16", "f16", "f16", "f16", 4, Exact((Products((0, 1, 2, 3)), Accumulator()), TO),
    special=Special(code=0x7E00), random="u16",
)  # fmt: skip
MADE = Instruction("drawn.dot4", "drawn.dot4", "drawn", 1, 1, 4, "f16", "f16", "f16", "f16", random="u16")
TILED = replace(MADE, id="drawn.tile", opcode="drawn.tile", m=2, n=3)
UNIT = DatapathDevice(MADE, PATH)


def test_words_of_a_vector_and_back() -> None:
    vector = parse_vector(MADE, ["1,2", "1", "0.5", "0x80"])
    assert vector.random is not None
    assert (vector.random.dtype, vector.random.tolist()) == (np.uint16, [0x80])
    d = int(UNIT.run_vectors(MADE, vector)[0])
    witness = Witness.of(vector, d, "shown")
    assert vector_text(witness).endswith("c=0x3800 random=0x80")
    form = json.loads(json.dumps(witness_to_json(witness)))
    assert form["random"] == "0x80"
    assert witness_from_json(FileValue(Path("f"), "", form)) == witness
    assert witness_to_json(replace(witness, random=None)).keys() == form.keys() - {"random"}
    shown = text(PATH, vector)
    assert "f16 RZ + 8 lowest bits of r" in shown
    assert [line.split()[1] for line in shown.splitlines() if line.startswith(" r ")] == ["0080"]


def test_what_is_wrong_with_it_is_said_in_a_line() -> None:
    with pytest.raises(UsageError, match=r"drawn.dot4 takes 4 words, a b c random .* got 3"):
        parse_vector(MADE, ["1", "1", "0"])
    with pytest.raises(UsageError, match="operand random: 0x10000 is outside the 16 bits of u16"):
        parse_vector(MADE, ["1", "1", "0", "0x10000"])
    vectors = generate(MADE, "uniform", 0, 0, 3)
    assert vectors.random is not None
    plain = replace(MADE, random=None)
    for made, given, said in (
        (MADE, replace(vectors, random=None), r"operand random of shape \(3,\) is missing"),
        (plain, vectors, "takes no operand random"),
        (MADE, replace(vectors, random=vectors.random.astype(np.uint8)), "operand random must be uint16"),
        (MADE, replace(vectors, random=vectors.random[:, None]), r"operand random must have shape \(3,\)"),
    ):
        with pytest.raises(UsageError, match=said):
            check_vectors(made, given)
    with pytest.raises(UsageError, match="random is 'f16'; it is one of u8, u16, u32"):
        replace(MADE, random="f16")
    model = bind(MADE, PATH)
    with pytest.raises(UsageError, match="operand random is missing"):
        model.dot(np.ones((1, 4), np.float16), np.ones((1, 4), np.float16), np.zeros(1, np.float16))
    with pytest.raises(UsageError, match="takes no operand random"):
        bind(plain, replace(PATH, random=None, tree=Exact(PATH.tree.terms, Encode("f16")))).dot(  # type: ignore[union-attr]
            *(np.ones((1, 4), np.float16),) * 2, np.zeros(1, np.float16), random=np.zeros(1, np.uint16)
        )


def test_tiles_have_one_item_a_result() -> None:
    device, tiles = DatapathDevice(TILED, PATH), generate_tiles(TILED, "clustered", 3, 0, 5)
    assert tiles.random is not None
    assert tiles.random.shape == (5, 2, 3)
    d = run_tiles(device, TILED, tiles)
    for tile, row, column in np.ndindex(d.shape):
        one = vector_at(tiles, tile, row, column)
        assert UNIT.run_vectors(MADE, one)[0] == d[tile, row, column]


class Tiles:
    """A device that answers tiles alone."""

    name, concurrent = "tiles", False

    def info(self) -> dict[str, str]:
        return {}

    def run(self, instruction: Instruction, batch: Batch) -> np.ndarray:
        return DatapathDevice(TILED, PATH).run(TILED, batch)


def test_vectors_lie_on_the_diagonals_of_tiles() -> None:
    vectors = generate(TILED, "clustered", 4, 0, 7)
    assert (run_vectors(Tiles(), TILED, vectors) == UNIT.run_vectors(MADE, vectors)).all()  # type: ignore[arg-type]


def test_the_view_without_random_bits_asks_with_none_set() -> None:
    view = NoRandomBits.of(UNIT, MADE)
    assert view is not None
    assert NoRandomBits.of(UNIT, view.plain) is None
    vectors = generate(view.plain, "clustered", 5, 0, 500)
    assert vectors.random is None
    zeros = replace(vectors, random=np.zeros(500, np.uint16))
    expected = UNIT.run_vectors(MADE, zeros)
    assert (run_vectors(view, view.plain, vectors) == expected).all()
    lanes = Batch(vectors.a[:, None], vectors.b[:, :, None], vectors.c[:, None, None])  # type: ignore[index]
    assert (run_tiles(view, view.plain, lanes).reshape(-1) == expected).all()
    assert (expected != UNIT.run_vectors(MADE, replace(zeros, random=zeros.random + 0xFF))).any()  # type: ignore[operator]


def test_probes_ask_with_none_set_and_show_what_they_asked() -> None:
    found = probe(UNIT, MADE, ["result_rounding", "summation_tree"])
    assert "RZ" in str(found["result_rounding"].answer)
    witnesses = [witness for finding in found.values() for witness in finding.witnesses]
    assert witnesses
    assert all(witness.random == 0 for witness in witnesses)


def test_a_recording_answers_again(tmp_path: Path) -> None:
    vectors = generate(MADE, "ulp", 6, 0, 50)
    write_corpus(tmp_path / "corpus", record(UNIT, [(MADE, vectors)]), "a test")
    again = open_device(f"replay:{tmp_path / 'corpus'}")
    (made,) = again.instructions()
    assert made.random == "u16"
    assert (run_vectors(again, made, vectors) == UNIT.run_vectors(MADE, vectors)).all()
    other = replace(vectors.slice(0, 1), random=vectors.slice(0, 1).random ^ 1)  # type: ignore[operator]
    with pytest.raises(UsageError, match=r"has no recording of .* random=0x"):
        run_vectors(again, made, other)


PROGRAM = '''
import sys
DESCRIPTION = """schema = 1
architectures = { echo = {} }
[[row]]
family = "echo"
opcode = "echo.random"
m = 1
n = 2
k = 1
a = "f16"
b = "f16"
c = "f16"
d = "f16"
random = "u16"
on = [{ architectures = ["echo"], primitive = "ECHO" }]
"""
print("mmaprobe 2 echo echo text echo.random", flush=True)
for request in sys.stdin:
    if request == "describe\\n":
        print("ok %d" % DESCRIPTION.count("\\n"), DESCRIPTION, sep="\\n", end="", flush=True)
        continue
    count = int(request.split()[2])
    print("ok", count)
    for _ in range(count):
        a, b0, b1, c0, c1, r0, r1 = sys.stdin.readline().split()
        print(r0, r1)
    sys.stdout.flush()
'''


def test_a_program_gets_them_last(tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(PROGRAM)
    device = open_device(f"process:{shlex.join([sys.executable, str(tmp_path / 'echo.py')])}")
    (made,) = device.instructions()
    assert made.random == "u16"
    tiles = generate_tiles(made, "uniform", 7, 0, 9)
    assert (run_tiles(device, made, tiles) == tiles.random).all()
    device.close()  # type: ignore[attr-defined]


def test_a_function_gets_them_last(tmp_path: Path) -> None:
    (tmp_path / "sign.py").write_text("import numpy as np\ndef odd(a, b, c, r):\n    return np.float16(r & 1) + c\n")
    device = open_device(f"function:{tmp_path / 'sign.py'}:odd?k=2&format=f16&c=f16&random=u8")
    (made,) = device.instructions()
    assert (made.random, made.modifier["random"]) == ("u8", "u8")
    vectors = Batch(
        np.zeros((3, 2), np.uint16), np.zeros((3, 2), np.uint16), np.zeros(3, np.uint16),
        random=np.array([0, 1, 254], np.uint8),
    )  # fmt: skip
    assert run_vectors(device, made, vectors).tolist() == [0, 0x3C00, 0]
    with pytest.raises(UsageError, match="random is 'u9'; it is one of u8, u16, u32"):
        open_device(f"function:{tmp_path / 'sign.py'}:odd?random=u9")


def test_two_devices_are_compared_on_them() -> None:
    other = DatapathDevice(MADE, replace(PATH, tree=Exact(PATH.tree.terms, replace(TO, random_bits=7))))  # type: ignore[union-attr]
    assert pipeline(UNIT, other, MADE) is None
    assert validate(UNIT, UNIT, MADE, vectors=3000, seed=1).mismatches == 0
    found = validate(UNIT, other, MADE, vectors=3000, seed=1)
    assert found.mismatches
    shrunk = found.examples[0].shrunk
    assert shrunk is not None
    assert shrunk.random is not None
    assert shrunk.random.bit_count() == 1


def test_kernels_refuse_them() -> None:
    made = replace(lookup.instruction("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_90a"), random="u8")
    assert not takes(made)
    with pytest.raises(UsageError, match="no kernel has an operand of random bits; run it by process: or function:"):
        render(made, "sm_90a")
