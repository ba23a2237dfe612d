"""A child process that tries instructions on a stand-in GPU: the fault is its first argument."""

from __future__ import annotations

import sys

from fake_cuda import FakeCuda, device
from mmaprobe.devices.gpu_trial import serve

if __name__ == "__main__":
    serve(device(FakeCuda(fault=sys.argv[1]), seconds=0.05), "sm_90a", sys.stdin, sys.stdout)
