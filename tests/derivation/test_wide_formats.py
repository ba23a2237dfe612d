"""Vectors of 64-bit formats, where a mask is no signed integer: NumPy from 2.5 on takes none for one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mmaprobe.catalog.lookup import instruction
from mmaprobe.derivation.vectors.plain import zeroed_vectors
from mmaprobe.derivation.vectors.rivals import attack_vectors
from mmaprobe.parameters.lookup import datapath_for

MADE = instruction("mma.m16n8k8.f64.f64.f64.f64")
BEFORE = np.where


def where(condition: Any, *choices: Any) -> Any:
    """``np.where`` as NumPy 2.5 has it."""
    for each in choices:
        if isinstance(each, int) and not -(1 << 63) <= each < 1 << 63:
            raise OverflowError("Python int too large to convert to C long")
    return BEFORE(condition, *choices)


def test_zeros_and_attacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "where", where)
    zeroed = zeroed_vectors(MADE, 1, 500)
    assert {0, 1 << 63} <= set(zeroed.a.ravel().tolist())
    path = datapath_for("sm_90a", MADE)
    rival = datapath_for("sm_90a", instruction(f"{MADE.id}.rz"))
    attacked = attack_vectors(MADE, path, (rival,), 1, 2000)
    assert (attacked.a >> np.uint64(52) == 0xFFF).any()
