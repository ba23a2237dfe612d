"""NaN results: which payload survives, and what becomes of it on the way."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mmaprobe import formats
from mmaprobe.parameters.datapath import (
    Add,
    Datapath,
    Encode,
    Exact,
    Fma,
    Product,
    Special,
)
from second_source.by_hand import VDPBF16PS, C, fma, lanes, raw, tensor_core

INF, QNAN = 0x7F800000, 0x7FC00000


@pytest.mark.parametrize(
    "path", [tensor_core(25, 4, -133), fma(special=Special(code=0x7FFFFFFF))], ids=["fused", "fma"]
)
def test_canonical_nans(path: Datapath) -> None:
    inf, one = formats.get(path.a).infinity_code, formats.get(path.a).one
    assert inf is not None
    pad = [0] * (path.k - 1)
    ones = [one] * (path.k - 1)
    assert raw(path, [inf, *pad], [0, *ones], 0) == 0x7FFFFFFF  # infinity times zero
    assert raw(path, [inf, *pad], [one, *ones], 0xFF800000) == 0x7FFFFFFF  # infinities of both signs
    assert raw(path, [inf + 1, *pad], [one, *ones], 0) == 0x7FFFFFFF
    assert raw(path, [one, *pad], [one, *ones], 0xFF800001) == 0x7FFFFFFF
    assert raw(path, [inf, *pad], [one, *ones], INF) == INF
    assert raw(path, [inf, *pad], [one | 1 << (formats.get(path.a).bits - 1), *ones], 0) == INF | 1 << 31


def test_global_nans_follow_the_priority_whatever_the_order_of_addition() -> None:
    nans = {"a0": 0x7FC1, "b0": 0xFFC2, "a1": 0x7F83, "b1": 0xFF84, "c": 0xFFC00005}
    codes = {"a0": 0x7FC10000, "b0": 0xFFC20000, "a1": 0x7FC30000, "b1": 0xFFC40000, "c": 0xFFC00005}
    names = list(nans)
    for first, name in enumerate(names):
        value = {n: nans[n] if i >= first else 0x3F80 for i, n in enumerate(names)}
        if first > 0:
            value["c"] = nans["c"]
        got = raw(VDPBF16PS, [value["a0"], value["a1"]], [value["b0"], value["b1"]], value["c"])
        assert got == codes[name]
    assert raw(VDPBF16PS, [0x7F80, 0], [0, 0], 0) == 0xFFC00000
    assert raw(VDPBF16PS, [0x7F80, 0], [0, 0], 0x7F800001) == 0x7FC00001  # invalid beside c's NaN: c's
    assert raw(VDPBF16PS, [0x7F80, 0xFF80], [0x3F80, 0x3F80], 0) == 0xFFC00000


def test_local_nans_of_an_fma_chain() -> None:
    path = Datapath(
        "f32", "f32", "f32", "f32", 2, Fma(C, (0, 1), Encode()), special=Special("local", 0xFFC00000, ("a", "b", "acc"))
    )
    one = 0x3F800000
    assert raw(path, [0x7F800001, one], [0x7F800002, one], 0x7F800003) == 0x7FC00001
    assert raw(path, [one, one], [0x7F800002, one], 0x7F800003) == 0x7FC00002
    assert raw(path, [one, one], [one, one], 0xFF800003) == 0xFFC00003
    assert raw(path, [one, 0x7F800004], [one, one], 0x7F800003) == 0x7FC00004  # the second fma meets a1 first
    assert raw(path, [INF, one], [0, one], 0x7F800003) == 0x7FC00003  # c's NaN hides the invalid product
    assert raw(path, [INF, one], [0, one], 0) == 0xFFC00000
    assert raw(path, [INF, 0x7F800004], [0, one], 0) == 0x7FC00004
    last = replace(path, special=replace(path.special, priority=("acc", "a", "b")))
    assert raw(last, [one, 0x7F800004], [one, one], 0x7F800003) == 0x7FC00003


def test_local_nans_of_sums() -> None:
    dpps = Datapath(
        "f32", "f32", None, "f32", 4,
        Add(Add(Exact((lanes(0),)), Exact((lanes(1),)), Encode()),
            Add(Exact((lanes(2),)), Exact((lanes(3),)), Encode()), Encode()),
        product=Product(to=Encode()), special=Special("local", 0xFFC00000, ("a", "b")),
    )  # fmt: skip
    one, nan = 0x3F800000, [0x7F800001, 0x7F800002, 0x7F800003, 0x7F800004]
    for k in range(4):
        a = [one] * k + nan[k:]
        assert raw(dpps, a, [one] * 4) == 0x7FC00001 + k
    assert raw(dpps, [INF, one, nan[2], one], [0, one, one, one]) == 0xFFC00000  # the invalid sum comes first
    assert raw(dpps, [one, INF, one, one], [one, one, one, 0xFF800000]) == 0xFFC00000


def test_signalling_nans_first_and_quieting() -> None:
    quiet_then_loud = ([0x7FC00001], [0x7F800002], 0x7F800003)
    for rule in ("local", "global"):
        priority = ("a", "b", "acc") if rule == "local" else ("a0", "b0", "c")
        special = Special(rule, 0x7FC00000, priority, signalling_first=True)  # type: ignore[arg-type]
        assert raw(fma(special=special), *quiet_then_loud) == 0x7FC00002
        assert raw(fma(special=replace(special, quiet=False)), *quiet_then_loud) == 0x7F800002
        assert raw(fma(special=replace(special, signalling_first=False)), *quiet_then_loud) == 0x7FC00001


@pytest.mark.parametrize(
    ("source", "bits", "target", "expected"),
    [
        ("f16", 0xFE01, "f32", 0xFFC02000),
        ("bf16", 0x7F81, "f32", 0x7FC10000),
        ("f32", 0xFF812345, "bf16", 0xFFC1),
        ("f32", 0x7F800001, "f16", 0x7E00),
        ("e4m3", 0xFF, "f32", 0xFFF00000),
        ("e5m2", 0x7D, "f16", 0x7F00),
        ("f32", 0xFFC00000, "e4m3", 0xFF),
        ("f64", 0xFFF0000020000000, "f32", 0xFFC00001),
        ("tf32", 0x7F802000, "f32", 0x7FC02000),
    ],
)
def test_payloads_move_left_aligned(source: str, bits: int, target: str, expected: int) -> None:
    for rule, priority in (("global", ("a0",)), ("local", ("a", "b"))):
        special = Special(rule, formats.get(target).nan_code, priority)  # type: ignore[arg-type]
        path = Datapath(source, source, None, target, 1, Exact((lanes(0),), Encode(target)), special=special)
        assert raw(path, [bits], [formats.get(source).one]) == expected


def test_a_payload_that_vanishes_stays_a_nan() -> None:
    special = Special("global", 0x7E00, ("a0",), quiet=False)
    path = Datapath("f32", "f32", None, "f16", 1, Exact((lanes(0),), Encode("f16")), special=special)
    assert raw(path, [0x7F800001], [0x3F800000]) == 0x7E00
    assert raw(path, [0x7F802000], [0x3F800000]) == 0x7C01


def test_tf32_padding_holds_no_nan() -> None:
    path = tensor_core(25, 8, -133, a="tf32")
    ones = [0x3F800000] + [0] * 7
    assert raw(path, [0x7F801FFF] + [0] * 7, ones, 0) == INF
    assert raw(path, [0x7F802000] + [0] * 7, ones, 0) == 0x7FFFFFFF
