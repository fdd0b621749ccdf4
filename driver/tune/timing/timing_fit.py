"""The timing under which a space's estimate comes nearest to what was measured.

Coordinate search over the few values that hardware can have: for each width of the bus a walk along
the memory's delays, then the bursts, until nothing is better. The error of a schedule is
log(measured / predicted), its loss Huber's; the loss of a timing is the mean over workloads, so
each counts alike. Where the clock told the times, its rate is what leaves the median error at zero.

The estimate and not the simulator's exact cycles: it is what searches begin with, and takes a
hundredth of the time, for kernels need not be compiled and run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tilefarm.measurement import DeviceClock
from tilefarm.space import ESTIMATE, Point
from tilefarm.target import BusTiming, Target
from tilefarm.workload import Workload

from compile_worker.space import generate, lower_bound_cycles
from driver.farm.plausible import RunBounds
from driver.tune.timing.measured import Measured, completed

Errors: TypeAlias = NDArray[np.float64]
"""log(measured / predicted) of the schedules of one workload [n]."""

Say: TypeAlias = Callable[[str], None]
Loss: TypeAlias = Callable[[BusTiming], float]

BUSES: Final = (8, 16, 32, 64)
"""Bytes; the widths that a target may have."""
BURSTS: Final = tuple(range(1, 9))
DELAYS: Final = (
    *range(17),
    *(step << octave for octave in range(2, 8) for step in (5, 6, 7, 8)),
)
"""Cycles: each up to 16, then four to an octave, up to 1024. A neighbour changes what is predicted
by a few percent at most, which is what an estimate is worth."""
_FIRST_STRIDE: Final = 8
"""Places of DELAYS: two octaves, so that a walk from one end to the other is short."""
_SWEEPS: Final = 4
_WORTH: Final = 0.05
"""A parameter is changed where the loss falls by this share at least: what says next to nothing
stays as the target has it."""
_ROBUST: Final = 0.1
"""Beyond this error, 10 %, a schedule's loss grows no faster than the error: a few that something
else has slowed down do not decide."""
_CLOCKS: Final = (1, 10_000)
"""MHz that a target may have."""


def _silent(_: str) -> None:
    """Say nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What is fitted; `clock_mhz` is 0 where nobody knows it."""

    timing: BusTiming
    clock_mhz: int

    def target(self, target: Target) -> Target:
        """The target with these."""
        board = replace(target.board, clock_mhz=self.clock_mhz)
        return replace(target, timing=self.timing, board=board)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeftOut:
    """A workload that the others' fit predicts."""

    parameters: Parameters
    errors: Errors


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TimingFit:
    """The parameters before and after, and the errors under them, workload by workload.

    Attributes:
        left_out: one for each workload; none where there is only one.
    """

    before: Parameters
    after: Parameters
    errors_before: tuple[Errors, ...]
    errors_after: tuple[Errors, ...]
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """Of each workload under one timing: log(predicted cycles), and the least of any schedule."""

    logs: tuple[Errors, ...]
    least: tuple[int, ...]


class EstimateErrors:
    """By how much estimates miss what was measured; each timing is worked out once."""

    def __init__(self, measured: Measured) -> None:
        self._measured = measured
        self._seen: dict[BusTiming, _Seen] = {}
        self._logs = tuple(np.log(each.costs) for each in measured.workloads)

    def errors(self, parameters: Parameters) -> tuple[Errors, ...]:
        """By workload; of seconds at the parameters' clock."""
        rate = np.log(1e6 * parameters.clock_mhz) if self._by_clock else 0.0
        return tuple(raw + rate for raw in self._raw(parameters.timing))

    def loss(self, which: Sequence[int], timing: BusTiming) -> float:
        """Of these workloads; infinite where one was measured faster than the timing allows."""
        raw = self._raw(timing)
        chosen = [raw[at] for at in which]
        rate = -_centre(chosen) if self._by_clock else 0.0
        clock_mhz = np.exp(rate) / 1e6 if self._by_clock else 0.0
        if not all(self._allows(at, timing, clock_mhz) for at in which):
            return np.inf
        return float(np.mean([_huber(errors + rate).mean() for errors in chosen]))

    def clock_mhz(self, which: Sequence[int], timing: BusTiming) -> int:
        """What leaves the median error of these workloads at zero; the board's in cycles."""
        if not self._by_clock:
            return self._measured.target.board.clock_mhz
        raw = self._raw(timing)
        rate = np.exp(-_centre([raw[at] for at in which])) / 1e6
        return int(np.clip(round(rate), *_CLOCKS))

    @property
    def _by_clock(self) -> bool:
        return self._measured.clock is DeviceClock.SECONDS

    def _allows(self, at: int, timing: BusTiming, clock_mhz: float) -> bool:
        """Whether a device with this timing would be believed what was measured."""
        cost, least = self._measured.workloads[at].costs.min(), self._look(timing).least[at]
        if not self._by_clock:
            return bool(cost >= least)
        return bool(cost >= RunBounds(clock_mhz=max(1, round(clock_mhz))).least_seconds(least))

    def _raw(self, timing: BusTiming) -> tuple[Errors, ...]:
        """log(cost / predicted cycles) by workload."""
        pairs = zip(self._logs, self._look(timing).logs, strict=True)
        return tuple(cost - predicted for cost, predicted in pairs)

    def _look(self, timing: BusTiming) -> _Seen:
        if timing not in self._seen:
            target = replace(self._measured.target, timing=timing)
            workloads = self._measured.workloads
            self._seen[timing] = _Seen(
                tuple(_logs(each.workload, each.points, target) for each in workloads),
                tuple(lower_bound_cycles(each.workload, target) for each in workloads),
            )
        return self._seen[timing]


def fit(measured: Measured, say: Say = _silent) -> TimingFit:
    """Fit all parameters to all workloads, and to all but one of them in turn.

    Args:
        say: is told how far the work is.
    """
    predictions = EstimateErrors(measured)
    every = range(len(measured.workloads))
    base, board = measured.target.timing, measured.target.board
    before = Parameters(
        timing=base, clock_mhz=board.clock_mhz or predictions.clock_mhz(every, base)
    )
    if measured.clock is DeviceClock.CYCLES:
        before = replace(before, clock_mhz=board.clock_mhz)
    after = _fitted(predictions, every, base, say)
    return TimingFit(
        before=before,
        after=after,
        errors_before=predictions.errors(before),
        errors_after=predictions.errors(after),
        left_out=tuple(_left_out(predictions, every, base, say)),
    )


def _left_out(
    predictions: EstimateErrors, every: Sequence[int], base: BusTiming, say: Say
) -> Iterator[LeftOut]:
    for at in every:
        others = [each for each in every if each != at]
        if others:
            parameters = _fitted(predictions, others, base)
            say(f"without workload {at + 1} of {len(every)}: {_words(parameters.timing)}")
            yield LeftOut(parameters=parameters, errors=predictions.errors(parameters)[at])


def _fitted(
    predictions: EstimateErrors, which: Sequence[int], base: BusTiming, say: Say = _silent
) -> Parameters:
    timing = _searched(partial(predictions.loss, which), base, say)
    return Parameters(timing=timing, clock_mhz=predictions.clock_mhz(which, timing))


def _searched(loss: Loss, base: BusTiming, say: Say) -> BusTiming:
    """The coordinate search, from the target's own timing; only the first walks are long."""
    best = base
    for sweep in range(_SWEEPS):
        before, stride = best, 1 if sweep else _FIRST_STRIDE
        for walked in _for_each_bus(loss, before, stride):
            if not sweep:
                say(f"loss {loss(walked):.5f}: {_words(walked)}")
            best = _better(loss, best, walked)
        for burst in BURSTS:
            best = _better(loss, best, replace(best, log_burst_beats=burst))
        if best == before:
            break
    return best


def _for_each_bus(loss: Loss, timing: BusTiming, stride: int) -> Iterator[BusTiming]:
    """With the best delay: the bus as it is, then wider and narrower ones until it gets worse."""
    yield (here := _walked(loss, timing, stride))
    width = timing.bus_nbytes
    wider = [bus for bus in BUSES if bus > width]
    narrower = [bus for bus in reversed(BUSES) if bus < width]
    for buses in (wider, narrower):
        least = loss(here)
        for bus in buses:
            yield (walked := _walked(loss, replace(here, bus_nbytes=bus), stride))
            if loss(walked) > least:
                break
            least = loss(walked)


def _walked(loss: Loss, timing: BusTiming, stride: int) -> BusTiming:
    """The same with the delay at which the loss has its valley."""
    delays = sorted({*DELAYS, timing.dram_delay_cycles})
    at = delays.index(timing.dram_delay_cycles)

    def of(place: int) -> float:
        return loss(replace(timing, dram_delay_cycles=delays[place]))

    while stride:
        places = [each for each in (at - stride, at + stride) if 0 <= each < len(delays)]
        nearer = min(places, key=of, default=at)
        if of(nearer) < of(at):
            at = nearer
        else:
            stride //= 2
    return replace(timing, dram_delay_cycles=delays[at])


def _better(loss: Loss, best: BusTiming, other: BusTiming) -> BusTiming:
    return other if loss(other) < (1 - _WORTH) * loss(best) else best


def _words(timing: BusTiming) -> str:
    return (
        f"bus_nbytes {timing.bus_nbytes}, log_burst_beats {timing.log_burst_beats},"
        f" dram_delay_cycles {timing.dram_delay_cycles}"
    )


def _logs(workload: Workload, points: Sequence[Point], target: Target) -> Errors:
    """log(cycles) that the space of a target predicts of points."""
    made = generate(workload, target)
    return np.log([max(1, completed(made, point)[ESTIMATE]) / 4 for point in points])


def _centre(errors: Sequence[Errors]) -> float:
    """The median over workloads of their medians."""
    return float(np.median([np.median(each) for each in errors]))


def _huber(errors: Errors) -> Errors:
    far = np.abs(errors)
    return np.where(far <= _ROBUST, far**2 / 2, _ROBUST * (far - _ROBUST / 2))
