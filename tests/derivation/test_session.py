"""What was asked and answered stays; views are filters over it."""

from __future__ import annotations

import numpy as np

from mmaprobe.catalog.lookup import instruction
from mmaprobe.derivation.session import Session, View
from mmaprobe.derivation.vectors.stages import Pools
from mmaprobe.devices.base import open_device

FORM = instruction("x86.vdpbf16ps")


def test_views_see_what_they_take_of_all_that_was_and_will_be_asked() -> None:
    """By answers and by vectors, and what was asked on their behalf; what no hypothesis is held to is in none."""
    session = Session(open_device("model:x86-64+amd"), FORM)
    pool = Pools(FORM).safe
    before = session.ask(pool(1, 10))
    even = View(session, lambda _, answers: answers % 2 == 0)
    positive = View(session, lambda vectors, _: vectors.a[:, 0] < 0x8000)
    assert (even.seen()[1] == before[before % 2 == 0]).all()
    _, own = even.ask(pool(2, 6))
    assert len(own) == 6
    after = session.ask(pool(3, 10), lambda answers: np.arange(len(answers)) < 5)
    assert session.all.count == 10 + 6 + 5
    assert len(session) == 10 + 6 + 10
    odd = before[before % 2 == 1]
    assert even.count == session.all.count - len(odd) - int((after[:5] % 2 == 1).sum())
    assert (positive.seen()[0].a[:, 0] < 0x8000).all()
    assert positive.count == int((session.all.seen()[0].a[:, 0] < 0x8000).sum())
    assert session.launches == 3
    session.check_stable()
    assert (session.launches, session.run) == (4, 52)
