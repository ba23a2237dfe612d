"""The questions of placement, labels, ranges, carries, scales, selection and control tell rival truths apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mmaprobe import formats
from mmaprobe.catalog import lookup
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.catalog.states import default_state
from mmaprobe.devices.base import open_device
from mmaprobe.evidence.records import Finding
from mmaprobe.operands.batch import Batch, Bits
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Exact, Fma, Fused, Product, Products, Term
from mmaprobe.probing import probe
from stand_ins.probed import Arithmetic, Path, Standin, arithmetic, exponent, make_instruction

C = Accumulator()
ALL = Products((0, 1, 2, 3))
RZ = Encode("f32", rounding="RZ", overflow="infinity", zero="positive")


def ask(device: Any, question: str, instruction: Instruction | None = None) -> Finding:
    return probe(device, instruction or device.instruction, (question,))[question]


def exact(device: Any, question: str) -> Any:
    found = ask(device, question)
    assert found.status == "exact", found.text
    return found.answer


def path(tree: Any, a: str = "f16", d: str = "f32", **more: Any) -> Path:
    return Path(Datapath(a, a, d, d, 4, tree, **more))


@dataclass
class Wrapped:
    """A device whose batches and instructions are changed on the way in."""

    inner: Any
    change: Callable[[Instruction, Batch], Batch]
    of: Callable[[Instruction], Instruction] = lambda instruction: instruction
    name: str = "wrapped"

    def info(self) -> dict[str, str]:
        return {}

    def instructions(self) -> Any:
        return self.inner.instructions()

    def supports(self, instruction: Instruction) -> Any:
        return self.inner.supports(instruction)

    def run(self, instruction: Instruction, batch: Batch) -> Bits:
        return np.asarray(self.inner.run(self.of(instruction), self.change(instruction, batch)))


# --- placement --------------------------------------------------------------------------------------------------------


def square(k: int = 2) -> tuple[Instruction, Standin]:
    instruction = make_instruction("bf16", k, "f32", "f32", m=4)
    return instruction, arithmetic(instruction, (("c", 0), 1))


def test_a_placement_as_named() -> None:
    found = ask(square()[1], "layout")
    assert (found.status, found.answer) == ("bounded", {"a": "as named", "b": "as named", "c": "as named"})


def test_rows_that_change_places_are_named() -> None:
    instruction, sound = square()
    turned = Wrapped(sound, lambda _, batch: replace(batch, a=batch.a[:, [1, 0, 2, 3]]))
    found = ask(turned, "layout", instruction)
    assert found.status == "contradictory"
    assert found.answer["a"] == {"0,0": ["1,*"], "0,1": ["1,*"], "1,0": ["0,*"], "1,1": ["0,*"]}
    assert (found.answer["b"], found.answer["c"]) == ("as named", "as named")


def test_c_that_is_transposed_is_named() -> None:
    instruction, sound = square()
    found = ask(Wrapped(sound, lambda _, b: replace(b, c=b.c.swapaxes(1, 2).copy())), "layout", instruction)  # type: ignore[union-attr]
    assert found.answer["c"]["0,1"] == ["1,0"]
    assert found.answer["a"] == "as named"


@pytest.mark.parametrize("name", ["v_wmma_f32_16x16x16_f16", "v_dot2_f32_f16"])
def test_terms_that_do_not_cancel_have_a_placement(name: str) -> None:
    device, instruction = open_device("model:gfx1100"), lookup.instruction(name, "gfx1100")
    found = ask(device, "layout", instruction)
    assert (found.status, set(found.answer.values())) == ("bounded", {"as named"})
    assert "tiles of one sign" in found.text


def test_a_unit_that_ignores_signs_is_no_complement() -> None:
    complement = path(replace(Fused.alike((ALL, C), 24, to=Encode()), complement=True))
    assert ask(complement, "layout").status == "bounded"
    ignores = Wrapped(complement, lambda _, b: replace(b, a=b.a & np.uint16(0x7FFF)))
    assert ask(ignores, "layout", complement.instruction).status == "contradictory"


@pytest.mark.parametrize("name", ["mma.m16n8k256.s32.b1.b1.s32.xor.popc", "mma.m16n8k256.s32.b1.b1.s32.and.popc"])
def test_bits_have_a_placement_and_a_product(name: str) -> None:
    device, instruction = open_device("model:sm_80"), lookup.instruction(name, "sm_80")
    found = probe(device, instruction, ("layout", "bit_products"))
    assert found["layout"].answer == {"a": "as named", "b": "as named", "c": "as named"}
    assert found["bit_products"].answer == {"product": instruction.multiply, "weights": "one"}


# --- sparse lanes -----------------------------------------------------------------------------------------------------

SPARSE = [
    ("mma.sp.m16n8k32.f32.f16.f16.f32", 4, {"0x4": [0, 1], "0xe": [2, 3]}),
    ("mma.sp.m16n8k16.f32.tf32.tf32.f32", 2, {"0x4": [0], "0xe": [1]}),
    ("mma.sp.m16n8k128.s32.s4.s4.s32", 8, {"0x8": [0, 1, 4, 5], "0xd": [2, 3, 6, 7]}),
]


@pytest.mark.parametrize(("name", "chunk", "some"), SPARSE)
def test_the_lanes_that_metadata_names(name: str, chunk: int, some: dict[str, list[int]]) -> None:
    device, instruction = open_device("model:sm_80"), lookup.instruction(name, "sm_80")
    found = ask(device, "sparsity", instruction)
    assert found.status == "exact"
    assert found.answer["chunk"] == chunk
    assert {item: found.answer["lanes"][item] for item in some} == some
    assert found.answer["unnamed"] == "ignored"


def test_a_unit_that_reads_the_metadata_of_its_neighbour() -> None:
    instruction = lookup.instruction("mma.sp.m16n8k32.f32.f16.f16.f32", "sm_80")
    wrong = {0x4: 0x4, 0x8: 0x9, 0x9: 0x8, 0xC: 0xC, 0xD: 0xD, 0xE: 0xE}

    def turn(_: Instruction, batch: Batch) -> Batch:
        assert batch.metadata is not None
        return replace(batch, metadata=np.vectorize(wrong.get)(batch.metadata).astype(np.uint8))

    found = ask(Wrapped(open_device("model:sm_80"), turn), "sparsity", instruction)
    assert (found.answer["lanes"]["0x8"], found.answer["lanes"]["0x9"]) == ([1, 2], [0, 2])


# --- labels, ranges, cuts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", ["encoded", "operands", "normalised"])
@pytest.mark.parametrize("a", ["f16", "e5m2"])
def test_the_label_of_a_product(label: Any, a: str) -> None:
    assert (
        exact(path(Fused.alike((ALL, C), 24, "RZ", None, RZ), a, product=Product(label=label)), "product_label")[
            "label"
        ]
        == label
    )


@pytest.mark.parametrize(("limit", "expected"), [(None, "none"), (128, 128), (130, 130), (140, 140)])
def test_the_lowest_infinite_product(limit: int | None, expected: Any) -> None:
    device = path(Fused.alike((ALL, C), 24, "RZ", None, RZ), "bf16", product=Product(overflow_exponent=limit))
    assert exact(device, "product_range")["overflow_exponent"] == expected


def test_small_products_are_added_or_cut() -> None:
    added = path(Exact((Products((0, 1, 2, 3)), C), Encode()), "bf16")
    cut = path(Fma(C, (0, 1, 2, 3), Encode()), "bf16")
    assert exact(added, "product_range")["small"] == "added"
    assert ask(cut, "product_range").answer == {"overflow_exponent": None, "small": "cut"}


@pytest.mark.parametrize(("cutoff", "expected"), [(None, None), (25, 26), (28, 29)])
def test_terms_that_are_dropped(cutoff: int | None, expected: int | None) -> None:
    device = path(Fused((Term(ALL, 24, "RD"), Term(C, 24, "RD", cutoff=cutoff)), Encode()), "bf16")
    answer = exact(device, "cutoff")
    assert answer == {"products": None, "c": expected}
    assert exact(device, "alignment_rounding")["c"] == ["RD"]


@pytest.mark.parametrize(("first", "tie"), [((31, "RD"), 31), ((28, "RZ"), 28)])
def test_the_reach_of_the_sticky_bit(first: tuple[int, str], tie: int) -> None:
    device = path(Exact((Products((0, 1, 2, 3)), C), Encode(first=first)), "bf16")
    assert ask(device, "sticky_reach").answer["tie"] == tie


@pytest.mark.parametrize(
    ("products", "c", "expected"), [(-132, -132, -132), (-132, -140, -140), (-132, None, -132), (None, -136, -136)]
)
def test_the_zero_exponent_of_c_alone(products: int | None, c: int | None, expected: int | None) -> None:
    tree = Fused((Term(ALL, 25, "RZ", products), Term(C, 25, "RZ", products if c is None else c)), RZ)
    assert exact(path(tree, "bf16"), "zero_exponent")["c"] == expected


# --- carries, normalisation, order ------------------------------------------------------------------------------------


class Adder(Arithmetic):
    """A fused sum over all leaves, term after term: it drops places on a carry (``eager``) or carries of 4 and more."""

    def __init__(self, instruction: Instruction, eager: bool = False, narrow: bool = False) -> None:
        super().__init__(instruction, ("fused", 24, "c", *range(instruction.k)))
        self.eager, self.narrow = eager, narrow

    def node(self, tree: Any, leaves: dict[Any, Fraction]) -> Fraction:
        terms = [leaves[leaf] for leaf in tree[2:]]
        top = max((exponent(t) for t in terms if t), default=0)
        quantum = Fraction(2) ** (top - tree[1])
        total = Fraction(0)
        for term in terms:
            total = int((total + int(term / quantum) * quantum) / quantum) * quantum
            if self.eager and abs(total) >= Fraction(2) ** (top + 1):
                top, quantum = top + 1, quantum * 2
        if self.narrow:
            total = total % Fraction(2) ** (top + 2) if total > 0 else -(-total % Fraction(2) ** (top + 2))
        return self.rounded(total)


def adder(**more: bool) -> Standin:
    instruction = make_instruction("bf16", 8, "f32", "f32")
    return Standin(instruction, Adder(instruction, **more))


def test_normalisation_at_the_end_or_on_the_way() -> None:
    assert exact(adder(), "normalisation") == {"delayed": True}
    assert exact(adder(eager=True), "normalisation") == {"delayed": False}


def test_room_for_carries() -> None:
    assert exact(adder(), "carry_bits") == {"bits": 4, "enough": True}
    found = ask(adder(narrow=True), "carry_bits")
    assert found.answer is None or found.answer["enough"] is False


def test_a_cut_sum_may_decrease_and_an_exact_one_does_not() -> None:
    answer = exact(path(Fused.alike((ALL, C), 24, "RZ", None, RZ)), "monotonicity")
    assert answer["monotone"] is False
    found = ask(path(Exact((Products((0, 1, 2, 3)), C), Encode())), "monotonicity")
    assert (found.status, found.answer["monotone"]) == ("bounded", True)


# --- containers, scales, control state --------------------------------------------------------------------------------

TF32 = replace(make_instruction("tf32", 2, "f32", "f32"), a="tf32", b="tf32")


def spare(how: Callable[[int], int]) -> Standin:
    """tf32 operands whose containers are read as f32 after ``how``."""
    wide = make_instruction("f32", 2, "f32", "f32")
    inner = Arithmetic(wide, (("c", 0), 1))
    return Standin(TF32, lambda a, b, c: inner([how(x) for x in a], [how(x) for x in b], c))


@pytest.mark.parametrize(("how", "word"), [
    (lambda code: code, "used"), (lambda code: code & ~0x1FFF, "ignored"),
    (lambda code: (code + 0x1000) & ~0x1FFF, "rounded"),
])  # fmt: skip
def test_bits_below_the_format(how: Callable[[int], int], word: str) -> None:
    answer = ask(spare(how), "container_bits").answer
    assert (answer["a"], answer["b"]) == (word, word)


SCALED = {
    "mma.m16n8k64.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3":
    ("group", "value", "value", "value"),
    "mma.m16n8k64.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0": ("group", None, None, None),
    "mma.m16n8k32.kind::mxf8f6f4.block_scale.f32.e5m2.e5m2.f32.ue8m0": ("product", None, None, None),
}  # fmt: skip


@pytest.mark.parametrize("name", SCALED)
def test_block_scales(name: str) -> None:
    answer = ask(open_device("model:sm_120a"), "block_scales", lookup.instruction(name, "sm_120a")).answer
    assert (answer["where"], answer["zero"], answer["sign"], answer["subnormal"]) == SCALED[name]
    assert (answer["lanes"], answer["nan"]) == ("in order", "nan")


@pytest.mark.parametrize(("change", "field", "word"), [
    (lambda scale: np.where(scale & 0x80, 0, scale), "sign", "other"),
    (lambda scale: np.where(scale & 0x78, scale, 0), "subnormal", "other"),
    (lambda scale: np.roll(scale, 1, axis=-1), "lanes", "other"),
    (lambda scale: np.where(scale == 0x7F, 0x7E, scale), "nan", "other"),
])  # fmt: skip
def test_scales_that_are_read_otherwise(change: Callable[[Any], Any], field: str, word: str) -> None:
    instruction = lookup.instruction(next(iter(SCALED)), "sm_120a")

    def turn(_: Instruction, batch: Batch) -> Batch:
        scales = change(batch.scale_a), change(batch.scale_b.swapaxes(-1, -2)).swapaxes(-1, -2)  # type: ignore[union-attr]
        return replace(batch, scale_a=scales[0].astype(np.uint8), scale_b=scales[1].astype(np.uint8))

    assert ask(Wrapped(open_device("model:sm_120a"), turn), "block_scales", instruction).answer[field] == word


def test_the_control_register_is_obeyed_or_ignored() -> None:
    device, instruction = open_device("model:x86-64"), lookup.instruction("x86.dpps")
    obeyed = ask(device, "control_state", instruction)
    assert obeyed.answer == {"rounding": "obeyed", "ftz": "obeyed", "daz": "obeyed"}
    deaf = Wrapped(device, lambda _, batch: batch, default_state)
    assert set(ask(deaf, "control_state", instruction).answer.values()) == {"ignored"}
    fixed = lookup.instruction("x86.vdpbf16ps")
    assert ask(device, "control_state", fixed).answer == {}


def test_formats_have_eight_values_that_mark_lanes() -> None:
    from mmaprobe.probing.questions.sparsity import MARKS
    from mmaprobe.probing.session.exact_values import code_of

    for name in ("f16", "bf16", "tf32", "e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "s8", "u8", "s4", "u4", "e4m3fnuz"):
        assert sum(code_of(formats.get(name), value) is not None for value in MARKS) >= 8, name
