"""From a problem to the published scheduler's plan: two passes, clean-ups, final times, copies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from driver.memory.bounds import live_nbytes
from driver.memory.feasible.actions import Action, ActionKind, Home, Schedule
from driver.memory.feasible.cleanups import cleaned
from driver.memory.feasible.graph import Graph, graph_of
from driver.memory.feasible.list_scheduler import list_schedule
from driver.memory.feasible.reorder import reordered
from driver.memory.feasible.retiming import retimed
from driver.memory.instance import Instance
from driver.memory.linear_scan import scanned
from driver.memory.plan import (
    Bound,
    Plan,
    PlannedOp,
    PlannedTransfer,
    Reason,
    Residency,
    TransferKind,
)
from driver.memory.problem import Memory, Problem
from driver.memory.span import Span


def feasible_plan(
    problem: Problem, instance: Instance, is_over: Callable[[], bool] = lambda: False
) -> Plan | None:
    """The plan of the list scheduler; None where something fits nowhere, or it is over before there
    is one.

    Bounds of the makespan are left to the caller.
    """
    found = feasible_schedule(problem, instance, is_over)
    if found is None:
        return None
    graph, schedule = found
    before = len(schedule.moved)
    schedule = retimed(graph, cleaned(graph, schedule))
    residencies = [*_stays(problem, graph, schedule)]
    copies = _copies(problem, graph, schedule, residencies)
    if copies is None:
        return None
    residencies = sorted([*residencies, *copies], key=lambda r: (r.begin, r.buffer))
    moved = _transfers(problem, graph, schedule)
    dropped = before - len(schedule.moved)
    return Plan(
        ops=tuple(_ops(problem, schedule)),
        residencies=tuple(residencies),
        transfers=moved,
        makespan_ticks=schedule.makespan_ticks,
        peaks=tuple(_peaks(problem, residencies)),
        extra_nbytes=sum(
            instance.buffers[each.buffer].nbytes for each in schedule.actions if each.step < 0
        ),
        bounds=tuple(_bounds(problem, instance, residencies)),
        method="list scheduling"
        + (f", {dropped} transfers dropped" if dropped else "")
        + (", ended by its time limit" if is_over() else ""),
    )


def feasible_schedule(
    problem: Problem, instance: Instance, is_over: Callable[[], bool] = lambda: False
) -> tuple[Graph, Schedule] | None:
    """The shorter of the passes: in the given order, and with loads ahead of their users.

    None where both get stuck, or neither came to its end before it is over.
    """
    graph = graph_of(problem, instance, instance.arranged(lambda at: at))
    ahead = graph_of(problem, instance, reordered(graph))
    passes = [(each, list_schedule(problem, each, is_over)) for each in (graph, ahead)]
    found = [(each, schedule) for each, schedule in passes if schedule is not None]
    return min(found, key=lambda f: (f[1].makespan_ticks, len(f[1].moved)), default=None)


def _ops(problem: Problem, schedule: Schedule) -> Iterator[PlannedOp]:
    for each in sorted(schedule.actions, key=lambda a: (a.begin, a.end, a.step)):
        if 0 <= each.step < len(problem.ops):
            name = problem.ops[each.step].name
            yield PlannedOp(op=name, begin=each.begin, end=each.end, instance=each.instance)


def _transfers(problem: Problem, graph: Graph, schedule: Schedule) -> tuple[PlannedTransfer, ...]:
    """Saves and reads, with the first reads of what the backing memory has at the begin."""
    buffers = graph.instance.buffers
    return tuple(
        PlannedTransfer(
            buffer=buffers[each.homes[0].buffer].name,
            kind=TransferKind.SAVE if each.kind is ActionKind.SAVE else TransferKind.READ,
            begin=each.begin,
            end=each.end,
            engine=problem.engines[each.engine].name,
            instance=each.instance,
        )
        for each in schedule.actions
        if not 0 <= each.step < len(problem.ops)
    )


def _stays(problem: Problem, graph: Graph, schedule: Schedule) -> Iterator[Residency]:
    last = {home.buffer: home for home in sorted(schedule.homes, key=lambda h: h.begin)}
    for home in schedule.homes:
        its = graph.instance.buffers[home.buffer]
        stays = its.is_kept and last[home.buffer] is home
        end = schedule.makespan_ticks if stays else home.end
        if home.begin == end and not stays:
            continue  # it is present at the begin, and nobody uses it
        yield Residency(
            buffer=its.name,
            memory=problem.memories[its.memory].name,
            offset=home.offset,
            nbytes=its.nbytes,
            begin=home.begin,
            end=end,
            reason=_reason(problem, home),
        )


def _reason(problem: Problem, home: Home) -> Reason:
    if home.is_present:
        return Reason.PRESENT
    step = home.actions[0].step
    return Reason.WRITTEN if 0 <= step < len(problem.ops) else Reason.READ


def _copies(
    problem: Problem, graph: Graph, schedule: Schedule, stays: Sequence[Residency]
) -> list[Residency] | None:
    """What was saved lies in the backing memory, above all that has its place there anyway."""
    found: list[Residency] = []
    mine: dict[str, list[tuple[int, Span]]] = defaultdict(list)
    memories = {memory.name: memory for memory in problem.memories}
    for buffer, begin, end in _saved(schedule):
        its = graph.instance.buffers[buffer]
        backing = memories[problem.memories[its.memory].backing]
        span = Span(begin=begin, end=end, nbytes=its.nbytes, alignment=backing.alignment)
        mine[backing.name].append((buffer, span))
    for name, copies in mine.items():
        spans = [span for _, span in copies]
        below = max((stay.end_offset for stay in stays if stay.memory == name), default=0)
        taken = [(0, below), *memories[name].reserved]
        offsets = scanned(spans, taken, _room(memories[name], spans, taken))
        if offsets is None:
            return None
        for (buffer, span), offset in zip(copies, offsets, strict=True):
            found.append(
                Residency(
                    buffer=graph.instance.buffers[buffer].name,
                    memory=name,
                    offset=offset,
                    nbytes=span.nbytes,
                    begin=span.begin,
                    end=span.end,
                    reason=Reason.SAVED,
                )
            )
    return found


def _room(memory: Memory, spans: Sequence[Span], taken: Sequence[tuple[int, int]]) -> int:
    ends = (offset + nbytes for offset, nbytes in taken)
    return memory.capacity_nbytes or sum(ends) + sum(s.nbytes + s.alignment for s in spans)


def _saved(schedule: Schedule) -> Iterator[tuple[int, int, int]]:
    """(buffer, begin, end) of copies: from a save to the last read before the next one."""
    moves: dict[int, list[Action]] = defaultdict(list)
    for each in sorted(schedule.moved, key=lambda a: a.begin):
        moves[each.buffer].append(each)
    for buffer, mine in moves.items():
        copy: tuple[int, int] | None = None
        for each in mine:
            if each.kind is ActionKind.READ:
                assert copy is not None, "a save comes before each read"
                copy = copy[0], each.end
                continue
            if copy:
                yield buffer, *copy
            copy = each.begin, each.end
        if copy:
            yield buffer, *copy


def _peaks(problem: Problem, residencies: Sequence[Residency]) -> Iterator[tuple[str, int]]:
    for memory in problem.memories:
        mine = [each for each in residencies if each.memory == memory.name and each.nbytes]
        if mine:
            yield memory.name, max(each.end_offset for each in mine)


def _bounds(
    problem: Problem, instance: Instance, residencies: Sequence[Residency]
) -> Iterator[Bound]:
    """The bytes that are alive at once, whatever their addresses."""
    for number, memory in enumerate(problem.memories):
        mine = [(r.begin, r.end, r.nbytes) for r in residencies if r.memory == memory.name]
        steps = [b.alignment for b in instance.buffers if b.memory == number]
        if mine:
            step = min([memory.alignment, *steps])
            yield Bound(name="live bytes", nbytes=live_nbytes(mine, step), memory=memory.name)
