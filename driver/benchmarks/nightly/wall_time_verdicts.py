"""What verdicts by a clock are worth: false alarms, and slowdowns found, with several noises."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Final

from numpy.random import default_rng

from driver.benchmarks.figures import Figure
from driver.benchmarks.nightly.noise import MeasuredNoise
from driver.benchmarks.nightly.noise_models import MODELS, Noise, measured
from driver.benchmarks.nightly.simulated_nights import simulate
from driver.report.rounds import Round

_ROWS: Final = 20
_SLOWDOWN: Final = 0.03
_MOST_ALARMS: Final = 1.0
_FOUND_PERCENT: Final = 95.0
_LIFE: Final = 200
"""Nights until a device is replaced, and its rows begin anew."""


def wall_time_figures(rounds: Sequence[Round], nights: int, seed: int) -> Iterator[Figure]:
    """Rows for what was measured, with its control and without, and for each model of noise."""
    noise = MeasuredNoise.of(rounds)
    for title, values, control in (
        ("measured, with a control", noise.with_control, True),
        ("measured, without", noise.without, False),
    ):
        deviation = 100 * statistics.pstdev(values)
        yield Figure(name=f"{title}: deviation of a night", value=deviation, unit="%")
        drawn = measured(noise, control=control)
        yield from _simulated(title, drawn, nights, seed, found_percent=_FOUND_PERCENT * control)
    for title, model in MODELS.items():
        yield from _simulated(title, model, nights, seed)


def _simulated(
    title: str, noise: Noise, nights: int, seed: int, found_percent: float = 0.0
) -> Iterator[Figure]:
    drawn = noise(default_rng(seed), nights, _ROWS)
    played = simulate(drawn, _SLOWDOWN, device_changes=(nights - 1) // _LIFE)
    yield Figure(
        name=f"{title}: false alarms in 200 nights of {_ROWS} rows",
        value=played.false_alarms,
        unit="",
        goal=_MOST_ALARMS,
    )
    yield Figure(
        name=f"{title}: {100 * _SLOWDOWN:g} % slower, found within 2 nights",
        value=100 * played.found / played.tried if played.tried else float("nan"),
        unit="%",
        goal=found_percent or None,
        more_is_better=True,
    )
