"""Every schedule that ships against the library that it is of: shapes that were not asked, all families, all elements.

``nox -s gemm`` installs the libraries (``requirements.txt``); what the processor lacks is said with the reason.  CI has
those that are small, and with ``MMAPROBE_DEPTH=ci`` fewer shapes.
"""

from __future__ import annotations

import os
import re
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mmaprobe
from mmaprobe.devices.products import open_product
from mmaprobe.parameters.schedule import Scope, known_schedules, schedule_named
from mmaprobe.probing.gemm.families import families_of
from mmaprobe.validation.products.comparing import Shape, compare_products, products_of

HERE = Path(__file__).parent
PRODUCTS: dict[str, Any] = tomllib.loads((HERE / "products.toml").read_text("utf-8"))
SHAPES = 8 if os.environ.get("MMAPROBE_DEPTH") == "ci" else 20
"""Shapes that each schedule is held at, by each of the families."""
LARGE = [
    name for name, row in PRODUCTS.items() if row["product"].startswith("torch:") or "array=torch" in row["product"]
]
"""Schedules of products that need PyTorch."""
MOST_PRODUCTS = 1 << 24
"""Products of numbers of one call at most."""
SEED = 20


def unlike(row: dict[str, Any]) -> str:
    """Why this processor does not run a row's code; empty where it does."""
    said = Path("/proc/cpuinfo").read_text("utf-8", "replace") if Path("/proc/cpuinfo").exists() else ""
    words = {word for line in re.findall(r"^(?:flags|vendor_id)\s*:(.*)$", said, re.MULTILINE) for word in line.split()}
    missing, vendor = [each for each in row.get("needs", []) if each not in words], row.get("vendor", "")
    if missing:
        return f"this processor has no {', '.join(missing)}"
    if vendor and vendor not in words:
        return f"the library has other code for a processor that is not {vendor}"
    wider = [each for each in row.get("lacks", []) if each in words]
    return f"the library has other code for a processor with {wider[0]}" if wider else ""


def shapes_of(scope: Scope, rng: np.random.Generator) -> list[Shape]:
    """The smallest shape of a scope and others, as many small as large ones; every second one is odd."""
    least = scope.least_m, scope.least_n, max(scope.least_k, 2)
    most = scope.most_m, scope.most_n, scope.most_k
    found = [least]
    while len(found) < SHAPES:
        m, n, k = np.exp(rng.uniform(np.log(least), np.log(np.add(most, 1)))).astype(int).tolist()
        if len(found) % 2:
            m, n, k = (min(each | 1, top) for each, top in zip((m, n, k), most, strict=True))
        if m * n * k <= MOST_PRODUCTS:
            found.append((m, n, k))
    return found


def test_every_schedule_that_ships_has_a_library() -> None:
    assert PRODUCTS.keys() == set(known_schedules())


@pytest.mark.libraries
def test_the_libraries_are_those_that_were_asked() -> None:
    for line in (HERE / "requirements.txt").read_text("utf-8").split():
        name, _, wanted = line.partition("==")
        try:
            found = version(name).partition("+")[0]
        except PackageNotFoundError:
            found = "none"
        assert found == wanted, f"{name} {wanted} is wanted, {found} is installed: nox -s gemm"


@pytest.mark.libraries
@pytest.mark.parametrize("name", [name for name in PRODUCTS if name not in LARGE])
def test_no_bit_differs(name: str) -> None:
    differs_nowhere(name)


@pytest.mark.libraries
@pytest.mark.parametrize("name", LARGE)
def test_no_bit_of_pytorchs_differs(name: str) -> None:
    differs_nowhere(name)


def differs_nowhere(name: str) -> None:
    """A schedule and each of its libraries' products, every element of every family at ``SHAPES`` shapes."""
    row = PRODUCTS[name]
    reason = unlike(row)
    if reason:
        pytest.skip(f"{name}: {reason}")
    shapes = shapes_of(schedule_named(name).scope, np.random.default_rng(SEED))
    for product in (row["product"], *row.get("also", [])):
        target = product.replace("libraries.py", str(HERE / "libraries.py"))
        pair = products_of(open_product(f"function:{target}"), open_product(f"gemm:{name}"))
        found = compare_products(pair, elements=1, seed=SEED, shapes=shapes)
        wrong = [(each.shape, each.family, each.differing) for each in found.calls if each.differing]
        assert (wrong, found.absent) == ([], []), product
        assert len(found.calls) == len(families_of(pair.p)) * SHAPES
        print(f"{name}, {product}: {found.elements:,} elements at {SHAPES} shapes, 0 differ")


@pytest.mark.libraries
def test_alpha_and_beta_of_addmm() -> None:
    """MKL multiplies B by alpha and C by beta, both rounded, and starts from the latter: every bit, at other shapes."""
    reason = unlike(PRODUCTS["mkl_amd_f32"])
    if reason:
        pytest.skip(f"mkl_addmm_f32: {reason}")
    import torch

    torch.set_num_threads(1)
    model, rng = mmaprobe.gemm(HERE / "mkl_addmm_f32.toml"), np.random.default_rng(SEED)
    for m, n, k in ((23, 61, 2), (31, 77, 193), (64, 128, 1001), (101, 99, 385), (200, 61, 3000)):
        for spread in (0, 20, -60):
            a, b, c = (
                np.ldexp(
                    rng.standard_normal(shape), rng.integers(-abs(spread), abs(spread) + 1, shape) + min(spread, 0)
                )
                for shape in ((m, k), (k, n), (m, n))
            )
            x, y, z = (torch.from_numpy(each.astype(np.float32)) for each in (a, b, c))
            for alpha, beta in ((1.0, 1.0), (0.7, 0.0), (0.7, 0.3), (-1.5e-3, 1.0), (3.0, -2.6)):
                d = torch.addmm(z, x, y, alpha=alpha, beta=beta).numpy()
                read = z.numpy() if beta else np.zeros((m, n), np.float32)
                ours = model(x.numpy(), y.numpy(), read, alpha=np.float32(alpha), beta=np.float32(beta))
                assert (ours.view(np.uint32) == d.view(np.uint32)).all(), (m, n, k, spread, alpha, beta)


MKLS_EDGES = {
    ("float64", (7, 5), (1, 0)): (9, 17, 40, 100, 1000, 1001, 1003, 3005),
    ("float64", (13, 27), (3, 24)): (9, 17, 40, 100, 1000, 1001, 1003, 3005),
    ("float32", (7, 5), (3, 0)): (9, 17, 40, 100, 1000, 1001, 1003, 3005),
    ("float32", (3, 18), (1, 1)): (9, 17, 40, 100, 1000, 1001, 1003, 3005),
    ("float64", (37, 53), (1, 48)): (9, 100, 300, 333, 450, 500, 501, 1000, 1001),
}
"""Elements, and Ks, whose order is known and no schedule of the record."""
HALVED = {300: 150, 333: 166, 450: 226, 500: 250, 501: 250}
"""Of K at 37 x 53 the first range."""


def met_by_eights(first: int, k: int, p: int, q: int) -> int:
    """Products in the smallest sum that holds lanes p < q: of every eight of a range of ``first`` lanes, and of what is
    left of K, four go onto the sum, and four are added among themselves and then to it."""

    def reached(lane: int) -> int:
        start, length = (0, first) if lane < first else (first, k - first)
        eights, place = divmod(lane - start, 8)
        if lane - start >= length // 8 * 8:
            return lane + 1
        return start + 8 * eights + (place + 1 if place < 4 else 8)

    start, length = (0, first) if p < first else (first, k - first)
    x, y = p - start, q - start
    together = (p < first) == (q < first) and x // 8 == y // 8 and x % 8 >= 4 and y < length // 8 * 8
    return y % 8 - 3 if together else max(reached(p), reached(q))


@pytest.mark.libraries
@pytest.mark.parametrize("edge", MKLS_EDGES, ids=str)
def test_the_order_of_mkls_edges_is_as_the_page_says(edge: tuple[str, tuple[int, int], tuple[int, int]]) -> None:
    """What docs/gemm.md says of them: pairs of lanes far apart and near, +M and -M, and ones."""
    reason = unlike(PRODUCTS["mkl_amd_f32"])
    if reason:
        pytest.skip(f"MKL's edges: {reason}")
    import torch

    torch.set_num_threads(1)
    (dtype, (m, n), (i, j)), rng = edge, np.random.default_rng(SEED)
    large = 2.0 ** (200 if dtype == "float64" else 60)
    for k in MKLS_EDGES[edge]:
        for number in range(60):
            p = int(rng.integers(k - 1))
            q = min(k - 1, p + int(rng.integers(1, 9))) if number % 2 else int(rng.integers(p + 1, k))
            a, b = np.ones((m, k), dtype), np.ones((k, n), dtype)
            a[i, p], a[i, q] = large, -large
            met = k - int((torch.from_numpy(a) @ torch.from_numpy(b)).numpy()[i, j])
            first = HALVED.get(k, k) if (m, n) == (37, 53) else k
            assert met == met_by_eights(first, k, p, q), (k, p, q)
