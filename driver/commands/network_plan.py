"""`tilefarm plan NETWORK`: the problem of a network, with what records tell of its steps."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tilefarm.plural import plural

from driver.commands.options.networks import source_of
from driver.memory import Infeasible, Mode, Plan, Problem, plan
from driver.network import Network, forms_of
from driver.program.arena import plan_arena, program_problem
from driver.program.fitting import fitted
from driver.program.pipeline import longest_latency, pipeline, unrolled
from driver.program.stages import stage_times, stages_of, stages_problem
from driver.program.step_times import kernel_times, modelled_times, program_times
from driver.report.step_times import ComparedTimes, StepTime
from driver.report.terminal.times_text import basis_lines, compared_lines
from driver.targets import usable_target

_SHOWN_SAMPLES: Final = 6
"""Of a pipeline in a plan: enough that it is full for a while."""


@dataclass(frozen=True, slots=True)
class NetworkProblem:
    """What is planned of a network, and lines about the times that it rests on.

    `plan` is there where it is already made: of several samples in flight.
    """

    problem: Problem
    lines: tuple[str, ...] = ()
    plan: Plan | None = None


def network_problem(args: argparse.Namespace) -> NetworkProblem:
    """The network of the options `model`, `target` and those of its source.

    Without `records` its steps take a tick each, one after the other, as in its program.

    Raises:
        UserError: the network cannot be used, or the records cannot.
    """
    network = forms_of(source_of(args), usable_target(args.target)).network
    if args.throughput is not None:
        return _in_flight(args, plan_arena(network, {}, keeps_runs=True).network)
    if args.measured is None:
        return NetworkProblem(program_problem(network))
    fit = _fit(args, network)
    lines = (*basis_lines(fit.times), *compared_lines(fit))
    return NetworkProblem(program_problem(network, fit.times), lines)


def _in_flight(args: argparse.Namespace, network: Network) -> NetworkProblem:
    """Several samples on all engines, stage by stage; without records all times are modelled."""
    stages = stages_of(network)
    times: Mapping[str, StepTime] = modelled_times(network)
    lines: tuple[str, ...] = ()
    if args.measured is None:
        lines = tuple(basis_lines(times))
    else:
        fit = _fit(args, network)
        times = fit.times
        lines = (*basis_lines(times), *compared_lines(fit))
    single = stages_problem(network, stages, stage_times(stages, times))
    made = pipeline(single, args.throughput)
    problem, found = unrolled(made, max(_SHOWN_SAMPLES, 2 * made.in_flight))
    alone = pipeline(single, 1)
    said = (
        f"{plural(made.in_flight, 'sample')} in flight, each in {plural(len(stages), 'stage')}:"
        f" one every {made.ticks_a_sample:.0f} ticks, {made.gap:.3f} times what the"
        f" {made.busiest} works ({made.bound_ticks:.0f})",
        f"latency {longest_latency(found)} ticks; one sample alone {alone.ticks_a_sample:.0f}"
        f" ticks in {alone.nbytes} bytes",
    )
    return NetworkProblem(problem, (*said, *lines), found)


def _fit(args: argparse.Namespace, network: Network) -> ComparedTimes:
    """Times of kernels alone, held against those of the program's profile."""

    def planned(times: Mapping[str, StepTime]) -> tuple[Problem, Plan | Infeasible]:
        problem = program_problem(network, times)
        found = plan(
            problem,
            mode=Mode(args.mode),
            seed=args.seed,
            effort=args.effort,
            seconds=args.seconds,
        )
        return problem, found

    kernels = kernel_times(network, args.measured)
    measured = program_times(network, args.measured)
    predicted = modelled_times(network) | kernels
    return fitted(predicted, measured, planned)
