"""The tuning session that goes on where a folder's records end.

The records say which trials ended, and where they stood in the order in which they were asked for.
A session with the same settings asks for the same again, and is told at once what is known. Where
the settings are others (or the version is), what there is counts as told before all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from tilefarm.errors import OutputError
from tilefarm.measurement import DeviceClock, Trial
from tilefarm.space import Point

from driver.campaign.measuring import Task
from driver.campaign.scores import Scores
from driver.tune.prepared import trials_of
from driver.tune.summarise import default_trial
from tuner.lookahead import USUAL, Lookahead
from tuner.run_off import winner
from tuner.session import OtherOrderError, TuningSession, WeightedSpace
from tuner.trial_store import TrialPosition, TrialStore

LOOKAHEAD: Final = "lookahead"
SEEDS: Final = "seeds"
NEAR: Final = "near"
"""What a run's description calls them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    """A session that knows the earlier trials.

    Attributes:
        search: its number in the records.
        known: the earlier trials of each task, as they were asked for.
        seeds: points that it begins with, by task, and None for those that began without; where
            the folder was searched with other options, those of its tasks as well.
        near: tasks whose points are those of other workloads.
        is_another: they were asked for under other settings.
    """

    session: TuningSession
    search: int
    known: Mapping[str, list[Trial]]
    seeds: Mapping[str, Point | None]
    near: frozenset[str] = frozenset()
    is_another: bool = False

    @property
    def clock(self) -> DeviceClock | None:
        """What told the times that are known; None if there are none.

        Raises:
            OutputError: two clocks did.
        """
        clocks = {t.clock for trials in self.known.values() for t in trials if t.clock is not None}
        if len(clocks) > 1:
            raise OutputError(
                "some trials of this folder are told in cycles and others in seconds, which are"
                " never compared",
                "choose another folder with --out",
            )
        return next(iter(clocks), None)

    def scores(self, tasks: Mapping[str, Task]) -> Scores:
        """What is known of each task's best and default schedule."""
        best = {name: winner(trials, None) for name, trials in self.known.items()}
        defaults = {name: default_trial(tasks[name], trials) for name, trials in self.known.items()}
        return Scores(best, defaults)


def continued(
    tasks: Mapping[str, Task],
    store: TrialStore,
    *,
    trials: int,
    proposer: str,
    seed: int,
    lookahead: int | None,
    least_gain: float = 0.0,
    seeds: Mapping[str, Point] | None = None,
    near: Collection[str] = (),
) -> Continued:
    """The session for these tasks and settings.

    Args:
        least_gain: as of `TuningSession`.
        seeds: good points of other runs, by task; those with which a task of the folder was
            searched first stay, so that what a run adds to the records of all does not turn its
            own order.
        near: the tasks whose points were good for workloads that are near to them.
        lookahead: candidates out at most; None: what the folder was searched with, or the usual.
    """
    known = {name: trials_of(task, store) for name, task in tasks.items()}
    places = store.places()
    last = max((place.search for place in places.values()), default=1)

    def place_of(trial: Trial) -> TrialPosition:
        return places.get((trial.workload, trial.trace), TrialPosition(0, 0))

    before = next((run.description for run in reversed(store.runs())), {})
    wanted = Lookahead(lookahead or int(str(before.get(LOOKAHEAD) or USUAL.most)))
    begins, is_near = _seeds(tasks, before, seeds or {}, near)

    def session(search: int) -> TuningSession:
        return TuningSession(
            {
                name: _searched(task, begins.get(name), name in is_near)
                for name, task in tasks.items()
            },
            trials=trials,
            proposer=proposer,
            seed=seed,
            lookahead=wanted,
            least_gain=least_gain,
            history={
                name: [trial for trial in known[name] if place_of(trial).search < search]
                for name in tasks
            },
            ended={
                place_of(trial).number: (name, trial)
                for name in tasks
                for trial in known[name]
                if place_of(trial).search == search
            },
        )

    ours = {(trial.workload, trial.trace) for trials in known.values() for trial in trials}
    if all(key in ours for key, place in places.items() if place.search == last):
        with contextlib.suppress(OtherOrderError):
            return Continued(
                session=session(last), search=last, known=known, seeds=begins, near=is_near
            )
    return Continued(
        session=session(last + 1),
        search=last + 1,
        known=known,
        seeds=begins,
        near=is_near,
        is_another=True,
    )


def _seeds(
    tasks: Mapping[str, Task],
    before: Mapping[str, object],
    found: Mapping[str, Point],
    near: Collection[str],
) -> tuple[Mapping[str, Point | None], frozenset[str]]:
    """What each task begins with, and which of these are of other workloads.

    Args:
        before: what describes the folder's last run; versions that had no seeds wrote nothing.
        found, near: what the records of all say by now.
    """
    kept = before.get(SEEDS)
    first = kept if isinstance(kept, dict) else {}
    if not first and not found:
        return {}, frozenset()
    was_near = {*map(str, _kept_near(before))}
    new = {name: found.get(name) for name in tasks if name not in first}
    return {**new, **first}, frozenset({*(was_near & first.keys()), *(new.keys() & {*near})})


def _kept_near(description: Mapping[str, object]) -> Collection[object]:
    """Which of them are of other workloads; versions that did not tell apart wrote nothing."""
    kept = description.get(NEAR)
    return kept if isinstance(kept, list) else ()


def _searched(task: Task, seed: Point | None, is_near: bool) -> WeightedSpace:
    """What the tuner is told of a task."""
    rate = 1e6 * task.target.board.clock_mhz
    return WeightedSpace(
        task.space,
        seed=seed,
        is_seed_near=is_near,
        weight=task.count,
        lower_bound_cycles=task.least_cycles,
        lower_bound_seconds=task.least_cycles / rate if rate else 0.0,
    )
