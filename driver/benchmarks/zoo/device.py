"""A network's samples on the simulator, or on this processor, with schedules from no search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from tilefarm.clock import Clock
from tilefarm.plural import plural

from driver.network import Arrays, Dataset, Network
from driver.program.evaluate import ProgramRun
from driver.program.model import NetworkProgram
from driver.program.parts import whole_batches
from driver.program.simulated import answers_of, assembled, seconds_of
from driver.program.vta.schedules import PLAIN, PREDICTED, Choice, trace_of
from driver.report.cost import microseconds

FIRST_RUNS: Final = 2
"""Runs of the plain program."""
_SAMPLES_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDevice:
    """What the simulator answered, or the processor.

    Attributes:
        first: outputs by name for the first samples, with plain schedules.
        outputs: for all samples [samples, ...]; with predicted schedules if there are more.
        plain_cycles, predicted_cycles: of one run with these schedules; None where not run, or on a
            processor.
        program_seconds: of one run with plain schedules on a processor, by the clock; else None.
        ready_seconds: from the beginning to the first answers.
    """

    first: Arrays
    outputs: Arrays
    ready_seconds: float
    plain_cycles: int | None = None
    predicted_cycles: int | None = None
    program_seconds: float | None = None


def on_device(
    network: Network,
    data: Dataset,
    say: Callable[[str], None],
    *,
    clock: Clock,
    began: float,
) -> OnDevice:
    """All samples: a few with the plain schedules, and all with predicted ones if there are more.

    The plain program is there at once; the predicted one takes seconds to choose, and then
    simulates many times faster. On a processor all samples run with the plain ones.

    Args:
        say: hears how far it is.
        began: when the way to the first answer began, on the clock.

    Raises:
        InfraError: a program does not compile, or does not run.
    """
    first = data.first(FIRST_RUNS * network.batch)
    program = _program(network, PLAIN)
    plain = _answers(program, first, say)
    ready = clock.seconds() - began
    if not network.target.has_accelerator:
        seconds = seconds_of(program, first.inputs)
        say(f"first answers after {ready:.1f} s; {microseconds(seconds)} with plain schedules")
        return OnDevice(
            first=plain.outputs,
            outputs=_answers(program, data, say).outputs,
            ready_seconds=ready,
            program_seconds=seconds,
        )
    cycles = plain.cycles[-1]
    say(f"first answers after {ready:.1f} s; {plural(cycles, 'cycle')} with plain schedules")
    more = first.samples < data.samples
    best = _answers(_program(network, PREDICTED), data, say) if more else plain
    return OnDevice(
        first=plain.outputs,
        outputs=best.outputs,
        plain_cycles=cycles,
        predicted_cycles=best.cycles[-1] if more else None,
        ready_seconds=ready,
    )


def _program(network: Network, schedules: str) -> NetworkProgram:
    choice = Choice(trace=schedules)
    workloads = (workload for workload, _ in network.workloads())
    return assembled(network, {w: trace_of(choice, w, network.target) for w in workloads})


def _answers(program: NetworkProgram, data: Dataset, say: Callable[[str], None]) -> ProgramRun:
    """The answers for all samples, a part at a time."""
    runs: list[ProgramRun] = []
    done = 0
    for part in whole_batches(data.inputs, program.batch, _SAMPLES_AT_ONCE):
        runs.append(answers_of(program, part))
        done = min(done + len(next(iter(part.values()))), data.samples)
        if data.samples > _SAMPLES_AT_ONCE:
            say(f"{done} of {plural(data.samples, 'sample')} on the device")
    outputs = {
        o.name: np.concatenate([each.outputs[o.name] for each in runs])[: data.samples]
        for o in program.outputs
    }
    return ProgramRun(outputs=outputs, cycles=tuple(c for each in runs for c in each.cycles))
