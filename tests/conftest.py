"""What all tests share: the seed of what draws one otherwise, so that every run of them is the same."""

from __future__ import annotations

import os

os.environ.setdefault("MMAPROBE_SEED", "0")
