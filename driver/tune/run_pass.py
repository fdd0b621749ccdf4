"""A search, the program of the best that it knows, and the report: all that a run does once.

A run with given schedules does it twice: for them as they are, and for what a search finds then.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime

from tilefarm.code import code_digest
from tilefarm.errors import OutputError
from tilefarm.plural import plural
from tilefarm.readable import readable

from driver.atomic_write import write_atomically
from driver.campaign.interfaces import SearchResult
from driver.environment import machine, versions
from driver.farm.run_resources import RunResources
from driver.program.arena import Arena, plan_arena
from driver.program.network_plans import network_plans
from driver.program.step_times import trial_time
from driver.report.page import write_report
from driver.report.shown_plan import NetworkPlans
from driver.report.summary import RunOrigin, RunSummary, SessionFigures, SpaceRow
from driver.report.trace import chrome_trace
from driver.tune.chosen_schedules import ChosenSchedule, chosen_schedules, schedules_text
from driver.tune.finish import FinalSteps, Finished
from driver.tune.known_schedules import records_of
from driver.tune.output import OutputFolder
from driver.tune.prepared import Prepared, best_of, trials_of
from driver.tune.run_context import RunContext
from driver.tune.run_offs import run_offs
from driver.tune.searching import search
from driver.tune.space_rows import space_row
from driver.tune.summarise import (
    layer_rows,
    recorded_spans,
    session_rows,
    trial_rows,
    workload_row,
)
from driver.tune.user_intrinsics import failures
from driver.tune.watched import LogFile
from tuner.schedule_store import ScheduleStore
from tuner.trial_store import TrialStore


@dataclass(frozen=True, slots=True, kw_only=True)
class PassEnd:
    """What came of it.

    Attributes:
        done: the program and what it takes; None where the search was stopped, or has found
            nothing but what is known.
        paths: what was written, by what it is.
    """

    result: SearchResult
    done: Finished | None
    summary: RunSummary
    paths: tuple[tuple[str, str], ...]


class RunPass:
    """One of them. Each method is a step or a piece of one."""

    def __init__(
        self,
        context: RunContext,
        prepared: Prepared,
        store: TrialStore,
        resources: RunResources,
        folder: OutputFolder,
    ) -> None:
        self._context = context
        self._settings = context.settings
        self._prepared = prepared
        self._store = store
        self._resources = resources
        self._folder = folder

    def run(self, known: Collection[ChosenSchedule] | None = None) -> PassEnd:
        """Search, assemble, measure, report.

        Args:
            known: schedules whose program is there already: it is not made again where these are
                the best. None: nothing is known.

        Raises:
            InfraError, NoDeviceError, DeviceLostError: see `FinalSteps.run`.
            FarmFault: the search has measured nothing at all.
        """
        result = self._search()
        self._remember()
        chosen = chosen_schedules(self._prepared.tasks, self._store)
        arena = self._plan()
        self._prepared = self._prepared.with_steps_of(arena.network)
        done = None
        if result.why == "exhausted" and (known is None or set(chosen) != set(known)):
            steps = FinalSteps(self._context, self._prepared, self._store, self._resources)
            done = steps.run(arena, self._folder)
        summary = self._summary(result, arena, done)
        paths = self._write(summary, chosen, done)
        return PassEnd(result=result, done=done, summary=summary, paths=paths)

    def _search(self) -> SearchResult:
        """Search, and time the finalists again unless it was stopped."""
        self._context.watch.spans.open(
            self._folder.spans, recorded_spans(self._prepared.tasks.values(), self._store.trials())
        )
        with closing(LogFile()) as story:
            story.open(self._folder.search_log)
            result = search(self._context, self._prepared, self._store, self._resources, story)
        if result.error is not None and not self._store.count():
            raise result.error
        for line in failures(self._prepared.tasks.values(), self._store):
            self._context.say(line)
        if result.why == "exhausted":
            run_offs(
                self._context,
                self._prepared.tasks,
                self._store,
                executor=self._resources.executor,
                leases=self._resources.leases,
            )
        return result

    def _remember(self) -> None:
        """Add to the records of all runs what this folder has; a run does not fail for it."""
        path = self._settings.records
        if path is None:
            return
        found = records_of(self._prepared.tasks, self._store, versions()["tilefarm"])
        try:
            with ScheduleStore(path) as kept:
                added = kept.add(found)
        except OutputError as error:
            self._context.say(f"records: nothing was added: {error.what}")
            return
        self._context.say(f"records: {plural(added, 'schedule')} added to {readable(path)}")

    def _plan(self) -> Arena:
        best = {task.workload: best_of(task, self._store) for task in self._prepared.tasks.values()}
        cycles = {
            step.name: trial.cycles
            for step in self._prepared.network.steps
            for trial in (best.get(step.workload),)
            if trial is not None and trial.cycles is not None
        }
        return plan_arena(self._prepared.network, cycles)

    def _plans(self, done: Finished | None) -> NetworkPlans | None:
        """How the program runs; None where there is none."""
        if done is None:
            return None
        network = self._prepared.network
        best = {task.workload: best_of(task, self._store) for task in self._prepared.tasks.values()}
        kernels = {
            step.name: trial_time(trial, network.target)
            for step in network.steps
            if (trial := best.get(step.workload)) is not None
        }
        return network_plans(network, kernels, done.profile)

    def _summary(self, result: SearchResult, arena: Arena, done: Finished | None) -> RunSummary:
        tasks, context, settings = self._prepared.tasks, self._context, self._settings
        rows = {
            name: workload_row(task, trials_of(task, self._store), self._store.run_off(task.digest))
            for name, task in tasks.items()
        }
        target = self._prepared.network.target
        cycles = done.network_cycles if done else None
        return RunSummary(
            run=RunOrigin(
                title=readable(settings.model.name),
                model_digest=self._prepared.files.model_digest.hex,
                target=target.name,
                target_digest=target.digest.hex,
                began=_in_utc(context.wall_origin),
                seed=settings.seed,
                proposer=settings.proposer,
                has_accelerator=target.has_accelerator,
            ),
            session=SessionFigures(
                total_seconds=context.now,
                search_seconds=result.seconds,
                first_measured_seconds=result.first_measured_seconds,
                trials_per_second=result.trials / result.seconds if result.trials else None,
                trials_this_session=result.trials,
                split=result.split,
            ),
            workloads=tuple(rows.values()),
            layers=layer_rows(self._prepared.network, rows),
            trials=trial_rows(tasks, self._store.trials(), context.wall_origin),
            spans=context.watch.spans.spans(),
            sessions=session_rows(self._store.runs()),
            arena=arena.picture,
            timeline=done.timeline if done else None,
            accuracy=done.accuracy if done else None,
            spaces=self._spaces(),
            noise=self._prepared.judged.noise,
            plans=self._prepared.judged.plans,
            network_cycles=cycles,
            network_seconds=done.network_seconds if done else None,
            network_rounds=done.network_rounds if done else (),
            device=done.device if done else {},
            memory=self._plans(done),
            profile=done.profile if done else None,
            comparison=done.comparison if done else None,
            network_time=target.board.time_of(cycles) if cycles else "",
            facts=(
                ("machine", machine()),
                ("candidates out at most", str(result.lookahead)),
                *((("search ended", result.ended),) if result.ended else ()),
                *versions().items(),
            ),
            code=code_digest().hex,
            interrupted=result.why != "exhausted",
        )

    def _spaces(self) -> tuple[SpaceRow, ...]:
        tasks = self._prepared.tasks.values()
        return tuple(space_row(task, trials_of(task, self._store)) for task in tasks)

    def _write(
        self, summary: RunSummary, chosen: Sequence[ChosenSchedule], done: Finished | None
    ) -> tuple[tuple[str, str], ...]:
        write_report(summary, self._folder.report)
        write_atomically(
            self._folder.trace, chrome_trace(summary, self._context.watch.spans.calls()).encode()
        )
        self._folder.write_schedules(schedules_text(chosen))
        self._folder.write_summary(summary)
        paths = [
            ("report", self._folder.report),
            ("trace", self._folder.trace),
            ("records", self._folder.records),
        ]
        if done is not None:
            paths.insert(0, ("program", self._folder.program))
        return tuple((what, readable(path)) for what, path in paths)


def _in_utc(wall_seconds: float) -> str:
    return datetime.fromtimestamp(wall_seconds, UTC).isoformat(timespec="seconds")
