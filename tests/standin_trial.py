"""A child process that tries instructions on a stand-in GPU: its arguments are a fault and the device's name."""

from __future__ import annotations

import sys

from mmaprobe.devices.gpu_trial import main
from standin_gpu import StandIn, plugged

if __name__ == "__main__":
    with plugged(StandIn(fault=sys.argv[1])):
        sys.exit(main(sys.argv[2]))
