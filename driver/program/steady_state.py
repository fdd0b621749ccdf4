"""Several samples in flight: the pattern that repeats when engines take the oldest work first.

    engine a   1 . 2 . 3 . 4         a sample begins when the one that is `in_flight` before it
    engine b     1 1 2 2 3 3         has ended; of what is ready the oldest sample's is begun first

Every decision follows from the samples in flight, so that equal ones lead to equal ones: what comes
twice comes for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

_SAMPLES: Final = 60
"""Of a simulation: fewer than ten lead into every pattern of a few samples that was seen."""
_ROUNDS: Final = 6
"""So many times what is in flight, or the longest round, are simulated where that is more."""
_MOST_PERIOD: Final = 8
_ARRIVES: Final = -1
"""In place of a step, for a sample that begins."""
_DELAYS: Final = (0.95, 0.75, 0.5, 0.25)
"""Shares of the time that a sample waits for engines, by which it may begin later."""


@dataclass(frozen=True, slots=True)
class PipelineStep:
    """A step of one sample: its engine and those that it waits for, by number."""

    engine: int
    ticks: int
    before: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyState:
    """Samples that begin `period_ticks` after the same ones of the round before.

    Attributes:
        in_flight: samples at most at a time.
        begins: of each sample of a round, of each of its steps, from the round's begin.
        instances: of the engines on which they run, likewise.
    """

    in_flight: int
    period_ticks: int
    begins: tuple[tuple[int, ...], ...]
    instances: tuple[tuple[int, ...], ...]

    @property
    def samples(self) -> int:
        """Of a round."""
        return len(self.begins)

    @property
    def ticks_a_sample(self) -> float:
        return self.period_ticks / self.samples

    def begin_of(self, sample: int, step: int) -> int:
        """When a step of sample 0, 1, 2 ... begins; the first sample begins at 0."""
        rounds, at = divmod(sample, self.samples)
        return rounds * self.period_ticks + self.begins[at][step]

    def instance_of(self, sample: int, step: int) -> int:
        """On which instance of its engine it runs."""
        return self.instances[sample % self.samples][step]

    def latency_ticks(self, steps: Sequence[PipelineStep]) -> int:
        """The longest time from the begin of a sample to its end."""
        return max(
            max(begin + step.ticks for begin, step in zip(begins, steps, strict=True)) - min(begins)
            for begins in self.begins
        )


def steady_state(
    steps: Sequence[PipelineStep], instances: Sequence[int], in_flight: int
) -> SteadyState | None:
    """The pattern with so many samples in flight; None where none shows.

    A sample that waits for engines begins later, as long as no engine waits for it then: its first
    results would lie in memory meanwhile.

    Args:
        steps: of a sample, each behind those that it waits for.
        instances: of each engine.
    """
    early = _pattern(steps, instances, in_flight, 0)
    alone = _pattern(steps, instances, 1, 0)
    if early is None or alone is None:
        return early
    waits = early.latency_ticks(steps) - alone.latency_ticks(steps)
    for share in _DELAYS if waits > 0 else ():
        late = _pattern(steps, instances, in_flight, int(share * waits))
        if late is not None and late.ticks_a_sample <= early.ticks_a_sample:
            return late
    return early


def _pattern(
    steps: Sequence[PipelineStep], instances: Sequence[int], in_flight: int, delay_ticks: int
) -> SteadyState | None:
    """What repeats, where samples begin so long after the ones whose place they take."""
    begins, ran_on = _simulated(steps, instances, in_flight, delay_ticks)
    firsts = [min(mine) for mine in begins]
    shapes = [
        (tuple(begin - first for begin in mine), where, first - before)
        for mine, where, first, before in zip(begins, ran_on, firsts, [0, *firsts], strict=False)
    ]
    last = len(shapes) - 2 * in_flight  # those behind it have fewer samples beside them
    for period in range(1, _most_period(instances) + 1):
        since = last - in_flight - period
        if since - period < 1:
            return None
        if all(shapes[at] == shapes[at - period] for at in range(since, last)):
            round_ = range(since, since + period)
            return SteadyState(
                in_flight=in_flight,
                period_ticks=firsts[since + period] - firsts[since],
                begins=tuple(tuple(begin - firsts[since] for begin in begins[at]) for at in round_),
                instances=tuple(ran_on[at] for at in round_),
            )
    return None


def _most_period(instances: Sequence[int]) -> int:
    """Samples of the longest round that is looked for: each of an engine's instances in turn."""
    return max(_MOST_PERIOD, *instances)


def _simulated(
    steps: Sequence[PipelineStep], instances: Sequence[int], in_flight: int, delay_ticks: int
) -> tuple[list[list[int]], list[tuple[int, ...]]]:
    """For each sample when its steps begin, and on which instances."""
    samples = max(_SAMPLES, _ROUNDS * in_flight, _ROUNDS * _most_period(instances))
    run = _Run(steps, instances, samples)
    for sample in range(in_flight):
        run.admit(sample, 0)
    for sample in run.ended():
        if sample + in_flight < samples:
            run.admit(sample + in_flight, delay_ticks)
    return run.begins, [tuple(mine) for mine in run.ran_on]


class _Run:
    """Engines that take the oldest work first."""

    def __init__(
        self, steps: Sequence[PipelineStep], instances: Sequence[int], samples: int
    ) -> None:
        self._steps = steps
        self._after: list[list[int]] = [[] for _ in steps]
        for at, step in enumerate(steps):
            for before in step.before:
                self._after[before].append(at)
        self._waits = [[len(step.before) for step in steps] for _ in range(samples)]
        self._left = [len(steps)] * samples
        self._ready: list[list[tuple[int, int]]] = [[] for _ in instances]
        self._free = [list(range(count)) for count in instances]
        self._now = 0
        self._running: list[tuple[int, int, int, int]] = []
        self.begins = [[0] * len(steps) for _ in range(samples)]
        self.ran_on = [[0] * len(steps) for _ in range(samples)]

    def admit(self, sample: int, delay_ticks: int) -> None:
        """A sample's first steps will be ready."""
        heappush(self._running, (self._now + delay_ticks, sample, _ARRIVES, 0))

    def ended(self) -> Iterator[int]:
        """Run all that is there and becomes ready; samples as they end."""
        while self._running:
            self._now = self._running[0][0]
            while self._running and self._running[0][0] == self._now:
                _, sample, at, instance = heappop(self._running)
                if at == _ARRIVES:
                    self._make_ready(sample)
                    continue
                heappush(self._free[self._steps[at].engine], instance)
                self._finish(sample, at)
                if not self._left[sample]:
                    yield sample
            self._start()

    def _make_ready(self, sample: int) -> None:
        for at, step in enumerate(self._steps):
            if not step.before:
                heappush(self._ready[step.engine], (sample, at))

    def _finish(self, sample: int, at: int) -> None:
        self._left[sample] -= 1
        for after in self._after[at]:
            self._waits[sample][after] -= 1
            if not self._waits[sample][after]:
                heappush(self._ready[self._steps[after].engine], (sample, after))

    def _start(self) -> None:
        for ready, free in zip(self._ready, self._free, strict=True):
            while ready and free:
                sample, at = heappop(ready)
                instance = heappop(free)
                self.begins[sample][at] = self._now
                self.ran_on[sample][at] = instance
                heappush(self._running, (self._now + self._steps[at].ticks, sample, at, instance))
