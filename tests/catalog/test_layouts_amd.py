"""AMD's layouts against functions that go the other way, element by element, for every golden row and choice."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from mmaprobe.catalog import layouts
from mmaprobe.catalog.fragment import Fragment
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.lookup import instruction, instructions, lowering
from mmaprobe.catalog.transfers import lane_map
from mmaprobe.errors import UsageError
from second_source import amd_elements as elements
from second_source.amd_elements import Place
from second_source.layout_rows import AMD, amd


def formula_places(found: Fragment, chosen: dict[str, int]) -> dict[tuple[int, ...], set[Place]]:
    """The same from the shipped formulas."""
    held, index = found.held(**chosen), found.coordinates(**chosen)
    low = found.shift(**chosen)
    out: dict[tuple[int, ...], set[Place]] = {}
    for lane, slot in np.argwhere(held).tolist():
        element = tuple(int(index[axis][lane, slot]) for axis, _ in found.axes)
        first = slot * found.bits + low
        out.setdefault(element, set()).add((first // 32, first % 32, lane))
    return out


def distinct() -> list[Any]:
    """The golden rows' instructions, one for each set of widths on each generation."""
    seen: dict[Any, tuple[Instruction, str]] = {}
    for row in AMD:
        for made, architecture in amd(row):
            widths = tuple(layouts.width(name) for name in (made.a, made.b, made.d))
            opcode = made.opcode if made.blocks > 1 or "bf16f32" in made.opcode else ""
            generation = architecture[:5] + architecture[5:6] * architecture.startswith(("gfx9", "gfx12"))
            key = (row["family"], made.m, made.n, made.k, made.blocks, widths, row["wave"], generation, opcode)
            seen.setdefault(key, (made, architecture))
    return [
        pytest.param(*pair, id=f"{pair[0].opcode}-{pair[0].a}-{pair[0].modifier['wave']}-{pair[1]}")
        for pair in seen.values()
    ]


@pytest.mark.sampled(70)
@pytest.mark.parametrize(("made", "architecture"), distinct())
def test_every_element(made: Instruction, architecture: str) -> None:
    for operand in layouts.operands(made):
        if operand.startswith("scale"):
            continue
        for by, one in [
            (each, one) for each in (layouts.claims(made, architecture) or (made,))
            for one in layouts.candidates(each, architecture, operand)
        ]:  # fmt: skip
            names = [name for name, _ in one.choices]
            for values in itertools.product(*(allowed for _, allowed in one.choices)):
                chosen = dict(zip(names, values, strict=True))
                if chosen.get("cbsz", 0) > 1:
                    continue
                got = formula_places(one, chosen)
                assert len(got) == one.elements
                for element in itertools.product(*(range(size) for size in one.shape)):
                    index = dict(zip((axis for axis, _ in one.axes), element, strict=True))
                    assert got[element] == set(
                        elements.places(by, architecture, operand, (one.lanes, one.width), index, chosen)
                    ), (operand, index)


@pytest.mark.parametrize(("dim", "k"), [(16, 128), (32, 64)])
def test_mfma_scales(dim: int, k: int) -> None:
    """Lane i + M (k / 32) holds the scale of row i, in the byte that is picked; not the lane of 8-bit data."""
    opcode = f"v_mfma_scale_f32_{dim}x{dim}x{k}_f8f6f4"
    made = Instruction(opcode, opcode, "", dim, dim, k, "e4m3", "e4m3", "f32", "f32", scale="ue8m0", scale_size=32)
    for operand, axis in (("scale_a", "m"), ("scale_b", "n")):
        found = layouts.layout(made, "gfx950", operand)
        for byte in range(4):
            held, index = found.held(byte=byte), found.coordinates(byte=byte)
            assert (np.argwhere(held) == [[lane, byte] for lane in range(64)]).all()
            assert (index[axis][held] + dim * index["scale_block"][held] == np.arange(64)).all()


def test_open_layouts_by_claim() -> None:
    """Where sources disagree the layout is refused; by the name of a claim it is that claim's, of every operand."""
    name = "v_smfmac_f32_16x16x64_f16"
    made = instruction(name, "gfx950")
    with pytest.raises(UsageError, match=r"the layout of b is open: consecutive k a lane, or chunks of 8"):
        layouts.layout(made, "gfx950", "b")
    claims = layouts.claims(made, "gfx950")
    assert [each.id for each in claims] == [f"{name}{{layout=consecutive}}", f"{name}{{layout=chunks}}"]
    first, second = (layouts.layout(each, "gfx950", "b") for each in claims)
    assert first.status == second.status == "open"
    assert (first.coordinates()["k"] != second.coordinates()["k"]).any()
    for each in claims:
        assert instruction(each.id, "gfx950") == each
        assert lowering(each, "gfx950") == lowering(made, "gfx950")
        assert layouts.open_reason(each, "gfx950") == ""
    with pytest.raises(UsageError, match="layout=plain is no claim of an open layout here; known: consecutive, chunks"):
        instruction(f"{name}{{layout=plain}}", "gfx950")
    with pytest.raises(UsageError, match="known: no source claims one"):
        instruction("v_mfma_f32_16x16x16_f16{layout=chunks}", "gfx942")


@pytest.mark.parametrize("home", ["gfx950", "gfx1250"])
def test_every_open_layout_has_claims_of_sources(home: str) -> None:
    """At least two each, no two alike: one probe on hardware settles it."""
    opened = [made for made in instructions(home) if layouts.open_reason(made, home)]
    assert len(opened) == 14
    for made in opened:
        claims = layouts.claims(made, home)
        assert len(claims) >= 2
        places = set()
        for each in claims:
            found = [layouts.layout(each, home, operand) for operand in layouts.operands(each)]
            assert all(one.source for one in found)
            places.add(tuple((one.at, one.shift, one.active, one.slots) for one in found))
        assert len(places) == len(claims)


@pytest.mark.parametrize(("name", "half"), [("v_swmmac_f32_16x16x64_f16", 8), ("v_swmmac_f32_16x16x128_fp8_fp8", 16)])
def test_two_sources_of_one_claim(name: str, half: int) -> None:
    """ROCm/hip-fpsan has gfx1250's ``halves`` with other names of k: the same places of A, B and index belong together.

    Of each group q of four dense k: the lanes and number of its pair in A, of its four in B, of its index.
    """
    theirs = {(q % 2, q // 2, q % 2, q // 2, 2 * q // half // 2, half // 2 * (q % 2) + q // 2 % (half // 2))
              for q in range(2 * half)}  # fmt: skip
    made = instruction(f"{name}{{layout=halves}}", "gfx1250")
    places = {}
    for operand, row, axis, wide in (("a", "m", "k", 2), ("b", "n", "k", 4), ("metadata", "m", "chunk", 1)):
        index = layouts.layout(made, "gfx1250", operand).coordinates()
        for lane, slot in np.argwhere((index[row] == 0) & (index[axis] % wide == 0)).tolist():
            places[operand, int(index[axis][lane, slot]) // wide] = (lane // 16, slot // wide)
    ours = {places["a", q] + places["b", q] + places["metadata", q] for q in range(2 * half)}
    assert ours == theirs


BLGP = [
    lambda lane: lane, lambda lane: lane % 32, lambda lane: lane % 32 + 32, lambda lane: (lane + 16) % 64,
    lambda lane: lane % 16, lambda lane: lane % 16 + 16, lambda lane: lane % 16 + 32, lambda lane: lane % 16 + 48,
]  # fmt: skip


def test_broadcasts_and_permutations() -> None:
    lane = np.arange(64)
    for value, rule in enumerate(BLGP):
        assert (lane_map("blgp", value)(lane=lane) == rule(lane)).all()
    block = np.arange(16)
    fed = lane_map("cbsz_abid")
    assert (fed(mfma_block=block, cbsz=2, abid=1) == [1] * 4 + [5] * 4 + [9] * 4 + [13] * 4).all()
    assert (fed(mfma_block=block, cbsz=0, abid=1) == block).all()
    with pytest.raises(UsageError, match="blgp is 0 to 7; 8"):
        lane_map("blgp", 8)
    with pytest.raises(UsageError, match="unknown map"):
        lane_map("blg")
