"""The product by TMA and wgmma: the order of every sum as its machine code has it, cooperative, pingpong, K cut.

The kernels are compiled and run instruction by instruction, with NVRTC and nvdisasm; the rest needs neither.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import mmaprobe
from mmaprobe.errors import DeviceError, UsageError
from mmaprobe.toolchain.nvidia import nvrtc
from mmaprobe.toolchain.nvidia.products.orders import differences, read_orders, spell
from mmaprobe.toolchain.nvidia.products.warp_specialised import WarpSpecialised
from mmaprobe.toolchain.nvidia.sass.sums import added

SMALL = WarpSpecialised(136, 72, 200, tile=(128, 64), workers=2)
TURNS = replace(SMALL, tile=(64, 64), pingpong=True)
SPLIT = replace(SMALL, parts=3)
STREAM = replace(SMALL, workers=3, stream=True)


def wrong(product: WarpSpecialised, text: str | None = None, late: bool = True, backwards: bool = False) -> list[str]:
    """How the sums of a product, or of another text of it, differ from its schedule."""
    source = product.source() if text is None else replace(product.source(), text=text)
    found = read_orders(product, nvrtc.compile_source(source), late=late, backwards=backwards)
    if found.tiles != product.corners:
        return [f"{found.tiles} corners are counted, there are {product.corners}"]
    return differences(found, product.schedule(), (product.m, product.n, product.k))


COMPILED = [
    *(replace(SMALL, stages=stages) for stages in range(2, 8)),
    *(replace(TURNS, stages=stages) for stages in range(2, 8)),
    SPLIT,
    replace(TURNS, parts=2, workers=3),
    STREAM,
    replace(TURNS, stream=True, workers=5),
    replace(SMALL, operands="bf16", tile=(256, 64), group=1, turned=True, n=136),
    replace(TURNS, operands="bf16", tile=(128, 128), k=256, workers=1),
]


@pytest.mark.long
@pytest.mark.needs("cuda")
@pytest.mark.parametrize("product", COMPILED, ids=repr)
def test_compiled_kernels_obey_their_schedule(product: WarpSpecialised) -> None:
    """Copies and reads late and at once, CTAs and warps in both orders."""
    for late in (True, False):
        assert wrong(product, late=late, backwards=not late) == []


Change = Callable[[str], str]
BROKEN: dict[str, tuple[WarpSpecialised, Change, str]] = {
    "turns are not kept": (
        TURNS, lambda text: re.sub(r"await\(memory \+ TURN[^;]*;", ";", text), "more arrive at a barrier|deadlock",
    ),
    "reads are not waited for": (
        replace(SMALL, stages=2), lambda text: text.replace("finish<1>(sums);", ";"), "none of its own|schedule says",
    ),
    "a parity that is always 0": (
        SMALL,
        lambda text: text.replace("FULL + 8 * at.slot, at.phase", "FULL + 8 * at.slot, 0"),
        "none of its own|schedule says|deadlock",
    ),
    "a slot is never let go": (
        SMALL, lambda text: text.replace("arrive(memory + EMPTY + 8 * before.slot);", ";"), "deadlock",
    ),
    "parts are added from the last one on": (
        replace(SPLIT, k=192),
        lambda text: text.replace("for (int part = 1; part < parts; ++part)", "for (int part = parts; --part > 0;)"),
        "the schedule says",
    ),
    "the steps of a slot from the last one on": (
        replace(SMALL, k=256), lambda text: text.replace("+ k * 2)", "+ (48 - k) * 2)").replace(
            "b + k * BOX_N", "b + (48 - k) * BOX_N"),
        r"are 0\+\[48:64\]\+\[32:48\]\+\[16:32\]\+\[0:16\]",
    ),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.needs("cuda")
@pytest.mark.parametrize("name", BROKEN)
def test_compiled_kernels_that_do_not_are_told(name: str) -> None:
    product, change, said = BROKEN[name]
    text = change(product.source().text)
    assert text != product.source().text
    found = []
    for late in (True, False):
        try:
            found += wrong(product, text, late, not late)
        except DeviceError as error:
            found.append(str(error))
    assert [line for line in found if re.search(said, line)], found


def cuts(product: WarpSpecialised) -> list[list[int]]:
    """Lengths of the parts of each tile, in the order of tiles."""
    found = {
        (int(i), int(j)): [len(part) for part in kernel.ranges.of(product.k)]
        for kernel, rows, columns in product.schedule().areas(product.m, product.n, product.k)
        for i in rows
        for j in columns
    }
    tiles = map(product.order, range(product.order.steps))
    return [found[m * product.tile[0], n * product.tile[1]] for m, n in tiles]


def test_where_k_is_cut() -> None:
    """Split-K cuts whole slots, the last part is what is left; stream-K cuts where a worker's share ends."""
    assert cuts(SPLIT) == [[128, 72]] * 4
    assert cuts(replace(SPLIT, k=192)) == [[64, 64, 64]] * 4
    assert cuts(STREAM) == [[200], [64, 136], [128, 72], [200]]
    assert [each.most_parts for each in (SMALL, SPLIT, STREAM)] == [1, 2, 2]


@pytest.mark.parametrize("product", [SMALL, TURNS, SPLIT, STREAM], ids=["cooperative", "pingpong", "split", "stream"])
def test_the_schedule_is_a_product_that_runs(product: WarpSpecialised) -> None:
    """Small whole numbers have one sum in any order: it is that of the products."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 8, shape).astype(np.float16) for shape in ((136, 200), (200, 72)))
    assert (mmaprobe.gemm(product.schedule())(a, b) == a.astype(np.float32) @ b.astype(np.float32)).all()


def test_cut_sums_have_other_bits() -> None:
    """Cooperative and pingpong state one order; split-K and stream-K others, which normal operands tell apart."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((136, 200), (200, 72)))
    whole, turns, split, stream = (mmaprobe.gemm(each.schedule())(a, b) for each in (SMALL, TURNS, SPLIT, STREAM))
    assert (whole == turns).all()
    assert (whole != split).any()
    assert (whole != stream).any()
    assert (split != stream).any()


REFUSED: list[tuple[dict[str, object], str]] = [
    ({"k": 12}, "k is 12; warp-specialised takes multiples of 8"),
    ({"operands": "e4m3"}, "operands are 'e4m3'"),
    ({"stages": 1}, "stages is 1; it must be 2 to 7"),
    ({"workers": 0}, "workers is 0"),
    ({"parts": 2, "stream": True}, "stream-K cuts K by itself"),
    ({"tile": (64, 64)}, r"tile is \[64, 64\]; it must be 128 or 256 by one of 64, 128, 256"),
    ({"tile": (256, 256)}, "a thread has 256 accumulators, at most 128"),
    ({"tile": (128, 256), "stages": 7}, "7 stages take 344200 bytes of shared memory"),
]


@pytest.mark.parametrize(("given", "said"), REFUSED)
def test_what_the_kernel_does_not_fit_is_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        replace(SMALL, **given)  # type: ignore[arg-type]


def test_two_terms_are_added_in_either_order() -> None:
    """Which of two a compiler names first is no matter; an unfinished last step does not count as the first."""
    first, last = ((), (0, 1)), ((), (128, -1))
    assert added(first, last) == added(last, first) == ("+", first, last)
    assert added((), first) == added(first, ()) == ("+", (), first)


def test_orders_are_spelled_whole() -> None:
    assert spell(("+", ((), (0, 1)), ((), (2, 3)))) == "(0+[0:2] + 0+[2:4])"
