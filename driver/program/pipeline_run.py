"""Samples through a pipeline on the simulated accelerator and this processor: what that takes.

Every stage of every sample really runs, in the order of the plan, a few times over. The
accelerator's take their cycles at its clock, the processor's what this one took; when they would
have run beside each other follows from what each waits for: its operands, its engine, and whoever
had its bytes before.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from device_server.vta.library.library import VtaLibrary
from device_server.vta.library.session import EntrySession, TimedCall
from driver.memory import Plan, Problem, replayed, validate
from driver.program.pipeline import Pipeline, busiest_engine, sample_spans, unrolled
from driver.program.slots import SlotsProgram

RUNS: Final = 5
"""The processor's stages are timed by the clock, which others disturb."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PipelineRun:
    """Samples that went through a pipeline.

    Attributes:
        outputs: of each run, [samples, ...] by the network's names.
        planned: when all should have run.
        measured: when it did, by the median of the runs for each stage of each sample.
        ticks_a_sample: from one answer to the next, when the pipeline was full.
        bound_ticks: what the busiest engine worked for each of these answers.
    """

    outputs: Sequence[Mapping[str, NDArray[np.float32]]]
    planned: Plan
    measured: Plan
    ticks_a_sample: float
    bound_ticks: float

    @property
    def gap(self) -> float:
        """Ticks a sample by the bound: 1 where the busiest engine was never idle."""
        return self.ticks_a_sample / self.bound_ticks

    @property
    def off(self) -> float:
        """How much longer it took than was planned, relatively."""
        return self.measured.makespan_ticks / self.planned.makespan_ticks - 1


def run_pipeline(
    slots: SlotsProgram,
    made: Pipeline,
    inputs: Mapping[str, NDArray[Any]],
    outputs: Sequence[str],
    *,
    mhz: int,
    library: VtaLibrary,
) -> PipelineRun:
    """Run all samples of `inputs`, a batch for each pass.

    Args:
        slots: the program of the pipeline.
        made: the pipeline.
        inputs: float32 [passes * batch, ...] by the network's names.
        outputs: those names of its outputs.
        mhz: the accelerator's clock.
        library: a simulator, which becomes the program's target.

    Raises:
        DataError, VtaError: the program does not run.
        AssertionError: bytes were shared at a time (a bug).
    """
    passes = len(next(iter(inputs.values()))) // slots.program.batch
    problem, plan = unrolled(made, passes)
    library.configure(slots.program.target)
    with tempfile.TemporaryDirectory(prefix="tilefarm-pipeline-") as folder:
        code = Path(folder) / "network.so"
        code.write_bytes(slots.program.code)
        with library.session(code, _buffers(slots)) as session:
            runs = [_Run(slots, made, session, inputs) for _ in range(RUNS)]
            calls = [{each.op: run.call(each.op) for each in plan.ops} for run in runs]
    answers = [run.answers(outputs) for run in runs]
    ticks = {
        op.name: round(median(_ticks(each[op.name], mhz) for each in calls)) for op in problem.ops
    }
    measured = replayed(problem, plan, ticks)
    timed = replace(
        problem,
        ops=tuple(replace(op, duration_ticks=ticks[op.name], samples=()) for op in problem.ops),
    )
    verdict = validate(timed, measured)
    assert verdict, f"the pipeline as it ran is wrong ({verdict.name}): {verdict.why}"
    full = _full(made, passes)
    return PipelineRun(
        outputs=answers,
        planned=plan,
        measured=measured,
        ticks_a_sample=_ticks_a_sample(measured, full),
        bound_ticks=_work(timed, full),
    )


class _Run:
    """Calls of stages; inputs are filled before a sample's first, outputs read after its last."""

    def __init__(
        self,
        slots: SlotsProgram,
        made: Pipeline,
        session: EntrySession,
        inputs: Mapping[str, NDArray[Any]],
    ) -> None:
        self._program = slots.program
        self._entries = slots.entries
        self._session = session
        self._inputs = [np.ascontiguousarray(x, np.float32) for x in inputs.values()]
        self._left: dict[int, int] = {}
        self._stages = len(made.single.ops)
        self._found: dict[int, list[bytes]] = {}

    def call(self, op: str) -> TimedCall:
        stage, _, number = op.rpartition("#")
        sample = int(number)
        slot = sample % len(self._entries)
        if sample not in self._left:
            self._left[sample] = self._stages
            self._fill(sample, slot)
        took = self._session.call(self._entries[slot][stage])
        self._left[sample] -= 1
        if not self._left[sample]:
            self._found[sample] = self._read(slot)
        return took

    def answers(self, names: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Outputs of all samples, in their order."""
        shapes = [output.shape for output in self._program.outputs[: len(names)]]
        rows = [self._found[sample] for sample in sorted(self._found)]
        return {
            name: np.concatenate(
                [np.frombuffer(row[at], np.float32).reshape(shape) for row in rows]
            )
            for at, (name, shape) in enumerate(zip(names, shapes, strict=True))
        }

    def _fill(self, sample: int, slot: int) -> None:
        batch = self._program.batch
        for at, values in enumerate(self._inputs):
            mine = values[sample * batch : (sample + 1) * batch]
            self._session.write(2 + slot * len(self._inputs) + at, mine.tobytes())

    def _read(self, slot: int) -> list[bytes]:
        count = len(self._program.outputs) // len(self._entries)
        first = 2 + len(self._program.inputs) + slot * count
        return [
            self._session.read(first + at, output.nbytes)
            for at, output in enumerate(self._program.outputs[:count])
        ]


def _buffers(slots: SlotsProgram) -> list[bytes | int]:
    program = slots.program
    sizes = [p.nbytes for p in (*program.inputs, *program.outputs)]
    return [program.scratch_nbytes, program.constants, *sizes]


def _ticks(call: TimedCall, mhz: int) -> int:
    seconds = call.cycles / (1e6 * mhz) if call.cycles else call.seconds
    return max(1, round(1e9 * seconds))


def _full(made: Pipeline, passes: int) -> range:
    """Samples between whose answers the pipeline was full, in whole rounds; all where they are few.

    Beside the first ones and the last ones there are fewer than later and earlier.
    """
    rounds = (passes - 1 - 2 * made.in_flight) // made.state.samples
    if rounds < 1:
        return range(passes)
    last = passes - made.in_flight
    return range(last - rounds * made.state.samples, last)


def _ticks_a_sample(plan: Plan, full: range) -> float:
    """Between the answers of these samples."""
    ends = [0, *(end for _, end in sample_spans(plan))]
    return (ends[full.stop] - ends[full.start]) / len(full)


def _work(problem: Problem, full: range) -> float:
    """What the busiest engine works for each of these samples."""
    ops = tuple(op for op in problem.ops if int(op.name.rpartition("#")[2]) in full)
    return busiest_engine(replace(problem, ops=ops))[0] / len(full)
