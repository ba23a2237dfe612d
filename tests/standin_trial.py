"""A child process that tries instructions on a stand-in GPU: its arguments are a fault and the device's name."""

from __future__ import annotations

import sys

from mmaprobe.devices.gpu.trial import main
from vendors import VENDORS

if __name__ == "__main__":
    vendor = VENDORS[sys.argv[2].partition(":")[0]]
    with vendor.plugged(vendor.gpu(fault=sys.argv[1])):
        sys.exit(main(sys.argv[2]))
