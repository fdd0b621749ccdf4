"""What was predicted beside what was measured, as numbers and dots."""

from __future__ import annotations

import pytest

from driver.report.space_chart import rank_correlation, space_section
from driver.report.summary import SpaceRow

ROW = SpaceRow(
    workload="conv<2d>",
    all_points=1536.0,
    valid_points=1216.0,
    is_exact=True,
    measured=4,
    failed=1,
    predictions=((1, 100.0, 110.0), (2, 200.0, 200.0), (4, 400.0, 300.0)),
    deciding=(("slots", 0.84), ("tile_oh", 0.5), ("hold", 0.1)),
)


@pytest.mark.parametrize(
    ("predicted", "measured", "rank"),
    [
        ((1, 2, 3), (10, 20, 21), 1.0),
        ((1, 2, 3), (3, 2, 1), -1.0),
        ((1, 1, 2, 3), (5, 5, 6, 7), 1.0),
        ((1, 2, 3, 4), (1, 3, 2, 4), 0.8),
        ((1, 1, 1), (1, 2, 3), None),
        ((1, 2), (1, 2), None),
    ],
)
def test_ranks_are_compared(
    predicted: tuple[float, ...], measured: tuple[float, ...], rank: float | None
) -> None:
    assert rank_correlation(predicted, measured) == (rank and pytest.approx(rank))


def test_a_space_has_a_row_and_its_trials_have_dots() -> None:
    section = space_section([ROW])
    cells = (
        "conv&lt;2d&gt;",
        "1.54k",
        "1\u202f216",
        "1.000",
        "10.0%",
        "25.0%",
        "slots 84%, tile_oh 50%",
    )
    assert all(f">{cell}</td>" in section for cell in cells)
    assert "conv<2d>" not in section
    assert section.count("<circle") == len(ROW.predictions) + 1


def test_where_nothing_is_predicted_there_is_no_chart() -> None:
    plain = SpaceRow(
        workload="zip", all_points=2e9, valid_points=9e8, is_exact=False, measured=2, failed=0
    )
    section = space_section([plain])
    assert "about 900M" in section
    assert "<svg" not in section
