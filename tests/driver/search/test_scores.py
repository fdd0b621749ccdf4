"""Best and default cycles."""

from driver.search.scores import Scores


def test_the_best_is_the_least_of_earlier_and_present_ones() -> None:
    scores = Scores({"a": 70}, {"a": 100})
    scores.add("a", 80, is_default=False)
    scores.add("b", 50, is_default=True)
    assert (scores.best("a"), scores.best("b"), scores.best("c")) == (70, 50, None)
    assert (scores.default("a"), scores.default("b")) == (100, 50)
