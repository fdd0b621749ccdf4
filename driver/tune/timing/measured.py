"""What runs and files of records have measured on one target, workload by workload."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.digest import Digest
from tilefarm.documents import read_json
from tilefarm.errors import DataError, TargetError
from tilefarm.machine import VTA
from tilefarm.measurement import DeviceClock, Status
from tilefarm.plural import plural
from tilefarm.readable import readable
from tilefarm.space import ESTIMATE, Point
from tilefarm.target import BusTiming, Target
from tilefarm.workload import Workload

from compile_worker.space import Generated, generate, lower_bound_cycles
from driver.farm.plausible import RunBounds
from driver.network import is_accelerated
from driver.program.step_times import run_folder
from driver.targets import usable_target
from driver.tune.chosen_schedules import read_schedules
from tuner.schedule_store import ScheduleRecord, ScheduleStore
from tuner.trial_store import TrialStore

MOST_TRIALS: Final = 48
"""Of one workload. They are spread over its costs; more of them would say the same once more."""
_FASTEST: Final = BusTiming(bus_nbytes=64, dram_delay_cycles=0)
"""No memory is faster: what took less than this allows cannot have been measured."""
_TUNE: Final = "the folder that `tilefarm tune` has written for an accelerator"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasuredWorkload:
    """The schedules of one workload that ended well.

    Attributes:
        points: tunables by name, one for each schedule.
        costs: cycles or seconds of each [n].
    """

    workload: Workload
    points: tuple[Point, ...]
    costs: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measured:
    """All that was measured on one target by one clock.

    Attributes:
        workloads: by name; each has a schedule at least.
        sources: names of runs and files.
        devices: that measured it, by name.
        left_out: why what was measured is not used, with how many of it.
    """

    target: Target
    clock: DeviceClock
    workloads: tuple[MeasuredWorkload, ...]
    sources: tuple[str, ...]
    devices: tuple[str, ...]
    left_out: tuple[tuple[str, int], ...]

    @property
    def trials(self) -> int:
        return sum(len(each.points) for each in self.workloads)


def measured(
    runs: Sequence[Path], records: ScheduleStore | None, target_name: str | None
) -> Measured:
    """What the folders of runs, and a file of records, hold.

    Args:
        target_name: what it was measured on; None: what the runs or the records name.

    Raises:
        DataError: nothing usable is there, or things that are never compared; says which.
        TargetError: the target is unknown, or a processor alone.
    """
    wanted = None if target_name is None else _accelerator(target_name)
    found: list[ScheduleRecord] = []
    for run in runs:
        found += _of_run(run)
    if records is not None:
        found += _of_records(records, wanted)
    target = _their_target(found, wanted)
    clock = _their_clock(found)
    usable, left_out = _usable(found, target)
    names = [run.resolve().name for run in runs]
    names += [] if records is None else [records.path.stem]
    if not usable:
        reasons = ", ".join(f"{plural(count, 'trial')} {why}" for why, count in left_out)
        raise DataError(
            f"nothing to fit {target.name} to: {reasons}",
            "a run of a network with layers on the accelerator, by this version of tilefarm",
        )
    return Measured(
        target=target,
        clock=clock,
        workloads=tuple(_measured_workload(usable[name]) for name in sorted(usable)),
        sources=tuple(map(readable, names)),
        devices=tuple(sorted({r.device for kept in usable.values() for r in kept if r.device})),
        left_out=left_out,
    )


def _accelerator(name: str) -> Target:
    """The target of that name or file.

    Raises:
        TargetError: there is none, or its machine is not VTA.
    """
    target = usable_target(name)
    if target.model.kind != VTA:
        raise TargetError(
            f"{target.name}: a processor, and what is fitted is the estimate of an accelerator",
            "runs for an accelerator, or --target NAME|FILE.json of one",
        )
    return target


def _of_run(run: Path) -> Iterator[ScheduleRecord]:
    """The good trials of a run.

    Raises:
        DataError: it is no folder of a run, has no trials, or none that ended well.
    """
    folder = run_folder(run)
    digest, name = _target_in(folder / "run.json")
    with TrialStore(folder / "records.sqlite", read_only=True) as store:
        statuses = store.statuses()
        good = [trial for trial in store.trials() if trial.status is Status.OK and trial.cost]
    if not statuses:
        raise DataError(f"{readable(run)}: no trials", f"{_TUNE}, with --trials above 0")
    if not good:
        ends = ", ".join(f"{count} {status.value}" for status, count in sorted(statuses.items()))
        raise DataError(
            f"{readable(run)}: none of its trials has a time: {ends}",
            "`tilefarm tune` says why trials fail; fit to a run whose trials end well",
        )
    schedules = folder / "schedules.json"
    if not schedules.exists():
        raise DataError(
            f"{readable(run)}: the run has not ended, so its workloads are not written yet",
            "the same `tilefarm tune` once more ends it",
        )
    workloads = {each.workload.digest: each.workload for each in read_schedules(schedules)}
    for trial in good:
        if trial.workload in workloads:
            yield ScheduleRecord.of_trial(
                trial, workloads[trial.workload], target=digest, target_name=name
            )


def _target_in(file: Path) -> tuple[Digest, str]:
    try:
        document = read_json(file)
        return Digest(document["target_digest"]), str(document["target"])
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(f"{readable(file)}: not a file that tilefarm wrote", _TUNE) from None


def _of_records(records: ScheduleStore, target: Target | None) -> list[ScheduleRecord]:
    """The schedules of a file of records: those of the target, or all."""
    found = list(records.records(None if target is None else target.digest))
    if not found:
        of = "" if target is None else f" of {target.name}"
        raise DataError(
            f"{readable(records.path)}: no schedules{of}",
            f"`tilefarm records list --records {records.path}`",
        )
    return found


def _their_target(records: Sequence[ScheduleRecord], wanted: Target | None) -> Target:
    """The one target that all records are of.

    Raises:
        DataError: they are of several, or not of the wanted one.
        TargetError: nobody says what their target is, or it is a processor.
    """
    names = {record.target: record.target_name for record in records}
    if len(names) > 1:
        raise DataError(
            f"measured on several targets: {', '.join(sorted(names.values()))}; parameters belong"
            " to one",
            "name runs of one target; of --records, --target NAME|FILE.json chooses",
        )
    ((digest, name),) = names.items()
    hint = f"--target FILE.json with the target that was called {name} when it was measured"
    try:
        target = wanted or _accelerator(name)
    except TargetError as error:
        if "processor" in error.what:
            raise
        raise TargetError(f"{name}: no target that is built in", hint) from None
    if target.digest != digest:
        raise DataError(f"measured on another target than {target.name}: {name}", hint)
    return target


def _their_clock(records: Sequence[ScheduleRecord]) -> DeviceClock:
    clocks = {record.clock for record in records}
    if len(clocks) > 1:
        raise DataError(
            "some trials are told in cycles and others in seconds, which are never compared",
            "name runs on devices of one kind",
        )
    return clocks.pop()


def _usable(
    records: Sequence[ScheduleRecord], target: Target
) -> tuple[dict[str, list[ScheduleRecord]], tuple[tuple[str, int], ...]]:
    """By the name of the workload what can be predicted; why the rest is not, and how many."""
    by_workload: dict[Workload, list[ScheduleRecord]] = defaultdict(list)
    for record in records:
        by_workload[record.workload].append(record)
    kept: dict[str, list[ScheduleRecord]] = {}
    reasons: dict[str, int] = defaultdict(int)
    fastest = replace(target, timing=_FASTEST)
    for workload, theirs in by_workload.items():
        if not is_accelerated(workload, target):
            reasons["of layers that run on the processor"] += len(theirs)
            continue
        made = generate(workload, target)
        least = lower_bound_cycles(workload, fastest)
        good = []
        for record in theirs:
            if not _can_be(record, least, target):
                reasons["with an impossible time: no schedule of the workload is so fast"] += 1
            elif not _means_the_same(made, record):
                reasons["whose point means another schedule by now"] += 1
            else:
                good.append(record)
        if good:
            kept[workload.name] = good
    return kept, tuple(sorted(reasons.items()))


def _can_be(record: ScheduleRecord, least_cycles: int, target: Target) -> bool:
    """Whether a schedule may have taken so little, with the fastest memory and clock there are."""
    if record.wall_time is None:
        return record.cost >= least_cycles
    bounds = RunBounds(clock_mhz=target.board.clock_mhz)
    return record.wall_time.minimum_seconds >= bounds.least_seconds(least_cycles)


def completed(made: Generated, point: Point) -> Point:
    """The point with all of its space's variables; what it does not choose is as usual."""
    return made.completed(
        {v.name: point.get(v.name, made.default[v.name]) for v in made.space.tunables}
    )


def _means_the_same(made: Generated, record: ScheduleRecord) -> bool:
    point = dict(record.point)
    try:
        return made.trace(point).digest == record.trace and ESTIMATE in completed(made, point)
    except (KeyError, ValueError):
        return False


def _measured_workload(records: Sequence[ScheduleRecord]) -> MeasuredWorkload:
    """Of too many schedules those at even distances in the order of their costs."""
    ordered = sorted(records, key=lambda record: (record.cost, record.trace.hex))
    last = len(ordered) - 1
    places = np.unique(np.linspace(0, last, min(len(ordered), MOST_TRIALS)).round().astype(int))
    chosen = [ordered[place] for place in places]
    return MeasuredWorkload(
        workload=chosen[0].workload,
        points=tuple(dict(record.point) for record in chosen),
        costs=np.array([record.cost for record in chosen]),
    )
