"""A child process that tries instructions on a stand-in GPU: the fault is its first argument."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmaprobe.devices.gpu.device import GpuDevice
from mmaprobe.devices.gpu.trial import serve
from stand_ins import fake_cuda, fake_hip


def gpu(scheme: str, fault: str = "", after: int = 0) -> GpuDevice:
    """A device of a vendor with a fault, from a launch on, and a short time limit."""
    if scheme == "cuda":
        return fake_cuda.device(fake_cuda.FakeCuda(fault=fault, after=after), seconds=0.05)
    return fake_hip.device(fake_hip.FakeHip(fault=fault, after=after), options="&timeout=0.05")


if __name__ == "__main__":
    device = gpu("cuda", sys.argv[1])
    sys.exit(serve(device, device.architecture, sys.stdin, sys.stdout))
