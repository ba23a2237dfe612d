"""A product that takes long listens to signals, in the midst of native code."""

from __future__ import annotations

import signal
from dataclasses import replace
from types import FrameType

import numpy as np
import pytest

import mmaprobe
from cases.random_products import alone
from mmaprobe.parameters.schedule import Accumulators, Join, Ranges


def test_an_interrupt_ends_a_product_before_all_of_d_is_written() -> None:
    """The signal comes after this process has computed for half a second; all of D takes a hundred times that."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    made = replace(alone(Ranges(), Accumulators("f64"), Join("f64")), a="f64", b="f64", d="f64")
    a, b = np.broadcast_to(1.0, (4096, 1 << 16)), np.broadcast_to(1.0, (1 << 16, 4096))
    d = np.zeros((4096, 4096))
    before = signal.signal(signal.SIGPROF, interrupt)
    try:
        signal.setitimer(signal.ITIMER_PROF, 0.5)
        with pytest.raises(KeyboardInterrupt):
            mmaprobe.gemm(made)(a, b, out=d)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    assert 0 < np.count_nonzero(d) < d.size
    assert set(np.unique(d)) == {0.0, 65536.0}
    assert (mmaprobe.gemm(made)(a[:3, :9], b[:9, :3]) == 9).all()
