"""Answers of Arm's forms that were worked out by hand from the pseudo-code, of the model as a device, in tiles."""

from __future__ import annotations

import numpy as np
import pytest

from mmaprobe import formats
from mmaprobe.catalog.lookup import instruction, instructions
from mmaprobe.devices.base import open_device
from mmaprobe.operands.batch import Batch

ONE, MOST, LEAST = 0x38, 0x7E, 0x01
"""1, 448 and 2^-9 of E4M3."""
ANSWERS = [
    # sums of two products of 16 bits wrap: 2 (-2^15)^2 is 2^31; 2 (2^16 - 1)^2 is 2^33 - 2^18 + 2
    ("arm.smopa.s16", 0x8000, 0x8000, 0, 0x80000000),
    ("arm.smopa.s16", 0x8000, 0x7FFF, 0x80000000, 0x80000000 - 2 * 0x8000 * 0x7FFF & 0xFFFFFFFF),
    ("arm.umopa.u16", 0xFFFF, 0xFFFF, 0, 0xFFFC0002),
    ("arm.umopa.u16", 0x8000, 0x7FFF, 0x80000000, 0x80000000 + 2 * 0x8000 * 0x7FFF & 0xFFFFFFFF),
    # 448^2 = 200704 is no number of f16; a quarter of it, 50176, is
    ("arm.fmlal.za.e4m3.e4m3.f16", MOST, MOST, 0, 0x7C00),
    ("arm.fmlal.za.e4m3.e4m3.f16{osm,vgx=4}", MOST, MOST, 0, 0x7BFF),
    ("arm.fmlal.za.e4m3.e4m3.f16{lscale=2,vgx=1}", MOST, MOST, 0, 0x7A20),
    # 1 + 2^-18 2^-15 is below half a last place of f16; 1 + 2^-11 is a tie, 1 + 2^-10 a number
    ("arm.fmlal.za.e4m3.e4m3.f16{lscale=15}", LEAST, LEAST, 0x3C00, 0x3C00),
    ("arm.fmlal.za.e4m3.e4m3.f16{lscale=11}", ONE, ONE, 0x3C01, 0x3C02),
    ("arm.fmlal.za.e4m3.e4m3.f16{lscale=10}", ONE, ONE, 0x3C00, 0x3C01),
    # f32: 448^2 = 0x31000; ties at 2^-24; the least product of all, 2^-18 2^-127 = 2^-145, is 2^4 last places
    ("arm.fmlall.za.e4m3.e4m3.f32", MOST, MOST, 0, 0x48440000),
    ("arm.fmlall.za.e4m3.e4m3.f32{lscale=24}", ONE, ONE, 0x3F800001, 0x3F800002),
    ("arm.fmlall.za.e4m3.e4m3.f32{lscale=127,vgx=1}", LEAST, LEAST, 0, 0x10),
    ("arm.fmlall.za.e4m3.e4m3.f32{lscale=127,osm,vgx=4}", ONE | 0x80, ONE, 0x7F800000, 0x7F800000),
    # USDOT's first source is unsigned, SUDOT's second one: 4 255 (-1) + 2^31, and 4 255 (-2^7)
    ("arm.usdot", 0xFF, 0xFF, 0x80000000, 0x80000000 - 1020),
    ("arm.usdot{b=element}", 0xFF, 0x80, 0, (1 << 32) - 4 * 255 * 128),
    ("arm.sudot{b=element}", 0x80, 0xFF, 0, (1 << 32) - 4 * 255 * 128),
    # by element: 2 (2^15 - 1)^2 is 2^31 - 2^17 + 2; 4 2^-18 2^-127 is 2^6 last places
    ("arm.sdot.za.s16{b=element}", 0x7FFF, 0x7FFF, 0, 0x7FFE0002),
    ("arm.fdot.za.e4m3.e4m3.f32{b=element,lscale=127,vgx=4}", LEAST, LEAST, 0, 0x40),
    # what subtracts flips A; the default NaN is positive; of infinities of both signs there is no sum
    ("arm.fmopa.f16{neg_a}", 0x3C00, 0x3C00, 0, 0xC0000000),
    ("arm.fmopa.f16{neg_a}", 0x7E01, 0x3C00, 0, 0x7FC00000),
    ("arm.bfmopa{neg_a}", 0x3F80, 0x3F80, 0x40000000, 0x00000000),
    ("arm.bfmopa{neg_a}", 0x7F80, 0x3F80, 0x7F800000, 0x7FC00000),
]  # fmt: skip
"""A form; what every element of A, of B and of C is; what every element of D then is."""


@pytest.mark.parametrize(("name", "a", "b", "c", "d"), ANSWERS, ids=[f"{row[0]}-{row[1]:x}" for row in ANSWERS])
def test_known_answers(name: str, a: int, b: int, c: int, d: int) -> None:
    known = instruction(name)
    shapes, formed = known.shapes(1), known.formats()
    given = {key: np.full(shapes[key], code, formed[key].dtype) for key, code in zip("abc", (a, b, c), strict=True)}
    result = open_device("model:aarch64").run(known, Batch(**given))
    assert {hex(code) for code in result.ravel().tolist()} == {hex(d)}


def test_tiles() -> None:
    """An outer product of 16 bits has 16 results of 32; by element, rows are a register of A, or of D."""
    outer = instruction("arm.smopa.s16")
    assert (outer.m, outer.n, outer.k) == (4, 4, 2)
    by_element = [known for known in instructions("aarch64") if "b" in known.modifier]
    for known in by_element:
        read, written = known.k * formats.get(known.a).bits, formats.get(known.d).bits
        assert (known.m * (read if ".za." in known.opcode else written), known.n) == (128, 1)
    assert len(by_element) == 100 + 7 + 64
