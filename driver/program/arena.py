"""Where the intermediate tensors of a network lie: the memory scheduler's plan, proved."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Final

from driver.memory import GOOD, Buffer, Infeasible, Memory, Op, Plan, Problem, plan, validate
from driver.network import Network, NetworkStep
from driver.program.model import alignment
from driver.report.summary import ArenaPlan, ArenaRect

_ARENA: Final = "arena"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arena:
    """Offsets of all intermediate tensors, the arena's size, and the plan as a report shows it."""

    offsets: Mapping[str, int]
    nbytes: int
    picture: ArenaPlan


def plan_arena(network: Network, cycles: Mapping[str, int]) -> Arena:
    """The smallest arena that was found for the network's steps in their order.

    Args:
        network: the kernel calls in order.
        cycles: measured cycles of each step by name, where known.

    Raises:
        AssertionError: the plan does not pass the independent checker (a bug).
    """
    problem = arena_problem(network, cycles)
    found = plan(problem)
    assert not isinstance(found, Infeasible), "the arena's memory has room for all"
    verdict = validate(problem, found)
    assert verdict == GOOD, f"the memory plan is wrong: {verdict}"
    assert found.order == tuple(op.name for op in problem.ops), "steps keep their order"
    return Arena(
        offsets=found.offsets,
        nbytes=found.peak_nbytes(_ARENA),
        picture=_picture(network, problem, found),
    )


def arena_problem(network: Network, cycles: Mapping[str, int]) -> Problem:
    """The steps of a network, one after the other, and what lies between them."""
    intermediates = network.tensors_of("intermediate")
    writers = Counter(name for step in network.steps for name in step.outputs)
    pieced = {network.place_of(view.name)[0] for view in network.tensors_of("view")}
    pieced |= {network.place_of(name)[0] for name, count in writers.items() if count > 1}
    return Problem(
        buffers=tuple(Buffer(name=t.name, nbytes=t.nbytes) for t in intermediates),
        ops=tuple(_op(network, step, pieced, cycles.get(step.name, 0)) for step in network.steps),
        memories=(Memory(name=_ARENA, alignment=alignment(network.target)),),
    )


def _op(network: Network, step: NetworkStep, pieced: Set[str], cycles: int) -> Op:
    """A step on whole tensors. One that is written in pieces may be read before it is complete, so
    every step that touches it counts as one that writes it.
    """
    shared = {tensor.name for tensor in network.tensors_of("intermediate")}
    reads, writes = (
        [place for place in (network.place_of(name)[0] for name in names) if place in shared]
        for names in (step.inputs, step.outputs)
    )
    writes += [place for place in reads if place in pieced]
    return Op(
        name=step.name,
        reads=tuple(dict.fromkeys(place for place in reads if place not in pieced)),
        writes=tuple(dict.fromkeys(writes)),
        duration_ticks=max(1, cycles),
    )


def _picture(network: Network, problem: Problem, found: Plan) -> ArenaPlan:
    begins = [each.begin for each in found.ops]
    return ArenaPlan(
        nbytes=found.peak_nbytes(_ARENA),
        bound_nbytes=found.bound_nbytes(_ARENA),
        unshared_nbytes=sum(buffer.nbytes for buffer in problem.buffers),
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
