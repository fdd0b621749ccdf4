"""What there is to choose for a workload: which rules made its space, and what each variable is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from tilefarm.plural import plural
from tilefarm.space import Variable
from tilefarm.target import Target
from tilefarm.workload import Workload

from compile_worker.space import generate
from driver.commands.compile_steps.choosing import points_in_space
from driver.network import is_searched


def space_lines(workload: Workload, target: Target) -> Iterator[str]:
    """A line for the space, one for each variable, and one for each rule; none without a space."""
    points = points_in_space(workload, target)
    if points is None:
        return
    made = generate(workload, target)
    tunables = made.space.tunables
    yield f"space: {points} schedules, by {plural(len(tunables), 'variable')}"
    width = max(len(each.name) for each in tunables) if tunables else 0
    for each in tunables:
        yield f"  {each.name:{width}}  {_values(each)}; {_value(each, made.default[each.name])}"
    for outcome in made.rules:
        yield f"  {'+' if outcome.fired else '-'} {outcome.rule}: {outcome.why}"


def space_document(workload: Workload, target: Target) -> dict[str, Any] | None:
    """The same as plain values; None without a space."""
    if not is_searched(workload, target):
        return None
    made = generate(workload, target)
    return {
        "variables": {each.name: list(each.domain) for each in made.space.tunables},
        "default": {each.name: made.default[each.name] for each in made.space.tunables},
        "rules": [asdict(each) for each in made.rules],
    }


def _values(variable: Variable) -> str:
    return ", ".join(_value(variable, each) for each in variable.domain)


def _value(variable: Variable, value: int) -> str:
    """What a value means where the variable says so."""
    at = variable.domain.index(value)
    return variable.labels[at] if len(variable.labels) > at else str(value)
