"""Examples that Hypothesis draws may take as long as they take: a busy machine is no fault."""

from hypothesis import settings


def test_examples_have_no_deadline() -> None:
    assert settings().deadline is None
