"""Best and default cycles, also after some of them were taken back."""

from driver.search.scores import Scores


def test_the_best_is_the_least_of_earlier_and_present_ones() -> None:
    scores = Scores({"a": 70}, {"a": 100})
    scores.add("a", 1, 80, is_default=False)
    scores.add("b", 2, 50, is_default=True)
    assert (scores.best("a"), scores.best("b"), scores.best("c")) == (70, 50, None)
    assert (scores.default("a"), scores.default("b")) == (100, 50)


def test_what_was_taken_back_does_not_count() -> None:
    scores = Scores({}, {})
    scores.add("a", 1, 80, is_default=True)
    scores.add("a", 2, 60, is_default=False)
    scores.remove("a", 2)
    assert scores.best("a") == 80
    scores.remove("a", 1)
    scores.remove("a", 1)
    assert scores.best("a") is None
