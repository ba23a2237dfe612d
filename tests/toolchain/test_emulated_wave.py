"""Every AMD kernel's data movement, executed lane by lane, against element places from a second source."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from emulator.arrivals import wrong_operands
from emulator.wave import run_wave
from mmaprobe.catalog.layouts import claims
from mmaprobe.catalog.lookup import forms, instruction
from mmaprobe.errors import UsageError
from mmaprobe.toolchain.render import render

HOMES = ("gfx908", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1200", "gfx1250")
"""One of each generation: the others have the same rows."""
FORMS = {(form.first.id, home): form.first for home in HOMES for form in forms(home)}
MODIFIED = [
    ("gfx942", "v_smfmac_f32_16x16x32_f16{abid=3}"),
    ("gfx942", "v_smfmac_i32_32x32x32_i8{abid=1}"),
    ("gfx950", "v_mfma_f32_16x16x128_f8f6f4{blgp=4,cbsz=2}"),
    ("gfx950", "v_mfma_f32_32x32x64_f8f6f4{blgp=2,cbsz=4}"),
    ("gfx950", "v_mfma_scale_f32_32x32x64_f8f6f4{blgp=1,cbsz=3,op_sel=010,op_sel_hi=110}"),
    ("gfx1100", "v_wmma_f16_16x16x16_f16{op_sel=001,tied,wave=64}"),
    ("gfx1200", "v_swmmac_f32_16x16x32_bf16{index_key=3,wave=64}"),
    ("gfx1200", "v_swmmac_i32_16x16x64_iu4{index_key=1,neg_lo=010,wave=64}"),
    (
        "gfx1250",
        "v_wmma_scale16_f32_16x16x128_f8f6f4"
        "{matrix_a_fmt=MATRIX_FMT_FP4,matrix_a_scale=MATRIX_SCALE_ROW1,matrix_b_fmt=MATRIX_FMT_BF6}",
    ),
]


def outcome(name: str, home: str) -> list[str]:
    made = instruction(name, home)
    return wrong_operands(partial(run_wave, architecture=home), render(made, home), made)


def is_open(name: str, home: str) -> bool:
    """What no source settles: SMFMAC of doubled K on gfx950, SWMMAC on gfx1250."""
    made = FORMS[name, home]
    doubled = {"f16": 1024, "bf16": 1024, "s8": 2048, "e4m3": 2048, "e5m2": 2048}
    return bool(made.chunk) and (home == "gfx1250" or (home == "gfx950" and made.k * made.m == doubled[made.a]))


@pytest.mark.sampled(40)
@pytest.mark.parametrize(("name", "home"), [pair for pair in FORMS if not is_open(*pair)])
def test_operands_are_rebuilt(name: str, home: str) -> None:
    """A, B, C, scales and metadata arrive where AMD's calculator says, D comes from there."""
    assert outcome(name, home) == []


def test_open_layouts_are_refused() -> None:
    """One line that says which operand is open."""
    refused = [pair for pair in FORMS if is_open(*pair)]
    assert len(refused) == 28
    for name, home in refused:
        with pytest.raises(UsageError, match=r"the layout of (a|b|metadata) is open: "):
            render(FORMS[name, home], home)


@pytest.mark.sampled(20)
@pytest.mark.parametrize(
    ("name", "home"), [(by.id, pair[1]) for pair in FORMS if is_open(*pair) for by in claims(FORMS[pair], pair[1])]
)
def test_operands_are_rebuilt_by_every_claim(name: str, home: str) -> None:
    """Of an open layout, each claim as its source has it."""
    assert outcome(name, home) == []


@pytest.mark.parametrize(("home", "name"), MODIFIED)
def test_modifiers_choose_places(home: str, name: str) -> None:
    """Sets of indices, halves of results, bytes and lanes of scales, formats of f8f6f4."""
    assert outcome(name, home) == []


BLOCKS, PAIR, SPARSE = "v_mfma_f32_4x4x4_16b_f16", "v_mfma_f64_16x16x4_f64", "v_smfmac_i32_16x16x64_i8"
FAULTS = [
    ("gfx942", BLOCKS, ["a"], "A", "lane % 4", "3 - lane % 4"),
    ("gfx942", PAIR, ["c"], "C", "4 * slot + (lane >> 4)", "4 * (lane >> 4) + slot"),
    ("gfx942", PAIR, ["d"], "D", "4 * slot + (lane >> 4)", "4 * (lane >> 4) + slot"),
    ("gfx942", SPARSE, ["metadata"], "Metadata", "(slot / 4) == 0", "(slot / 4) == 1"),
    ("gfx950", "v_mfma_scale_f32_16x16x128_f8f6f4", ["scale_b"], "ScaleB", "slot == 0", "slot == 1"),
    ("gfx950", "v_mfma_f32_16x16x128_f8f6f4{blgp=2}", ["b"], "B", "bits = 6", "bits = 8"),
    ("gfx1100", "v_wmma_f32_16x16x16_f16", ["b"], "B", "lane & 15", "15 - (lane & 15)"),
    ("gfx1100", "v_wmma_f16_16x16x16_f16{op_sel=001,tied}", ["d"], "D", "shift = 16", "shift = 0"),
    ("gfx1200", "v_wmma_f32_16x16x16_f16", ["a"], "A", "4 * (lane >> 4)", "4 * (1 - (lane >> 4))"),
]


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("home", "name", "operands", "struct", "right", "wrong"), FAULTS)
def test_a_wrong_layout_is_seen(
    home: str, name: str, operands: list[str], struct: str, right: str, wrong: str
) -> None:  # fmt: skip
    """One term of one struct changed: a swapped row, a wrong set of indices, byte of a scale, half of a result."""
    made = instruction(name, home)
    source = render(made, home)
    before, found, after = source.text.partition(f"struct {struct} {{")
    assert found
    assert right in after.partition("};")[0], after.partition("};")[0]
    changed = replace(source, text=before + found + after.replace(right, wrong, 1))
    assert wrong_operands(partial(run_wave, architecture=home), changed, made) == operands
