"""Where the intermediate tensors of a network lie: the memory scheduler's plan, proved."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from types import MappingProxyType
from typing import Final

from compile_worker.space import lower_bound_cycles
from driver.memory import (
    GOOD,
    Buffer,
    Engine,
    Infeasible,
    Memory,
    Op,
    Plan,
    Problem,
    plan,
    validate,
)
from driver.network import Network, NetworkStep
from driver.program.model import alignment
from driver.report.step_times import StepTime
from driver.report.summary import ArenaPlan, ArenaRect

ARENA: Final = "arena"
"""The name of the memory that is planned."""
PROCESSOR: Final = "processor"
"""The name of the engine that is not the accelerator."""
_RUN_CYCLES: Final = 250
"""Of an accelerator that waits for one step of the processor more: ResNet-18's border fills, each
just before the layer that needs it, are 16 more runs and 3,926 cycles more.
"""
_LEAST_SHARE: Final = 1000
"""Of the accelerator's cycles, a thousandth at most is given for bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arena:
    """Offsets of all intermediate tensors, the arena's size, and the plan as a report shows it.

    `network` has its steps in the order that they hold for.
    """

    network: Network
    offsets: Mapping[str, int]
    nbytes: int
    picture: ArenaPlan


def plan_arena(network: Network, cycles: Mapping[str, int], *, keeps_runs: bool = False) -> Arena:
    """The smallest arena that was found: for the steps in their order, if none is smaller in
    another one.

    Args:
        network: the kernel calls in order.
        cycles: measured cycles of each step by name, where known.
        keeps_runs: steps of one place that follow each other go on doing so, as stages want it;
            otherwise, where that saves bytes and hardly any time, they are interrupted.

    Raises:
        AssertionError: the plan does not pass the independent checker (a bug).
    """
    best, given_nbytes = _chosen(network, cycles, keeps_runs=keeps_runs)
    steps = {step.name: step for step in network.steps}
    network = replace(network, steps=tuple(steps[name] for name in best.order))
    return Arena(
        network=network,
        offsets={t.name: best.offsets[t.name] for t in network.tensors_of("intermediate")},
        nbytes=best.peak_nbytes(ARENA),
        picture=_picture(network, best, given_nbytes),
    )


def program_problem(
    network: Network, times: Mapping[str, StepTime] = MappingProxyType({})
) -> Problem:
    """What there is to plan of a network, with its steps in the order in which its program runs.

    Args:
        times: of the steps by name; a step without one takes a tick.
    """
    problem = arena_problem(network, {}, keeps_runs=False)
    best, _ = _chosen(network, {}, keeps_runs=False)
    ops = {op.name: timed(op, times.get(op.name)) for op in problem.ops}
    return replace(_in_order(problem), ops=tuple(ops[name] for name in best.order))


def serial_problem(network: Network, times: Mapping[str, StepTime]) -> Problem:
    """The steps of a network one after the other, each on the engine of its place.

    Args:
        network: with its steps in the order in which they run.
        times: of all steps by name.
    """
    names = [step.name for step in network.steps]
    before = dict(zip(names, [(), *((name,) for name in names)], strict=False))
    engine = {step.name: engine_of(step) for step in network.steps}
    ops = tuple(
        timed(replace(op, after=before[op.name], engine=engine[op.name]), times[op.name])
        for op in _ops(network)
    )
    engines = tuple(Engine(name=name, in_order=False) for name in dict.fromkeys(engine.values()))
    return replace(arena_problem(network, {}), ops=ops, engines=engines)


def engine_of(step: NetworkStep) -> str:
    """The engine of a step by name."""
    return step.place if step.place == "accelerator" else PROCESSOR


def timed(op: Op, time: StepTime | None) -> Op:
    """The operation with the duration that a step has, and samples of it where it varies."""
    if time is None:
        return op
    samples = time.samples
    return replace(op, duration_ticks=None if samples else time.ticks, samples=samples)


def _chosen(network: Network, cycles: Mapping[str, int], *, keeps_runs: bool) -> tuple[Plan, int]:
    """The plan in the given order, or in another one if that is smaller; the given one's bytes."""
    problem = arena_problem(network, cycles)
    given = _planned(_in_order(problem))
    plans = [given, _planned(problem)]
    most = 0 if keeps_runs else _most_interruptions(network)
    if most:
        free = _planned(arena_problem(network, cycles, keeps_runs=False))
        if _runs(network, free.order) - _runs(network, given.order) <= most:
            plans.append(free)
    return min(plans, key=lambda found: found.peak_nbytes(ARENA)), given.peak_nbytes(ARENA)


def _most_interruptions(network: Network) -> int:
    """How many more runs of steps of one place take a thousandth of the time at most that the
    accelerator takes at least.
    """
    on_accelerator = [step.workload for step in network.steps if step.place == "accelerator"]
    if len(on_accelerator) == len(network.steps):
        return 0
    least = sum(lower_bound_cycles(each, network.target) for each in on_accelerator)
    return least // _LEAST_SHARE // _RUN_CYCLES


def _runs(network: Network, order: Sequence[str]) -> int:
    place = {step.name: step.place for step in network.steps}
    return sum(1 for _ in groupby(order, key=place.__getitem__))


def _in_order(problem: Problem) -> Problem:
    return replace(problem, engines=(replace(problem.engines[0], in_order=True),))


def _planned(problem: Problem) -> Plan:
    found = plan(problem)
    assert not isinstance(found, Infeasible), "the arena's memory has room for all"
    verdict = validate(problem, found)
    assert verdict == GOOD, f"the memory plan is wrong: {verdict}"
    return found


def arena_problem(
    network: Network, cycles: Mapping[str, int], *, keeps_runs: bool = True
) -> Problem:
    """The steps of a network, one at a time in any order, and what lies between them.

    Args:
        keeps_runs: runs of steps of one place keep their order: each change between processor and
            accelerator costs time, and time comes first.
    """
    after = _kept_order(network, keeps_runs=keeps_runs)
    ops = tuple(
        replace(op, after=after[op.name], duration_ticks=max(1, cycles.get(op.name, 0)))
        for op in _ops(network)
    )
    return Problem(
        buffers=_buffers(network),
        ops=ops,
        memories=(Memory(name=ARENA, alignment=alignment(network.target)),),
        engines=(Engine(name="steps", in_order=False),),
    )


def _buffers(network: Network) -> tuple[Buffer, ...]:
    """Tensors that lie in the arena, and then views of them."""
    whole = network.tensors_of("intermediate")
    shared = {tensor.name for tensor in whole}
    return (
        *(Buffer(name=t.name, nbytes=t.nbytes) for t in whole),
        *(
            Buffer(name=v.name, nbytes=v.nbytes, view_of=v.parent, view_offset=v.offset)
            for v in network.tensors_of("view")
            if network.place_of(v.name)[0] in shared
        ),
    )


def _ops(network: Network) -> Iterator[Op]:
    """What the steps read and write of the arena."""
    shared = {buffer.name for buffer in _buffers(network)}
    for step in network.steps:
        yield Op(
            name=step.name,
            reads=tuple(name for name in dict.fromkeys(step.inputs) if name in shared),
            writes=tuple(name for name in dict.fromkeys(step.outputs) if name in shared),
        )


def _kept_order(network: Network, *, keeps_runs: bool) -> dict[str, tuple[str, ...]]:
    """For each step those before it that it stays behind, besides those whose results it reads.

    Steps keep their order that touch the same output of the network, of which the problem knows
    nothing, or the same tensor that several write whole: there the last one counts. So do runs of
    steps of one place, if they are kept.
    """
    writers = Counter(name for step in network.steps for name in step.outputs)
    fixed = {output.tensor for output in network.outputs}
    fixed |= {network.place_of(name)[0] for name, count in writers.items() if count > 1}
    touched: dict[str, list[str]] = {name: [] for name in fixed}
    found: dict[str, tuple[str, ...]] = {}
    before: list[str] = []
    for _, run in groupby(network.steps, key=lambda step: keeps_runs and step.place):
        mine = list(run)
        for step in mine:
            roots = {network.place_of(name)[0] for name in (*step.inputs, *step.outputs)} & fixed
            others = [other for root in sorted(roots) for other in touched[root]]
            found[step.name] = tuple(dict.fromkeys([*before, *others]))
            for root in roots:
                touched[root].append(step.name)
        before = [step.name for step in mine]
    return found


def _picture(network: Network, found: Plan, given_nbytes: int) -> ArenaPlan:
    begins = [each.begin for each in found.ops]
    return ArenaPlan(
        nbytes=found.peak_nbytes(ARENA),
        bound_nbytes=found.bound_nbytes(ARENA),
        unshared_nbytes=sum(tensor.nbytes for tensor in network.tensors_of("intermediate")),
        given_nbytes=given_nbytes,
        steps=tuple(step.name for step in network.steps),
        rects=tuple(
            ArenaRect(
                name=r.buffer,
                begin_step=bisect_left(begins, r.begin),
                end_step=bisect_left(begins, r.end),
                offset=r.offset,
                nbytes=r.nbytes,
            )
            for r in found.residencies
        ),
    )
