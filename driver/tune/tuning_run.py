"""`tilefarm tune`, step by step: from an ONNX file to a checked program and its report."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

from tilefarm.clock import Clock, SystemClock
from tilefarm.code import code_digest
from tilefarm.digest import Digest
from tilefarm.errors import InfraError, NoDeviceError
from tilefarm.names import RandomIds
from tilefarm.plural import plural
from tilefarm.readable import readable
from tilefarm.target import Target

from compile_worker.plugins.passes import lowered_as_here, require_passes
from driver.environment import versions
from driver.farm.run_resources import Folders, RunResources
from driver.farm.scratch import scratch_folder
from driver.report.terminal.ended import Ended, Listener
from driver.report.terminal.interrupts import Interrupts
from driver.stop_token import StopToken
from driver.targets import usable_target
from driver.tune.chosen_schedules import (
    ChosenSchedule,
    chosen_schedules,
    given_schedules,
    going_on_from,
    read_schedules,
)
from driver.tune.compared import check_comparable
from driver.tune.output import OutputFolder, RunIdentity
from driver.tune.prepared import Prepared
from driver.tune.preparing import prepare, read
from driver.tune.run_context import RunContext
from driver.tune.run_pass import PassEnd, RunPass
from driver.tune.search_choice import searched_few
from driver.tune.settings import TuneSettings
from driver.tune.watched import watched
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
        self._given: Sequence[ChosenSchedule] | None = None
        self._failure: InfraError | None = None
        """Why there is no program of these, where the run has gone on nevertheless."""

    def run(self) -> int:
        target = usable_target(self._farm_settings.target)
        if self._settings.records is not None:  # What cannot be read is refused before the work.
            ScheduleStore(self._settings.records).close()
        if self._settings.compare is not None:
            check_comparable(target, self._farm_settings.tracker)
        if self._settings.schedules is not None:
            self._given = self._schedules(self._settings.schedules)
        files = read(self._context, target)
        folder = self._open(self._settings.out, target, files.model_digest)
        self._context.watch.write_into(folder.log)
        with TrialStore(folder.records) as store, self._resources(target, folder) as resources:
            if store.restored:
                self._context.say(store.restored)
            prepared = prepare(self._context, files, target)
            if self._given is None:
                end = RunPass(self._context, prepared, store, resources, folder).run()
            else:
                end = self._with_given(prepared, store, resources, folder)
        self._context.listen(Ended(summary=end.summary, paths=end.paths, seconds=self._context.now))
        if self._failure is not None:
            raise self._failure
        return self._exit_code(end)

    def _schedules(self, path: Path) -> Sequence[ChosenSchedule]:
        """Those of a file, lowered with the passes that are loaded.

        Raises:
            DataError: it cannot be read.
            PassError: one needs a pass of a name that is not loaded.
        """
        kept = read_schedules(path)
        given = [replace(each, trace=lowered_as_here(each.trace)) for each in kept]
        for each in given:
            require_passes(each.trace)
        others = sum(before.trace != now.trace for before, now in zip(kept, given, strict=True))
        if others:
            words = plural(others, "schedule")
            self._context.say(f"{path}: {words} lowered with the passes that are loaded now")
        return given

    def _with_given(
        self, prepared: Prepared, store: TrialStore, resources: RunResources, folder: OutputFolder
    ) -> PassEnd:
        """The program of the given schedules; then what a search finds from them on, if wanted."""
        assert self._given is not None
        given = given_schedules(prepared.tasks, self._given)
        self._context.say(f"schedules: {given}")
        exact = replace(prepared, tasks=given.tasks)
        end = None
        if not _is_built(exact, store, folder):
            end = self._built(exact, store, resources, folder)
            if end is not None and (not self._settings.trials or end.result.why != "exhausted"):
                return end
        beyond = self._beyond(prepared, store, resources, folder)
        if beyond.done is None and beyond.result.why == "exhausted":
            self._context.say("nothing better was found than the given schedules")
            return end or beyond
        return beyond

    def _built(
        self, exact: Prepared, store: TrialStore, resources: RunResources, folder: OutputFolder
    ) -> PassEnd | None:
        """The program of given schedules; None where there is none and a search follows.

        Raises:
            InfraError: there is none, and no search follows.
        """
        settings = replace(self._settings, trials=0, least_gain=0.0)
        context = replace(self._context, settings=settings)
        try:
            return RunPass(context, exact, store, resources, folder).run()
        except InfraError as error:
            if not self._settings.trials:
                raise
            self._context.say(f"the given schedules make no program: {error.what}")
            self._failure = error
            return None

    def _beyond(
        self, prepared: Prepared, store: TrialStore, resources: RunResources, folder: OutputFolder
    ) -> PassEnd:
        """What a search finds that knows the trials of `store`."""
        digest = prepared.files.model_digest
        found = self._open(folder.found, prepared.network.target, digest)
        with TrialStore(found.records) as further:
            going_on_from(store, further, self._context)
            settings, trials = self._settings, self._settings.trials
            seed = settings.seed if settings.search_seed is None else settings.search_seed
            tasks = searched_few(prepared.tasks, store, trials=trials, seed=seed)
            settings = replace(settings, trials=trials + store.count())
            context = replace(self._context, settings=settings)
            search = RunPass(context, replace(prepared, tasks=tasks), further, resources, found)
            return search.run(known=chosen_schedules(prepared.tasks, store))

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

    def _exit_code(self, end: PassEnd) -> int:
        """That of a run whose outputs are written.

        Raises:
            NoDeviceError: it ended early because none was left.
            InfraError: the program does not answer as the reference does.
        """
        result, done = end.result, end.done
        if result.why == "no device":
            raise result.error or NoDeviceError(
                "no device is left", "`tilefarm devices` says why; the same command continues"
            )
        if done is None and result.why == "exhausted":
            return 0  # An earlier session has built the given program, and nothing better is there.
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

    def _open(self, path: Path, target: Target, model_digest: Digest) -> OutputFolder:
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
        return OutputFolder.open(path, identity, facts)


def _is_built(exact: Prepared, store: TrialStore, folder: OutputFolder) -> bool:
    """Whether an earlier session with this very code has built and measured the program."""
    summary = folder.read_summary()
    is_whole = summary.get("interrupted") is False and bool(summary.get("accuracy"))
    if not is_whole or summary.get("code") != code_digest().hex or not folder.schedules.exists():
        return False
    return set(read_schedules(folder.schedules)) == set(chosen_schedules(exact.tasks, store))


def _plain_settings(settings: TuneSettings) -> dict[str, object]:
    return {
        "trials": settings.trials,
        "proposer": settings.proposer,
        "seed": settings.seed,
        "lookahead": settings.lookahead,
        "least_gain": settings.least_gain,
        "device_seconds": settings.device_seconds,
        "calibrate": readable(settings.calibrate.name) if settings.calibrate else None,
        **asdict(settings.quantization),
        "shape": {name: list(extents) for name, extents in settings.extents.items()},
        "evaluate": readable(settings.evaluate.name) if settings.evaluate else None,
        "judge": settings.judge,
        "max_loss": settings.max_loss,
    }
