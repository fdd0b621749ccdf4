"""Several samples of a network in flight on a simulated accelerator: planned, run, and measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.plural import plural
from tilefarm.target import Target
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from device_server.vta.library.library import VtaLibrary
from driver.network import Network
from driver.program.evaluate import differing_samples
from driver.program.pipeline import Pipeline, longest_latency, pipeline
from driver.program.pipeline_run import PipelineRun, run_pipeline
from driver.program.simulated import answers_of, assembled, profile_here
from driver.program.slots import SlotsProgram, in_slot, slots_program
from driver.program.stages import Stage, stage_times, stages_of, stages_problem
from driver.program.step_times import clock_mhz, modelled_times, profile_times
from driver.report.cost import microseconds
from driver.report.step_times import StepTime

SAMPLES: Final = 24
"""That go through a pipeline: enough that it is full most of the time."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AcceleratedSamples:
    """A pipeline and its runs.

    Attributes:
        alone_ticks: a sample takes with nothing beside it; a tick is a nanosecond.
        alone_nbytes: its arena.
        samples: that ran.
        differing: of them, that came out otherwise than one at a time.
    """

    made: Pipeline
    run: PipelineRun
    alone_ticks: int
    alone_nbytes: int
    samples: int
    differing: int

    @property
    def gain(self) -> float:
        """Times the throughput of one sample at a time."""
        return self.alone_ticks / self.run.ticks_a_sample

    def document(self) -> dict[str, Any]:
        """What JSON can say; times in seconds."""
        return {
            "in_flight": self.made.in_flight,
            "samples": self.samples,
            "differing": self.differing,
            "seconds_a_sample": 1e-9 * self.run.ticks_a_sample,
            "planned_seconds_a_sample": 1e-9 * self.made.ticks_a_sample,
            "bound_seconds": 1e-9 * self.run.bound_ticks,
            "busiest": self.made.busiest,
            "gap": self.run.gap,
            "latency_seconds": 1e-9 * longest_latency(self.run.measured),
            "alone_seconds": 1e-9 * self.alone_ticks,
            "makespan_off": self.run.off,
            "arena_nbytes": self.made.nbytes,
            "alone_arena_nbytes": self.alone_nbytes,
        }


def accelerated_samples(
    network: Network,
    traces: Mapping[Workload, Trace],
    inputs: Mapping[str, NDArray[Any]],
    *,
    in_flight: int = 0,
    library: VtaLibrary | None = None,
) -> AcceleratedSamples:
    """Plan by measured times of the stages, run, and hold the answers against one at a time.

    Args:
        network: with its steps in the order in which they run.
        traces: the schedule of every workload that is searched.
        inputs: float32 samples, used again and again.
        in_flight: samples at a time; 0: as many as are worth it.
        library: the simulator; None: the one that is built.

    Raises:
        InfraError: a program does not compile, or does not run.
    """
    stages = stages_of(network)
    mhz = clock_mhz(network.target)
    times = _measured(network, traces, stages, inputs)
    single = stages_problem(network, stages, times)
    made = pipeline(single, in_flight)
    slots = slots_program(network, traces, stages, made.offsets, made.nbytes)
    several = {name: _repeated(x, SAMPLES * network.batch) for name, x in inputs.items()}
    names = [output.name for output in network.outputs]
    run = run_pipeline(slots, made, several, names, mhz=mhz, library=library or VtaLibrary())
    alone = answers_of(assembled(network, traces), several).outputs
    return AcceleratedSamples(
        made=made,
        run=run,
        alone_ticks=sum(op.ticks for op in single.ops),
        alone_nbytes=pipeline(single, 1).nbytes,
        samples=SAMPLES * network.batch,
        differing=max(differing_samples(each, alone) for each in run.outputs),
    )


def pipeline_lines(found: AcceleratedSamples, target: Target) -> Iterator[str]:
    """What several samples in flight give."""
    run, made = found.run, found.made
    clock = f"{clock_mhz(target)} MHz" + ("" if target.board.clock_mhz else ", assumed")
    yield (
        f"{plural(made.in_flight, 'sample')} in flight, accelerator at {clock}:"
        f" {_time(run.ticks_a_sample)} a sample, {run.gap:.3f} times what the {made.busiest} works"
        f" ({_time(run.bound_ticks)}); latency {_time(longest_latency(run.measured))}"
    )
    yield (
        f"one at a time {_time(found.alone_ticks)} a sample: {found.gain:.2f} times the throughput"
    )
    yield (
        f"planned {_time(made.ticks_a_sample)} a sample; {plural(found.samples, 'sample')} took"
        f" {1 + run.off:.3f} times the planned time"
    )
    yield (
        f"arena {made.nbytes} bytes, {found.alone_nbytes} one at a time;"
        f" {found.differing} of {plural(found.samples, 'sample')} differ from one at a time"
    )


def _measured(
    network: Network,
    traces: Mapping[Workload, Trace],
    stages: Sequence[Stage],
    inputs: Mapping[str, NDArray[Any]],
) -> dict[str, StepTime]:
    """Of stages, one after the other."""
    model = stage_times(stages, modelled_times(network))
    alone = pipeline(stages_problem(network, stages, model), 1)
    slots = slots_program(network, traces, stages, alone.offsets, alone.nbytes)
    profile = profile_here(slots.program, {in_slot(name, 0): x for name, x in inputs.items()})
    return model | _by_stage(slots, profile_times(profile, network.target))


def _by_stage(slots: SlotsProgram, layers: Mapping[str, StepTime]) -> dict[str, StepTime]:
    names = {call.entry: call.layer for call in slots.program.calls}
    found = {stage: layers.get(names[entry]) for stage, entry in slots.entries[0].items()}
    return {stage: time for stage, time in found.items() if time is not None}


def _repeated(values: NDArray[Any], count: int) -> NDArray[np.float32]:
    return np.resize(np.asarray(values, np.float32), (count, *values.shape[1:]))


def _time(ticks: float) -> str:
    return microseconds(1e-9 * ticks)
