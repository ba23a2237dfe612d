"""Random units of which something wrong was said once, by a search that ran over thousands of them (``whole.py``)."""

from __future__ import annotations

import pytest
from outcomes import outcome

pytestmark = pytest.mark.long


def test_a_signalling_c_beside_a_nan_of_a_factor_in_the_first_of_many_steps() -> None:
    """A factor's NaN was said to have a code of its own, which one of 48,000 vectors denied."""
    found = outcome(4085)
    assert found.verdict == "recovered", found.line


def test_a_zero_that_shows_no_exponent() -> None:
    """A search of before said that it shows one; what misled it was not found, and other vectors lead elsewhere now."""
    found = outcome(4170)
    assert found.verdict == "recovered", found.line
