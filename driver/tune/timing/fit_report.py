"""A fit for people and for machines, and why it is none that predicts better."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from tilefarm.measurement import DeviceClock
from tilefarm.plural import plural
from tilefarm.target import Target

from driver.report.space_chart import rank_correlation
from driver.report.terminal.text_table import text_table
from driver.tune.timing.measured import Measured
from driver.tune.timing.timing_fit import Errors, Parameters, TimingFit

LEAST_TRIALS: Final = 12
"""Three for each of up to four parameters."""
_WORTH: Final = 0.95
"""Left-out workloads are predicted better where their error is below this share of what it was."""
_UNEXPLAINED: Final = 0.4
"""An error of left-out workloads, a factor of 1.5, from which on the parameters explain nothing:
estimates of simulated designs are off by a quarter of it at most in the mean over workloads."""
_RANKS_ALIKE: Final = 0.05
"""Rank correlations that differ by less are equally good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionError:
    """How well a workload is predicted.

    Attributes:
        median, p90: of |log(measured / predicted)|.
        ranks: Spearman's rank correlation; None where it says nothing.
    """

    median: float
    p90: float
    ranks: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadErrors:
    """A workload under the parameters before, after, and fitted to all others."""

    name: str
    trials: int
    before: PredictionError
    after: PredictionError
    left_out: PredictionError | None


def workload_errors(measured: Measured, fit: TimingFit) -> list[WorkloadErrors]:
    """A row for each workload."""
    rows = []
    for at, each in enumerate(measured.workloads):
        logs = np.log(each.costs)
        alone = fit.left_out[at] if fit.left_out else None
        rows.append(
            WorkloadErrors(
                name=each.workload.name,
                trials=len(each.points),
                before=_error_of(logs, fit.errors_before[at]),
                after=_error_of(logs, fit.errors_after[at]),
                left_out=None if alone is None else _error_of(logs, alone.errors),
            )
        )
    return rows


def objection(measured: Measured, fit: TimingFit) -> str:
    """Why the fit is not to be used, with the numbers; empty if it is."""
    rows = workload_errors(measured, fit)
    others = [row.left_out for row in rows if row.left_out is not None]
    if measured.trials < LEAST_TRIALS:
        return f"{plural(measured.trials, 'trial')}, and {LEAST_TRIALS} are the least"
    if len(others) < len(rows) or len(rows) < 2:
        return "one workload alone, so nothing shows what the fit is worth for others"
    if fit.after == fit.before:
        return "nothing predicts the measured times better than the target as it is"
    before, left_out = _mean([row.before for row in rows]), _mean(others)
    if left_out.median >= _WORTH * before.median:
        return (
            f"workloads that are left out are {_percent(left_out.median)} off,"
            f" and {_percent(before.median)} before the fit"
        )
    if left_out.median > _UNEXPLAINED:
        return (
            f"workloads that are left out are still {_percent(left_out.median)} off: no parameters"
            " explain these times"
        )
    if (left_out.ranks or 0.0) < (before.ranks or 0.0) - _RANKS_ALIKE:
        return (
            f"schedules of workloads that are left out are ordered worse than before: rank"
            f" correlation {_rank(left_out.ranks)}, and {_rank(before.ranks)} before the fit"
        )
    return ""


def lines(measured: Measured, fit: TimingFit) -> Iterator[str]:
    """The fit as text."""
    rows = workload_errors(measured, fit)
    yield (
        f"{measured.target.name}: {plural(measured.trials, 'trial')} of"
        f" {plural(len(rows), 'workload')} in {measured.clock.value}, by"
        f" {', '.join(measured.devices) or 'devices without a name'}"
    )
    for why, count in measured.left_out:
        yield f"{plural(count, 'trial')} left out: {why}"
    yield ""
    yield from text_table(("parameter", "before", "after"), _parameter_rows(measured, fit))
    yield ""
    titles = ("% off: median (p90)", "trials", "before", "after", "left out", "rank: before")
    cells = [_cells(row.name, str(row.trials), row.before, row.after, row.left_out) for row in rows]
    befores, afters = [row.before for row in rows], [row.after for row in rows]
    others = [row.left_out for row in rows if row.left_out is not None]
    mean = (_mean(befores), _mean(afters), _mean(others) if others else None)
    cells.append(_cells("mean", str(measured.trials), *mean))
    yield from text_table((*titles, "after", "left out"), cells)


def document(measured: Measured, fit: TimingFit, fitted: Target) -> dict[str, Any]:
    """The fit as JSON."""
    return {
        "target": measured.target.name,
        "target_digest": measured.target.digest.hex,
        "clock": measured.clock.value,
        "sources": list(measured.sources),
        "devices": list(measured.devices),
        "trials": measured.trials,
        "left_out": dict(measured.left_out),
        "parameters": {
            name: {"before": before, "after": after}
            for name, before, after in _parameters(measured, fit)
        },
        "workloads": [asdict(row) for row in workload_errors(measured, fit)],
        "objection": objection(measured, fit),
        "fitted": json.loads(fitted.to_json()),
    }


def _error_of(logs: Errors, errors: Errors) -> PredictionError:
    median, p90 = np.quantile(np.abs(errors), [0.5, 0.9])
    ranks = rank_correlation((logs - errors).tolist(), logs.tolist())
    return PredictionError(median=float(median), p90=float(p90), ranks=ranks)


def _mean(errors: Sequence[PredictionError]) -> PredictionError:
    """Over workloads, each alike; of ranks over those that have one."""
    ranks = [error.ranks for error in errors if error.ranks is not None]
    return PredictionError(
        median=float(np.mean([error.median for error in errors])),
        p90=float(np.mean([error.p90 for error in errors])),
        ranks=float(np.mean(ranks)) if ranks else None,
    )


def _parameters(measured: Measured, fit: TimingFit) -> Iterator[tuple[str, int, int]]:
    before, after = _named(fit.before), _named(fit.after)
    if measured.clock is DeviceClock.CYCLES:
        del before["clock_mhz"]
    for name, value in before.items():
        yield name, value, after[name]


def _named(parameters: Parameters) -> dict[str, int]:
    timing = parameters.timing
    return {
        "bus_nbytes": timing.bus_nbytes,
        "log_burst_beats": timing.log_burst_beats,
        "dram_delay_cycles": timing.dram_delay_cycles,
        "clock_mhz": parameters.clock_mhz,
    }


def _parameter_rows(measured: Measured, fit: TimingFit) -> list[tuple[str, str, str]]:
    is_known = measured.target.board.clock_mhz > 0
    return [
        (name, str(before) if is_known or name != "clock_mhz" else f"about {before}", str(after))
        for name, before, after in _parameters(measured, fit)
    ]


def _cells(name: str, trials: str, *errors: PredictionError | None) -> tuple[str, ...]:
    off = (f"{_off(s.median)} ({_off(s.p90)})" if s else "-" for s in errors)
    ranks = (_rank(s.ranks if s else None) for s in errors)
    return (name, trials, *off, *ranks)


def _percent(error: float) -> str:
    return f"{_off(error)} %"


def _off(error: float) -> str:
    """0.1 of a logarithm is 10.5 %."""
    return f"{100 * np.expm1(error):.1f}"


def _rank(ranks: float | None) -> str:
    return "-" if ranks is None else f"{ranks:.2f}"
