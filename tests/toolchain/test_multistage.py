"""The product by mma.sync behind a ring of slots: its layouts, and the order of every sum as its machine code has it.

The bare command reads a kept disassembly; with NVRTC and nvdisasm kernels are compiled anew, right ones and wrong ones.
"""

from __future__ import annotations

import doctest
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mmaprobe
from mmaprobe.errors import DeviceError, UsageError
from mmaprobe.parameters.schedule import Accumulators, Join, Ranges, Schedule
from mmaprobe.toolchain.nvidia import nvrtc
from mmaprobe.toolchain.nvidia.products.multistage import Multistage, rows_in_shared_memory, tile_at
from mmaprobe.toolchain.nvidia.products.orders import Orders, differences, orders_in, read_orders, spell, stated_order

KEPT = (Path(__file__).parents[1] / "golden" / "multistage_sm_80.sass").read_text()
START = 0x160
"""Byte of constant bank 0 where parameters of sm_80 begin."""
SMALL = Multistage(40, 40, 152, tile=(32, 32, 32), stages=3)
CHAIN = "0+" + "+".join(f"[{k}:{min(k + 16, 152)}]" for k in range(0, 152, 16))


def read(text: str, late: bool = True, backwards: bool = False) -> Orders:
    return orders_in(SMALL, text, START, late=late, backwards=backwards)


def wrong(found: Orders, product: Multistage = SMALL, schedule: Schedule | None = None) -> list[str]:
    return differences(found, schedule or product.schedule(), (product.m, product.n, product.k))


@pytest.mark.parametrize(("late", "backwards"), [(True, False), (False, True)])
def test_every_element_is_one_chain_of_steps(late: bool, backwards: bool) -> None:
    """Each element of D, those of short tiles too, adds its own products in steps of 16, the first one first."""
    found = read(KEPT, late, backwards)
    assert [(spell(order), len(elements)) for order, elements in found.kinds.items()] == [(CHAIN, 1600)]
    assert found.tiles == 4
    assert wrong(found) == []


def swapped(text: str, operands: int = 2) -> str:
    """The fragments of the last two steps read one for the other, of A and B or of A alone."""
    lines = [line for line in text.splitlines() if "LDSM" in line][-4:]
    for one, other in ((lines[0], lines[2]), (lines[1], lines[3]))[:operands]:
        places = [line[line.rindex("[") :] for line in (one, other)]
        text = text.replace(one, one.replace(*places)).replace(other, other.replace(*reversed(places)))
    return text


def test_steps_that_are_swapped_are_told() -> None:
    (said,) = wrong(read(swapped(KEPT)))
    assert said.startswith("1600 elements, D[0, 0] the first, are 0+[0:16]")
    assert said.endswith(f"+[112:128]+[144:152]+[128:144]; the schedule says {CHAIN}")


def test_lanes_of_a_that_meet_others_of_b_are_refused() -> None:
    with pytest.raises(DeviceError, match="which is none of its own"):
        read(swapped(KEPT, operands=1))


EDITS = {
    "a copy too few is waited for": ("DEPBAR.LE SB0, 0x1", "DEPBAR.LE SB0, 0x2"),
    "no barrier": ("BAR.SYNC.DEFER_BLOCKING 0x0 ;", "NOP ;"),
    "B is read as rows": ("LDSM.16.MT88.4", "LDSM.16.M88.4"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_code_that_reads_what_it_should_not_is_refused(edit: str) -> None:
    old, new = EDITS[edit]
    assert old in KEPT
    with pytest.raises(DeviceError, match="which is none of its own"):
        read(KEPT.replace(old, new))


def test_an_instruction_that_is_not_known_is_named() -> None:
    with pytest.raises(DeviceError, match=r"instruction FSETP .* at 0x\w+ is none that is known here"):
        read(KEPT.replace("HMMA.16816.F32", "FSETP", 1))


def test_a_schedule_says_its_order() -> None:
    (kernel,) = SMALL.schedule().kernels
    two = replace(kernel, accumulators=Accumulators("f32", count=2))
    assert spell(stated_order(kernel, 40)) == "0+[0:16]+[16:32]+[32:40]"
    assert spell(stated_order(two, 40)) == "(0+[0:16]+[32:40] + 0+[16:32])"
    after = replace(kernel, accumulators=Accumulators("f32", count=2, block=2, rest="after"))
    assert spell(stated_order(after, 40)) == "(0+[0:16] + 0+[16:32])+[32:40]"
    halves = Accumulators("f32", 4, block=4, join="halves", rest="before")
    said = "((0+[0:16] + 0+[32:48])+[64:80] + (0+[16:32] + 0+[48:64]))"
    assert spell(stated_order(replace(kernel, accumulators=halves), 80)) == said
    turned = replace(kernel, ranges=Ranges("uniform", 16), join=Join("f32", "last_first", "first"))
    assert spell(stated_order(turned, 40)) == "((0+[0:16] + 0+[32:40]) + 0+[16:32])"
    schedule = replace(SMALL.schedule(), kernels=(two,))
    assert len(wrong(read(KEPT), schedule=schedule)) == 1


def test_the_schedule_is_a_product_that_runs() -> None:
    """Small whole numbers have one sum in any order: it is that of the products."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 8, shape).astype(np.float16) for shape in ((40, 152), (152, 40)))
    assert (mmaprobe.gemm(SMALL.schedule())(a, b) == a.astype(np.float32) @ b.astype(np.float32)).all()


@pytest.mark.parametrize(("lines", "length"), [(32, 32), (128, 32), (64, 64), (32, 128), (128, 128)])
def test_shared_rows_are_a_bijection_without_conflicts(lines: int, length: int) -> None:
    """Two bytes an element, each in a place of its own; eight lines at one unit of 16 bytes lie in 32 banks."""
    layout = rows_in_shared_memory(lines, length)
    places = {layout(line, at) // 2 for line in range(lines) for at in range(length)}
    assert places == set(range(lines * length))
    for line in range(0, lines, 8):
        for at in range(0, length, 8):
            assert len({layout(line + i, at) // 16 % 8 for i in range(8)}) == 8


@pytest.mark.parametrize(("group", "turned"), [(1, False), (2, True), (3, False), (8, False)])
def test_every_tile_has_one_cta(group: int, turned: bool) -> None:
    product = replace(SMALL, m=200, n=136, group=group, turned=turned)
    assert product.order.visits_each_once
    assert all(f"// {band.order}" in tile_at(product.order) for band in product.order.bands)


REFUSED: list[tuple[dict[str, object], str]] = [
    ({"k": 12}, "k is 12; multistage takes multiples of 8"),
    ({"n": 0}, "n is 0; multistage"),
    ({"operands": "f32"}, "operands are 'f32'; multistage takes f16 or bf16"),
    ({"stages": 8}, "stages is 8; it must be 2 to 7"),
    ({"tile": (32, 32, 48)}, "tile is"),
    ({"tile": (128, 128, 128)}, "3 stages take 196608 bytes of shared memory"),
    ({"group": 0}, "group is 0"),
    ({"architecture": "sm_75"}, "sm_75"),
]


@pytest.mark.parametrize(("given", "said"), REFUSED)
def test_what_the_kernel_does_not_fit_is_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        replace(SMALL, **given)  # type: ignore[arg-type]


def test_a_product_too_large_to_number_is_refused() -> None:
    with pytest.raises(UsageError, match="more than 65,534 elements"):
        orders_in(replace(SMALL, m=1024), KEPT, START)


COMPILED = [
    *(replace(SMALL, stages=stages) for stages in range(2, 8)),
    replace(SMALL, operands="bf16", architecture="sm_90a", k=200, tile=(64, 32, 64)),
    replace(SMALL, m=72, n=72, group=2, turned=True, architecture="sm_90a", tile=(32, 64, 32)),
    Multistage(136, 136, 104, tile=(128, 128, 32)),
]


@pytest.mark.long
@pytest.mark.needs("cuda")
@pytest.mark.parametrize("product", COMPILED, ids=repr)
def test_compiled_kernels_obey_their_schedule(product: Multistage) -> None:
    """For every number of stages, both formats, orders of tiles and architectures, copies late and at once."""
    made = nvrtc.compile_source(product.source())
    for late in (True, False):
        found = read_orders(product, made, late=late, backwards=not late)
        assert wrong(found, product) == []
        assert found.tiles == product.order.steps


Change = Callable[[str], str]
BROKEN: dict[str, tuple[Change, str]] = {
    "steps from the last one on": (
        lambda text: text.replace("load(read, slot, warp_m, warp_n, k);", "load(read, slot, warp_m, warp_n, k ^ 16);"),
        "the schedule says",
    ),
    "two accumulators": (
        lambda text: (
            text.replace("Sums sums = {};", "Sums sums = {}, more = {};")
            .replace("(Sums& sums, ", "(Sums& sums, Sums& more, ")
            .replace(">(sums, ", ">(sums, more, ")
            .replace("multiply(sums[i][j]", "multiply(k % 32 ? more[i][j] : sums[i][j]")
            .replace(
                "    store(of, sums",
                "for (int i = 0; i < ROWS; ++i) for (int j = 0; j < COLUMNS; ++j) for (int e = 0; e < 4; ++e)\n"
                "  sums[i][j][e] += more[i][j][e];\n    store(of, sums",
            )
        ),
        r"\(0\+\[0:16\]\+\[32:48\].* \+ 0\+\[16:32\]\+\[48:64\]",
    ),
    "a slot filled while it is read": (
        lambda text: text.replace("step + STAGES - 1);", "step + STAGES - 1 + (step == 0));"),
        "none of its own|the schedule says",
    ),
}


@pytest.mark.long
@pytest.mark.needs("cuda")
@pytest.mark.parametrize("name", BROKEN)
def test_compiled_kernels_that_do_not_are_told(name: str) -> None:
    change, said = BROKEN[name]
    source = SMALL.source()
    altered = replace(source, text=change(source.text))
    assert altered != source
    made = nvrtc.compile_source(altered)
    try:
        found = wrong(read_orders(SMALL, made, late=False))
    except DeviceError as error:
        found = [str(error)]
    assert [line for line in found if re.search(said, line)]


def test_the_page_runs() -> None:
    page = Path(__file__).parents[2] / "docs" / "gemm_kernels.md"
    done = doctest.testfile(str(page), module_relative=False)
    assert done.failed == 0
    assert done.attempted > 4
