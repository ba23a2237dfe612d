"""A program that describes its own instructions: every verb takes them, and what is wrong is said in a line."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import mmaprobe
from mmaprobe.catalog import supplements
from mmaprobe.devices.base import open_device, run_vectors
from mmaprobe.devices.process import Process
from mmaprobe.errors import DeviceError, UsageError
from mmaprobe.operands.batch import Batch

PAGE = (Path(__file__).parents[2] / "docs" / "new_unit.md").read_text("utf-8")
Opener = Callable[..., Process]


def program() -> str:
    found = re.search(r"```python\n(# acme\.py.*?)```", PAGE, re.DOTALL)
    assert found
    return found[1]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opener]:
    """Opens the page's program, with some of its text replaced."""
    path, devices = tmp_path / "acme.py", []

    def make(*changes: tuple[str, str]) -> Process:
        text = program()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new, 1)
        path.write_text(text, "utf-8")
        device = open_device(f"process:{shlex.join([sys.executable, str(path)])}")
        assert isinstance(device, Process)
        devices.append(device)
        return device

    yield make
    for device in devices:
        device.close()


def ones(count: int) -> Batch:
    a = np.full((count, 4), 0x3C00, np.uint16)
    return Batch(a, a, np.zeros(count, np.uint32))


def test_it_runs_what_it_describes(opened: Opener) -> None:
    device = opened()
    (made,) = device.instructions()
    assert (made.id, made.k, made.a, made.d) == ("acme.dot4", 4, "f16", "f32")
    assert device.supports(made)
    assert run_vectors(device, made, ones(70_000)).tolist() == [0x40800000] * 70_000
    info = device.info()
    assert (info["architecture"], info["protocol"]) == ("acme1", "2 binary")
    assert info["description"].startswith("sha256:")


def test_what_python_derives_of_it_is_a_model(opened: Opener) -> None:
    device = opened()
    derivation = mmaprobe.derive(device, "acme.dot4", fresh=2000)
    assert derivation.status == "exact"
    assert mmaprobe.probe(device, "acme.dot4", questions=["summation_tree"])["summation_tree"].status == "exact"
    with pytest.raises(UsageError, match=r"has no instruction 'acme\.dot5'; it has acme\.dot4"):
        mmaprobe.derive(device, "acme.dot5")
    with pytest.raises(UsageError, match=r"no datapath is known for acme\.dot4 on acme1.*--device process:COMMAND"):
        mmaprobe.model("acme1", "acme.dot4")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("schema = 1", "schema = 9", "schema is 9; this version of mmaprobe reads 1"),
        ("schema = 1", "schema = = 1", "row|Invalid value"),
        ('opcode = "acme.dot4"', 'opcod = "acme.dot4"', "row 1 (acme): unknown key 'opcod'; did you mean opcode"),
        ('a = "f16"', 'a = "f61"', "row 1 (acme): unknown format 'f61'"),
        ("acme1 binary acme.dot4", "acme1 binary acme.dot5", "unknown instruction 'acme.dot5'; did you mean acme.dot4"),
        ("acme1 binary acme.dot4", "acme9 binary acme.dot4", "unknown architecture 'acme9'"),
        ("acme1 binary acme.dot4", "../acme1 binary", "unknown architecture '../acme1'"),
        ('k = 4\n', 'k = "{k}"\naxes = [[{ k = 2 }, { k = 4 }]]\n', "row 1 (acme): acme.dot4 is there twice on acme1"),
    ],
)  # fmt: skip
def test_a_wrong_description(opened: Opener, old: str, new: str, message: str) -> None:
    before = supplements.added()
    with pytest.raises(DeviceError) as caught:
        opened((old, new))
    said = str(caught.value)
    assert re.search(message if "|" in message else re.escape(message), said)
    assert "describes itself wrongly" in said
    assert said.endswith("see docs/new_unit.md")
    assert "\n" not in said
    assert caught.value.exit_code == 5
    assert supplements.added() == before


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"ok 3\n1\n2\n3\n4\n", "answered 1 line more than was due"),
        (b"ok\n", "answered b'ok' to describe"),
        (b"ok many\n", "answered b'ok many' to describe, where 'ok LINES' and these were due"),
        (b"ok 0\n", "answered b'ok 0' to describe"),
        (b"error not now\n", "answered b'error not now' to describe"),
        (b"what?\n", "answered b'what?' to describe"),
    ],
)
def test_an_answer_that_is_no_description(opened: Opener, answer: bytes, message: str) -> None:
    with pytest.raises(DeviceError) as caught:
        opened(('b"ok %d\\n%s" % (DESCRIPTION.count("\\n"), DESCRIPTION.encode())', repr(answer)))
    assert message in str(caught.value)


def test_a_description_without_end(opened: Opener) -> None:
    with pytest.raises(DeviceError, match=r"bytes and no end of a line|lines more than were due"):
        opened(("DESCRIPTION.encode())", "b'#' * 4_000_000)"))


def test_one_that_describes_itself_otherwise_when_it_starts_anew(opened: Opener, tmp_path: Path) -> None:
    device = opened()
    (made,) = device.instructions()
    device.close()
    (tmp_path / "acme.py").write_text(program().replace("k = 4", "k = 8", 1), "utf-8")
    with pytest.raises(DeviceError, match="started anew, it describes itself otherwise than before"):
        run_vectors(device, made, ones(1))
    (tmp_path / "acme.py").write_text(program(), "utf-8")
    assert run_vectors(device, made, ones(1)).tolist() == [0x40800000]


def test_two_that_describe_one_id_otherwise(opened: Opener) -> None:
    opened()
    opened(("acme acme1", "other acme1"))  # says the same of itself
    with pytest.raises(DeviceError, match=r"acme\.dot4 is on acme1 already, in the description of .*; d is 'f16' here"):
        opened(('d = "f32"', 'd = "f16"'))


def test_a_program_of_protocol_1_with_ids_that_none_has_is_told_what_to_do(opened: Opener) -> None:
    device = opened(("mmaprobe 2", "mmaprobe 1"))
    with pytest.raises(DeviceError, match=r"'acme1'.*by protocol 2, or a file does: --catalog FILE"):
        device.instructions()


def test_a_program_of_protocol_1_with_a_catalog_file(opened: Opener, tmp_path: Path) -> None:
    found = re.search(r'"""\\\n(.*?)"""', program(), re.DOTALL)
    assert found
    (tmp_path / "acme.toml").write_text(found[1], "utf-8")
    mmaprobe.add_catalog(tmp_path / "acme.toml")
    device = opened(("mmaprobe 2", "mmaprobe 1"))
    (made,) = device.instructions()
    assert run_vectors(device, made, ones(3)).tolist() == [0x40800000] * 3
