"""`tilefarm plan NETWORK`: the problem of a network, with what records tell of its steps."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass

from driver.commands.options.networks import source_of
from driver.memory import Infeasible, Mode, Plan, Problem, plan
from driver.network import Network, forms_of
from driver.program.arena import program_problem
from driver.program.fitting import fitted
from driver.program.step_times import kernel_times, modelled_times, program_times
from driver.report.step_times import ComparedTimes, StepTime
from driver.report.terminal.times_text import basis_lines, compared_lines
from driver.targets import usable_target


@dataclass(frozen=True, slots=True)
class NetworkProblem:
    """What is planned of a network, and lines about the times that it rests on."""

    problem: Problem
    lines: tuple[str, ...] = ()


def network_problem(args: argparse.Namespace) -> NetworkProblem:
    """The network of the options `model`, `target` and those of its source.

    Without `records` its steps take a tick each, one after the other, as in its program.

    Raises:
        UserError: the network cannot be used, or the records cannot.
    """
    network = forms_of(source_of(args), usable_target(args.target)).network
    if args.measured is None:
        return NetworkProblem(program_problem(network))
    fit = _fit(args, network)
    lines = (*basis_lines(fit.times), *compared_lines(fit))
    return NetworkProblem(program_problem(network, fit.times), lines)


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
