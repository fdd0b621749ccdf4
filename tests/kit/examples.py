"""How many examples a property test has: all of them in `.ci/run`, two in five in `make test`.

They are drawn anew in each run, so that what few of them miss today is met by others tomorrow.
"""

from __future__ import annotations

from typing import Final

from hypothesis import settings

THOROUGH: Final = "thorough"
"""The profile of Hypothesis with all examples: `pytest --hypothesis-profile thorough`."""

_BRIEF: Final = "brief"


def register_profiles() -> None:
    """Makes both profiles known, and loads that of `make test`. No test is timed in either."""
    settings.register_profile(THOROUGH, max_examples=100, deadline=None)
    settings.register_profile(_BRIEF, max_examples=_share(100), deadline=None)
    settings.load_profile(_BRIEF)


def examples(count: int) -> int:
    """How many of `count` examples a test is to have in this run."""
    return count if settings.get_current_profile_name() == THOROUGH else _share(count)


def _share(count: int) -> int:
    return -(-2 * count // 5)
