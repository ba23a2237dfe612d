"""What is wrong with the arguments of a command is said, and ends it with 2, before what is missing here (3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmaprobe.cli import main
from mmaprobe.errors import NotHereError
from mmaprobe.toolchain.amd import clang
from mmaprobe.toolchain.amd.hiprtc import Hiprtc
from mmaprobe.toolchain.nvidia import nvrtc

HMMA = "mma.m16n8k16.f32.f16.f16.f32"
WRONG = [
    ("run -d cuda:0 -i nonsense", "instruction 'nonsense'"),
    ("run -d hip:0 -i v_nonsense*", "no hip:0 has an instruction 'v_nonsense*'"),
    (f"run -d hip:0 -i {HMMA}", f"no hip:0 has an instruction '{HMMA}'"),
    ("run -d hip:0 -n -1", "must not be negative"),
    ("run -d cuda:0 --steps nonsense", "no step 'nonsense'"),
    ("run -d process:/nowhere/program --steps nonsense", "no step 'nonsense'"),
    ("run -d cuda:0 --pack /nowhere", "/nowhere/pack.json"),
    ("run -d cuda:0?colour=red", "unknown option 'colour'"),
    ("run -d cuda:first", "GPUs are named by number"),
    ("probe nonsense -d cuda:0", "unknown instruction 'nonsense'"),
    (f"probe {HMMA} -d cuda:0 -q nonsense", "unknown question 'nonsense'"),
    ("probe -d hip:0 --suite nonsense", "unknown suite 'nonsense'"),
    ("probe -d cuda:0 --questions -q nonsense", "unknown open question 'nonsense'"),
    ("validate cuda:0 model:sm_90a nonsense", "unknown instruction 'nonsense'"),
    ("validate model:sm_90a cuda:0 nonsense", "unknown instruction 'nonsense'"),
    (f"validate cuda:0 hip:0 {HMMA}", f"no hip:0 has an instruction '{HMMA}'"),
    (f"validate cuda:0 model:sm_9 {HMMA}", "unknown architecture 'sm_9'"),
    (f"validate cuda:0 model:sm_90a {HMMA} -g nonsense", "no generator 'nonsense'"),
    (f"validate cuda:0 model:sm_90a {HMMA} --nan nonsense", "nan is 'nonsense'"),
    (f"validate cuda:0 model:sm_90a {HMMA} -n -1", "must not be negative"),
    (f"validate cuda:0 model:sm_90a {HMMA} --plan nonsense", "no plan 'nonsense'"),
    ("validate cuda:0 model:sm_90a nonsense* --plan witnesses", "'nonsense*'"),
    (f"validate cuda:0 model:sm_90a {HMMA} --save /etc/passwd", "/etc/passwd is there and is no mismatch file"),
    ("replay /nowhere -d cuda:0", "/nowhere: No such file"),
    (f"replay {HMMA}/nonsense.1/0/1 -d cuda:0 --ref model:sm_90a", "unknown generator family 'nonsense'"),
    ("replay nonsense/tie.1/0/1 -d cuda:0 --ref model:sm_90a", "unknown instruction 'nonsense'"),
    (f"replay {HMMA}/tie.1/0/1 -d hip:0 --ref model:sm_90a", f"no hip:0 has an instruction '{HMMA}'"),
    ("derive nonsense -d hip:0", "unknown instruction 'nonsense'"),
    ("derive sm_90a -d hip:0", "no hip:0 is sm_90a"),
    (f"derive {HMMA} -d cuda:0 --write /etc/passwd", "/etc/passwd: "),
    (f"derive {HMMA} --from replay:/nowhere", "/nowhere/manifest.json"),
    ("compile -a sm_9", "unknown architecture 'sm_9'"),
    ("compile -a sm_90a -i nonsense", "unknown instruction 'nonsense'"),
    ("compile -a sm_90a -i nonsense*", "no instruction of sm_90a matches 'nonsense*'"),
    ("compile -a gfx942 -i v_wmma_f32_16x16x16_f16", "gfx942 has no wmma"),
    (f"compile -a sm_90a -i {HMMA} --compiler gcc", "--compiler gcc"),
    ("pack -a gfx942 -b /nowhere/bundle -i nonsense", "unknown instruction 'nonsense'"),
    ("pack -a sm_90a -b /nowhere/bundle --source /nowhere", "/nowhere is neither a checkout nor a wheel"),
    ("tree function:absent_module:dot?k=x", "option k='x'"),
    ("tree function:absent_module:dot --at x", "--at 'x' must be ROW,COLUMN"),
    ("tree cuda:0 -i nonsense", "unknown instruction 'nonsense'"),
    ("corpus answer /nowhere /nowhere/corpus -d cuda:0", "/nowhere: "),
]
RIGHT = [
    "run -d process:/nowhere/program -i anything",
    "validate process:/nowhere/program model:x86-64 x86.pmaddwd",
    "validate cuda-gemm:0?m=64&n=64&k=64 gemm:openblas_haswell_f32",
    f"replay {HMMA}/tie.1/0/1 -d cuda:0 --ref model:sm_90a",
    f"compile -a sm_90a -i {HMMA}",
    "compile -a gfx942 -i v_mfma_f32_16x16x16_f16",
    "tree function:absent_module:dot?k=10",
]


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without compilers for GPUs."""

    def missing() -> str:
        raise NotHereError("no compiler is installed")

    monkeypatch.setattr(nvrtc, "version", missing)
    monkeypatch.setattr(Hiprtc, "check_architecture", lambda *_: missing())
    monkeypatch.setenv(clang.OVERRIDE, "/nowhere/clang++")


def ends(words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code of a command, and the last line that it says."""
    code = main(words.split())
    return code, capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(("words", "message"), WRONG, ids=[words for words, _ in WRONG])
def test_wrong_words_end_with_2(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = ends(words, capsys)
    assert code == 2, said
    assert message in said


@pytest.mark.parametrize("words", RIGHT)
def test_right_words_end_with_what_is_missing(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ends(words, capsys)[0] == 3


def test_a_pack_of_another_architecture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Said without the compiler that would add to it."""
    from mmaprobe.toolchain.pack import write_pack

    write_pack(tmp_path, "sm_80", "a compiler", ())
    code, said = ends(f"compile -a sm_90a -i {HMMA} --out {tmp_path}", capsys)
    assert code == 2
    assert "holds a pack of sm_80" in said
