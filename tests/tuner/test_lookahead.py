"""How far asking runs ahead of telling."""

from __future__ import annotations

import pytest

from tuner.lookahead import Lookahead


@pytest.mark.parametrize("most", [1, 2, 3, 8, 57])
def test_what_may_be_asked_for_and_what_has_to_be_known_are_one_rule(most: int) -> None:
    lookahead = Lookahead(most)
    for asked in range(4 * most):
        known = lookahead.known(asked)
        assert lookahead.limit(known) > asked
        assert known == 0 or lookahead.limit(known - 1) <= asked, "and no more is needed"


def test_the_first_ones_run_half_as_far_ahead() -> None:
    lookahead = Lookahead(8)
    assert [lookahead.limit(ended) for ended in range(6)] == [4, 6, 8, 10, 12, 13]
    assert Lookahead(1).limit(0) == 1


@pytest.mark.parametrize("most", [1, 2, 7])
def test_there_is_always_one_to_ask_for_when_all_have_ended(most: int) -> None:
    assert all(Lookahead(most).limit(ended) > ended for ended in range(50))
