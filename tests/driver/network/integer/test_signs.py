"""Which int8 tensors are at least 0 whatever the input."""

from __future__ import annotations

import numpy as np
import pytest
from kit.networks.integer_case import Case

from driver.network.integer.qir import QGather, QuantOperator
from driver.network.integer.signs import never_negative

PLACES = np.array([-1, 0, 1, -1], np.int32)
"""Two elements, and two that are filled."""


def is_positive(op: QuantOperator, *, before: str) -> bool:
    case = Case(op=op, shapes=((1, 2, 1, 1),), before=before)
    return "op" in never_negative(case.graph())


@pytest.mark.parametrize("fill", [0, 1, 127])
def test_what_is_filled_with_bytes_from_zero_on_is_as_its_source(fill: int) -> None:
    op = QGather(index=PLACES, fill=fill)
    assert is_positive(op, before="clip")
    assert not is_positive(op, before="copy")


@pytest.mark.parametrize("fill", [-1, -128])
def test_what_is_filled_with_negative_bytes_is_negative_there(fill: int) -> None:
    assert not is_positive(QGather(index=PLACES, fill=fill), before="clip")
