"""Whole products held against each other: every element, and the smallest product that tells two apart."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mmaprobe
from cases.random_products import Modelled, alone
from mmaprobe.cli import main
from mmaprobe.devices.gemm import open_gemm
from mmaprobe.devices.products import open_product
from mmaprobe.errors import UsageError
from mmaprobe.models.gemm import Gemm
from mmaprobe.parameters.schedule import Accumulators, GemmStep, Join, Ranges, Schedule, schedule_named, to_text
from mmaprobe.parameters.schedule_changes import schedule_changes
from mmaprobe.probing.gemm.calls import UnrepeatedError
from mmaprobe.probing.gemm.families import FAMILIES
from mmaprobe.report.tables.products import places, verdict_lines
from mmaprobe.validation.products.verdict import hold_against

PLAIN = alone(Ranges("uniform", 40), Accumulators("f32"), Join("f32"))
LONGER = alone(Ranges("uniform", 41), Accumulators("f32"), Join("f32"))
HASWELL = "openblas_haswell_f32"


def against(own: Schedule, other: Schedule, change: Any = None, elements: int = 1, **options: Any) -> Any:
    return hold_against(Modelled(own, (6, 5, 300)), Modelled(other, change=change), elements, **options)


def test_equal_products_are_compared_as_often_as_was_asked() -> None:
    found = against(PLAIN, PLAIN, elements=2_000)
    assert (found.exit_code, found.least) == (0, None)
    assert found.comparison.elements >= 2_000
    assert {each.family for each in found.comparison.calls} == set(FAMILIES)
    assert len({each.shape for each in found.comparison.calls}) == 6


def test_the_smallest_product_that_tells_two_lengths_apart() -> None:
    found = against(PLAIN, LONGER)
    assert found.exit_code == 1
    assert found.least.shape == (1, 1, 42)  # at 41 both orders are one
    assert len(found.least.live) == 3
    a, b = found.least.operands()
    for schedule, answer in zip((PLAIN, LONGER), found.least.answers, strict=True):
        assert int(Gemm(schedule).run(a[None], b[None])[0, 0, 0]) == answer
    assert [each.differ for each in found.sums] == [False, False, True]


def test_both_schedules_say_where_they_add_the_lane_that_differs(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "longer.toml"
    longer = schedule_named(HASWELL)
    one = replace(longer.kernels[0], ranges=replace(longer.kernels[0].ranges, length=384))
    path.write_text(to_text(replace(longer, kernels=(one, *longer.kernels[1:]))), encoding="utf-8")
    assert main(["gemm", "diff", f"{HASWELL}?m=20&n=20&k=700", str(path)]) == 1
    said = capsys.readouterr().out
    assert "the schedules say one field otherwise" in said
    assert "kernel one.ranges.length  320  384" in said
    assert "smallest product found: 2 x 2 x 321, D[" in said
    assert "  P adds it by kernel one: range 1 (160 to 320), accumulator 0, step " in said
    assert "  Q adds it by kernel one: range 0 (0 to 320), accumulator 0, step " in said


def test_every_family_tells_what_it_is_for() -> None:
    multiply = replace(PLAIN, kernels=(replace(PLAIN.kernels[0], step=GemmStep("multiply_add")),))
    assert against(PLAIN, multiply, families=["masks"]).exit_code == 0
    assert against(PLAIN, multiply, families=["normal"]).exit_code == 1
    product = alone(Ranges(), Accumulators("f32", start="product"), Join("f32", start="first"))
    whole = alone(Ranges(), Accumulators("f32"), Join("f32"))
    assert against(whole, product, families=["normal"]).exit_code == 0
    assert against(whole, product, families=["zeros"]).exit_code == 1


def payload(a: Any, b: Any, d: Any) -> Any:
    return np.where(np.isnan(d.view(np.float32)), np.uint32(0xFFC00123), d)


def test_which_nan_comes_out_is_no_difference() -> None:
    assert against(PLAIN, PLAIN, payload, families=["specials"]).exit_code == 0


def test_a_tile_that_only_its_neighbours_make_wrong_keeps_them() -> None:
    def beside(a: Any, b: Any, d: Any) -> Any:
        return d ^ np.uint32(1) if (a != 0).any(axis=1).sum() > 1 else d

    found = against(PLAIN, PLAIN, beside)
    assert found.least.beside is not None
    assert any("other rows and columns are random" in each for each in verdict_lines(found) if isinstance(each, str))


def test_answers_that_do_not_repeat_end_it() -> None:
    states = iter(range(10_000))
    with pytest.raises(UnrepeatedError, match="the same call is answered in two ways"):
        against(PLAIN, PLAIN, lambda a, b, d: d ^ np.uint32(next(states) % 2))


def test_what_cannot_be_compared_is_named() -> None:
    with pytest.raises(UsageError, match="there is nothing to compare"):
        hold_against(Modelled(PLAIN), open_product("gemm:openblas_haswell_f64"))
    with pytest.raises(UsageError, match="no family 'nomal'; did you mean normal"):
        against(PLAIN, PLAIN, families=["nomal"])
    small = replace(PLAIN, scope=replace(PLAIN.scope, most_m=1))
    found = against(PLAIN, small, families=["normal"])
    assert found.exit_code == 0
    assert found.comparison.absent[0] == "normal at 6 x 5 x 300: M is 6; the schedule holds for M from 1 to 1"


def test_places_are_named_as_runs() -> None:
    assert places([4, 5, 6, 9], 20) == "4 to 6, 9"
    assert places([0, 2, 4, 6, 8], 20) == "0, 2, 4, 6 and 1 more"
    assert places(range(3), 3) == "all"
    assert places([], 3) is None


def test_changes_of_schedules_call_kernels_by_their_names() -> None:
    (change,) = schedule_changes(PLAIN, LONGER)
    assert (change.field, change.p, change.q) == ("kernel x.ranges.length", "40", "41")


def test_validate_holds_a_product_against_a_schedule(capsys: Any) -> None:
    words = ["validate", f"gemm:{HASWELL}?m=40&n=40&k=300", f"gemm:{HASWELL}", "--vectors", "1", "--seed", "1"]
    assert main(words) == 0
    assert "equal: 0 of 16,842 elements, 42 calls, seed 1" in capsys.readouterr().out
    assert main([*words[:2], "gemm:openblas_sandybridge_f32", *words[3:], "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["exit_code"] == 1
    assert document["smallest"]["lanes"][-1]["differ"]
    assert sum(row["differing"] for row in document["rows"]) == document["differing"]
    assert main([*words, "--nan", "any"]) == 2
    assert "two NaNs are equal" in capsys.readouterr().err


@pytest.mark.long
def test_a_schedule_is_the_reference_of_a_function_in_the_usual_pipeline(tmp_path: Path) -> None:
    chain, pairs, module = (tmp_path / name for name in ("chain.toml", "pairs.toml", "library.py"))
    chain.write_text(to_text(alone(Ranges(), Accumulators("f32"), Join("f32"))), encoding="utf-8")
    pairs.write_text(to_text(alone(Ranges(), Accumulators("f32", 2), Join("f32"))), encoding="utf-8")
    module.write_text(LIBRARY, encoding="utf-8")
    device = mmaprobe.device(f"function:{module}:product?m=2&n=2&k=9&operands=2")
    (instruction,) = device.instructions()
    found = mmaprobe.validate(device, f"gemm:{chain}", instruction, vectors=400, seed=1)
    assert (found.mismatches, found.vectors, found.nan) == (0, 400, "any")
    other = mmaprobe.validate(device, f"gemm:{pairs}", instruction, vectors=400, seed=1)
    assert other.mismatches > 0
    assert all(each.reference_says.startswith("kernel x: up to range 0 (0 to 8) ") for each in other.examples)


def test_a_plan_with_evidence_takes_a_schedule_as_its_reference(tmp_path: Path, capsys: Any) -> None:
    device = f"gemm:{HASWELL}?m=2&n=2&k=9"
    words = ["--plan", "quick", "--out", str(tmp_path / "evidence"), "--seed", "1", "--json"]
    assert main(["validate", device, f"gemm:{HASWELL}", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["mismatches"], found["vectors"]) == (0, 20_000)
    assert main(["evidence", "verify", str(tmp_path / "evidence")]) == 0


LIBRARY = """
import mmaprobe

product = mmaprobe.gemm(__file__.replace("library.py", "chain.toml"))
"""


def test_a_schedule_runs_products_of_its_formats_in_its_scope_alone() -> None:
    device = open_gemm(f"{HASWELL}?m=4&n=4&k=4")
    wide = open_gemm("openblas_haswell_f64?m=4&n=4&k=4").instruction
    assert device.supports(open_gemm("openblas_sandybridge_f32?m=9&n=4&k=4").instruction)
    assert "other products of A f32, B f32, D f32" in device.supports(wide).reason
    narrow = replace(device.instruction, m=1)
    assert "M is 1; the schedule holds for M from 2" in device.supports(narrow).reason
