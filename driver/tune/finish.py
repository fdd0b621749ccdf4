"""The last steps of a run: one program out of the best kernels, checked on the devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from tilefarm.errors import InfraError, TilefarmError
from tilefarm.measurement import DeviceClock, Measurement, Status, Trial
from tilefarm.plural import form, plural
from tilefarm.space import ESTIMATE

from compile_worker.plugins.passes import default_trace
from driver.campaign.job_runner import JobRunner
from driver.campaign.measuring import Task
from driver.environment import machine, versions
from driver.farm.compiling.once import compiled
from driver.farm.compiling.reproducers import Reproducer, Reproducers
from driver.farm.device_messages import RunEnded
from driver.farm.run_resources import RunResources
from driver.network import judge_of
from driver.program.arena import Arena
from driver.program.evaluate import answers_digest, differing_samples, run_program
from driver.program.model import NetworkProgram, network_program, program_job
from driver.program.onnx_runtime import INSTALL, has_peer
from driver.program.profile import profiled
from driver.program.rounds import timed_in_rounds
from driver.report.comparison import Comparison
from driver.report.profile import Profile
from driver.report.rounds import RoundsTime
from driver.report.summary import Accuracy, KernelTimeline
from driver.report.terminal.profile_text import against_the_whole
from driver.tune.compared import compared
from driver.tune.judged import judge_samples
from driver.tune.output import OutputFolder
from driver.tune.prepared import Prepared, best_of, trials_of
from driver.tune.run_context import RunContext
from tuner.sampler import Sampler
from tuner.trial_store import TrialStore

_PATIENCE: Final = 20.0
"""How much longer the whole network may take than its kernels took, one by one: what the processor
does is not in these, and other machines and other moments are slower."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What the last steps add when the search was not stopped."""

    accuracy: Accuracy
    network_cycles: int | None
    network_seconds: float | None
    timeline: KernelTimeline | None
    profile: Profile | None
    network_rounds: tuple[RoundsTime, ...] = ()
    device: Mapping[str, str] = field(default_factory=dict)
    comparison: Comparison | None = None


@dataclass(slots=True)
class _Place:
    """How far an evaluation has come; written by one thread, read by another."""

    of: int
    who: str = "float reference"
    samples: int = 0

    def begin(self, who: str) -> None:
        self.who, self.samples = who, 0

    def done(self, samples: int) -> None:
        self.samples += samples

    def words(self) -> str:
        return f"{self.who}: sample {min(self.samples + 1, self.of)} of {self.of}"


class FinalSteps:
    """Assembles, times and checks; each method is a step or a piece of one."""

    def __init__(
        self, context: RunContext, prepared: Prepared, store: TrialStore, resources: RunResources
    ) -> None:
        self._context = context
        self._prepared = prepared
        self._resources = resources
        self._farm_settings = context.settings.farm
        self._store = store
        self._best: dict[str, Trial] = {}

    def run(self, arena: Arena, folder: OutputFolder) -> Finished:
        """The program in the output folder, and what the devices made of it.

        Raises:
            InfraError: a workload has no good schedule, or the program does not compile or run.
            NoDeviceError, DeviceLostError: see `JobRunner.run`.
        """
        self._best = {name: _best(task, self._store) for name, task in self._prepared.tasks.items()}
        program = self._assemble(arena, Reproducers(folder.kept))
        folder.write_program(program, versions())
        timeline = self._timeline()
        accuracy, cycles = self._evaluate(program)
        profile = self._profile(program)
        rounds = self._rounds(program, profile)
        return Finished(
            accuracy=accuracy,
            network_cycles=cycles,
            network_seconds=profile.network_seconds if profile else None,
            timeline=timeline,
            profile=profile,
            network_rounds=rounds,
            device=self._device(profile),
            comparison=self._comparison(program),
        )

    def _assemble(self, arena: Arena, kept: Reproducers) -> NetworkProgram:
        network = self._prepared.network
        with self._context.step("assemble") as say:
            traces = {
                task.workload: task.trace(dict(self._best[name].point))
                for name, task in self._prepared.tasks.items()
            }
            job, constants = program_job(network, traces, arena.offsets)
            (artifact,) = compiled(self._resources.executor, [job])
            kept.keep(Reproducer(job=job, status=Status.OK))
            for kernel in job.kernels:
                kept.keep(Reproducer(job=kernel, status=Status.OK))
            say(f"{plural(len(job.calls), 'call')} of {plural(len(job.kernels), 'kernel')}")
            say(f"code {_kib(artifact.code)}, weights {_kib(constants)}")
            given = arena.picture.given_nbytes
            moved = f", in the given order of layers {given / 1024:.0f} KiB"
            say(f"arena {arena.nbytes / 1024:.0f} KiB{moved if given != arena.nbytes else ''}")
        predicted = {
            task.workload: cycles
            for name, task in self._prepared.tasks.items()
            if (cycles := _predicted_cycles(task, self._best[name])) is not None
        }
        ideal = {task.workload: task.ideal_cycles for task in self._prepared.tasks.values()}
        return network_program(network, job, artifact, constants, arena.nbytes, predicted, ideal)

    def _timeline(self) -> KernelTimeline | None:
        """The slowest of the best kernels once more, with its instructions' times."""
        if not self._best:
            return None
        if self._is_clocked:
            return None  # What counts no cycles has no timeline.
        name, trial = max(self._best.items(), key=lambda item: item[1].cost or 0.0)
        task = self._prepared.tasks[name]
        compile_job = task.compile_job(task.trace(dict(trial.point)))
        (artifact,) = compiled(self._resources.executor, [compile_job])
        order = task.order(
            artifact,
            f"{self._context.run_id}-timeline",
            timeout_seconds=self._farm_settings.run_timeout_seconds,
            timeline=True,
        )
        runner = self._runner()
        with self._context.watch.waiting(runner.waits_for):
            (done,) = runner.run([order])
        if not isinstance(done.result, Measurement) or done.result.cycles is None:
            return None
        steps = self._prepared.network.steps
        return KernelTimeline(
            workload=name,
            layer=next(step.name for step in steps if step.workload == task.workload),
            cycles=done.result.cycles,
            events=done.result.timeline,
        )

    def _evaluate(self, program: NetworkProgram) -> tuple[Accuracy, int | None]:
        judged, files = self._prepared.judged, self._prepared.files
        data = files.evaluation
        with self._context.step("evaluate") as say:
            inputs, at = data.inputs, _Place(of=data.samples)
            with self._context.watch.waiting(at.words):
                floats = judged.floats.first(data.samples, at.done)
                at.begin("integer reference")
                integers = judged.integers.first(data.samples, at.done)
                at.begin("devices")

                def watch(done: RunEnded, samples: int) -> None:
                    self._context.note_run(done, "network", "the whole network")
                    at.done(samples)

                answer = run_program(
                    program,
                    inputs,
                    self._runner(),
                    limit_seconds=self._limit_seconds(),
                    run_id=self._context.run_id,
                    watch=watch,
                )
            differing = differing_samples(answer.outputs, integers)
            say(f"{plural(data.samples, 'sample')} on the device")
            say(f"{differing} {form(differing, 'differs', 'differ')} from the reference")
        judge = judge_of(files.kind, files.graph, floats, data.labels)
        accuracy = Accuracy(
            images=data.samples,
            labelled=0 if data.labels is None else data.samples,
            kind=files.kind,
            compared=judge.compared(integers, answer.outputs),
            differing=differing,
            answers=answers_digest(answer.outputs).hex,
        )
        if not files.is_seeded:
            found = judge_samples(self._context, files, floats, integers, files.held_out)
            accuracy = replace(accuracy, judgement=found)
        return accuracy, (answer.cycles[-1] or None) if answer.cycles else None

    @property
    def _is_clocked(self) -> bool:
        """Whether the clock tells the times of the kernels, as nothing counts cycles."""
        if not self._prepared.network.target.model.counts_cycles:
            return True
        return any(trial.clock is DeviceClock.SECONDS for trial in self._best.values())

    def _profile(self, program: NetworkProgram) -> Profile | None:
        """What the layers take on a device; a run whose program is right does not fail for it."""
        with self._context.step("profile") as say:
            runner = self._runner()
            try:
                with self._context.watch.waiting(runner.waits_for):
                    profile = profiled(
                        program,
                        self._prepared.files.evaluation.inputs,
                        runner,
                        by_clock=self._is_clocked,
                        limit_seconds=self._limit_seconds(),
                        run_id=self._context.run_id,
                    )
            except TilefarmError as error:
                say(f"none: {error.what}")
                return None
            say(against_the_whole(profile))
        return profile

    def _rounds(self, program: NetworkProgram, profile: Profile | None) -> tuple[RoundsTime, ...]:
        """Times of the whole program, twice, for who compares them with other runs'."""
        if self._context.settings.schedules is None or profile is None or not profile.by_clock:
            return ()
        try:
            timed = timed_in_rounds(
                program,
                self._prepared.files.evaluation.inputs,
                self._runner(),
                limit_seconds=self._limit_seconds(),
                run_id=self._context.run_id,
            )
        except TilefarmError as error:
            self._context.say(f"not timed again: {error.what}")
            return ()
        return timed or ()

    def _device(self, profile: Profile | None) -> Mapping[str, str]:
        """What times of the device that made the profile depend on."""
        info = None if profile is None else self._resources.leases.device(profile.device)
        if info is None or profile is None:
            return {}
        is_here = self._farm_settings.tracker is None
        labels = (f"{name}={value}" for name, value in info.labels)
        return {
            "name": info.name,
            "clock": (DeviceClock.SECONDS if profile.by_clock else DeviceClock.CYCLES).value,
            "runtime": info.runtime,
            "power": info.power,
            "labels": " ".join(labels),
            "processor": machine() if is_here else "",
        }

    def _comparison(self, program: NetworkProgram) -> Comparison | None:
        """Beside ONNX Runtime, if that is wanted and there."""
        if self._context.settings.compare is None:
            return None
        with self._context.step("compare") as say:
            if not has_peer():
                say(f"ONNX Runtime is not installed: {INSTALL}")
                return None
            try:
                found = compared(
                    program,
                    self._context.settings.model,
                    self._prepared.files,
                    self._context.runner(self._resources.leases, 1),
                    limit_seconds=self._limit_seconds(),
                    run_id=self._context.run_id,
                    folder=self._context.scratch,
                )
            except TilefarmError as error:
                say(f"none: {error.what}")
                return None
            say(f"in turns with {found.library}")
        return found

    def _limit_seconds(self) -> float:
        """What a device may take for one batch, by what the best kernels took on these devices."""
        seconds = {name: _run_seconds(trial) for name, trial in self._best.items()}
        steps = self._prepared.network.steps
        kernels = sum(seconds.get(step.workload.name, 0.0) for step in steps)
        return max(self._farm_settings.run_timeout_seconds, _PATIENCE * kernels)

    def _runner(self) -> JobRunner:
        return self._context.runner(self._resources.leases, self._farm_settings.devices)


def _best(task: Task, store: TrialStore) -> Trial:
    best = best_of(task, store)
    if best is not None:
        return best
    trials = trials_of(task, store)
    why = next((f"{t.status.value}: {t.why or 'no time'}" for t in trials), "nothing was measured")
    hint = "more --trials; `tilefarm check` runs every layer with its plain schedule"
    if default_trace().steps:
        hint = "leave out --plugin, whose passes lower every kernel: they may be at fault"
    raise InfraError(f"no schedule of {task.name} ended well; first: {why}", hint)


def _predicted_cycles(task: Task, trial: Trial) -> int | None:
    """What the space says of a schedule; None where it says nothing."""
    point = Sampler(task.space).complete(dict(trial.point)) or {}
    quarters = point.get(ESTIMATE)
    return None if quarters is None else max(1, round(quarters / 4))


def _run_seconds(trial: Trial) -> float:
    """How long a device had the trial's run."""
    return sum(end - begin for stage, begin, end in trial.spans if stage == "run")


def _kib(content: bytes) -> str:
    return f"{-(-len(content) // 1024)} KiB"
