"""For what each operation and transfer of a plan waits, whatever the durations turn out to be.

For its operands and its turn on its engine, and for those who had its bytes before. All that moves
data is seen through addresses: a save writes the copy that a read reads.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from driver.memory.dependencies import Part, dependencies, parts
from driver.memory.plan import Plan, PlannedOp, PlannedTransfer, Reason, TransferKind
from driver.memory.problem import Problem
from driver.memory.reuse_edges import Access, Edge, Occupant, conflicts, needed

Planned = PlannedOp | PlannedTransfer


@dataclass(frozen=True, slots=True)
class Use:
    """Bytes [begin, end) of a residency, by its number in the plan, that somebody reads or writes.

    Who `takes` it gives its bytes to a result, from the begin on.
    """

    residency: int
    begin: int
    end: int
    writes: bool
    takes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An operation or a transfer.

    Attributes:
        what: as it is planned.
        uses: what it reads and writes.
        ends: events, by number, that end before it begins.
        begins: events that begin no later, as their engine keeps its order.
        is_repeat: an operation that ran already.
    """

    what: Planned
    uses: tuple[Use, ...]
    ends: tuple[int, ...] = ()
    begins: tuple[int, ...] = ()
    is_repeat: bool = False


def with_reuse_edges(problem: Problem, plan: Plan) -> Plan:
    """A plan, valid but for these, with its `reuse_edges`."""
    timed = _in_time(problem, plan)
    planned = [what for _, what in timed]
    uses = [tuple(found) for found in _uses(problem, plan, planned)]
    edges = _reuse(problem, plan, planned, uses)
    number = [at for at, _ in timed]
    return replace(plan, reuse_edges=tuple(sorted((number[a], number[b]) for a, b in edges)))


def events_of(problem: Problem, plan: Plan) -> tuple[Event, ...]:
    """All events of a plan that is valid, by begin; each waits for earlier ones alone."""
    timed = _in_time(problem, plan)
    planned = [what for _, what in timed]
    uses = [tuple(found) for found in _uses(problem, plan, planned)]
    if plan.reuse_edges is None:
        reuse = _reuse(problem, plan, planned, uses)
    else:
        place_of = {number: at for at, (number, _) in enumerate(timed)}
        reuse = tuple((place_of[a], place_of[b]) for a, b in plan.reuse_edges)
    ends: list[set[int]] = [set() for _ in planned]
    number: dict[str, int] = {}
    for at, each in enumerate(planned):
        if isinstance(each, PlannedOp):
            number.setdefault(each.op, at)
    first = {*number.values()}
    for op, before in zip(problem.ops, dependencies(problem), strict=True):
        ends[number[op.name]] |= {number[problem.ops[each].name] for each in before}
    for early, late in (*_turns(problem, planned), *reuse, *_stays(plan, planned, uses)):
        ends[late].add(early)
    begins = _orders(problem, number)
    return tuple(
        Event(
            what=what,
            uses=mine,
            ends=tuple(sorted(waits)),
            begins=begins.get(at, ()),
            is_repeat=isinstance(what, PlannedOp) and at not in first,
        )
        for at, (what, mine, waits) in enumerate(zip(planned, uses, ends, strict=True))
    )


def _in_time(problem: Problem, plan: Plan) -> list[tuple[int, Planned]]:
    """Operations, repeats and transfers by begin, each with its number in the plan."""
    order = {op.name: at for at, op in enumerate(problem.ops)}
    return sorted(
        enumerate(plan.timed),
        key=lambda each: (
            each[1].begin,
            order[each[1].op] if isinstance(each[1], PlannedOp) else -1,
        ),
    )


def _uses(problem: Problem, plan: Plan, planned: list[Planned]) -> Iterator[list[Use]]:
    place = parts(problem)
    ops = {op.name: op for op in problem.ops}
    stays: dict[tuple[str, bool], list[int]] = defaultdict(list)
    for number, each in enumerate(plan.residencies):
        stays[each.buffer, each.reason is Reason.SAVED].append(number)

    def use(buffer: str, what: Planned, mode: _Mode, part: Part | None = None) -> Iterator[Use]:
        taken = None
        for found in stays[buffer, mode.is_copy]:
            stay = plan.residencies[found]
            begin, end = (part.begin, part.end) if part else (0, stay.nbytes)
            mine = stay.offset + begin, stay.offset + end
            if stay.begin <= what.begin and what.end <= stay.end:
                yield Use(found, *mine, mode.writes)
                return
            taken = Use(found, *mine, mode.writes, True) if stay.end == what.begin else taken
        if taken is not None and mode.may_take:
            yield taken

    for what in planned:
        mine: list[Use] = []
        if isinstance(what, PlannedOp):
            op = ops[what.op]
            taken = {place[operand].root for operand, _ in op.in_place}
            for name in op.reads:
                mode = _Mode(may_take=place[name].root in taken)
                mine += use(place[name].root, what, mode, place[name])
            for name in op.writes:
                mine += use(place[name].root, what, _Mode(writes=True), place[name])
        else:
            is_read = what.kind is TransferKind.READ
            mine += use(what.buffer, what, _Mode(writes=not is_read, is_copy=True))
            mine += use(what.buffer, what, _Mode(writes=is_read))
        yield mine


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mode:
    """How a buffer is used: its copy in the backing memory, or itself, whose place may be taken."""

    writes: bool = False
    is_copy: bool = False
    may_take: bool = False


def _reuse(
    problem: Problem, plan: Plan, planned: list[Planned], uses: list[tuple[Use, ...]]
) -> tuple[Edge, ...]:
    """The edges from addresses, in all memories, that do not follow from turns on engines."""
    accesses: dict[int, list[Access]] = defaultdict(list)
    for at, mine in enumerate(uses):
        for use in mine:
            accesses[use.residency].append(
                Access(user=at, begin=use.begin, end=use.end, writes=use.writes)
            )
    occupants: dict[str, list[Occupant]] = defaultdict(list)
    for at, stay in sorted(enumerate(plan.residencies), key=lambda each: each[1].begin):
        occupants[stay.memory].append(
            Occupant(begin=stay.offset, end=stay.end_offset, accesses=tuple(accesses[at]))
        )

    def meets(early: int, late: int) -> bool:
        return planned[early].end > planned[late].begin

    given: list[list[int]] = [[] for _ in planned]
    for early, late in _turns(problem, planned):
        given[late].append(early)
    found = (edge for mine in occupants.values() for edge in conflicts(mine, meets))
    return needed(found, given)


def _stays(
    plan: Plan, planned: list[Planned], uses: list[tuple[Use, ...]]
) -> Iterator[tuple[int, int]]:
    """A buffer comes back after all that used it before, and before all that use it then; it is
    saved after all that wrote it.
    """
    users: dict[int, list[int]] = defaultdict(list)
    modes = [{(use.residency, use.writes) for use in mine} for mine in uses]
    for at, mine in enumerate(uses):
        for use in mine:
            users[use.residency].append(at)
    last: dict[str, int] = {}
    for at, stay in sorted(enumerate(plan.residencies), key=lambda each: each[1].begin):
        users_of_it = users[at]
        if stay.reason is Reason.SAVED:
            continue
        if stay.reason is Reason.READ:
            yield from ((users_of_it[0], each) for each in users_of_it[1:])
        if stay.buffer in last and users_of_it:
            yield from ((each, users_of_it[0]) for each in users[last[stay.buffer]])
        last[stay.buffer] = at
        for place, each in enumerate(users_of_it):
            if isinstance(planned[each], PlannedTransfer) and (at, False) in modes[each]:
                yield from (
                    (writer, each) for writer in users_of_it[:place] if (at, True) in modes[writer]
                )


def _turns(problem: Problem, planned: list[Planned]) -> Iterator[Edge]:
    """Who follows whom on an instance of an engine."""
    engines = {engine.name: engine for engine in problem.engines}
    ops = {op.name: op for op in problem.ops}
    last: dict[tuple[str, int], int] = {}
    for at, what in enumerate(planned):
        if isinstance(what, PlannedOp):
            engine = problem.engine_of(ops[what.op])
        else:
            engine = engines[what.engine]
        instances = range(engine.instances) if what.instance < 0 else (what.instance,)
        for instance in instances:
            if (engine.name, instance) in last:
                yield last[engine.name, instance], at
            last[engine.name, instance] = at


def _orders(problem: Problem, number: dict[str, int]) -> dict[int, tuple[int, ...]]:
    """Which event an operation must not begin before."""
    found: dict[int, tuple[int, ...]] = {}
    last: dict[str, int] = {}
    for op in problem.ops:
        engine = problem.engine_of(op)
        if engine.in_order:
            at = number[op.name]
            found[at] = (last[engine.name],) if engine.name in last else ()
            last[engine.name] = at
    return found
