"""Several samples of a network in flight: when their steps run, and where all their tensors lie.

Samples take slots in turn. A tensor has one offset in each slot, so that a program has a call for
each step of each slot; two slots share bytes that they need at different times of the round.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, lcm
from typing import Final

from tilefarm.errors import SettingsError
from tilefarm.plural import plural

from driver.memory import (
    Bound,
    Buffer,
    Op,
    Plan,
    PlannedOp,
    Problem,
    Reason,
    Residency,
    replayed,
    validate,
)
from driver.memory.allocate import Allocation, Interval, allocate
from driver.memory.bounds import live_nbytes
from driver.memory.dependencies import dependencies, parts
from driver.program.arena import ARENA
from driver.program.steady_state import PipelineStep, SteadyState, steady_state

MOST_TRIED: Final = 6
"""More were never faster: an engine that has the work of three samples is busy."""
_ENOUGH: Final = 1.01
"""Times the bound, from where on more samples in flight only cost memory and latency."""
_AS_GOOD: Final = 1.02
_NODES: Final = 50_000
_SECONDS: Final = 60.0
"""Only on a machine that hardly gets on: `_NODES` end the search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """A pattern of samples in flight, with its memory.

    Attributes:
        single: the problem of one sample.
        state: the pattern.
        bound_ticks: work of the busiest engine for a sample: no pipeline is faster.
        busiest: that engine.
        offsets: in each slot, of every whole buffer by name.
        nbytes: the arena of all slots.
    """

    single: Problem
    state: SteadyState
    bound_ticks: float
    busiest: str
    offsets: tuple[Mapping[str, int], ...]
    nbytes: int

    @property
    def in_flight(self) -> int:
        return self.state.in_flight

    @property
    def ticks_a_sample(self) -> float:
        """From one answer to the next, in the mean."""
        return self.state.ticks_a_sample

    @property
    def gap(self) -> float:
        """Ticks a sample by the bound: 1 where the busiest engine is never idle."""
        return self.ticks_a_sample / self.bound_ticks


def pipeline(single: Problem, in_flight: int = 0) -> Pipeline:
    """The pipeline with the fewest samples in flight that is about as fast as any.

    Args:
        single: one sample's steps on their engines.
        in_flight: so many samples instead; 0: as many as are worth it.

    Raises:
        SettingsError: so many samples in flight lead to no pattern.
    """
    steps, instances = pipeline_steps(single)
    bound, busiest = busiest_engine(single)
    states: list[SteadyState] = []
    most = max(MOST_TRIED, 2 * max(instances))
    for count in [in_flight] if in_flight else range(1, most + 1):
        state = steady_state(steps, instances, count)
        if state is not None:
            states.append(state)
            if state.ticks_a_sample <= _ENOUGH * bound:
                break
    if not states:
        raise SettingsError(
            f"{plural(in_flight, 'sample')} in flight: no pattern that repeats", "fewer samples"
        )
    fastest = min(state.ticks_a_sample for state in states)
    state = next(each for each in states if each.ticks_a_sample <= _AS_GOOD * fastest)
    offsets, nbytes = _slots(single, state)
    return Pipeline(
        single=single,
        state=state,
        bound_ticks=bound,
        busiest=busiest,
        offsets=offsets,
        nbytes=nbytes,
    )


def pipeline_steps(single: Problem) -> tuple[list[PipelineStep], list[int]]:
    """A problem's operations by number, and the instances of its engines."""
    engines = [engine.name for engine in single.engines]
    steps = [
        PipelineStep(engines.index(single.engine_of(op).name), op.ticks, before)
        for op, before in zip(single.ops, dependencies(single), strict=True)
    ]
    return steps, [engine.instances for engine in single.engines]


def busiest_engine(single: Problem) -> tuple[float, str]:
    """The most ticks that an engine works for a sample, and the engine."""
    return max(
        (
            sum(op.ticks for op in single.ops if single.engine_of(op) == engine) / engine.instances,
            engine.name,
        )
        for engine in single.engines
    )


def unrolled(made: Pipeline, samples: int) -> tuple[Problem, Plan]:
    """So many samples through a pipeline, as a problem and its plan: the pattern, begun at once, as
    the first samples need not wait for earlier ones.

    Raises:
        AssertionError: the plan does not pass the independent checker (a bug).
    """
    problem = replace(
        made.single,
        buffers=tuple(_buffers(made.single, samples)),
        ops=tuple(_ops(made.single, samples)),
    )
    ops = sorted(_planned(made, samples), key=lambda each: (each.begin, each.end))
    makespan = max(each.end for each in ops)
    residencies = tuple(_residencies(made, samples))
    plan = Plan(
        ops=tuple(ops),
        residencies=residencies,
        makespan_ticks=makespan,
        peaks=((ARENA, max((each.end_offset for each in residencies), default=0)),),
        bounds=(
            Bound(
                name=f"work of {made.busiest}",
                ticks=ceil(samples * made.bound_ticks),
            ),
            Bound(name="live bytes", nbytes=_live_nbytes(made.single, residencies), memory=ARENA),
        ),
        method=f"{plural(made.in_flight, 'sample')} in flight, the oldest first",
    )
    verdict = validate(problem, plan)
    assert verdict, f"the plan is wrong ({verdict.name}): {verdict.why}"
    at_once = replayed(problem, plan, {op.name: op.ticks for op in problem.ops})
    return problem, replace(at_once, bounds=plan.bounds, method=plan.method)


def _live_nbytes(single: Problem, residencies: Sequence[Residency]) -> int:
    spans = ((each.begin, each.end, each.nbytes) for each in residencies)
    return live_nbytes(spans, single.memories[0].alignment)


def sample_spans(plan: Plan) -> list[tuple[int, int]]:
    """Begin and end of each sample of an unrolled plan."""
    spans: dict[int, tuple[int, int]] = {}
    for each in plan.ops:
        sample = int(each.op.rpartition("#")[2])
        begin, end = spans.get(sample, (each.begin, each.end))
        spans[sample] = min(begin, each.begin), max(end, each.end)
    return [spans[sample] for sample in sorted(spans)]


def longest_latency(plan: Plan) -> int:
    """Ticks from the begin of a sample of an unrolled plan to its end."""
    return max(end - begin for begin, end in sample_spans(plan))


def in_sample(name: str, sample: int) -> str:
    """The name of a step or a buffer of one sample."""
    return f"{name}#{sample}"


def _buffers(single: Problem, samples: int) -> Iterator[Buffer]:
    for sample in range(samples):
        for buffer in single.buffers:
            view_of = in_sample(buffer.view_of, sample) if buffer.view_of else ""
            yield replace(buffer, name=in_sample(buffer.name, sample), view_of=view_of)


def _ops(single: Problem, samples: int) -> Iterator[Op]:
    for sample in range(samples):
        for op in single.ops:
            yield replace(
                op,
                name=in_sample(op.name, sample),
                reads=tuple(in_sample(name, sample) for name in op.reads),
                writes=tuple(in_sample(name, sample) for name in op.writes),
                after=tuple(in_sample(name, sample) for name in op.after),
            )


def _planned(made: Pipeline, samples: int) -> Iterator[PlannedOp]:
    for sample in range(samples):
        for at, op in enumerate(made.single.ops):
            begin = made.state.begin_of(sample, at)
            yield PlannedOp(
                op=in_sample(op.name, sample),
                begin=begin,
                end=begin + op.ticks,
                instance=made.state.instance_of(sample, at),
            )


def _residencies(made: Pipeline, samples: int) -> Iterator[Residency]:
    nbytes = {buffer.name: buffer.nbytes for buffer in made.single.buffers}
    for sample in range(samples):
        offsets = made.offsets[sample % made.in_flight]
        for name, (begin, end) in _lifetimes(made.single, made.state, sample).items():
            yield Residency(
                buffer=in_sample(name, sample),
                memory=ARENA,
                offset=offsets[name],
                nbytes=nbytes[name],
                begin=begin,
                end=end,
                reason=Reason.WRITTEN,
            )


def _lifetimes(single: Problem, state: SteadyState, sample: int) -> dict[str, tuple[int, int]]:
    """Of every whole buffer of a sample, from its first writer's begin to its last user's end."""
    place = parts(single)
    found: dict[str, tuple[int, int]] = {}
    for at, op in enumerate(single.ops):
        begin = state.begin_of(sample, at)
        for name in (*op.reads, *op.writes):
            root = place[name].root
            first, last = found.get(root, (begin, begin))
            found[root] = min(first, begin), max(last, begin + op.ticks)
    return found


def _slots(single: Problem, state: SteadyState) -> tuple[tuple[dict[str, int], ...], int]:
    """Offsets in each slot, and the bytes of all: lifetimes are arcs of a round of all slots."""
    turns = lcm(state.samples, state.in_flight)
    around = turns // state.samples * state.period_ticks
    lives: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for sample in range(turns):
        for name, span in _lifetimes(single, state, sample).items():
            lives.setdefault((sample % state.in_flight, name), []).extend(_arcs(span, around))
    buffers = {buffer.name: buffer for buffer in single.buffers}
    intervals = [
        _interval(spans, buffers[name], single.alignment_of(buffers[name]))
        for (_, name), spans in lives.items()
    ]
    found = allocate(intervals, nodes=_NODES, seconds=_SECONDS)
    assert isinstance(found, Allocation), "the arena's memory has room for all"
    offsets: tuple[dict[str, int], ...] = tuple({} for _ in range(state.in_flight))
    for (slot, name), offset in zip(lives, found.offsets, strict=True):
        offsets[slot][name] = offset
    return offsets, found.peak_nbytes


def _interval(spans: Sequence[tuple[int, int]], buffer: Buffer, alignment: int) -> Interval:
    (lower, upper), *later = spans
    return Interval(
        lower=lower, upper=upper, nbytes=buffer.nbytes, alignment=alignment, later=tuple(later)
    )


def _arcs(span: tuple[int, int], around: int) -> Iterator[tuple[int, int]]:
    """A span of time on a clock that goes around: one piece, or two."""
    begin, end = span
    if end - begin >= around:
        yield 0, around
        return
    low = begin % around
    high = low + end - begin
    yield low, min(high, around)
    if high > around:
        yield 0, high - around
