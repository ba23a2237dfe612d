"""The engine's kernels on its own layout: equal to the interpreter, which is equal to the NumPy stages."""

from __future__ import annotations

from dataclasses import replace
from importlib import resources

import pytest

from cases.engine import DATAPATHS, MODES, batch
from cases.engine_layout import run_groups, run_tiles, tiles_of
from mmaprobe import _native
from mmaprobe.models import stages
from mmaprobe.models.kernels import FUSED, INTERPRETER, kernel
from mmaprobe.models.model import evaluate_tiles
from mmaprobe.parameters.datapath import Datapath
from mmaprobe.parameters.lookup import load
from mmaprobe.parameters.mutate import mutate

BUILDS = _native.engine_builds()
FAMILY = {name: path for name, path in DATAPATHS.items() if kernel(path) == FUSED}
F16 = DATAPATHS["T-FDPA f16"]


def shipped() -> list[Datapath]:
    data = resources.files("mmaprobe.parameters") / "data"
    names = sorted(path.name.removesuffix(".toml") for path in data.iterdir() if path.name.endswith(".toml"))
    paths = {entry.datapath: None for name in names for entry in load(name).entries.values()}
    return [path for path in paths if kernel(path) == FUSED]


def check(path: Datapath, mode: str, seed: int, m: int = 16, n: int = 8) -> None:
    """Groups and tiles of the kernel are the stages'."""
    vectors = batch(path, mode, seed, 2 * m * n)
    groups = run_groups(path, vectors)
    assert groups is not None
    assert (groups == stages.evaluate(path, vectors)).all(), f"groups, {mode}, {path}"
    tiles = tiles_of(vectors, m, n)
    computed = run_tiles(path, tiles)
    assert computed is not None
    expected = evaluate_tiles(lambda batch: stages.evaluate(path, batch), tiles)
    assert (computed == expected).all(), f"tiles, {mode}, {path}"


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("name", FAMILY)
def test_every_build_is_the_stages(name: str, build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MMAPROBE_ISA", build)
    for mode in MODES:
        check(FAMILY[name], mode, seed=1)


def test_shipped_datapaths() -> None:
    paths = shipped()
    assert len(paths) > 40
    for i, path in enumerate(paths):
        for mode in MODES:
            check(path, mode, seed=2 + i)


@pytest.mark.parametrize(("m", "n"), [(8, 8), (64, 24), (1, 1), (40, 3)])
def test_shapes_of_tiles(m: int, n: int) -> None:
    check(F16, "clustered", seed=3, m=m, n=n)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tree.rounding", "RD"), ("tree.zero_exponent", "-100"), ("tree.to.zero", "ieee"),
        ("tree.to.subnormals", "zero"), ("product.label", "normalised"),
        ("product.overflow_exponent", "12"), ("operand_a.subnormals", "zero"), ("operand_c.mask", "0xffffff00"),
        ("special.code", "0x7f800000"), ("tree.fraction_bits", "40"),
    ],
)  # fmt: skip
def test_what_the_kernel_does_not_do_is_interpreted(field: str, value: str) -> None:
    path = mutate(F16, field, value)
    assert path != F16
    assert kernel(path) == INTERPRETER
    assert run_groups(path, batch(path, "clustered", 0, 16)) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tree.fraction_bits", "20"), ("tree.fraction_bits", "28"), ("tree.zero_exponent", "-126"), ("step", "4"),
        ("tree.zero_exponent", "none"), ("tree.to.rounding", "RNE"), ("tree.to.rounding", "RU"),
        ("tree.to.overflow", "ieee"), ("tree.to.underflow", "signed"), ("special.code", "0x7fc00000"), ("c", "bf16"),
    ],
)  # fmt: skip
def test_what_the_kernel_does_it_does_as_the_stages(field: str, value: str) -> None:
    for a in ("f16", "bf16", "e5m2"):
        path = mutate(replace(F16, a=a), field, value)
        assert kernel(path) == FUSED
        for mode in MODES:
            check(path, mode, seed=4)


def test_a_permuted_order_is_interpreted() -> None:
    assert kernel(replace(F16, order=tuple(reversed(range(F16.k))))) == INTERPRETER
