"""Probes give different answers for different truths, and no exact answer for devices that misbehave."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mmaprobe.catalog import lookup
from mmaprobe.catalog.instruction import Instruction
from mmaprobe.devices.base import Device, open_device
from mmaprobe.evidence.records import Finding
from mmaprobe.parameters.datapath import Accumulator, Datapath, Encode, Exact, Fused, Operand, Products, Special
from mmaprobe.probing import probe
from mmaprobe.probing.tree import Node
from mmaprobe.probing.trees.tree_json import to_json
from stand_ins.probed import Arithmetic, Path, Standin, arithmetic, make_instruction, noise

C = Accumulator()
K4 = make_instruction("bf16", 4, "f32", "f32")


def ask(device: Any, *questions: str) -> dict[str, Finding]:
    device_: Device = device
    return probe(device_, device.instruction, questions)


def answer(device: Any, question: str) -> Any:
    found = ask(device, question)[question]
    assert found.status == "exact", found.text
    return found.answer


def fused(
    bits: int | None, k: int, step: int, a: str = "f16", d: str = "f32", rounding: str = "RZ", **more: Any
) -> Path:
    """Steps of ``step`` products and C, aligned at ``bits`` fraction bits."""
    to = Encode(d, rounding="RZ" if d == "f32" else "RNE", overflow="infinity", zero="positive")
    tree = Fused.alike((Products(tuple(range(step))), C), bits, rounding, -133, to)
    return Path(
        Datapath(a, a, d, d, k, tree, step=step, special=Special(code=0x7FFFFFFF if d == "f32" else 0x7FFF), **more)
    )


def exact_steps(k: int, step: int) -> Path:
    tree = Exact((Products(tuple(range(step))), C), Encode("f32"))
    return Path(Datapath("f16", "f16", "f32", "f32", k, tree, step=step))


# --- summation tree ---------------------------------------------------------------------------------------------------

TREES: list[tuple[Any, Any]] = [
    ((((("c", 0), 1), 2), 3), {"kind": "fma", "acc": "c", "lanes": [0, 1, 2, 3]}),
    ((((("c", 2), 0), 3), 1), {"kind": "fma", "acc": "c", "lanes": [2, 0, 3, 1]}),
    ((((0, 1), (2, 3)), "c"), {"kind": "add", "terms": [
        {"kind": "add", "terms": [{"kind": "add", "terms": [0, 1]}, {"kind": "add", "terms": [2, 3]}]}, "c"]}),
    (((((0, 1), 2), 3), "c"), {"kind": "add", "terms": [
        {"kind": "fma", "acc": {"kind": "add", "terms": [0, 1]}, "lanes": [2, 3]}, "c"]}),
    ((((0, 2), (1, 3)), "c"), {"kind": "add", "terms": [
        {"kind": "add", "terms": [{"kind": "add", "terms": [0, 2]}, {"kind": "add", "terms": [1, 3]}]}, "c"]}),
    (("fused", 24, 0, 1, 2, 3, "c"), {"kind": "fused", "terms": ["c", 0, 1, 2, 3]}),
    ((("fused", 24, 0, 1, 2, 3), "c"), {"kind": "add", "terms": [{"kind": "fused", "terms": [0, 1, 2, 3]}, "c"]}),
    (("fused", 24, ("fused", 24, "c", 0, 1), 2, 3),
     {"kind": "fused", "terms": [{"kind": "fused", "terms": ["c", 0, 1]}, 2, 3]}),
    (("fused", 24, ("fused", 24, "c", 0, 2), 1, 3),
     {"kind": "fused", "terms": [{"kind": "fused", "terms": ["c", 0, 2]}, 1, 3]}),
]  # fmt: skip


@pytest.mark.parametrize(("tree", "expected"), TREES)
def test_each_tree_is_read_as_itself(tree: Any, expected: Any) -> None:
    assert answer(arithmetic(K4, tree), "summation_tree") == expected


def test_a_tree_without_c() -> None:
    instruction = make_instruction("f32", 4, None, "f32")
    found = answer(arithmetic(instruction, ((0, 1), (2, 3)), round_products=True), "summation_tree")
    assert found == {"kind": "add", "terms": [{"kind": "add", "terms": [0, 1]}, {"kind": "add", "terms": [2, 3]}]}


def test_one_product_and_c_is_a_single_fma() -> None:
    instruction = make_instruction("f32", 1, "f32", "f32")
    assert answer(arithmetic(instruction, ("c", 0)), "summation_tree") == {"kind": "fma", "acc": "c", "lanes": [0]}


@pytest.mark.parametrize(("k", "step", "d"), [(8, 8, "f32"), (16, 8, "f32"), (16, 8, "f16"), (32, 16, "f32")])
def test_chained_fused_steps(k: int, step: int, d: str) -> None:
    expected: Any = "c"
    for start in range(0, k, step):
        lanes = list(range(start, start + step))
        expected = {"kind": "fused", "terms": [expected, *lanes]}
    assert answer(fused(25, k, step, d=d), "summation_tree") == expected


def test_exact_steps_are_lossless_nodes() -> None:
    inner = {"kind": "fused", "terms": ["c", 0, 1, 2, 3], "lossless": True}
    assert answer(exact_steps(8, 4), "summation_tree") == {
        "kind": "fused", "terms": [inner, 4, 5, 6, 7], "lossless": True}  # fmt: skip


def test_a_narrow_format_is_told_apart_by_half_ulp_pairs() -> None:
    one = ask(fused(25, 32, 32, a="e2m1"), "summation_tree")["summation_tree"]
    two = ask(fused(25, 32, 16, a="e2m1"), "summation_tree")["summation_tree"]
    assert (one.status, two.status) == ("bounded", "bounded")
    assert one.answer["terms"] == ["c", *range(32)]
    assert two.answer["terms"][1:] == list(range(16, 32))
    assert two.answer["terms"][0]["terms"] == ["c", *range(16)]


def random_tree(source: random.Random, leaves: list[Any]) -> Any:
    """Nested sums over the leaves: (arithmetic form, node)."""
    if len(leaves) == 1:
        return leaves[0], leaves[0]
    source.shuffle(leaves)
    cuts = sorted(source.sample(range(1, len(leaves)), min(source.choice((1, 1, 2, 3, 7)), len(leaves) - 1)))
    parts = [leaves[i:j] for i, j in zip([0, *cuts], [*cuts, len(leaves)], strict=True)]
    forms, nodes = zip(*(random_tree(source, part) for part in parts), strict=True)
    return (forms if len(forms) == 2 else ("fused", source.choice((23, 25, 30)), *forms)), Node(nodes)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(24))
def test_any_tree_is_read_as_itself(seed: int) -> None:
    source = random.Random(seed)
    k = source.randint(2, 9)
    form, node = random_tree(source, ["c", *range(k)])
    assert answer(arithmetic(make_instruction("bf16", k, "f32", "f32"), form), "summation_tree") == to_json(node)


# --- result rounding --------------------------------------------------------------------------------------------------

ROUNDINGS = ("RU", "RD", "RZ", "RA", "RNU", "RND", "RNZ", "RNA", "RNE", "RNO", "RO")


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_each_rounding_of_an_exact_sum_is_read_as_itself(rounding: str) -> None:
    tree = Exact((Products((0, 1, 2, 3)), C), Encode("f32", rounding=rounding))
    device = Path(Datapath("bf16", "bf16", "f32", "f32", 4, tree))
    assert answer(device, "result_rounding") == {"fraction_bits": 23, "rounding": [rounding], "at_least": False}


@pytest.mark.parametrize("bits", [23, 24, 25])
def test_result_rounding_is_seen_through_an_alignment_cut(bits: int) -> None:
    assert answer(fused(bits, 4, 4), "result_rounding") == {"fraction_bits": 23, "rounding": ["RZ"], "at_least": False}
    assert answer(fused(bits, 4, 4, d="f16"), "result_rounding") == {
        "fraction_bits": 10,
        "rounding": ["RNE"],
        "at_least": False,
    }


# --- subnormals -------------------------------------------------------------------------------------------------------


def test_flushing_in_every_place_is_told_from_keeping() -> None:
    tree = ((("c", 0), 1), 2)
    instruction = make_instruction("bf16", 3, "f32", "f32")
    kept = answer(arithmetic(instruction, tree), "subnormals")
    flushed = answer(arithmetic(instruction, tree, flush=True), "subnormals")
    places = ("a", "b", "c", "sum", "result")
    assert [kept[p] for p in places] == ["keep"] * 5
    assert all(flushed[p] in ("flush", "zero") for p in places)
    assert (kept["product"], flushed["product"]) == ("keep", "keep")
    assert (kept["tininess"], flushed["tininess"]) == ("absent", "after")


@pytest.mark.parametrize("policy", ["keep", "zero", "signed_zero"])
@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_the_policy_of_each_operand(name: str, policy: Any) -> None:
    tree = Exact((Products((0, 1)), C), Encode("f32"))
    operand: Any = {f"operand_{name}": Operand(policy)}
    device = Path(Datapath("bf16", "bf16", "f32", "f32", 2, tree, **operand))
    found = answer(device, "subnormals")
    hidden = (name, policy) == ("c", "zero")  # C is never -0: no zero sum shows its sign
    assert {n: found[n] for n in "abc"} == dict.fromkeys("abc", "keep") | {name: "flush" if hidden else policy}


@pytest.mark.parametrize("tininess", ["before", "after"])
@pytest.mark.parametrize("policy", ["zero", "signed_zero"])
def test_the_flush_of_results(policy: Any, tininess: Any) -> None:
    tree = Exact((Products((0, 1)), C), Encode("f32", subnormals=policy, tininess=tininess))
    found = answer(Path(Datapath("bf16", "bf16", "f32", "f32", 2, tree)), "subnormals")
    assert (found["result"], found["tininess"]) == (policy, tininess)


# --- devices that misbehave -------------------------------------------------------------------------------------------


def broken(kind: str, instruction: Instruction) -> Standin:
    sound = Arithmetic(instruction, ((("c", 0), 1), 2))
    dots: dict[str, Any] = {
        "zeros": lambda a, b, c: 0,
        "returns c": lambda a, b, c: c,
        "ignores c": lambda a, b, c: sound(a, b, 0),
        "wrong now and then": Every(sound, 97),
    }
    return Standin(instruction, dots[kind]) if kind != "noise" else noise(instruction)


class Every:
    """Flips the last bit of every n-th answer."""

    def __init__(self, sound: Arithmetic, every: int) -> None:
        self.sound, self.every, self.calls = sound, every, 0

    def __call__(self, a: list[int], b: list[int], c: int | None) -> int:
        self.calls += 1
        return self.sound(a, b, c) ^ (self.calls % self.every == 0)


@pytest.mark.parametrize("kind", ["zeros", "returns c", "ignores c", "noise", "wrong now and then"])
def test_a_broken_device_gets_no_exact_answer(kind: str) -> None:
    instruction = make_instruction("bf16", 3, "f32", "f32")
    findings = probe(broken(kind, instruction), instruction)
    assert {f.status for f in findings.values()} == {"contradictory"}


@pytest.mark.parametrize("kind", ["previous", "zeros", "c", "flaky", "nan", "history"])
@pytest.mark.parametrize("name", ["x86.vdpbf16ps", "x86.dpps", "x86.vpdpbusd"])
def test_the_misbehaving_devices_get_no_answer(kind: str, name: str) -> None:
    found = lookup.instruction(name)
    if (kind == "c" and found.c is None) or (kind == "nan" and found.d == "s32"):
        pytest.skip("nothing to do wrong")
    findings = probe(open_device(f"misbehaving:{kind}?of=model:x86-64"), found)
    assert {f.status for f in findings.values()} == {"contradictory"}
