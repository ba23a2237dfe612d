"""The programs of docs/emulators.md as devices: under QEMU, which says so by itself, and under Spike where it is."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import mmaprobe
from mmaprobe.catalog.lookup import instructions
from mmaprobe.devices.base import open_device
from mmaprobe.devices.process import Process
from mmaprobe.errors import UsageError
from mmaprobe.parameters.files import ParameterFile
from mmaprobe.survey.parameter_entries import updated
from mmaprobe.survey.survey_rows import alone

RECIPES = Path(__file__).parents[2] / "docs" / "recipes"
MACHINES = [
    pytest.param("aarch64", marks=pytest.mark.needs("aarch64 programs")),
    pytest.param("riscv64", marks=pytest.mark.needs("riscv64 programs")),
]
DOTS = ("zvfwdota16bf", "zvfqwdota8f", "zvqwdota8i", "zvfwbdota16bf", "zvfqwbdota8f", "zvqwbdota8i")


def compiled(name: str, machine: str, folder: Path, *options: str) -> Path:
    """A recipe's program for a machine; its compiler has nothing to say against it."""
    out = folder / name.removesuffix(".c")
    command = [f"{machine}-linux-gnu-gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-static", *options]
    subprocess.run([*command, str(RECIPES / name), "-o", str(out)], check=True)
    return out


@pytest.fixture(params=MACHINES)
def fma(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Process]:
    """The multiply-add of another machine, under QEMU."""
    program = compiled("emulated_fma.c", request.param, tmp_path)
    device = open_device(f"process:{shlex.join([f'qemu-{request.param}-static', str(program)])}")
    assert isinstance(device, Process)
    yield device
    device.close()


def test_a_multiply_add_under_qemu(fma: Process) -> None:
    """It is found to be one, on a basis that is no measurement; its user cannot call it silicon."""
    assert fma.info()["silicon"].startswith(f"no, emulated by {fma.command[0]} ")
    made = fma.instructions()[0]
    found = mmaprobe.derive(fma, made.id, seed=1, fresh=500)
    assert found.status == "exact"
    assert found.datapath is not None
    file, _ = updated(ParameterFile(fma.architecture), alone(fma, made, found, 1))
    (entry,) = file.entries.values()
    assert (entry.basis, entry.evidence) == ("predicted", "")
    assert "(emulated by qemu-" in entry.source
    with pytest.raises(UsageError, match=r"silicon=yes, but qemu-.* runs it"):
        open_device(f"process:silicon=yes {shlex.join(fma.command)}")


@pytest.mark.needs("riscv64 programs")
@pytest.mark.parametrize("bits", [128, 256, 512])
def test_the_dot_products_are_those_of_the_catalog(tmp_path: Path, bits: int) -> None:
    """Named by a machine with such vectors; QEMU does not run them."""
    program = compiled("riscv_dot.c", "riscv64", tmp_path, "-march=rv64gcv")
    command = ["qemu-riscv64-static", "-cpu", f"rv64,v=true,vlen={bits}", str(program)]
    device = open_device(f"process:{shlex.join(command)}")
    assert isinstance(device, Process)
    assert device.architecture == f"riscv-vlen{bits}"
    every = instructions(device.architecture)
    assert [made.id for made in every if not device.supports(made)] == []
    assert len(every) == len(device._ids)
    device.close()


@pytest.mark.needs("spike")
@pytest.mark.parametrize("bits", [128, 256, 512])
def test_dot_products_under_spike(tmp_path: Path, bits: int) -> None:
    """Against the models, which are the specification's: one form of each unit, columns among them."""
    program = compiled("riscv_dot.c", "riscv64", tmp_path, "-march=rv64gcv")
    script = tmp_path / "spike.sh"
    isa = "_".join([f"rv64gcv_zvl{bits}b", *DOTS])
    script.write_text(f"exec spike --isa={isa} {shutil.which('pk')} {program} /dev/fd/3 3<&0 </dev/null\n")
    device = open_device(f"process:sh {script}")
    assert device.info()["silicon"].startswith("no, emulated by spike ")
    for name in (
        "vfwdota.vv",
        "vfqwdota.alt.vv{altfmt=1}",
        "vqwdotas.vv",
        "vfwbdota.vv",
        "vfqwbdota.vv",
        "vqwbdotau.vv",
    ):
        summary = mmaprobe.validate(device, f"model:riscv-vlen{bits}", name, 1000, 1)
        assert (summary.vectors, summary.mismatches) == (1000, 0), name
    assert isinstance(device, Process)
    device.close()
