"""For what each operation and transfer of a plan waits, whatever the durations turn out to be.

For its operands and its turn on its engine, and for those who had its bytes before. All that moves
data is seen through addresses: a save writes the copy that a read reads.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from driver.memory.dependencies import dependencies, parts
from driver.memory.plan import Plan, PlannedOp, PlannedTransfer, Reason, TransferKind
from driver.memory.problem import Problem
from driver.memory.reuse_edges import Access, reuse_edges


@dataclass(frozen=True, slots=True)
class Use:
    """A residency, by its number in the plan, that somebody reads or writes.

    Who `takes` it gives its bytes to a result, from the begin on.
    """

    residency: int
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

    what: PlannedOp | PlannedTransfer
    uses: tuple[Use, ...]
    ends: tuple[int, ...] = ()
    begins: tuple[int, ...] = ()
    is_repeat: bool = False


def events_of(problem: Problem, plan: Plan) -> tuple[Event, ...]:
    """All events of a plan that is valid, by begin; each waits for earlier ones alone."""
    order = {op.name: at for at, op in enumerate(problem.ops)}
    planned: list[PlannedOp | PlannedTransfer] = sorted(
        (*plan.ops, *plan.repeats, *plan.transfers),
        key=lambda each: (each.begin, order[each.op] if isinstance(each, PlannedOp) else -1),
    )
    ends: list[set[int]] = [set() for _ in planned]
    uses = [tuple(found) for found in _uses(problem, plan, planned)]
    number: dict[str, int] = {}
    for at, each in enumerate(planned):
        if isinstance(each, PlannedOp):
            number.setdefault(each.op, at)
    first = {*number.values()}
    for op, before in zip(problem.ops, dependencies(problem), strict=True):
        ends[number[op.name]] |= {number[problem.ops[each].name] for each in before}
    turns = _turns(problem, planned)
    for early, late in (*turns, *_bytes(plan, planned, uses), *_stays(plan, planned, uses)):
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


def _uses(
    problem: Problem, plan: Plan, planned: list[PlannedOp | PlannedTransfer]
) -> Iterator[list[Use]]:
    place = parts(problem)
    ops = {op.name: op for op in problem.ops}
    stays: dict[tuple[str, bool], list[int]] = defaultdict(list)
    for number, each in enumerate(plan.residencies):
        stays[each.buffer, each.reason is Reason.SAVED].append(number)

    def use(buffer: str, what: PlannedOp | PlannedTransfer, mode: _Mode) -> Iterator[Use]:
        taken = None
        for found in stays[buffer, mode.is_copy]:
            stay = plan.residencies[found]
            if stay.begin <= what.begin and what.end <= stay.end:
                yield Use(found, mode.writes)
                return
            taken = found if stay.end == what.begin else taken
        if taken is not None and mode.may_take:
            yield Use(taken, mode.writes, takes=True)

    for what in planned:
        mine: list[Use] = []
        if isinstance(what, PlannedOp):
            op = ops[what.op]
            taken = {operand for operand, _ in op.in_place}
            for name in op.reads:
                mine += use(place[name].root, what, _Mode(may_take=name in taken))
            for name in op.writes:
                mine += use(place[name].root, what, _Mode(writes=True))
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


def _bytes(
    plan: Plan, planned: list[PlannedOp | PlannedTransfer], uses: list[tuple[Use, ...]]
) -> list[tuple[int, int]]:
    """Edges from addresses, in each memory."""
    accesses: dict[str, list[Access]] = defaultdict(list)
    for at, mine in enumerate(uses):
        for use in mine:
            stay = plan.residencies[use.residency]
            accesses[stay.memory].append(
                Access(user=at, begin=stay.offset, end=stay.end_offset, writes=use.writes)
            )

    def are_parallel(early: int, late: int) -> bool:
        return planned[early].end > planned[late].begin

    return [edge for mine in accesses.values() for edge in reuse_edges(mine, are_parallel)]


def _stays(
    plan: Plan, planned: list[PlannedOp | PlannedTransfer], uses: list[tuple[Use, ...]]
) -> Iterator[tuple[int, int]]:
    """A buffer comes back after all that used it before, and before all that use it then; it is
    saved after all that wrote it.
    """
    users: dict[int, list[int]] = defaultdict(list)
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
            if isinstance(planned[each], PlannedTransfer) and Use(at, writes=False) in uses[each]:
                yield from (
                    (writer, each)
                    for writer in users_of_it[:place]
                    if Use(at, writes=True) in uses[writer]
                )


def _turns(
    problem: Problem, planned: list[PlannedOp | PlannedTransfer]
) -> Iterator[tuple[int, int]]:
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
