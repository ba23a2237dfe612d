"""A datapath compiled in: its program as a constant of the source, and ``csrc/model/compiled.hpp`` made of it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from mmaprobe.errors import UsageError
from mmaprobe.toolchain.source import flattened

COLUMNS = "model/program.hpp"
MODEL = "model/compiled.hpp"
_CHUNKS = (0, 2, 4, 8)
"""Lanes of B that one item of metadata covers; 0 for a dense instruction."""


def compiled_model(words: Iterable[int], chunk: int = 0, seen: set[str] | None = None, dots: bool = True) -> str:
    """C++ that defines ``mmaprobe::MMAPROBE_BUILD::compiled::Model`` for the program of a datapath.

    ``words``: the program (``models.program``), of the live lanes where A is sparse; ``chunk``: lanes of B that
    one item of metadata covers, 0 for a dense instruction; ``seen``: the headers that stand before this text,
    to which its own are added; ``dots``: whether the GPU's own dot products of bytes may sum, which a form of theirs
    is not judged by.  UsageError for a chunk that no instruction has.
    """
    if chunk not in _CHUNKS:
        raise UsageError(f"metadata of {chunk} lanes an item: it must be one of {', '.join(map(str, _CHUNKS))}")
    seen = set() if seen is None else seen
    return flattened(COLUMNS, seen) + constants(words, chunk, dots) + flattened(MODEL, seen)


def constants(words: Iterable[int], chunk: int, dots: bool = True) -> str:
    """The part of ``compiled_model`` between the headers: what is known of the datapath."""
    listed = textwrap.fill(", ".join(str(int(word)) for word in words), 120, break_long_words=False)
    return f"""
namespace mmaprobe {{
namespace MMAPROBE_BUILD {{
namespace compiled {{
MMAPROBE_CONSTANT i64 PROGRAM[] = {{
{listed}}};
constexpr int CHUNK = {chunk};  // lanes of B that an item of metadata covers; 0: A is dense
constexpr bool DOTS = {str(dots).lower()};  // whether the GPU's own dot products of bytes may sum
}}  // namespace compiled
}}  // namespace MMAPROBE_BUILD
}}  // namespace mmaprobe
"""
