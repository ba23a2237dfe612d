"""Kernels of ``tcgen05.mma``: what the instruction is given, what is compiled, and what is refused as open."""

from __future__ import annotations

import re

import pytest

from cases.tcgen05_forms import ARCHITECTURES
from emulator.instruction_descriptor import said
from emulator.tcgen05 import Issued, statement
from mmaprobe.catalog.lookup import instruction
from mmaprobe.errors import UsageError
from mmaprobe.toolchain.build import build
from mmaprobe.toolchain.nvidia.nvdisasm import disassemble
from mmaprobe.toolchain.nvidia.nvrtc import compile_source
from mmaprobe.toolchain.nvidia.tcgen05 import instruction_descriptor
from mmaprobe.toolchain.render import render

ONE, PAIR = "tcgen05.mma.cta_group::1", "tcgen05.mma.cta_group::2"
F16 = f"{ONE}.kind::f16.m128n64k16.f32.f16.f16"
OPEN = [
    ("sm_100a", "tcgen05.mma.sp.cta_group::2.kind::f16.m128n64k32.f32.f16.f16", "layout C"),
    ("sm_100a", "tcgen05.mma.sp.cta_group::1.kind::f16.m64n64k32.f32.f16.f16", "metadata of M 64 without .ws"),
    ("sm_107a", "tcgen05.mma.sp.cta_group::1.kind::ti16.m128n64k32.s32.s1z4m11.s1z4m11", "ti16 is in figures only"),
    ("sm_100a", "tcgen05.mma.ws.cta_group::1.kind::f16.m64n64k16.f32.f16.f16{a=tmem}", "M below 128"),
    ("sm_100a", f"{ONE}.kind::f16.ashift.m128n64k16.f32.f16.f16{{a=tmem}}", "ashift"),
    ("sm_107a", f"{ONE}.kind::f8f6f4.decompress::lut::b.m128n64k32.f32.e4m3.e4m3", "48-byte blocks"),
    ("sm_107a", f"{ONE}.kind::f8f6f4.m128n64k64.f32.e4m3.e2m1", "padded with sm_107a's doubled K"),
    ("sm_107a", f"{ONE}.kind::mxf8f6f4.block_scale.block32.m128n64k64.f32.e4m3.e4m3.ue8m0", "doubled K are in figures"),
    ("sm_103a", f"{ONE}.kind::mxf4.block_scale.block32.m128n64k96.f32.e2m1.e2m1.ue8m0", "scales of K 96"),
    ("sm_100a", f"{PAIR}.kind::mxf4.block_scale.block32.m128n64k64.f32.e2m1.e2m1.ue8m0", "64 rows of A a CTA"),
]
IMPOSSIBLE = [
    (f"{ONE}.kind::f8f6f4.m128n64k32.f32.e4m3.e2m1{{trans_b}}", "b of 4 bits lies along K only, without trans_b"),
    (f"{ONE}.kind::f8f6f4.m128n64k32.f32.e3m2.e4m3{{trans_a}}", "a of 6 bits lies along K only, without trans_a"),
    (
        f"{ONE}.kind::f8f6f4.m128n24k32.f32.e4m3.e4m3{{trans_b}}",
        "b has 24 bytes along MN; they must be a multiple of 16",
    ),
]


@pytest.mark.parametrize(("architecture", "name", "reason"), OPEN)
def test_an_open_layout_is_refused(architecture: str, name: str, reason: str) -> None:
    with pytest.raises(UsageError, match=re.escape(reason)) as caught:
        render(instruction(name, architecture), architecture)
    assert name in str(caught.value)
    assert "is open: " in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "reason"), IMPOSSIBLE)
def test_what_no_descriptor_describes_is_refused(name: str, reason: str) -> None:
    with pytest.raises(UsageError, match=re.escape(reason)):
        render(instruction(name, "sm_100a"), "sm_100a")


def test_a_kernel_says_how_it_is_launched() -> None:
    for name, ctas in ((F16, 1), (f"{PAIR}.kind::f16.m256n64k16.f32.f16.f16", 2)):
        made = render(instruction(name, "sm_100a"), "sm_100a")
        assert (made.threads, made.groups, made.items, made.cluster) == (128, 1, 1, ctas)
        assert ("__cluster_dims__(2, 1, 1)" in made.text) == (ctas == 2)
        assert (f"cta_group::{3 - ctas}") not in made.text


def test_a_pair_meets_before_it_allocates_and_before_it_releases() -> None:
    """In the source, as the kernel's body has it; one CTA has nobody to meet."""
    made = render(instruction(f"{PAIR}.kind::f16.m256n64k16.f32.f16.f16", "sm_100a"), "sm_100a")
    body = made.text[made.text.index("mmaprobe_run(Operands given") :]
    calls = re.findall(r"\b(meet|allocate|synchronise|release)\(", body)
    assert calls[:2] == ["meet", "allocate"]
    assert calls[-2:] == ["synchronise", "release"]
    assert "if (CTAS == 2) meet();" in body


@pytest.mark.needs("cuda")
@pytest.mark.parametrize("architecture", [
    pytest.param(name, marks=pytest.mark.needs("sm_107a")) if name == "sm_107a" else name for name in ARCHITECTURES
])  # fmt: skip
def test_what_is_compiled_meets_before_it_allocates(architecture: str) -> None:
    """A cluster's barrier stands before the first allocation (UTCATOMSWS) and between the last product and a release.

    The allocation of a pair goes through barriers in the other CTA's shared memory, which must have begun.
    """
    pair = f"{PAIR}.kind::f16.m256n64k16.f32.f16.f16"
    text = disassemble(compile_source(render(instruction(pair, architecture), architecture)).binary)
    steps = re.findall(r"\b(UCGABAR_WAIT|UTCATOMSWS\.2CTA\.FIND_AND_SET|UTCATOMSWS\.AND|UTCHMMA)", text)
    assert steps[0] == "UCGABAR_WAIT"
    assert "UTCATOMSWS.2CTA.FIND_AND_SET" in steps
    assert "UCGABAR_WAIT" in steps[steps.index("UTCHMMA") : steps.index("UTCATOMSWS.AND")]
    single = f"{ONE}.kind::f16.m128n64k16.f32.f16.f16"
    assert "UCGABAR" not in disassemble(compile_source(render(instruction(single, architecture), architecture)).binary)


@pytest.mark.parametrize("n", [8, 32, 64, 128, 200, 256])
def test_no_allocation_waits(n: int) -> None:
    """CTAs that fit into the shared memory of a multiprocessor, 1 KiB of it reserved for each, fit into its columns."""
    made = render(instruction(f"{ONE}.kind::f16.m64n{n}k16.f32.f16.f16{{a=tmem}}", "sm_100a"), "sm_100a")
    columns = re.search(r"constexpr int COLUMNS = (\d+);", made.text)
    used = re.search(r"SHARED_BYTES = (\d+);", made.text)
    assert columns
    assert used
    assert 228 * 1024 // (made.shared + 1024) * int(columns[1]) <= 512
    assert int(used[1]) + 1024 <= made.shared <= 227 * 1024


OPERANDS = [
    (F16, "[%0], %1, %2, %3, enable"),
    (F16 + "{a=tmem}", "[%0], [%1], %2, %3, enable"),
    (F16 + "{disable_output_lane}", "[%0], %1, %2, %3, {%4, %5, %6, %7}, enable"),
    (F16 + "{disable_output_lane,scale_input_d=7}", "[%0], %1, %2, %3, {%4, %5, %6, %7}, enable, 7"),
    (
        f"{PAIR}.kind::f16.m256n64k16.f32.f16.f16{{disable_output_lane}}",
        "[%0], %1, %2, %3, {%4, %5, %6, %7, %8, %9, %10, %11}, enable",
    ),
    ("tcgen05.mma.ws.cta_group::1.kind::f16.m64n64k16.f32.f16.f16{zero_column_mask}", "[%0], %1, %2, %3, enable, %5"),
    ("tcgen05.mma.sp.cta_group::1.kind::i8.m128n64k64.s32.s8.s8", "[%0], %1, %2, [%3], %4, enable"),
    (
        "tcgen05.mma.sp.cta_group::1.kind::mxf4.block_scale.m128n64k128.f32.e2m1.e2m1.ue8m0",
        "[%0], %1, %2, [%3], %4, [%5], [%6], enable",
    ),
]


@pytest.mark.parametrize(("name", "operands"), OPERANDS)
def test_operands_stand_in_the_order_of_the_ptx_text(name: str, operands: str) -> None:
    made = instruction(name, "sm_100a")
    source = render(made, "sm_100a")
    found = statement(source.text, "multiply")
    assert found.text == operands
    assert name.startswith(found.opcode + ".m")
    assert Issued(made, source.text).said == found
    assert all(found.inputs[int(i)] in ("0", "0ull") for i in disabled(found.text)), "a lane or a column is left out"


def disabled(operands: str) -> list[str]:
    """The asm numbers of the lanes that keep D, and of the mask of columns."""
    lanes = re.search(r"{(.*)}", operands)
    return re.findall(r"%(\d+)", (lanes[1] if lanes else "") + operands.partition("enable")[2])


COLLECTORS = [
    (ONE + ".kind::f16.collector::a::use", ".collector::a::fill"),
    (ONE + ".kind::f16.collector::a::lastuse", ".collector::a::fill"),
    (ONE + ".kind::f16.collector::a::discard.collector::b::use", ".collector::a::discard.collector::b::fill"),
    ("tcgen05.mma.ws.cta_group::1.kind::f16.collector::b2::lastuse", ".collector::b2::fill"),
]


@pytest.mark.parametrize(("opcode", "filled"), COLLECTORS)
def test_a_collector_is_filled_before_it_is_used(opcode: str, filled: str) -> None:
    """The same operands, D not read; C is stored after it; no other CTA of the multiprocessor has room meanwhile."""
    source = render(instruction(f"{opcode}.m128n64k16.f32.f16.f16", "sm_107a"), "sm_107a")
    before, after = statement(source.text, "prime"), statement(source.text, "multiply")
    assert before.opcode == opcode.partition(".collector")[0] + filled
    assert after.opcode == opcode
    assert before.operands == after.operands
    assert [before.inputs[i] for i in range(4)] == [after.inputs[i] for i in range(4)]
    assert (before.inputs[before.predicate], after.inputs[after.predicate]) == ("0", "1")
    assert "constexpr bool PRIMED = true;" in source.text
    assert "constexpr int COLUMNS = 512;" in source.text
    assert (
        source.text.index("prime(of);")
        < source.text.index("write_c(given, item, part")
        < source.text.index("multiply(of);")
    )


@pytest.mark.parametrize("modifier", ["fill", "discard"])
def test_nothing_is_filled_where_nothing_is_used(modifier: str) -> None:
    name = f"{ONE}.kind::f16.collector::a::{modifier}.m128n64k16.f32.f16.f16"
    assert "constexpr bool PRIMED = false;" in render(instruction(name, "sm_100a"), "sm_100a").text


FIELDS = [
    (F16 + "{neg_a}", "sm_100a", {"neg_a": 1, "neg_b": 0}),
    (F16 + "{neg_b,trans_a,trans_b}", "sm_100a", {"neg_a": 0, "neg_b": 1, "trans_a": 1, "trans_b": 1}),
    (f"{ONE}.kind::i8.m128n64k32.s32.s8.u8{{saturate}}", "sm_100a", {"saturate": 1, "a": "s8", "b": "u8", "d": "s32"}),
    (f"{ONE}.kind::f8f6f4.m128n64k64.f32.e4m3.e5m2", "sm_107a", {"k": 1, "sparse": 0}),
    (f"{ONE}.kind::f8f6f4.m128n64k32.f32.e4m3.e5m2", "sm_107a", {"k": 0, "sparse": 0}),
    ("tcgen05.mma.sp.cta_group::1.kind::f8f6f4.m128n64k64.f32.e4m3.e5m2", "sm_107a", {"k": 0, "sparse": 1}),
    (f"{ONE}.kind::mxf4.block_scale.m128n64k64.f32.e2m1.e2m1.ue8m0", "sm_100a", {"version": 0, "k": 0, "k_high": 0}),
    (f"{ONE}.kind::mxf4.block_scale.m128n64k64.f32.e2m1.e2m1.ue8m0", "sm_107a", {"version": 1, "k": 0, "k_high": 0}),
    (f"{ONE}.kind::mxf4.block_scale.block32.m128n64k96.f32.e2m1.e2m1.ue8m0", "sm_103a", {"k": 1, "k_high": 0}),
    (f"{ONE}.kind::mxf4.block_scale.block32.m128n64k128.f32.e2m1.e2m1.ue8m0", "sm_107a", {"k": 0, "k_high": 1}),
    (f"{ONE}.kind::mxf8f6f4.block_scale.block32.m128n64k64.f32.e4m3.e2m1.ue8m0", "sm_107a", {"k": 1, "b": "e2m1"}),
    (f"{PAIR}.kind::mxf4nvf4.block_scale.block16.m256n32k64.f32.e2m1.e2m1.ue5m3", "sm_107a", {"scale": "ue5m3"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "architecture", "values"), FIELDS)
def test_modifiers_are_in_the_instruction_descriptor(
    name: str, architecture: str, values: dict[str, int | str]
) -> None:
    """Those of forms too whose scales are open."""
    kind = re.search(r"kind::(\w+)", name)
    assert kind
    word = instruction_descriptor(instruction(name, architecture), architecture)
    assert said(word, kind[1]).items() >= values.items()


COMPILED = [
    F16 + "{disable_output_lane}",
    f"{PAIR}.kind::tf32.m256n64k8.f32.tf32.tf32{{trans_a,trans_b}}",
    f"{PAIR}.kind::f16.m128n64k16.f32.bf16.bf16{{a=tmem}}",
    "tcgen05.mma.sp.cta_group::1.kind::f8f6f4.m128n64k64.f16.e2m3.e2m1",
    "tcgen05.mma.ws.sp.cta_group::1.kind::f16.collector::b1::use.m32n64k32.f32.f16.f16{zero_column_mask}",
    f"{ONE}.kind::mxf8f6f4.block_scale.m128n64k32.f32.e4m3.e2m1.ue8m0{{a=tmem}}",
    f"{PAIR}.kind::mxf4nvf4.block_scale.block16.m256n64k64.f32.e2m1.e2m1.ue4m3",
    "tcgen05.mma.sp.cta_group::1.kind::mxf4.block_scale.m128n64k128.f32.e2m1.e2m1.ue8m0",
]
NEWEST = pytest.mark.needs("sm_107a")
PAIRS = [
    *((name, home) for name in COMPILED for home in ARCHITECTURES if home != "sm_107a"),
    *(pytest.param(name, "sm_107a", marks=NEWEST) for name in COMPILED),
    (f"{ONE}.kind::i8.m64n64k32.s32.s8.u8{{saturate}}", "sm_100a"),
    ("tcgen05.mma.ws.cta_group::1.kind::i8.m64n64k32.s32.s8.u8", "sm_110a"),
    (F16 + "{scale_input_d=3}", "sm_103a"),
    pytest.param(f"{ONE}.kind::ti16.collector::b::fill.m128n64k16.s32.s1z4m11.s1z4m11", "sm_107a", marks=NEWEST),
]


@pytest.mark.needs("cuda")
@pytest.mark.parametrize(("name", "architecture"), PAIRS)
def test_the_disassembly_holds_what_the_catalog_states(name: str, architecture: str) -> None:
    built = build((name, architecture))
    assert built.status == "compiled", built.reason
    assert next(iter(built.opcodes)).startswith("UTC")
