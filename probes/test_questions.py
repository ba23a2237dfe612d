"""Every question of ``probing/questions``, to every instruction: ``-k zero_exponent`` picks questions, too."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mmaprobe.evidence.records import Finding
from mmaprobe.probing.questions import PROBES

pytestmark = pytest.mark.suite("probes")


@pytest.mark.parametrize("question", PROBES)
def test_question(question: str, agreed: Callable[[str], Finding]) -> None:
    found = agreed(question)
    assert PROBES[question].sound(found.answer), found.text
