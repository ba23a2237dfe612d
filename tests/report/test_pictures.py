"""Pictures: what they show is right, whatever draws them; with matplotlib, that they are drawn, and alike each time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cases.report_pages import CPU, SPARSE, STATES, TILE, some_of, wrong_run
from mmaprobe import formats
from mmaprobe.cli import main
from mmaprobe.errors import UsageError
from mmaprobe.evidence.store import Store
from mmaprobe.report.pictures.heat_map import bit_rows
from mmaprobe.report.pictures.palette import COLOURS, MARKS, style
from mmaprobe.report.pictures.parameter_matrix import COLUMNS, matrix
from mmaprobe.report.pictures.rounding_errors import _truncating, call_errors, drift, relative_error
from mmaprobe.report.pictures.units import decoded, encoded, long_dots, units

HERE = "mma.m16n8k16.f32.f16.f16.f32"
KINDS = {
    "tree": ("sm_90a", HERE),
    "window": ("gfx942", "v_mfma_f32_16x16x16_f16"),
    "fragment": ("sm_80", HERE),
    "error": (f"sm_90a/{HERE}",),
    "bias": (f"sm_90a/{HERE}",),
    "drift": (f"sm_90a/{HERE}",),
    "parameters": (),
    "classes": ("openblas_haswell_f32?m=24&n=24&k=400",),
    "schedule": ("openblas_haswell_f32?m=24&n=24&k=400",),
}


def test_values_become_the_codes_that_numpy_makes_of_them() -> None:
    values = np.random.default_rng(3).standard_normal(1000) * 2.0 ** np.arange(-26, 14).repeat(25)
    codes = encoded(formats.get("f16"), values)
    assert (codes == values.astype(np.float16).view(np.uint16)).all()
    assert (decoded(formats.get("f16"), codes) == values.astype(np.float16)).all()


def test_long_dot_products_are_calls_in_a_chain() -> None:
    """Ones: every sum is exact; then beside 2**24 each further call's 16 ones are there, since they come together."""
    (unit,) = units("errors", [f"sm_90a/{HERE}"])
    found = long_dots(unit, np.ones((2, 64)), np.ones((2, 64)), (5, 32, 64))
    assert found.terms == (16, 32, 64)
    assert found.results.tolist() == found.exact.tolist() == [[16, 16], [32, 32], [64, 64]]
    a = np.ones((1, 48))
    a[0, 0] = 4096
    large = long_dots(unit, a, a, (48,))
    assert (large.results[0, 0], large.exact[0, 0]) == (2**24 + 14 + 16 + 16, 2**24 + 15 + 32)
    assert relative_error(large)[0] == 1 / (2**24 + 47)


def test_rounding_down_leans_to_one_side_and_truncating_does_not() -> None:
    cdna3, hopper, cdna2 = units("bias", ())
    (truncating,) = _truncating(cdna3)
    assert -0.36 < call_errors(cdna3, 1).mean() < -0.27
    assert all(abs(call_errors(each, 1).mean()) < 0.03 for each in (truncating, hopper, cdna2))
    assert not _truncating(hopper)


def test_fp8_falls_behind_where_13_bits_are_kept() -> None:
    random = np.random.default_rng(1)
    a, b = (random.uniform(0.5, 1, (50, 4096)) for _ in "ab")
    behind = {unit.title.partition(",")[0]: drift(long_dots(unit, a, b, (128, 4096))) for unit in units("fp8", ())}
    assert all(-7.5 < behind[name][1] < -6.5 and abs(behind[name][0]) < 0.02 for name in ("RTX 4090", "H100"))
    assert all(abs(behind[name][1]) < 1e-3 for name in ("RTX 5090", "MI300", "RX 9070"))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sm_90a", "write ARCH/INSTRUCTION"),
        ("sm_90b/mma.m16n8k16.f32.f16.f16.f32", "sm_90a"),
        ("x86-64/x86.dpps", "no such C"),
        ("x86-64/x86.vfmadd.f64", "or is wider"),
    ],
)
def test_a_unit_that_cannot_be_shown_is_named(name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        units("errors", [name])


def test_bits_that_differ_are_counted(tmp_path: Path) -> None:
    store = Store.open(wrong_run(tmp_path / "run"))
    (row,) = bit_rows(store.parts)
    (part,) = store.parts.values()
    assert (row.instruction, row.format, row.held, row.counted) == (TILE, "f32", 4, part.mismatch_count)
    told = [f"{each.vector.d ^ each.expected:032b}"[::-1] for each in part.mismatches]
    assert row.differ.tolist() == [sum(bits[place] == "1" for bits in told) for place in range(32)]
    with pytest.raises(UsageError, match="no mismatches"):
        bit_rows({})


def test_the_matrix_says_what_the_files_say() -> None:
    rows = {name: row.cells for row in matrix() for name in row.architectures}
    assert {"sm_70", "sm_90a", "sm_121a", "gfx906", "gfx942", "gfx1201", "x86-64", "aarch64"} <= rows.keys()
    hopper = dict(zip(COLUMNS, rows["sm_90a"], strict=True))
    assert (hopper["e4m3", "f32"].lines, hopper["e4m3", "f32"].kind) == (("F=13 RZ",), "few")
    assert (hopper["f16", "f32"].lines, hopper["f16", "f32"].kind) == (("F=25 RZ",), "aligned")
    assert hopper["f16", "f32"].measured
    assert dict(zip(COLUMNS, rows["gfx90a"], strict=True))["f16", "f32"].kind == "rounded"
    assert dict(zip(COLUMNS, rows["gfx908"], strict=True))["f16", "f32"].kind == "exact"
    assert dict(zip(COLUMNS, rows["sm_107a"], strict=True))["f16", "f32"].predicted
    assert not rows["sm_70"][0].lines


def test_no_two_lines_look_alike() -> None:
    looks = [tuple(style(number).values()) for number in range(len(COLOURS))]
    assert len({look[0] for look in looks}) == len({look[1] for look in looks}) == len(COLOURS) == len(MARKS)


def refused(capsys: pytest.CaptureFixture[str], code: int, *words: str) -> str:
    assert main(["plot", *words]) == code
    said = capsys.readouterr().err
    assert said.startswith("mmaprobe: ")
    assert said.count("\n") == 1
    return said


def test_without_matplotlib_one_line_says_how_to_get_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, name, None)
    for kind, words in KINDS.items():
        said = refused(capsys, 3, kind, *words, "--out", str(tmp_path / "p.png"))
        assert "pip install 'mmaprobe[plot]'" in said
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_drawn_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    png = ("--out", str(tmp_path / "p.png"))
    assert ".png or .svg" in refused(capsys, 2, "tree", *KINDS["tree"], "--out", str(tmp_path / "p.gif"))
    assert "adds integers" in refused(capsys, 2, "window", "x86-64", "x86.pmaddwd", *png)
    assert "did you mean" in refused(capsys, 2, "tree", "sm_90a", "mma.m16n8k17.f32.f16.f16.f32", *png)
    assert "unknown architecture" in refused(capsys, 2, "tree", "sm_9", HERE, *png)
    assert "no mismatches" in refused(capsys, 2, "mismatches", str(some_of(CPU, tmp_path / "run", STATES[0])), *png)
    assert "manifest.json" in refused(capsys, 2, "mismatches", str(tmp_path / "absent"), *png)
    assert not (tmp_path / "p.png").exists()


@pytest.mark.long
@pytest.mark.needs("matplotlib")
@pytest.mark.parametrize("kind", [*KINDS, "mismatches"])
@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_each_is_drawn_and_alike_each_time(kind: str, suffix: str, tmp_path: Path) -> None:
    """In two processes, since what one of them has drawn before may show in the next picture."""
    words = KINDS.get(kind) or ((str(wrong_run(tmp_path / "run")),) if kind == "mismatches" else ())
    files = [tmp_path / f"{number}.{suffix}" for number in range(2)]
    assert main(["plot", kind, *words, "--out", str(files[0])]) == 0
    again = [sys.executable, "-m", "mmaprobe", "plot", kind, *words, "--out", str(files[1])]
    subprocess.run(again, check=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].read_bytes()[:5] == (b"\x89PNG\r" if suffix == "png" else b"<?xml")


@pytest.mark.long
@pytest.mark.needs("matplotlib")
def test_what_has_more_than_two_indices_and_what_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = ("fragment", "gfx942", "v_mfma_f32_4x4x4_16b_f16", "--out", str(tmp_path / "p.png"))
    assert "a picture has two indices" in refused(capsys, 2, *blocks)
    assert "scale_a" in refused(capsys, 2, "fragment", "sm_90a", SPARSE, "--operand", "scale_a", *blocks[3:])
    (tmp_path / "file").write_text("")
    assert "--out" in refused(capsys, 6, "tree", *KINDS["tree"], "--out", str(tmp_path / "file" / "p.png"))
