"""A network's samples on the simulator, with schedules for which nothing was measured."""

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
from driver.program.simulated import answers_of, assembled
from driver.program.vta.schedules import PLAIN, PREDICTED, Choice, trace_of

FIRST_RUNS: Final = 2
"""Runs of the plain program."""
_SAMPLES_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDevice:
    """What the simulator answered.

    Attributes:
        first: outputs by name for the first samples, with plain schedules.
        outputs: for all samples [samples, ...]; with predicted schedules if there are more.
        plain_cycles, predicted_cycles: of one run with these schedules; None where not run.
        ready_seconds: from the beginning to the first answers.
    """

    first: Arrays
    outputs: Arrays
    plain_cycles: int
    predicted_cycles: int | None
    ready_seconds: float


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
    simulates many times faster.

    Args:
        say: hears how far it is.
        began: when the way to the first answer began, on the clock.

    Raises:
        InfraError: a program does not compile, or does not run.
    """
    first = data.first(FIRST_RUNS * network.batch)
    plain = _answers(_program(network, PLAIN), first, say)
    ready = clock.seconds() - began
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
