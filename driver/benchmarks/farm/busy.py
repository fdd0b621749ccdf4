"""How busy devices were, and how long a trial took besides its compile and its kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import TypeAlias

from tilefarm.measurement import Trial

from driver.benchmarks.farm.searching import FarmSearch
from driver.run_events import Span

_Change: TypeAlias = tuple[float, int, int, int]
"""When, and by how much it changes how many candidates wait, are in hand, and run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeShares:
    """What devices did, as shares of the time in which there was something for them to do.

    Attributes:
        in_hand: with a candidate in hand: its transfer, its run, the way between.
        running: inside its run.
        of_all: inside a run, as a share of all time, whether or not there was something to do.
    """

    in_hand: float
    running: float
    of_all: float


def shares(done: FarmSearch) -> TimeShares:
    """From the moment when all devices were there to the end of the search.

    A device that has no candidate is idle only while a compiled one waits; without anything to
    do, it is nobody's fault.
    """
    devices, began, ended = done.devices, done.began, done.ended
    built = ((at, 1, 0, 0) for at in done.built)
    changes = sorted((*built, *_of_spans(done.spans), *_of_failures(done.trials)))
    waiting = in_hand = running = 0
    held = ran = idle = 0.0
    for change, following in pairwise((*changes, (ended, 0, 0, 0))):
        waiting, in_hand, running = waiting + change[1], in_hand + change[2], running + change[3]
        seconds = max(0.0, min(following[0], ended) - max(change[0], began))
        held += in_hand * seconds
        ran += running * seconds
        idle += min(max(waiting, 0), max(devices - in_hand, 0)) * seconds
    total = held + idle
    if not total:
        return TimeShares(in_hand=0.0, running=0.0, of_all=0.0)
    of_all = ran / (devices * (ended - began))
    return TimeShares(in_hand=held / total, running=ran / total, of_all=of_all)


def runs_per_second(done: FarmSearch) -> float:
    """Runs that ended while all devices were there and the search had not."""
    ends = [span.end_seconds for span in done.spans if span.kind == "run"]
    return sum(done.began <= end <= done.ended for end in ends) / (done.ended - done.began)


def _of_spans(spans: Iterable[Span]) -> Iterator[_Change]:
    for span in spans:
        begin, end = span.begin_seconds, span.end_seconds
        match span.kind:
            case "transfer":
                yield begin, -1, 1, 0
            case "run":
                yield begin, 0, 0, 1
                yield end, 0, -1, -1


def _of_failures(trials: Iterable[Trial]) -> Iterator[_Change]:
    """What did not compile waited for no device."""
    for trial in trials:
        stages = {stage: end for stage, _, end in trial.spans}
        if "compile" in stages and "transfer" not in stages:
            yield stages["compile"], -1, 0, 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSeconds:
    """Mean wall seconds of a measured trial, part by part.

    Attributes:
        propose, compile, transfer, run: as the driver saw them; `kernel` is the part of the run in
            which the device's child called the kernel.
    """

    propose: float
    compile: float
    transfer: float
    run: float
    kernel: float

    @property
    def overhead(self) -> float:
        """All but compile and kernel."""
        return self.propose + self.transfer + self.run - self.kernel


def path(done: FarmSearch) -> TrialSeconds:
    """The mean over the runs of a search; there is at least one."""
    sums = dict.fromkeys(("propose", "compile", "transfer", "run"), 0.0)
    for trial in done.trials:
        for stage, begin, end in trial.spans:
            sums[stage] += end - begin
    return TrialSeconds(
        **{stage: seconds / len(done.kernels) for stage, seconds in sums.items()},
        kernel=fmean(done.kernels),
    )
