"""Formulas of layouts: what they accept, how they bind, and that their C text means the same."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from mmaprobe.catalog.formula import Formula
from mmaprobe.catalog.fragment import Fragment
from mmaprobe.catalog.shared_memory import shared_matrix
from mmaprobe.errors import UsageError
from second_source.layout_rows import fragments


@pytest.mark.parametrize(
    "text", ["lane / 2", "f(lane)", "lane if r else 0", "1.5", "-lane", "lane < 2", "True", "a.b", ""]
)
def test_what_is_no_formula(text: str) -> None:
    with pytest.raises(UsageError, match="formula"):
        Formula(text)


def test_binding_folds() -> None:
    made = Formula("q*E + e + (r >> 1)*4*E").bind({"E": 1, "e": 0, "q": Formula("lane & 3")})
    assert made == Formula("(lane & 3) + (r >> 1) * 4")
    assert made.names == {"lane", "r"}
    assert Formula("lane * 0 + slot % 1 + 3").bind({"slot": Formula("lane")}).bind({}) == Formula("3")
    assert made(lane=7, r=2) == 7
    with pytest.raises(UsageError, match="needs lane"):
        made(r=1)


def test_c_binds_comparison_tighter_than_python() -> None:
    assert Formula("(lane & 1) == r").c == "(lane & 1) == r"
    assert Formula("lane & (1 == r)").c == "lane & (1 == r)"
    assert Formula("a - (b - c) - d // e * f").c == "a - (b - c) - (d / e) * f"


def body(found: Fragment, text: str, choices: dict[str, int]) -> str:
    """C that puts the value of an expression at each place; `r` and `e` are the register and what is in it."""
    wide = max(found.register_bits // found.bits, 1)
    given = "".join(f"const int {name} = {value}; (void){name}; " for name, value in choices.items())
    return (
        f"for (int lane = 0; lane < {found.lanes}; ++lane) for (int slot = 0; slot < {found.slots}; ++slot) "
        f"{{ const int r = slot / {wide}, e = slot % {wide}; (void)r; (void)e; {given}put({text}); }}"
    )


@pytest.mark.long
@pytest.mark.needs("g++")
def test_compiled_c_equals_numpy(tmp_path: Path) -> None:
    """Each axis and condition of every fragment, by slot and by register, compiled and run over all places."""
    expected = {}
    for found in (one for one in fragments() if one.lanes * one.slots <= 8192):
        choices = {name: values[-1] for name, values in found.choices}
        index = found.coordinates(**choices)
        whole = found.register_bits % found.bits == 0
        for axis, _ in found.axes:
            for by_register in (False, True) if whole else (False,):
                expected[body(found, found.c(axis, by_register=by_register), choices)] = index[axis]
        expected[body(found, found.c_held(by_register=whole), choices)] = found.held(**choices).astype(int)
    for swizzle, major in [
        (16, "k_major"),
        (128, "k_major"),
        (16, "mn_major"),
        (64, "mn_major"),
        (128, "mn_major_32b"),
    ]:
        made = shared_matrix(64, 64, 16, swizzle, major=major)
        x = f"const int x = 2 * {'k' if major == 'k_major' else 'mn'}; (void)k; "
        loops = "for (int mn = 0; mn < 64; ++mn) for (int k = 0; k < 64; ++k)"
        expected[f"{loops} {{ {x}put({made.c}); }}"] = made.bit(*np.indices((64, 64))) // 8
    run = compiled(tmp_path, list(expected))
    wanted = np.concatenate([np.ravel(values) for values in expected.values()])
    assert len(run) == len(wanted)
    assert (run == wanted).all()


def compiled(folder: Path, lines: list[str]) -> np.ndarray:
    """What a program of these lines puts, as integers."""
    source = folder / "formulas.cpp"
    parts = [f"static void part{number}() {{ {line} }}" for number, line in enumerate(lines)]
    calls = " ".join(f"part{number}();" for number in range(len(lines)))
    text = "#include <cstdio>\nstatic void put(int v) { fwrite(&v, sizeof v, 1, stdout); }\n"
    source.write_text(text + "\n".join(parts) + f"\nint main() {{ {calls} }}\n")
    subprocess.run(["g++", "-O0", "-o", str(folder / "formulas"), str(source)], check=True)
    out = subprocess.run([str(folder / "formulas")], capture_output=True, check=True).stdout
    return np.frombuffer(out, np.int32)
