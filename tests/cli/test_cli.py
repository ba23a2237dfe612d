"""The command line as users and CI meet it: JSON that parses, one line for an error, the promised exit codes."""

from __future__ import annotations

import importlib
import json
import pkgutil
import runpy
import sys
from pathlib import Path

import pytest

import mmaprobe
from mmaprobe.cli import main

X86 = "model:x86-64+intel"
HMMA = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"


@pytest.mark.parametrize("arguments", [
    ["devices"], ["instructions"], ["instructions", "sm_90a"], ["probe", "x86.pmaddwd", "-d", X86],
    ["derive", "x86.pmaddwd", "-d", X86], ["validate", X86, X86, "x86.vdpbf16ps", "-n", "1000"],
    ["bench", "--smoke", "-i", "x86.v*"], ["bench", "sm_90a", "--smoke", "-i", "mma*m16n8k16*f32"],
    ["replay", "x86.vdpbf16ps/tie.1/0/17", "-d", X86, "--ref", X86],
    ["vectors", "show", "x86.vdpbf16ps/tie.1/0/17"], ["parameters", "show", "sm_90a"], ["doctor"],
], ids=" ".join)  # fmt: skip
def test_text_and_json(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert capsys.readouterr().out.strip()
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("arguments", "code", "message"), [
    (["probe", "x86.pmaddwd", "-d", "cpuu"], 2, "did you mean cpu"),
    (["probe", "x86.pmadwd", "-d", X86], 2, "x86.pmaddwd"),
    (["run", "-d", "model:sm_90b"], 2, "sm_90a"),
    (["run", "-d", X86, "-i", "x86.pmadwd"], 2, "x86.pmaddwd"),
    (["run", "--resume"], 2, "--out"),
    (["instructions", "sm_90b"], 2, "sm_90a"),
    (["validate", X86, X86, "x86.vdpbf16ps", "-g", "unifrom"], 2, "uniform"),
    (["validate", X86, X86, "x86.vdpbf16ps", "-n", "-1"], 2, "negative"),
    (["validate", X86, X86, "x86.vdpbf16ps", "--nan", "some"], 2, "bits or any"),
    (["validate", f"misbehaving:shape?of={X86}", X86, "x86.vdpbf16ps"], 5, "answered"),
    (["validate", f"misbehaving:crash?of={X86}", X86, "x86.vdpbf16ps"], 5, "broke down"),
    (["validate", X86, X86, "--plan", "witnesses", "--save", "m.json"], 2, "--save goes without --plan"),
    (["validate", X86, X86, "x86.vdpbf16ps", "--save", ""], 2, "is empty"),
    (["replay", "x86.vdpbf16ps/tie.1/0/17", "-d", X86], 2, "name both"),
    (["replay", ""], 2, "neither a file nor a recipe"),
    (["replay", "/nowhere"], 2, "/nowhere"),
    (["replay", "pyproject.toml"], 2, "not JSON"),
    (["vectors", "show", "x86.vdpbf16ps/tie/17"], 2, "not a recipe"),
    (["vectors", "show", "x86.vdpbf16ps/tei.1/0/17"], 2, "tie"),
    (["corpus", "list", "/nowhere"], 2, "/nowhere"),
    (["explain", "sm_90a", "x86.vdpbf16ps", "1"], 2, ""),
    (["probe"], 2, "INSTRUCTION"),
    (["validate", "model:sm_80", "model:sm_90a", "wgmma.mma_async.m64n8k16.f32.f16.f16"], 2, "sm_90a has"),
    (["nosuch"], 2, "nosuch"),
    (["validate", X86, X86, "x86.vdpbf16ps", "-n", "99999999999999999999"], 2, "nor above"),
    (["validate", X86, X86, "--plan", "witnesses", "-n", "5"], 2, "--vectors goes without --plan"),
    (["validate", X86, X86, "--plan", "witnesses", "-g", "tie"], 2, "--generator goes without --plan"),
    (["layout", HMMA, "--registers", "0:3"], 2, "--operand"),
    (["derive", "x86.pmadd*", "-d", X86, "--certificate"], 2, "--certificate prints that of one instruction"),
    (["derive", "x86.pmaddwd", "-d", X86, "--write", ""], 2, "is empty"),
    (["derive", "x86.pmaddwd", "-d", X86, "--seed", "18446744073709551616"], 2, "--seed"),
    (["derive", HMMA, "--from", "replay:nowhere", "-d", X86], 2, "--device goes without recordings"),
    (["derive", HMMA, "--from", "replay:nowhere", "--fresh", "5"], 2, "--fresh goes without recordings"),
    (["derive", HMMA, "-d", "model:sm_90a", "--allowance", "-1"], 2, "--allowance"),
    (["probe", "-d", X86, "--suite", "eq10", "--seed", "3"], 2, "--seed goes without --suite"),
    (["bench", "--smoke", "--threads", "100000000"], 2, "--threads"),
    (["compile", "--arch", "sm_90a", "--jobs", "100000000"], 2, "--jobs"),
    (["compile", "--arch", "sm_90a", "--out", ""], 2, "is empty"),
    (["corpus", "import", "", ""], 2, "is empty"),
    (["parameters", "write", "", "--out", "x"], 2, "is empty"),
    (["tree", "function:numpy:sum?operands=1&k=8", "--picture", ""], 2, "is empty"),
], ids=lambda value: " ".join(value) if isinstance(value, list) else None)  # fmt: skip
def test_errors_are_one_line(arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == code
    said = capsys.readouterr().err
    assert message.lower() in said.lower()
    assert len(said.strip().splitlines()) == 1, said


@pytest.mark.parametrize(("device", "options", "code"), [
    (X86, ["-n", "0"], 4), ("misbehaving:zeros?of=" + X86, [], 1), ("misbehaving:flaky?of=" + X86, [], 5),
    ("misbehaving:nan?p=0.5&of=" + X86, ["--nan", "any"], 0),
])  # fmt: skip
def test_validate_exit_codes(device: str, options: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", device, X86, "x86.vdpbf16ps", "-n", "20000", *options]) == code
    if code == 4:
        assert "nothing compared" in capsys.readouterr().out


@pytest.mark.parametrize("operands", [["1.5", "-2"], ["0x3fc00000", "0xc0000000"]])
def test_explain_takes_numbers_and_codes(operands: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "x86-64+intel", "x86.vfmadd.f32", *operands, "-0.5"]) == 0
    assert "d = c0600000" in capsys.readouterr().out.lower()


SPARSE = "mma.sp.m16n8k32.s32.s8.s8.s32"


def test_sparse_forms_are_explained_and_validated(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "sm_80", SPARSE, "3,5", "0,7,0,11", "-1", "0xd"]) == 0
    said = capsys.readouterr().out
    assert "0xd    a0·b1 a1·b3" in said
    assert "d = 0000004b" in said  # 3 7 + 5 11 - 1
    assert main(["validate", "model:sm_80", "model:sm_100a", SPARSE, "-n", "20000"]) == 0
    assert "equal" in capsys.readouterr().out


def test_illegal_metadata_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    for arch, item, said in (
        ("sm_80", "0x5", "metadata of item 0, chunk 0 is 0x5; it must be one of 0x4 0x8 0x9 0xc 0xd 0xe\n"),
        ("sm_80", "0x1", "0x4 0x8 0x9 0xc 0xd 0xe; nothing sorts metadata here"),
        ("sm_100a", "0x5", "it must be one of 0x1 0x2 0x3 0x4 0x6 0x7 0x8 0x9 0xb 0xc 0xd 0xe\n"),
        ("sm_80", "0x100", "0x100 is outside the 8 bits of u8"),
    ):
        assert main(["explain", arch, SPARSE, "1", "1", "0", item]) == 2
        assert said in capsys.readouterr().err
    assert main(["explain", "sm_100a", SPARSE, "1", "1", "0", "0x1"]) == 0
    assert main(["explain", "sm_80", SPARSE, "1", "1", "0"]) == 2
    assert "takes 4 words, a b c metadata" in capsys.readouterr().err


def test_run_writes_evidence_and_parameters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "e")
    command = ["run", "-d", X86, "-i", "x86.pmaddwd", "-n", "1000", "--out", folder, "--json"]
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)
    assert main(command) == 2
    assert main([*command, "--resume"]) == 0
    capsys.readouterr()
    assert main(["parameters", "write", folder, "--out", str(tmp_path / "p.toml")]) == 0
    assert main(["parameters", "write", folder, "--out", str(tmp_path / "p.toml"), "--check"]) == 0
    (tmp_path / "file").write_text("")
    assert main([*command[:-3], "--out", str(tmp_path / "file" / "e")]) == 6


def test_importing_every_module_shadows_no_verb() -> None:
    for module in pkgutil.walk_packages(mmaprobe.__path__, "mmaprobe."):
        importlib.import_module(module.name)
    device = mmaprobe.device(X86)
    known = mmaprobe.instruction("x86.pmaddwd")
    assert callable(mmaprobe.model("x86-64+intel", known).dot)
    assert mmaprobe.probe(device, known)
    assert mmaprobe.derive(device, known).datapath is not None
    assert mmaprobe.validate(device, device, known, 1000).exit_code == 0
    assert callable(mmaprobe.run)


def test_a_derivation_takes_an_allowance_and_fresh_vectors(capsys: pytest.CaptureFixture[str]) -> None:
    derive = ["derive", HMMA, "-d", "model:sm_90a"]
    assert main([*derive, "--allowance", "1000000"]) == 4
    assert "no answer within the allowance of 1,000,000 units of work (--allowance)" in capsys.readouterr().out
    assert main([*derive, "--fresh", "700"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert ", 700 fresh ones agree" in said
    assert "700 vectors exclude (at 95 %) those that 1 in 233 of them or more" in said


def test_the_package_is_a_command_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["mmaprobe", "validate", X86, X86, "x86.vdpbf16ps", "-n", "-1"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(Path(mmaprobe.__file__).with_name("__main__.py")), run_name="__main__")
    assert ended.value.code == 2
    assert "negative" in capsys.readouterr().err
