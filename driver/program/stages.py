"""A network in stages: runs of steps of one engine, each of which is one call.

    quantize │ conv conv add conv │ softmax        the accelerator's steps overlap in their stage,
    cpu      │ accelerator        │ cpu            where nobody can say when one of them has ended

So a stage has its engine, and what lies in memory only for it, from its begin to its end: those
tensors share a block in the order of its steps. What one stage leaves for another has a place of
its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from driver.memory import Buffer, Engine, Memory, Op, Problem
from driver.memory.allocate import Allocation, Interval, allocate
from driver.memory.dependencies import dependencies
from driver.network import Network, NetworkStep
from driver.program.arena import ARENA, PROCESSOR, arena_problem, engine_of
from driver.program.model import alignment
from driver.report.step_times import Basis, StepTime

_NODES: Final = 50_000
_SECONDS: Final = 60.0
"""Only on a machine that hardly gets on: `_NODES` end the search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Steps that follow each other on one engine.

    Attributes:
        name: of its first step, and of its last one where it has several.
        inner: offsets in its block of the tensors that live within it.
        inner_nbytes: of that block; 0 where there are none.
    """

    name: str
    engine: str
    steps: tuple[NetworkStep, ...]
    inner: Mapping[str, int]
    inner_nbytes: int

    @property
    def block(self) -> str:
        """The name of the buffer that its inner tensors share."""
        return f"within {self.name}"


def stages_of(network: Network) -> tuple[Stage, ...]:
    """The stages of a network whose steps are in the order in which they run."""
    runs = [tuple(run) for _, run in groupby(network.steps, key=lambda step: step.place)]
    users = _users(network, runs)
    return tuple(_stage(network, run, at, users) for at, run in enumerate(runs))


def stages_problem(
    network: Network, stages: Sequence[Stage], times: Mapping[str, StepTime]
) -> Problem:
    """What there is to plan of one sample: an engine each for accelerator and processor, and as
    many instances of it as the target has threads.

    Args:
        times: of the stages by name.
    """
    users = _users(network, [stage.steps for stage in stages])
    outer = [name for name, mine in users.items() if len(mine) > 1]
    blocks = (Buffer(name=s.block, nbytes=s.inner_nbytes) for s in stages if s.inner_nbytes)
    threads = 1 if network.target.has_accelerator else network.target.model.threads
    after = _after(network, stages)
    return Problem(
        buffers=(
            *(Buffer(name=name, nbytes=network.tensors[name].nbytes) for name in outer),
            *blocks,
        ),
        ops=tuple(
            _op(network, stages, at, frozenset(outer), times[stage.name], after[at])
            for at, stage in enumerate(stages)
        ),
        memories=(Memory(name=ARENA, alignment=alignment(network.target)),),
        engines=tuple(
            Engine(name=name, instances=threads if name == PROCESSOR else 1, in_order=False)
            for name in dict.fromkeys(stage.engine for stage in stages)
        ),
    )


def stage_times(stages: Sequence[Stage], steps: Mapping[str, StepTime]) -> dict[str, StepTime]:
    """Of stages, as long as their steps take one by one."""
    found = {}
    for stage in stages:
        mine = [steps[step.name] for step in stage.steps]
        found[stage.name] = StepTime(
            basis=max((each.basis for each in mine), key=[*Basis].index),
            median=math.fsum(each.median for each in mine),
            p10=math.fsum(each.p10 for each in mine),
            p90=math.fsum(each.p90 for each in mine),
        )
    return found


def _stage(
    network: Network, run: tuple[NetworkStep, ...], at: int, users: Mapping[str, set[int]]
) -> Stage:
    lives: dict[str, list[int]] = {}
    for number, step in enumerate(run):
        for name in _roots(network, step.inputs, step.outputs):
            if users[name] == {at}:
                lives.setdefault(name, []).append(number)
    intervals = [
        Interval(
            lower=mine[0],
            upper=mine[-1] + 1,
            nbytes=network.tensors[name].nbytes,
            alignment=alignment(network.target),
        )
        for name, mine in lives.items()
    ]
    found = allocate(intervals, nodes=_NODES, seconds=_SECONDS)
    assert isinstance(found, Allocation), "a block is as large as it has to be"
    first, last = run[0], run[-1]
    return Stage(
        name=first.name if len(run) == 1 else f"{first.name} to {last.name}",
        engine=engine_of(first),
        steps=run,
        inner=dict(zip(lives, found.offsets, strict=True)),
        inner_nbytes=found.peak_nbytes,
    )


def _users(network: Network, runs: Sequence[Sequence[NetworkStep]]) -> dict[str, set[int]]:
    """For each whole tensor of the arena the stages that touch it, by number."""
    users: dict[str, set[int]] = {}
    for at, run in enumerate(runs):
        for step in run:
            for name in _roots(network, step.inputs, step.outputs):
                users.setdefault(name, set()).add(at)
    return users


def _roots(network: Network, *several: Sequence[str]) -> Iterator[str]:
    """Whole tensors of the arena among these, each once."""
    roots = dict.fromkeys(network.place_of(name)[0] for names in several for name in names)
    return (name for name in roots if network.tensors[name].kind == "intermediate")


def _op(
    network: Network,
    stages: Sequence[Stage],
    at: int,
    outer: frozenset[str],
    time: StepTime,
    after: Sequence[int],
) -> Op:
    stage = stages[at]
    written = {name for step in stage.steps for name in _roots(network, step.outputs)} & outer
    earlier = {
        name
        for before in stages[:at]
        for step in before.steps
        for name in _roots(network, step.outputs)
    }
    read = {name for step in stage.steps for name in _roots(network, step.inputs)} & earlier
    samples = time.samples
    return Op(
        name=stage.name,
        engine=stage.engine,
        duration_ticks=None if samples else time.ticks,
        samples=samples,
        reads=tuple(sorted(read & outer)),
        writes=(*sorted(written), *([stage.block] if stage.inner_nbytes else [])),
        after=tuple(stages[each].name for each in after),
    )


def _after(network: Network, stages: Sequence[Stage]) -> list[list[int]]:
    """For each stage those that it waits for, by number: as their steps do."""
    steps = arena_problem(network, {}, keeps_runs=False)
    stage_of = {step.name: at for at, stage in enumerate(stages) for step in stage.steps}
    found: list[set[int]] = [set() for _ in stages]
    for op, before in zip(steps.ops, dependencies(steps), strict=True):
        mine = stage_of[op.name]
        found[mine] |= {stage_of[steps.ops[each].name] for each in before} - {mine}
    return [sorted(each) for each in found]
