"""What spilling did in vain, taken out: npu_compiler's three clean-ups, in its order.

An address in a home is settled already, so times only get shorter; `retimed` finds the new ones.
"""

from __future__ import annotations

import itertools
from collections import defaultdict

from driver.memory.feasible.actions import Action, ActionKind, Home, Schedule
from driver.memory.feasible.graph import Graph, StepKind


def cleaned(graph: Graph, schedule: Schedule) -> Schedule:
    """The schedule, changed in place, without needless transfers."""
    _drop_unused_stays(graph, schedule)
    _place_at_the_last_address(graph, schedule)
    _drop_second_saves(graph, schedule)
    return schedule


def _by_buffer(schedule: Schedule) -> dict[int, list[Home]]:
    """Homes of each buffer in time."""
    found: dict[int, list[Home]] = defaultdict(list)
    for home in sorted(schedule.homes, key=lambda h: h.begin):
        found[home.buffer].append(home)
    return found


def _drop_unused_stays(graph: Graph, schedule: Schedule) -> None:
    """Load A, save A, ..., read A  ->  ..., load A

    where nothing used A in between.
    """
    gone: set[Action] = set()
    for homes in _by_buffer(schedule).values():
        for first, then in itertools.pairwise(homes):
            if len(first.actions) != 2 or first.is_present:
                continue
            brings, save = first.actions
            if save.kind is not ActionKind.SAVE or not _is_load(graph, brings):
                continue
            gone |= {brings, save}
            schedule.homes.remove(first)
            if brings.step >= 0:
                read = then.actions[0]
                read.step, read.buffer, read.ticks = brings.step, -1, brings.ticks
                read.engine, read.kind = brings.engine, ActionKind.ORIGINAL
                read.instance, read.end = brings.instance, read.begin + brings.ticks
    _drop(schedule, gone)


def _place_at_the_last_address(graph: Graph, schedule: Schedule) -> None:
    """Compute A at x, save A, read A at y  ->  compute A at y

    where nobody uses y meanwhile, and only this operation writes A.
    """
    gone: set[Action] = set()
    for homes in _by_buffer(schedule).values():
        for first, then in itertools.pairwise(homes):
            if len(first.actions) != 2 or first.is_present:
                continue
            makes, save = first.actions
            is_result = (
                save.kind is ActionKind.SAVE
                and makes.step >= 0
                and graph.kinds[makes.step] is StepKind.COMPUTE
                and graph.instance.steps[makes.step].changes == (first.buffer,)
                and _writers(graph, first.buffer) == 1
            )
            if not is_result or not _is_free(graph, schedule, first, then):
                continue
            read = then.actions[0]
            gone |= {save, read}
            schedule.homes.remove(first)
            then.actions[0] = makes
            makes.homes[makes.homes.index(first)] = then
    _drop(schedule, gone)


def _drop_second_saves(graph: Graph, schedule: Schedule) -> None:
    """Save A, read A, save A  ->  save A, read A

    where nothing wrote A in between.
    """
    gone: set[Action] = set()
    for homes in _by_buffer(schedule).values():
        is_saved = False
        for home in homes:
            is_saved = is_saved and not any(
                each.step >= 0 and home.buffer in graph.instance.steps[each.step].changes
                for each in home.actions
            )
            last = home.actions[-1] if home.actions else None
            if last is not None and last.kind is ActionKind.SAVE:
                if is_saved:
                    gone.add(last)
                is_saved = True
    _drop(schedule, gone)


def _is_load(graph: Graph, action: Action) -> bool:
    """Whether an action only brings a buffer, so that it may come later as well."""
    if action.step < 0:
        return action.kind is ActionKind.READ
    uses = set(graph.instance.steps[action.step].uses)
    return (
        graph.kinds[action.step] is StepKind.DATA
        and not graph.in_order[action.engine]
        and all(uses & {*graph.instance.steps[at].uses} for at in graph.consumers[action.step])
    )


def _writers(graph: Graph, buffer: int) -> int:
    steps = graph.instance.steps
    return sum(buffer in steps[at].changes for at in graph.instance.users[buffer])


def _is_free(graph: Graph, schedule: Schedule, first: Home, then: Home) -> bool:
    """Whether the bytes of the later home are nobody's from the begin of the first one on."""
    buffers = graph.instance.buffers
    memory, nbytes = buffers[then.buffer].memory, buffers[then.buffer].nbytes
    begin, end = first.begin, then.begin
    return not any(
        other is not first
        and other is not then
        and buffers[other.buffer].memory == memory
        and other.offset < then.offset + nbytes
        and then.offset < other.offset + buffers[other.buffer].nbytes
        and other.begin < end
        and begin < max(other.end, _kept_until(graph, schedule, other))
        for other in schedule.homes
    )


def _kept_until(graph: Graph, schedule: Schedule, home: Home) -> int:
    """A buffer that is needed at the end has its bytes until then, unless it leaves."""
    if home.actions and home.actions[-1].kind is ActionKind.SAVE:
        return 0
    return schedule.makespan_ticks if graph.instance.buffers[home.buffer].is_kept else 0


def _drop(schedule: Schedule, gone: set[Action]) -> None:
    schedule.actions = [each for each in schedule.actions if each not in gone]
    for home in schedule.homes:
        home.actions = [each for each in home.actions if each not in gone]
