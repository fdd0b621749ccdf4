"""The old flow's template as a space: a table of its valid configurations, whose cycles are known.

Searched without an estimate, as a user's own operator would be; and with one of the old flow's
program, see `template_estimate`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tilefarm.digest import Digest
from tilefarm.measurement import Status, Trial
from tilefarm.space import ESTIMATE, Point, SearchSpace, Table, Variable
from tilefarm.target import Target

from driver.benchmarks.tuner.conversations import quantile
from driver.benchmarks.tuner.template_estimate import estimated_cycles
from driver.benchmarks.tvm_flow import TemplatePoint
from driver.program.vta.layers import PLAIN, RESNET18
from driver.tune.autotvm.template import SPLITS, THREADS, TemplateLayer
from tuner import make_proposer

_KNOBS: Final = (*SPLITS, *THREADS)
_WITHIN: Final = 0.05
_QUARTERS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateTask:
    """One layer: all valid configurations of its template, and how it is searched."""

    name: str
    points: tuple[TemplatePoint, ...]
    target: Target
    seeds: int
    trials: int


@dataclass(frozen=True, slots=True)
class TemplateResult:
    """Trials to within 5 % of the template's best, the median of the seeds, both ways."""

    without_estimate: float
    with_estimate: float


def measure_template(task: TemplateTask) -> TemplateResult:
    """Search the table of a layer with every seed."""
    without = template_space(task.points)
    cycles = {_knobs(point): point.cycles for point in task.points}
    return TemplateResult(
        *(
            quantile(
                [_trials_to(space, cycles, seed, task.trials) for seed in range(task.seeds)], 0.5
            )
            for space in (without, with_estimates(without, task))
        )
    )


def template_space(points: Sequence[TemplatePoint]) -> SearchSpace:
    """The template's knobs, and which of their values go together."""
    rows = tuple(sorted(map(_knobs, points)))
    columns = zip(_KNOBS, zip(*rows, strict=True), strict=True)
    return SearchSpace(
        name="template",
        version=1,
        variables=tuple(
            Variable(name=name, domain=tuple(sorted(set(values)))) for name, values in columns
        ),
        constraints=(Table(name="valid", variables=_KNOBS, rows=rows),),
        default=tuple(zip(_KNOBS, rows[0], strict=True)),
    )


def with_estimates(space: SearchSpace, task: TemplateTask) -> SearchSpace:
    """The same, where each row says what its program is estimated to take."""
    layer = TemplateLayer.of(RESNET18[task.name].workload(task.target, PLAIN))
    assert layer is not None
    estimates = {
        _knobs(point): _QUARTERS * estimated_cycles(point, layer, task.target)
        for point in task.points
    }
    (table,) = space.constraints
    assert isinstance(table, Table)
    rows = tuple((*row, estimates[row]) for row in table.rows)
    return replace(
        space,
        variables=(*space.variables, Variable(name=ESTIMATE, tunable=False)),
        constraints=(replace(table, variables=(*_KNOBS, ESTIMATE), rows=rows),),
    )


def _knobs(point: TemplatePoint) -> tuple[int, ...]:
    return tuple([getattr(point, name) for name in _KNOBS])


def _trials_to(
    space: SearchSpace, cycles: Mapping[tuple[int, ...], int], seed: int, most: int
) -> float:
    """Of one search by `guided`; one more than the most if it does not get there."""
    wanted = min(cycles.values()) * (1 + _WITHIN)
    proposer = make_proposer("guided", space, seed)
    for at in range(1, most + 1):
        (point,) = proposer.ask(1)
        took = cycles[tuple([point[name] for name in _KNOBS])]
        if took <= wanted:
            return at
        proposer.tell([_trial(point, took)])
    return most + 1


def _trial(point: Point, cycles: int) -> Trial:
    digest = Digest.of_json(dict(point))
    return Trial(
        workload=digest,
        trace=digest,
        point=tuple(sorted(point.items())),
        status=Status.OK,
        cycles=cycles,
    )
