"""Answers are computed once, as far as they are asked for."""

from __future__ import annotations

import numpy as np

from driver.network.graph.parts import Arrays
from driver.tune.answers import Answers, Hear


def test_what_was_computed_is_kept() -> None:
    ran: list[int] = []

    def double(part: Arrays, heard: Hear | None) -> Arrays:
        ran.append(len(part["x"]))
        if heard is not None:
            heard(len(part["x"]))
        return {"y": 2 * part["x"]}

    answers = Answers(double, {"x": np.arange(6)})
    assert answers.first(2)["y"].tolist() == [0, 2]
    heard: list[int] = []
    assert answers.first(5, heard.append)["y"].tolist() == [0, 2, 4, 6, 8]
    assert answers.first(3)["y"].tolist() == [0, 2, 4]
    assert (ran, heard) == ([2, 3], [2, 3])
    assert answers.first(6, heard.append)["y"].tolist() == [0, 2, 4, 6, 8, 10]
    assert heard == [2, 3, 5, 1]
