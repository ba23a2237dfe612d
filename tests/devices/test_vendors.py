"""One vendor, one record: a new one is seen everywhere, and nothing outside its folders says its name."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import mmaprobe
from mmaprobe import vendors
from mmaprobe.catalog.lookup import instruction
from mmaprobe.catalog.names import device_of
from mmaprobe.cli import main
from mmaprobe.devices.base import open_device, schemes
from mmaprobe.errors import NotHereError, UsageError
from mmaprobe.generators import generate_tiles
from mmaprobe.report.tables.doctor import doctor_rows
from mmaprobe.runs.beginning import best_device
from mmaprobe.toolchain import bundle
from mmaprobe.toolchain.kernel import file_name
from mmaprobe.toolchain.kernel_cache import CACHE, kernel_of
from mmaprobe.toolchain.source import Source
from mmaprobe.toolchain.vendors import compiler_for, disassembler, named_compiler
from stand_ins.pretend import PRETEND
from stand_ins.pretend.tools import Ptdcc

PACKAGE = Path(mmaprobe.__file__).parent
OWN = re.compile(r"^((devices|toolchain)/(nvidia|amd)/|vendors\.py$)")
NAMES = re.compile(r"(?i)(?<![a-z])(cuda|hip|hiprtc|nvrtc|nvcc|nvidia|amd|rocm|cubin)(?![a-z])|^(sm_|gfx)\w*$")
ALLOWED = {
    ("devices/cpu.py", "+amd"): "a maker of CPUs",
    ("operands/edge.py", "__cuda_array_interface__"): "a protocol, which arrays of all makers' GPUs speak",
    ("operands/resident.py", "__cuda_array_interface__"): "the same",
}


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> None:
    """One maker more."""
    monkeypatch.setattr(vendors, "VENDORS", (*vendors.VENDORS, PRETEND))


def words(file: Path) -> Iterator[str]:
    """The texts and names of a module's code, without its docstrings."""
    tree = ast.parse(file.read_text("utf-8"))
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from (node.module or "", *(name.name for name in node.names))


def test_nothing_outside_its_folders_says_a_vendors_name() -> None:
    """Nor its scheme, its compilers', or how its architectures begin: all of that is in the records."""
    files = {str(file.relative_to(PACKAGE)): file for file in PACKAGE.rglob("*.py")}
    assert {vendor.scheme for vendor in vendors.every()} <= set(words(files["vendors.py"]))
    said = {(name, word) for name in files if not OWN.search(name) for word in words(files[name]) if NAMES.search(word)}
    assert said == set(ALLOWED)


@pytest.mark.usefixtures("pretended")
def test_its_devices_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert "pretend" in schemes()
    assert main(["devices", "--json"]) == 0
    rows = {row["device"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    for index in range(2):
        assert rows[f"pretend:{index}"]["here"] == "yes"
        assert rows[f"pretend:{index}"]["what"].startswith("Pretend P1 ptd1: ")
    assert open_device("pretend").name == "pretend:0"
    opened = mmaprobe.device("pretend:1")
    made = instruction("v_mfma_f32_32x32x2f32", "gfx90a")
    batch = generate_tiles(made, "uniform", 1, 0, 2)
    assert np.array_equal(opened.run(made, batch), open_device("model:gfx90a").run(made, batch))
    with pytest.raises(NotHereError, match="pretend:7: there are 2"):
        open_device("pretend:7")
    assert device_of("ptd1") == "pretend:0"
    assert best_device().name in ("cuda:0", "hip:0", "pretend:0")
    assert main(["run", "--device", "cpu", "--pack", "."]) == 2
    assert "--device cuda:0, hip:0, pretend:0" in capsys.readouterr().err


@pytest.mark.usefixtures("pretended")
def test_the_doctor_looks_for_it() -> None:
    rows = {row["subject"]: row for row in doctor_rows()}
    assert rows["pretend:0"]["found"] == "Pretend P1 (ptd1), driver 1.0"
    assert rows["compiler for Pretend"]["found"] == "ptdcc 1"
    assert rows["disassembler for Pretend"]["found"] == "nothing disassembles for Pretend"
    assert "pretend" in rows["devices registered"]["found"]


@pytest.mark.usefixtures("pretended")
def test_its_kernels_are_compiled_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE, str(tmp_path))
    assert compiler_for("ptd1") == named_compiler("ptdcc", "ptd1") == Ptdcc()
    with pytest.raises(UsageError, match=re.escape("sm_90a: ptdcc compiles for ptd* only")):
        named_compiler("ptdcc", "sm_90a")
    with pytest.raises(UsageError, match="it must be nvrtc, hiprtc, clang, ziglang or ptdcc, or the path of nvcc or"):
        named_compiler("cc", "ptd1")
    with pytest.raises(NotHereError, match="nothing disassembles"):
        disassembler("ptd1")
    assert kernel_of(Source("one", "ptd1", "a text")).binary == b"a text"
    (kept,) = tmp_path.rglob("*.ptd")
    assert kept.name == file_name(kept.stem, "ptd1")
    assert bundle.needs("ptd1") == ("[pretend]", "pretend:0")
