"""Names of architectures: products, generations, other targets of a compiler; what an architecture lacks."""

from __future__ import annotations

import json
import logging
import re

import pytest

import mmaprobe
from mmaprobe.catalog import names
from mmaprobe.catalog.lookup import architecture_base, architectures, forms, instruction, lowering, match, parts
from mmaprobe.cli import main
from mmaprobe.devices.base import open_device
from mmaprobe.errors import UsageError
from mmaprobe.parameters.lookup import datapath_for, load

WGMMA = "wgmma.mma_async.m64n8k16.f32.f16.f16"
FP8 = "mma.m16n8k32.f32.e4m3.e4m3.f32"


def test_every_name_stands_for_architectures_of_the_catalog() -> None:
    known = set(architectures())
    table = names.names()
    assert set(table.products.values()) <= known
    assert {part for found in table.generations.values() for part in found} <= known
    assert {target.architecture for target in table.targets.values()} <= known
    assert not {name.lower() for name in known} & (table.products.keys() | table.generations.keys())
    assert table.products.keys().isdisjoint(table.generations)


@pytest.mark.parametrize(
    ("name", "architecture"),
    [
        ("H200", "sm_90a"), ("h200", "sm_90a"), ("RTX 4090", "sm_89"), ("rtx-4090", "sm_89"), ("RTX4090", "sm_89"),
        ("RTX PRO 6000", "sm_120a"), ("GB10", "sm_121a"), ("Thor", "sm_110a"), ("V100", "sm_70"), ("T4", "sm_75"),
        ("A10", "sm_86"), ("B300", "sm_103a"), ("MI300X", "gfx942"), ("MI210", "gfx90a"), ("RX 7900 XTX", "gfx1100"),
        ("hopper", "sm_90a"), ("cdna3", "gfx942"), ("sm_90", "sm_90a"), ("sm_100f", "sm_100a"),
        ("x86-64+intel", "x86-64"), ("sm_80", "sm_80"),
    ],
)  # fmt: skip
def test_one_architecture(name: str, architecture: str) -> None:
    assert architecture_base(name) == architecture


def test_what_a_name_is_taken_for_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    names.say.cache_clear()
    with caplog.at_level(logging.WARNING, "mmaprobe"):
        for _ in range(3):
            parts("H200")
            parts("sm_90")
            parts("sm_80")
    assert [record.getMessage() for record in caplog.records] == [
        "H200 is sm_90a", "sm_90 is sm_90a, less what only that target accepts",
    ]  # fmt: skip


def test_wrong_names() -> None:
    with pytest.raises(UsageError, match=r"unknown architecture 'H2000'; did you mean .*H200"):
        parts("H2000")
    with pytest.raises(UsageError, match=r"unknown architecture 'hoper'; did you mean hopper"):
        load("hoper")
    with pytest.raises(UsageError, match="ampere is sm_80, sm_86, sm_87, sm_88: name one"):
        architecture_base("ampere")


def test_a_product_is_a_name_wherever_an_architecture_is() -> None:
    half = "mma.m16n8k16.f32.f16.f16.f32"
    assert mmaprobe.model("H200", half).datapath == mmaprobe.model("sm_90a", half).datapath
    assert mmaprobe.device("model:H200").info() == mmaprobe.device("model:sm_90a").info()
    assert load("MI300X") == load("gfx942")
    assert open_device("mutant:H200/HMMA.16816.F32/tree.to.rounding=RNE").info()["architecture"] == "sm_90a"
    assert match("H200", "wgmma*") == match("sm_90a", "wgmma*")
    assert instruction("v_mfma_f32_16x16x32_fp8_bf8", "MI300X").a == "e4m3fnuz"
    assert instruction("v_mfma_f32_16x16x32_fp8_bf8", "MI350X").a == "e4m3"


def test_a_generation_where_its_parts_agree() -> None:
    half = instruction("mma.m16n8k16.f32.f16.f16.f32")
    assert datapath_for("ampere", half) == datapath_for("sm_80", half)
    assert lowering(half, "blackwell").primitives == lowering(half, "sm_120a").primitives
    assert len(forms("ampere")) == len(forms("sm_80"))
    with pytest.raises(
        UsageError,
        match=re.escape("blackwell is sm_100a, sm_103a, sm_107a, sm_110a, sm_120a, sm_121a, which differ in what ")
        + ".*"
        + re.escape("(sm_100a, sm_103a, sm_107a, sm_110a; sm_120a, sm_121a): name one"),
    ):
        lowering(instruction(FP8), "blackwell")
    with pytest.raises(UsageError, match=r"blackwell is .*, which differ in their parameters"):
        open_device("model:blackwell")


def test_what_an_architecture_lacks() -> None:
    with pytest.raises(UsageError, match=r"^sm_80 has no wgmma; sm_90a has$"):
        lowering(instruction(WGMMA), "sm_80")
    with pytest.raises(UsageError, match=r"^sm_80 has no 'wgmma\*'; sm_90a has$"):
        match("sm_80", "wgmma*")
    with pytest.raises(UsageError, match=r"^sm_80 has no mma\.sync\S+e4m3\.f32; sm_89, sm_90a, .* have$"):
        mmaprobe.model("sm_80", FP8)
    with pytest.raises(UsageError, match=r"^gfx1100 has no mfma; gfx942, gfx950, gfx9-4-generic have$"):
        lowering(instruction("v_mfma_f32_16x16x16_f16"), "gfx1100")


def test_another_target_has_less() -> None:
    """What ``sm_90`` and ``sm_100f`` do not accept is not there, though the silicon has it."""
    assert {form.first.family.partition(".")[0] for form in forms("sm_90")} == {"mma", "wmma"}
    with pytest.raises(UsageError, match=r"^sm_90 has no wgmma; sm_90a has$"):
        lowering(instruction(WGMMA), "sm_90")
    assert not mmaprobe.device("model:sm_90").supports(instruction(WGMMA))
    assert mmaprobe.device("model:sm_90").supports(instruction("mma.m16n8k16.f32.f16.f16.f32"))
    assert any(form.first.family == "tcgen05.f16" for form in forms("sm_100f"))
    assert not any(form.first.family == "tcgen05.i8" for form in forms("sm_100f"))
    assert not any(form.first.family.startswith("tcgen05") for form in forms("sm_100"))


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, list[dict[str, object]]]:
    assert main(["instructions", *arguments, "--json"]) == 0
    found: dict[str, list[dict[str, object]]] = json.loads(capsys.readouterr().out)
    return found


def test_filters_and_counts(capsys: pytest.CaptureFixture[str]) -> None:
    everything = listed(capsys, "H200")
    rows, total = everything["forms"], everything["counts"][-1]
    assert total["family"] == "all"
    assert total["forms"] == len(rows) == len(forms("sm_90a"))
    assert total["ids"] == sum(form.count for form in forms("sm_90a"))
    assert total["native"] + total["split"] + total["emulated"] == len(rows)  # type: ignore[operator]
    wide = listed(capsys, "sm_90a", "--family", "wgmma", "--type", "e4m3")["forms"]
    assert {row["family"] for row in wide} == {"wgmma.fp8", "wgmma.sp.fp8"}
    assert wide[0]["instruction"] == "wgmma.mma_async.sync.aligned.m64n{8..256:8}k32.f32.e4m3.e4m3"
    assert wide[0]["options"] == ["a=regs", "neg_a", "neg_b", "scale_d=0"]
    assert wide[0]["ids"] == 32 * 2 * 4 * 2
    emulated = listed(capsys, "sm_90a", "--kind", "emulated")
    assert {row["kind"] for row in emulated["forms"]} == {"emulated"}
    assert emulated["counts"][-1]["forms"] == total["emulated"]
    for basis in ("measured", "published"):
        assert listed(capsys, "sm_90a", "--basis", basis)["counts"][-1][basis] == total[basis]
    unknown = listed(capsys, "sm_103a", "--basis", "none")
    assert {row["basis"] for row in unknown["forms"]} == {"none"}
    assert unknown["counts"][-1]["none"] == len(unknown["forms"])
    known = listed(capsys, "sm_90a", "--basis", "modelled")["forms"]
    assert len(known) == len(rows) - total["none"]  # type: ignore[operator]
    eight = listed(capsys, "sm_90a", "-i", "wgmma*n128*{*neg_a*}", "--family", "wgmma.f16")["forms"]
    assert [row["ids"] for row in eight] == [2 * 2 * 2 * 3] * 2


@pytest.mark.parametrize(("generation", "part"), [("ampere", "sm_86"), ("rdna3", "gfx1150"), ("Hopper", "sm_90a")])
def test_a_generation_lists_what_its_parts_agree_on(
    generation: str, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    glob = "v_*" if generation == "rdna3" else "mma.m16n8k*"
    whole, one = (listed(capsys, name, "-i", glob)["forms"] for name in (generation, part))
    assert [row["instruction"] for row in whole] == [row["instruction"] for row in one]
    assert main(["layout", str(one[0]["first"]), "--arch", generation]) == 0


def test_totals_of_all_architectures(capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[dict[str, int]] = listed(capsys)["rows"]  # type: ignore[assignment]
    assert [row["architecture"] for row in rows] == [*architectures(), "all"]
    assert rows[-1]["forms"] == sum(row["forms"] for row in rows[:-1])


@pytest.mark.parametrize(("arguments", "said"), [
    (["sm_80", "--kind", "real"], "it is one of native"), (["sm_80", "--basis", "guessed"], "it is one of measured"),
    (["sm_80", "--family", "wma"], "did you mean wmma"), (["sm_80", "--type", "f15"], "did you mean f16"),
    (["sm_90a", "-i", "wgmma*", "--family", "wmma"], "sm_90a that wgmma* names; did you mean wgmma"),
    (["--family", "wma"], "did you mean wmma"), (["-i", "mma.m16n8k9.f32.f16.f16.f32"], "did you mean mma.m16n8k"),
    (["-i", "zz*"], "no instruction of any architecture matches 'zz*'"),
])  # fmt: skip
def test_filters_that_mean_nothing(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["instructions", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_an_id_with_a_bit_list_is_no_glob(capsys: pytest.CaptureFixture[str]) -> None:
    rows = listed(capsys, "gfx942", "-i", "v_mfma_f64_16x16x4_f64{neg=[1,0,0]}")["forms"]
    assert [row["first"] for row in rows] == ["v_mfma_f64_16x16x4_f64"]
