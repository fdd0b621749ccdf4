"""From a finished run's parts to the record that terminal and report show."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from tilefarm.measurement import Status, Trial
from tilefarm.workload import Workload

from driver.campaign.measuring import Task
from driver.network import Network
from driver.report.aligned import free_lane
from driver.report.cost import NOT_KNOWN, Cost
from driver.report.summary import LayerRow, SessionRow, TrialRow, WorkloadRow
from driver.run_events import KnownWorkload, Span
from tuner.run_off import RunOff, winner
from tuner.trial_store import RunRecord


def default_trial(task: Task, trials: Iterable[Trial]) -> Trial | None:
    """The trial of the untuned schedule."""
    return next((t for t in trials if _tunables(task, t) == task.default), None)


def workload_row(task: Task, trials: Sequence[Trial], run_off: RunOff | None = None) -> WorkloadRow:
    """What became of one workload."""
    default, best = default_trial(task, trials), winner(trials, run_off)
    failures = Counter(t.status.value for t in trials if t.status is not Status.OK)
    return WorkloadRow(
        name=task.name,
        operator=task.workload.operator,
        shape=shape_text(task.workload),
        count=task.count,
        macs=task.macs,
        ideal_cycles=task.ideal_cycles,
        default=_cost(default),
        best=_cost(best),
        trials=len(trials),
        failures=tuple(sorted(failures.items())),
        best_point=_tunables(task, best) if best else (),
    )


def _cost(trial: Trial | None) -> Cost:
    return Cost(trial.cycles, trial.cost_seconds) if trial else NOT_KNOWN


def standing(task: Task, trials: Sequence[Trial]) -> KnownWorkload:
    """What of it is shown while the search goes on."""
    row = workload_row(task, trials)
    return KnownWorkload(
        trials=row.trials,
        failed=sum(count for _, count in row.failures),
        default_cycles=row.default.cycles,
        best_cycles=row.best.cycles,
        default_seconds=row.default.seconds,
        best_seconds=row.best.seconds,
    )


def layer_rows(network: Network, rows: Mapping[str, WorkloadRow]) -> tuple[LayerRow, ...]:
    """The network's kernel calls in order; `rows` are the workloads' by name."""
    return tuple(
        LayerRow(
            name=step.name,
            operator=step.workload.operator,
            place=step.place,
            why=step.why,
            shape=shape_text(step.workload),
            macs=step.macs,
            output_nbytes=sum(t.nbytes for t in step.workload.outputs),
            workload=rows.get(step.workload.name) if network.is_searched(step) else None,
        )
        for step in network.steps
    )


def trial_rows(
    tasks: Mapping[str, Task], trials: Sequence[Trial], wall_origin: float
) -> tuple[TrialRow, ...]:
    """The trials in the order of asking; those that ended before `wall_origin` have no time."""
    by_digest = {task.workload.digest: task for task in tasks.values()}
    rows: list[TrialRow] = []
    for told in trials:
        task = by_digest.get(told.workload)
        if task is None:
            continue
        trial = task.believed(told)
        ended = max((end for _, _, end in trial.spans), default=-math.inf) - wall_origin
        rows.append(
            TrialRow(
                number=len(rows) + 1,
                workload=task.name,
                status=trial.status.value,
                cycles=trial.cycles,
                kernel_seconds=trial.cost_seconds,
                ended_seconds=ended if ended >= 0 else None,
                device=trial.device,
                proposer=trial.proposer,
                why=trial.why,
                is_default=(point := _tunables(task, trial)) == task.default,
                point=point,
            )
        )
    return tuple(rows)


def session_rows(runs: Iterable[RunRecord]) -> tuple[SessionRow, ...]:
    """The searches of a folder in the order in which they began."""
    return tuple(
        SessionRow(
            began=datetime.fromtimestamp(run.begun, UTC).isoformat(timespec="seconds"),
            seconds=None if run.ended is None else run.ended - run.begun,
            trials=run.trials,
            outcome=run.outcome,
        )
        for run in runs
    )


def recorded_spans(tasks: Iterable[Task], trials: Iterable[Trial]) -> list[Span]:
    """What records know of when trials were worked at, in wall seconds.

    They do not know which worker compiled a trial; as many stand here as compiled at a time.
    """
    names = {task.workload.digest: task.name for task in tasks}
    lanes = {"propose": "driver"}
    spans = [
        Span(
            lane=lanes.get(kind, trial.device),
            kind=kind,
            label=names.get(trial.workload, trial.workload.short),
            begin_seconds=begin,
            end_seconds=end,
        )
        for trial in trials
        for kind, begin, end in trial.spans
    ]
    ends: list[float] = []
    for at in sorted(range(len(spans)), key=lambda at: spans[at].begin_seconds):
        if spans[at].kind == "compile":
            worker = free_lane(ends, spans[at].begin_seconds, spans[at].end_seconds)
            spans[at] = replace(spans[at], lane=f"compile {worker + 1}")
    return spans


def shape_text(workload: Workload) -> str:
    """Blocked shapes in one line: `2x8x8 -> 4x8x8, 3x3 stride 1` for people."""
    text = " -> ".join(_short(spec.shape) for spec in (*workload.inputs[:1], *workload.outputs))
    if workload.operator == "conv2d":
        kernel = "x".join(map(str, workload.inputs[1].shape[-4:-2]))
        stride = "x".join(map(str, workload.attr_ints("stride")))
        text += f", {kernel} stride {stride}"
    return text


def _short(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


def _tunables(task: Task, trial: Trial) -> tuple[tuple[str, int], ...]:
    """What was chosen; some trials tell all that followed of it as well."""
    return tuple(sorted((name, value) for name, value in trial.point if name in task.tunables))
