"""Random bits of generated vectors: from their counter alone, corners among them, all else as it is without."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mmaprobe import formats
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.generators import families_for, generate
from mmaprobe.generators.random_bits import random_bits, with_random_bits

MADE = Instruction("dot", "dot", "dot", 1, 1, 4, "f16", "f16", "f32", "f32", random="u16")


def test_all_else_of_a_vector_is_what_it_is_without() -> None:
    plain = replace(MADE, random=None)
    for family in families_for(MADE):
        some, bare = generate(MADE, family, 3, 5, 40), generate(plain, family, 3, 5, 40)
        assert bare.random is None
        assert all((getattr(some, name) == value).all() for name, value in bare.items())


def test_they_are_those_of_the_vector_wherever_a_batch_begins() -> None:
    whole = generate(MADE, "ulp", 9, 1000, 64).random
    parts = [generate(MADE, "ulp", 9, 1000 + start, 16).random for start in range(0, 64, 16)]
    assert whole is not None
    assert (np.concatenate(parts) == whole).all()
    others = [generate(MADE, family, seed, 1000, 64).random for family, seed in (("ulp", 8), ("tie", 9))]
    assert not any((each == whole).all() for each in others)


@pytest.mark.parametrize("name", ["u8", "u16", "u32"])
def test_half_of_them_are_corners(name: str) -> None:
    fmt = formats.get(name)
    bits = random_bits(fmt, 1, 2, 0, 40_000)
    assert bits.dtype == fmt.dtype
    ones = np.array([int(each).bit_count() for each in bits])
    for count in (0, 1, fmt.bits - 1, fmt.bits):
        assert (ones == count).mean() > 0.11
    assert {int(each) for each in bits[ones == 1]} == {1 << i for i in range(fmt.bits)}
    uniform = bits[(ones > 1) & (ones < fmt.bits - 1)].astype(np.float64)
    assert abs(uniform.mean() / fmt.code_limit - 0.5) < 0.01


def test_known_answer() -> None:
    """From here on they stay what they are: recipes name them for ever."""
    assert random_bits(formats.get("u16"), 7, 65536, 0, 8).tolist() == [4, 65471, 36328, 35663, 32, 0, 63386, 32]


def test_vectors_that_were_made_without_get_some() -> None:
    plain = replace(MADE, random=None)
    vectors = generate(plain, "uniform", 0, 0, 30)
    assert with_random_bits(plain, vectors, 4) is vectors
    drawn = with_random_bits(MADE, vectors, 4)
    assert drawn.random is not None
    assert (drawn.random == with_random_bits(MADE, vectors, 4).random).all()
    assert (drawn.a == vectors.a).all()
