"""How a network runs on its engines, by what its kernels and its program took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tilefarm.plural import plural

from driver.memory import Infeasible, Plan, Problem, plan
from driver.network import Network
from driver.program.arena import serial_problem
from driver.program.fitting import fitted
from driver.program.pipeline import pipeline, unrolled
from driver.program.stages import stage_times, stages_of, stages_problem
from driver.program.step_times import modelled_times, profile_times
from driver.report.profile import Profile
from driver.report.shown_plan import NetworkPlans, ShownPlan
from driver.report.step_times import StepTime

_ROUNDS: Final = 3
"""Of samples in flight that are shown: enough to see the pattern."""


def network_plans(
    network: Network, kernels: Mapping[str, StepTime], profile: Profile | None
) -> NetworkPlans:
    """The plans of one sample and of several.

    Args:
        network: with its steps in the order in which they run.
        kernels: what steps took as kernels alone, by name.
        profile: of the program, if there is one.
    """

    def planned(times: Mapping[str, StepTime]) -> tuple[Problem, Plan]:
        problem = serial_problem(network, times)
        found = plan(problem)
        assert not isinstance(found, Infeasible), "the arena's memory has room for all"
        return problem, found

    measured = {} if profile is None else profile_times(profile, network.target)
    times = fitted({**modelled_times(network), **kernels}, measured, planned)
    return NetworkPlans(
        alone=ShownPlan("One sample, step after step", *planned(times.times)),
        in_flight=_in_flight(network, times.times),
        times=times,
    )


def _in_flight(network: Network, times: Mapping[str, StepTime]) -> ShownPlan | None:
    stages = stages_of(network)
    made = pipeline(stages_problem(network, stages, stage_times(stages, times)))
    if made.in_flight == 1:
        return None
    name = f"{plural(made.in_flight, 'sample')} in flight, the oldest first"
    return ShownPlan(name, *unrolled(made, _ROUNDS * made.in_flight))
