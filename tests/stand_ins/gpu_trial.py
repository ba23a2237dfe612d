"""A child process that tries instructions on a stand-in GPU: its arguments are a fault and the device's name."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmaprobe.devices.gpu.trial import main
from stand_ins.vendors import VENDORS

if __name__ == "__main__":
    vendor = VENDORS[sys.argv[2].partition(":")[0]]
    with vendor.plugged(vendor.gpu(fault=sys.argv[1])):
        sys.exit(main(sys.argv[2]))
