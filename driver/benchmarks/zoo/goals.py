"""What integers may lose, beside what ONNX Runtime makes of the same network and the same data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from driver.benchmarks.figures import Figure
from driver.benchmarks.zoo.records import Tried

_FLOAT_POINTS: Final = 1.0
"""That a float network may lose in integers."""
_QUANTIZED_POINTS: Final = 0.5
"""That a network may lose that was quantized before."""
_LOW_SCORE: Final = 0.5
"""A network whose float score is below this may lose more, if it answers as in float."""
_LIKE_FLOAT_PERCENT: Final = 98.0


def goals(row: Tried) -> Iterator[Figure]:
    """The figures of a network that ONNX Runtime ran on the same samples; random data have none."""
    if row.is_seeded:
        return
    if row.peer is not None and row.device is not None:
        like = row.against_float
        points = round(100 * (row.peer - row.device), 6)  # 5 of 1000 samples are half a point
        may_lose = row.peer < _LOW_SCORE and not row.was_quantized and points > _FLOAT_POINTS
        if may_lose and like.unit == "%" and like.device is not None:
            yield Figure(
                name=f"{row.name}, {like.name}",
                value=like.device,
                unit="%",
                goal=_LIKE_FLOAT_PERCENT,
                more_is_better=True,
            )
        else:
            yield Figure(
                name=f"{row.name}, below ONNX Runtime",
                value=points,
                unit="points",
                goal=_QUANTIZED_POINTS if row.was_quantized else _FLOAT_POINTS,
            )
    if row.peer_int8_db is not None and row.sqnr_db is not None:
        yield Figure(
            name=f"{row.name}, signal to noise above its int8",
            value=row.sqnr_db - row.peer_int8_db,
            unit="dB",
            goal=0.0,
            more_is_better=True,
        )
