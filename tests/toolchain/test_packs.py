"""Kernels in packs and bundles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mmaprobe.errors import NotHereError, UsageError
from mmaprobe.evidence.files import Lock, sealed
from mmaprobe.toolchain import bundle, kernel_cache
from mmaprobe.toolchain.build import build_all
from mmaprobe.toolchain.nvidia import nvrtc
from mmaprobe.toolchain.pack import LIST, open_pack, write_pack

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
FP8 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"


@pytest.fixture(autouse=True)
def _no_shared_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernel_cache.CACHE, str(tmp_path / "cache"))


@pytest.mark.needs("cuda")
def test_a_pack_gives_the_same_kernels_back(tmp_path: Path) -> None:
    built = list(build_all([(F16, "sm_90a"), (FP8, "sm_90a")], 2))
    written = write_pack(tmp_path / "pack", "sm_90a", nvrtc.version(), built[:1])
    written = write_pack(tmp_path / "pack", "sm_90a", nvrtc.version(), built[1:])
    read = open_pack(tmp_path / "pack")
    assert read == written
    assert [read.kernel(each.instruction) for each in built] == [each.kernel for each in built]
    with pytest.raises(UsageError, match=r"has no mma\.nothing.*mmaprobe compile --arch sm_90a"):
        read.kernel("mma.nothing")
    with pytest.raises(UsageError, match="holds a pack of sm_90a"):
        write_pack(tmp_path / "pack", "sm_80", nvrtc.version(), [])


@pytest.mark.needs("cuda")
def test_a_damaged_pack_is_refused(tmp_path: Path) -> None:
    (built,) = build_all([(F16, "sm_90a")])
    write_pack(tmp_path, "sm_90a", nvrtc.version(), [built])
    (binary,) = tmp_path.glob("*.cubin")
    whole = binary.read_bytes()
    binary.write_bytes(whole[:-1])
    with pytest.raises(UsageError, match="damaged or changed"):
        open_pack(tmp_path).kernel(F16)
    binary.unlink()
    with pytest.raises(UsageError, match="the pack is not whole"):
        open_pack(tmp_path).kernel(F16)
    table = json.loads((tmp_path / LIST).read_text())
    for broken in ({**table, "schema": 7}, {**table, "kernels": {F16: {}}}, {**table, "kind": "x"}):
        (tmp_path / LIST).write_text(json.dumps(sealed(broken)))
        with pytest.raises(UsageError, match=LIST):
            open_pack(tmp_path)
    with pytest.raises(UsageError, match="No such file"):
        open_pack(tmp_path / "nothing")


def test_of_two_processes_one_writes_a_pack(tmp_path: Path) -> None:
    with Lock(tmp_path / "pack"), pytest.raises(UsageError, match="is writing there"):
        write_pack(tmp_path / "pack", "sm_90a", "a toolchain", [])
    write_pack(tmp_path / "pack", "sm_90a", "a toolchain", [])
    assert [path.name for path in (tmp_path / "pack").iterdir()] == [LIST]


@pytest.mark.parametrize(
    ("home", "wanted", "device"), [("sm_90a", "mmaprobe[driver]", "cuda:0"), ("gfx942", "mmaprobe", "hip:0")]
)
def test_a_bundle_says_how_to_install_it(tmp_path: Path, home: str, wanted: str, device: str) -> None:
    script = bundle.write_script(tmp_path, home).read_text()
    assert "--no-index --find-links" in script
    assert f"'{wanted}'" in script
    assert f"--device {device} --pack" in script
    assert bundle.requirement(home, str(Path(__file__).parents[2])).endswith(wanted.removeprefix("mmaprobe"))
    with pytest.raises(UsageError, match="neither a checkout nor a wheel"):
        bundle.requirement(home, str(tmp_path))


def test_a_bundle_without_wheels_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(NotHereError, match="could not gather mmaprobe: no such package"):
        bundle.gather(tmp_path, "mmaprobe", ("sh", "-c", "echo no such package >&2; exit 1"))
