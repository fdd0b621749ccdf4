"""`tilefarm tune`, step by step: from an ONNX file to a checked program and its report."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Final

from tilefarm.clock import Clock, SystemClock
from tilefarm.digest import Digest
from tilefarm.errors import InfraError, NoDeviceError, OutputError
from tilefarm.names import RandomIds
from tilefarm.plural import plural
from tilefarm.readable import readable
from tilefarm.target import Target

from driver.atomic_write import write_atomically
from driver.campaign.interfaces import SearchResult
from driver.environment import machine, versions
from driver.farm.run_resources import Folders, RunResources
from driver.farm.scratch import scratch_folder
from driver.program.arena import Arena, plan_arena
from driver.program.network_plans import network_plans
from driver.program.step_times import trial_time
from driver.report import write_report
from driver.report.shown_plan import NetworkPlans
from driver.report.summary import RunOrigin, RunSummary, SessionFigures, SpaceRow
from driver.report.terminal.ended import Ended, Listener
from driver.report.terminal.interrupts import Interrupts
from driver.report.trace import chrome_trace
from driver.stop_token import StopToken
from driver.targets import usable_target
from driver.tune.compared import check_comparable
from driver.tune.finish import FinalSteps, Finished
from driver.tune.known_schedules import records_of
from driver.tune.output import OutputFolder, RunIdentity
from driver.tune.prepared import Prepared, best_of, trials_of
from driver.tune.preparing import prepare, read
from driver.tune.run_context import RunContext
from driver.tune.run_offs import run_offs
from driver.tune.searching import search
from driver.tune.settings import TuneSettings
from driver.tune.space_rows import space_row
from driver.tune.summarise import (
    layer_rows,
    recorded_spans,
    session_rows,
    trial_rows,
    workload_row,
)
from driver.tune.watched import LogFile, watched
from tuner.schedule_store import ScheduleStore
from tuner.trial_store import TrialStore

EXIT_INTERRUPTED: Final = 75
_SWITCH_SECONDS: Final = 0.0005
"""The tuner computes in Python; threads that only pass messages on must not queue behind it."""


def tune(
    settings: TuneSettings,
    listen: Listener,
    *,
    began: float | None = None,
    clock: Clock | None = None,
) -> int:
    """Run all steps; the exit code. Continues what an earlier run left in the output folder.

    `began` is the wall time from which everything is counted; None means now.

    Raises:
        UserError, NoDeviceError, FarmFault: see `tilefarm.errors`; what was measured is kept.
        Interrupted: Ctrl-C where there was nothing to save.
    """
    clock = clock or SystemClock()
    sys.setswitchinterval(_SWITCH_SECONDS)
    stop = StopToken()
    run_id = RandomIds().fresh("run")
    origin = clock.wall_seconds() if began is None else began
    with (
        watched(
            settings.operations, listen, run_id=run_id, clock=clock, wall_origin=origin
        ) as watch,
        scratch_folder() as scratch,
        Interrupts(stop, scratch) as interrupts,
    ):
        context = RunContext(
            settings=settings,
            clock=clock,
            watch=watch,
            stop=stop,
            scratch=scratch,
            run_id=run_id,
            wall_origin=origin,
        )
        try:
            return _TuningRun(context).run()
        finally:
            interrupts.closing()


class _TuningRun:
    """One run. Each method is a step or a piece of one."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._settings = context.settings
        self._farm_settings = context.settings.farm

    def run(self) -> int:
        target = usable_target(self._farm_settings.target)
        if self._settings.records is not None:  # What cannot be read is refused before the work.
            ScheduleStore(self._settings.records).close()
        if self._settings.compare is not None:
            check_comparable(target, self._farm_settings.tracker)
        files = read(self._context, target)
        folder = self._open(target, files.model_digest)
        self._context.watch.write_into(folder.log)
        with TrialStore(folder.records) as store, self._resources(target, folder) as resources:
            if store.restored:
                self._context.say(store.restored)
            prepared = prepare(self._context, files, target)
            result = self._search(prepared, store, resources, folder)
            self._remember(prepared, store)
            arena = self._plan(prepared, store)
            prepared = prepared.with_steps_of(arena.network)
            done = None
            if result.why == "exhausted":
                done = FinalSteps(self._context, prepared, store, resources).run(arena, folder)
            summary = self._summary(prepared, store, result, arena, done)
            paths = self._write(folder, summary, done)
        self._context.listen(Ended(summary=summary, paths=paths, seconds=self._context.now))
        return self._exit_code(result, done)

    def _resources(self, target: Target, folder: OutputFolder) -> RunResources:
        folders = Folders(
            scratch=self._context.scratch, log=folder.log, kept=folder.kept, leases=folder.leases
        )
        return RunResources(
            self._farm_settings,
            target,
            folders,
            owner=f"tune {readable(self._settings.model.name)}",
            clock=self._context.clock,
            style=self._settings.operations.style,
        )

    def _search(
        self, prepared: Prepared, store: TrialStore, resources: RunResources, folder: OutputFolder
    ) -> SearchResult:
        """Search, and time the finalists again unless it was stopped."""
        self._context.watch.spans.open(
            folder.spans, recorded_spans(prepared.tasks.values(), store.trials())
        )
        with closing(LogFile()) as story:
            story.open(folder.search_log)
            result = search(self._context, prepared, store, resources, story)
        if result.error is not None and not store.count():
            raise result.error
        if result.why == "exhausted":
            run_offs(
                self._context,
                prepared.tasks,
                store,
                executor=resources.executor,
                leases=resources.leases,
            )
        return result

    def _remember(self, prepared: Prepared, store: TrialStore) -> None:
        """Add to the records of all runs what this folder has; a run does not fail for it."""
        path = self._settings.records
        if path is None:
            return
        found = records_of(prepared.tasks, store, versions()["tilefarm"])
        try:
            with ScheduleStore(path) as kept:
                added = kept.add(found)
        except OutputError as error:
            self._context.say(f"records: nothing was added: {error.what}")
            return
        self._context.say(f"records: {plural(added, 'schedule')} added to {readable(path)}")

    def _exit_code(self, result: SearchResult, done: Finished | None) -> int:
        """That of a run whose outputs are written.

        Raises:
            NoDeviceError: it ended early because none was left.
            InfraError: the program does not answer as the reference does.
        """
        if result.why == "no device":
            raise result.error or NoDeviceError(
                "no device is left", "`tilefarm devices` says why; the same command continues"
            )
        if done is None:
            self._context.say("stopped; the same command continues where this one ended")
            return EXIT_INTERRUPTED
        if done.accuracy.differing:
            raise InfraError(
                f"{done.accuracy.differing} of {plural(done.accuracy.images, 'sample')} come out"
                " otherwise than the integer reference says",
                "do not deploy the program; report it with the output folder",
            )
        return 0

    def _open(self, target: Target, model_digest: Digest) -> OutputFolder:
        identity = RunIdentity(
            model=model_digest,
            target=target.digest,
            seed=self._settings.seed,
            proposer=self._settings.proposer,
        )
        facts = {
            "model": readable(self._settings.model.name),
            "target": target.name,
            "settings": _plain_settings(self._settings),
            "versions": versions(),
        }
        return OutputFolder.open(self._settings.out, identity, facts)

    def _plan(self, prepared: Prepared, store: TrialStore) -> Arena:
        best = {task.workload: best_of(task, store) for task in prepared.tasks.values()}
        cycles = {
            step.name: trial.cycles
            for step in prepared.network.steps
            for trial in (best.get(step.workload),)
            if trial is not None and trial.cycles is not None
        }
        return plan_arena(prepared.network, cycles)

    def _plans(
        self, prepared: Prepared, store: TrialStore, done: Finished | None
    ) -> NetworkPlans | None:
        """How the program runs; None where there is none."""
        if done is None:
            return None
        network = prepared.network
        best = {task.workload: best_of(task, store) for task in prepared.tasks.values()}
        kernels = {
            step.name: trial_time(trial, network.target)
            for step in network.steps
            if (trial := best.get(step.workload)) is not None
        }
        return network_plans(network, kernels, done.profile)

    def _summary(
        self,
        prepared: Prepared,
        store: TrialStore,
        result: SearchResult,
        arena: Arena,
        done: Finished | None,
    ) -> RunSummary:
        tasks, context, settings = prepared.tasks, self._context, self._settings
        rows = {
            name: workload_row(task, trials_of(task, store), store.run_off(task.digest))
            for name, task in tasks.items()
        }
        target = prepared.network.target
        cycles = done.network_cycles if done else None
        return RunSummary(
            run=RunOrigin(
                title=readable(settings.model.name),
                model_digest=prepared.files.model_digest.hex,
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
            layers=layer_rows(prepared.network, rows),
            trials=trial_rows(tasks, store.trials(), context.wall_origin),
            spans=context.watch.spans.spans(),
            sessions=session_rows(store.runs()),
            arena=arena.picture,
            timeline=done.timeline if done else None,
            accuracy=done.accuracy if done else None,
            spaces=self._spaces(prepared, store),
            noise=prepared.judged.noise,
            plans=prepared.judged.plans,
            network_cycles=cycles,
            network_seconds=done.network_seconds if done else None,
            memory=self._plans(prepared, store, done),
            profile=done.profile if done else None,
            comparison=done.comparison if done else None,
            network_time=target.board.time_of(cycles) if cycles else "",
            facts=(
                ("machine", machine()),
                ("candidates out at most", str(result.lookahead)),
                *((("search ended", result.ended),) if result.ended else ()),
                *versions().items(),
            ),
            interrupted=result.why != "exhausted",
        )

    def _spaces(self, prepared: Prepared, store: TrialStore) -> tuple[SpaceRow, ...]:
        seed, tasks = self._settings.seed, prepared.tasks.values()
        return tuple(space_row(task, trials_of(task, store), seed) for task in tasks)

    def _write(
        self, folder: OutputFolder, summary: RunSummary, done: Finished | None
    ) -> tuple[tuple[str, str], ...]:
        write_report(summary, folder.report)
        write_atomically(
            folder.trace, chrome_trace(summary, self._context.watch.spans.calls()).encode()
        )
        folder.write_summary(summary)
        paths = [
            ("report", folder.report),
            ("trace", folder.trace),
            ("records", folder.records),
        ]
        if done is not None:
            paths.insert(0, ("program", folder.program))
        return tuple((what, readable(path)) for what, path in paths)


def _in_utc(wall_seconds: float) -> str:
    return datetime.fromtimestamp(wall_seconds, UTC).isoformat(timespec="seconds")


def _plain_settings(settings: TuneSettings) -> dict[str, object]:
    return {
        "trials": settings.trials,
        "proposer": settings.proposer,
        "seed": settings.seed,
        "lookahead": settings.lookahead,
        "least_gain": settings.least_gain,
        "calibrate": readable(settings.calibrate.name) if settings.calibrate else None,
        **asdict(settings.quantization),
        "shape": {name: list(extents) for name, extents in settings.extents.items()},
        "evaluate": readable(settings.evaluate.name) if settings.evaluate else None,
        "judge": settings.judge,
        "max_loss": settings.max_loss,
    }
