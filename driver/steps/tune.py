"""`tilefarm tune`, step by step: from an ONNX file to a checked program and its report."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Final, TextIO

from tilefarm.clock import Clock, SystemClock
from tilefarm.digest import Digest
from tilefarm.errors import InfraError, NoDeviceError
from tilefarm.names import RandomIds
from tilefarm.target import Target
from tilefarm.watch.log import LineLog

from driver.farm.farmhouse import Farmhouse, Folders
from driver.farm.scratch import scratch_folder
from driver.frontend import Dataset, import_model, load_data
from driver.frontend.seeded import seeded_data
from driver.graph.ir import Graph
from driver.partition.partitioner import partition
from driver.program.arena import Arena, plan_arena
from driver.quantize.fitting import quantize_for
from driver.quantize.ranges import ranges_of
from driver.report import write_report
from driver.report.summary import RunSummary
from driver.report.trace import chrome_trace
from driver.search.campaign import Windows
from driver.search.loop import Loop
from driver.search.preparing import tasks_of
from driver.search.stop import StopSwitch
from driver.search.terms import SearchResult, SearchSettings
from driver.settings import TuneSettings
from driver.steps.finish import Finish, Finished
from driver.steps.machine import machine, versions
from driver.steps.output import Identity, OutputFolder
from driver.steps.prepared import Prepared, trials_of
from driver.steps.stages import Stages
from driver.steps.summarise import (
    best_trial,
    default_trial,
    layer_rows,
    standing,
    trial_rows,
    workload_row,
)
from driver.steps.watched import watched
from driver.targets import usable_target
from driver.terminal.events import Ended, Listener, SearchBegan
from driver.terminal.interrupts import Interrupts
from driver.whole_file import write_whole
from tuner.session import Task as SessionTask
from tuner.session import TuningSession
from tuner.store import Store

EXIT_INTERRUPTED: Final = 75
_SEEDED_RUNS: Final = 4
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
    stop = StopSwitch()
    run_id = RandomIds().fresh("run")
    origin = clock.wall_seconds() if began is None else began
    with (
        watched(
            settings.operations, listen, run_id=run_id, clock=clock, wall_origin=origin
        ) as watch,
        scratch_folder() as scratch,
        Interrupts(stop, scratch) as interrupts,
    ):
        stages = Stages(
            settings=settings,
            clock=clock,
            watch=watch,
            stop=stop,
            scratch=scratch,
            run_id=run_id,
            wall_origin=origin,
        )
        try:
            return _Tune(stages).run()
        finally:
            interrupts.closing()


class _Tune:
    """One run. Each method is a step or a piece of one."""

    def __init__(self, stages: Stages) -> None:
        self._stages = stages
        self._settings = stages.settings
        self._farm_settings = stages.settings.farm

    def run(self) -> int:
        target = usable_target(self._farm_settings.target)
        graph, calibration, evaluation, model_digest = self._read()
        folder = self._open(target, model_digest)
        self._stages.watch.write_into(folder.log)
        with ExitStack() as owned:
            store = owned.enter_context(Store(folder.records))
            house = owned.enter_context(
                Farmhouse(
                    self._farm_settings,
                    target,
                    Folders(
                        scratch=self._stages.scratch,
                        log=folder.log,
                        kept=folder.kept,
                        leases=folder.leases,
                    ),
                    owner=f"tune {self._settings.model.name}",
                    clock=self._stages.clock,
                    style=self._settings.operations.style,
                )
            )
            prepared = self._prepare(graph, calibration, evaluation, model_digest, target)
            story = owned.enter_context(folder.search_log.open("a", encoding="utf-8", buffering=1))
            result = self._search(prepared, store, house, story)
            if result.error is not None and not store.count():
                raise result.error
            arena = self._plan(prepared, store)
            stopped = result.why != "exhausted"
            finish = Finish(self._stages, prepared, store, house)
            done = None if stopped else finish.run(arena, folder)
            summary = self._summary(prepared, store, result, arena, done)
            paths = self._write(folder, summary, done)
        self._stages.listen(Ended(summary=summary, paths=paths, seconds=self._stages.now))
        if result.why == "no device":
            raise result.error or NoDeviceError("no device is left")
        if done is not None and done.accuracy.differing:
            raise InfraError(
                f"{done.accuracy.differing} of {done.accuracy.images} images come out otherwise"
                " than the integer reference says",
                "do not deploy the program; report it with the output folder",
            )
        if stopped:
            self._stages.say("stopped; the same command continues where this one ended")
        return EXIT_INTERRUPTED if stopped else 0

    # ---- 1 to 4: what there is to do -------------------------------------------------------------

    def _read(self) -> tuple[Graph, Dataset | None, Dataset, Digest]:
        settings = self._settings
        with self._stages.step("import") as say:
            graph = import_model(settings.model, settings.extents)
            digest = Digest.of(settings.model.read_bytes())
            say(f"{graph.name}, {len(graph.nodes)} operators")
            calibration = None
            if settings.calibrate is None:
                ranges_of(graph, None)  # refused before anything is started
            else:
                calibration = load_data(settings.calibrate, graph)
                say(f"{calibration.samples} samples to calibrate")
            if settings.evaluate is not None:
                evaluation = load_data(settings.evaluate, graph)
            elif calibration is not None:
                evaluation = calibration
            else:
                evaluation = seeded_data(graph, _SEEDED_RUNS * graph.batch, settings.seed)
                say("no data were given: the samples are random")
            say(f"{evaluation.samples} to evaluate")
        return graph, calibration, evaluation, digest

    def _open(self, target: Target, model_digest: Digest) -> OutputFolder:
        identity = Identity(
            model=model_digest,
            target=target.digest,
            seed=self._settings.seed,
            proposer=self._settings.proposer,
        )
        facts = {
            "model": self._settings.model.name,
            "target": target.name,
            "settings": _plain_settings(self._settings),
            "versions": versions(),
        }
        return OutputFolder.open(self._settings.out, identity, facts)

    def _prepare(
        self,
        graph: Graph,
        calibration: Dataset | None,
        evaluation: Dataset,
        model_digest: Digest,
        target: Target,
    ) -> Prepared:
        with self._stages.step("quantize") as say:
            data = None if calibration is None else calibration.inputs
            how = self._settings.quantization
            quantized = quantize_for(target, graph, data, how)
            if graph.ranges:
                say(f"int8 by {len(graph.ranges)} ranges in the model")
            if calibration is not None:
                say(f"int8 by {calibration.samples} samples, {how}")
        with self._stages.step("partition") as say:
            network = partition(quantized, target)
            on_accelerator = sum(s.place == "accelerator" for s in network.steps)
            say(f"{on_accelerator} kernels on the accelerator")
            say(f"{len(network.steps) - on_accelerator} on the CPU")
            say(f"{network.macs / 1e6:.2f} million MACs")
        with self._stages.step("spaces") as say:
            tasks = tasks_of(network, self._settings.seed)
            say(f"{len(tasks)} distinct workloads")
        return Prepared(
            graph=graph,
            quantized=quantized,
            network=network,
            tasks=tasks,
            evaluation=evaluation,
            model_digest=model_digest,
        )

    # ---- 5 to 8: the search ----------------------------------------------------------------------

    def _search(
        self, prepared: Prepared, store: Store, house: Farmhouse, story: TextIO
    ) -> SearchResult:
        stages, settings = self._stages, self._settings
        history = {name: trials_of(task, store) for name, task in prepared.tasks.items()}
        session = TuningSession(
            {
                name: SessionTask(task.space, task.count, task.ideal_cycles)
                for name, task in prepared.tasks.items()
            },
            trials=settings.trials,
            proposer=settings.proposer,
            seed=settings.seed,
            history=history,
        )
        known = session.told
        loop = Loop(
            tasks=prepared.tasks,
            session=session,
            records=store,
            executor=house.executor,
            devices=house.leases,
            settings=SearchSettings(
                devices=self._farm_settings.devices,
                windows=Windows(workers=self._farm_settings.processes),
                device_wait_seconds=self._farm_settings.device_wait_seconds,
                run_timeout_seconds=self._farm_settings.run_timeout_seconds,
                run_id=stages.run_id,
                proposer=settings.proposer,
            ),
            clock=stages.clock,
            wall_origin=stages.wall_origin,
            listen=stages.listen,
            log=LineLog("search", story, style=settings.operations.style),
            defaults={
                name: trial.cycles
                for name, task in prepared.tasks.items()
                if (trial := default_trial(task, history[name])) and trial.cycles is not None
            },
        )
        description = {"model": prepared.model_digest.hex, "seed": settings.seed}
        store.begin_run(stages.run_id, description, begun=stages.clock.wall_seconds())
        stages.listen(
            SearchBegan(
                workloads=tuple((task.name, task.count) for task in prepared.tasks.values()),
                standings={
                    name: standing(task, history[name]) for name, task in prepared.tasks.items()
                },
                trials=session.budget,
                done=known,
                seconds=stages.now,
            )
        )
        with stages.step("search") as say:
            result = loop.run(stages.stop)
            say(f"{result.trials} trials in {result.seconds:.1f} s")
            if known:
                say(f"{known} from earlier sessions")
            say(f"compiled on {house.compiled_on}")
        stages.spans += loop.spans
        store.end_run(stages.run_id, result.why, ended=stages.clock.wall_seconds())
        return result

    def _plan(self, prepared: Prepared, store: Store) -> Arena:
        best = {
            task.workload: (best_trial(trials_of(task, store)), task)
            for task in prepared.tasks.values()
        }
        cycles = {
            step.name: trial.cycles
            for step in prepared.network.steps
            for trial, _ in (best.get(step.workload, (None, None)),)
            if trial is not None and trial.cycles is not None
        }
        return plan_arena(prepared.network, cycles)

    # ---- what is left behind ---------------------------------------------------------------------

    def _summary(
        self,
        prepared: Prepared,
        store: Store,
        result: SearchResult,
        arena: Arena,
        done: Finished | None,
    ) -> RunSummary:
        tasks, stages, settings = prepared.tasks, self._stages, self._settings
        rows = {name: workload_row(task, trials_of(task, store)) for name, task in tasks.items()}
        target = prepared.network.target
        return RunSummary(
            title=settings.model.name,
            model_digest=prepared.model_digest.hex,
            target=target.name,
            target_digest=target.digest.hex,
            began=datetime.fromtimestamp(stages.wall_origin, UTC).isoformat(timespec="seconds"),
            seed=settings.seed,
            proposer=settings.proposer,
            total_seconds=stages.now,
            search_seconds=result.seconds,
            first_measured_seconds=result.first_measured_seconds,
            trials_per_second=result.trials / result.seconds if result.trials else None,
            trials_this_session=result.trials,
            split=result.split,
            workloads=tuple(rows.values()),
            layers=layer_rows(prepared.network, rows),
            trials=trial_rows(tasks, store.trials(), stages.wall_origin),
            spans=tuple(stages.spans),
            arena=arena.picture,
            timeline=done.timeline if done else None,
            accuracy=done.accuracy if done else None,
            network_cycles=done.network_cycles if done else None,
            facts=(("machine", machine()), *versions().items()),
            interrupted=result.why != "exhausted",
        )

    def _write(
        self, folder: OutputFolder, summary: RunSummary, done: Finished | None
    ) -> tuple[tuple[str, str], ...]:
        write_report(summary, folder.report)
        write_whole(folder.trace, chrome_trace(summary, self._stages.watch.calls()).encode())
        folder.write_summary(summary)
        paths = [
            ("report", folder.report),
            ("trace", folder.trace),
            ("records", folder.records),
        ]
        if done is not None:
            paths.insert(0, ("program", folder.program))
        return tuple((what, str(path)) for what, path in paths)


def _plain_settings(settings: TuneSettings) -> dict[str, object]:
    return {
        "trials": settings.trials,
        "proposer": settings.proposer,
        "seed": settings.seed,
        "calibrate": settings.calibrate.name if settings.calibrate else None,
        **asdict(settings.quantization),
        "shape": {name: list(extents) for name, extents in settings.extents.items()},
        "evaluate": settings.evaluate.name if settings.evaluate else None,
    }
