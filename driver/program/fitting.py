"""Times to plan with: predicted ones, unless a plan with them rests on steps that they miss."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from driver.memory import Infeasible, Plan, Problem
from driver.memory.activities import activities
from driver.program.step_times import refitted
from driver.report.step_times import ComparedStep, ComparedTimes, StepTime


def fitted(
    predicted: Mapping[str, StepTime],
    measured: Mapping[str, StepTime],
    planned: Callable[[Mapping[str, StepTime]], tuple[Problem, Plan | Infeasible]],
) -> ComparedTimes:
    """Plan with the predicted times, and take the measured ones if critical steps are off.

    Args:
        predicted: of all steps.
        measured: of those that a profile tells.
        planned: the plan with some times.
    """
    known = [name for name in predicted if name in measured]
    critical = _critical(*planned(predicted)) if known else frozenset()
    fit = ComparedTimes(
        times=predicted,
        steps=tuple(
            ComparedStep(
                name=name,
                predicted=predicted[name],
                measured=measured[name],
                is_critical=name in critical,
            )
            for name in known
        ),
    )
    if not fit.is_refitted:
        return fit
    return ComparedTimes(times=refitted(predicted, measured), steps=fit.steps)


def _critical(problem: Problem, plan: Plan | Infeasible) -> frozenset[str]:
    if isinstance(plan, Infeasible):
        return frozenset()
    return frozenset(each.name for each in activities(problem, plan) if each.is_critical)
