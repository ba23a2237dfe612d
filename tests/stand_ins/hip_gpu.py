"""``hip:N`` on the stand-in for ROCm, by its name, and packs for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from mmaprobe.toolchain.pack import Pack
from stand_ins.campaign import built_campaign
from stand_ins.fake_hip import TOOLCHAIN, FakeHip, campaign_kernel, kernel, machine
from stand_ins.kernel_source import Seed, pack_of


def pack(
    folder: Path,
    names: tuple[str, ...],
    seeds: Mapping[str, tuple[Seed, ...]] | None = None,
    architecture: str = "gfx942",
    campaigns: tuple[str, ...] = (),
    toolchain: str = TOOLCHAIN,
) -> Pack:
    """A pack of stand-ins for code objects; ``seeds`` by id; of ``campaigns`` the fused kernel as well."""
    made = [built_campaign(name, architecture, campaign_kernel) for name in campaigns]
    return pack_of(kernel, folder, names, seeds, architecture, made, toolchain)


@contextmanager
def plugged(
    hip: FakeHip, files: dict[str, str] | None = None, child: str = "", environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """This process's ``hip:N`` are the stand-ins; a child's, for first runs, one with the fault ``child``."""

    def command(device: str) -> tuple[str, ...]:
        return (sys.executable, str(Path(__file__).with_name("gpu_trial.py")), child, device)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mmaprobe.devices.amd.device.Machine", lambda: machine(hip, files, **(environment or {})))
        patch.setattr("mmaprobe.devices.amd.device.kernel", kernel)
        patch.setattr("mmaprobe.devices.amd.device.kernel_of", campaign_kernel)
        patch.setattr("mmaprobe.devices.amd.device.command", command)
        yield
