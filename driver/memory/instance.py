"""A problem as schedulers see it: operations, buffers, engines and memories by number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from typing import Final

from tilefarm.errors import UserError

from driver.memory.choices import makers, places_to_take
from driver.memory.dependencies import Part, dependencies, parts
from driver.memory.problem import Buffer, FirstContent, Memory, Problem, Transfer

_MOST_PAIRS: Final = 10_000_000
"""Of operations that write a buffer, and others that use it: compared in some ten seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One operation, or the first read of a buffer that its backing memory has at the begin.

    Attributes:
        engine: by number.
        ticks: that it takes.
        takes_all: every instance of its engine, not one.
        before: steps that end before it begins.
        behind: steps that begin no later, as their engine keeps its order.
        uses: buffers that are in memory from its begin to its end.
        changes: those of them whose contents the backing memory does not have afterwards.
        in_place: (operand, result) where the result may have the operand's place.
    """

    engine: int
    ticks: int
    takes_all: bool = False
    before: tuple[int, ...] = ()
    behind: tuple[int, ...] = ()
    uses: tuple[int, ...] = ()
    changes: tuple[int, ...] = ()
    in_place: tuple[tuple[int, int], ...] = ()

    @property
    def is_load(self) -> bool:
        """Whether it waits for nothing and makes nothing: it brings what lies elsewhere."""
        return not self.before and not self.changes


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeBuffer:
    """One whole buffer: views, and groups of one offset, are one.

    Attributes:
        name: of the buffer.
        nbytes, aligned_nbytes: as they are, and as they are counted.
        memory: by number.
        alignment, pinned_at: of its offset.
        is_present: in memory at the begin.
        is_kept: in memory at the end.
        save: (engine, ticks) to write it to the backing memory; None where it may not leave.
        read: to bring it from there.
        remade_by: the step that may run again to bring it back.
    """

    nbytes: int
    name: str = ""
    memory: int = 0
    alignment: int = 1
    pinned_at: int | None = None
    is_present: bool = False
    is_kept: bool = False
    save: tuple[int, int] | None = None
    read: tuple[int, int] | None = None
    remade_by: int | None = None
    aligned_nbytes: int = field(init=False)

    def __post_init__(self) -> None:
        aligned = -(-self.nbytes // self.alignment) * self.alignment
        object.__setattr__(self, "aligned_nbytes", aligned)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """Steps, the operations in their given order first; buffers; instances by engine.

    Attributes:
        capacities: bytes by memory that are not reserved; 0 for as much as it takes.
        ends: the addresses by memory; 0 for as many as it takes.
        reserved: (offset, nbytes) by memory that nothing may use.
        barriers: of what runs at a time, each holds one; 0 for as many as it takes.
        operations: how many of the steps are operations of the problem.
        after: the steps that are `before` or `behind` each step, the other way round.
        users: the steps that use each buffer.
    """

    steps: tuple[Step, ...]
    buffers: tuple[WholeBuffer, ...]
    instances: tuple[int, ...]
    capacities: tuple[int, ...]
    ends: tuple[int, ...]
    reserved: tuple[tuple[tuple[int, int], ...], ...]
    barriers: int = 0
    operations: int = 0
    after: tuple[tuple[int, ...], ...] = field(init=False)
    users: tuple[tuple[int, ...], ...] = field(init=False)

    def __post_init__(self) -> None:
        after: list[list[int]] = [[] for _ in self.steps]
        users: list[list[int]] = [[] for _ in self.buffers]
        for at, step in enumerate(self.steps):
            for before in {*step.before, *step.behind}:
                after[before].append(at)
            for buffer in step.uses:
                users[buffer].append(at)
        object.__setattr__(self, "after", tuple(map(tuple, after)))
        object.__setattr__(self, "users", tuple(map(tuple, users)))

    def arranged(self, key: Callable[[int], object]) -> tuple[int, ...]:
        """The steps, each after those that it waits for, otherwise by key."""
        left = [len({*step.before, *step.behind}) for step in self.steps]
        ready = [(key(at), at) for at, count in enumerate(left) if not count]
        heapify(ready)
        order: list[int] = []
        while ready:
            _, at = heappop(ready)
            order.append(at)
            for each in self.after[at]:
                left[each] -= 1
                if not left[each]:
                    heappush(ready, (key(each), each))
        return tuple(order)


def instance_of(problem: Problem) -> Instance:
    """A sound problem by numbers.

    Raises:
        UserError: see `dependencies`.
    """
    place = parts(problem)
    _require_few_pairs(problem, place)
    before = dependencies(problem)
    names = list(dict.fromkeys(part.root for part in place.values()))
    number = {name: at for at, name in enumerate(names)}
    members: list[list[Buffer]] = [[] for _ in names]
    for buffer in problem.buffers:
        members[number[place[buffer.name].root]].append(buffer)
    engines = {engine.name: at for at, engine in enumerate(problem.engines)}
    for mine in members:
        _require_one_content(mine)
    by_name = {buffer.name: buffer for buffer in problem.buffers}
    buffers = [
        _bytes(problem, by_name[root], mine, place, engines)
        for root, mine in zip(names, members, strict=True)
    ]
    steps = _steps(problem, before, place, number, engines)
    for root, maker in makers(problem, before, place).items():
        buffers[number[root]] = replace(buffers[number[root]], remade_by=maker)
    for at, mine in enumerate(members):
        if any(each.first_content is FirstContent.BACKED for each in mine):
            steps = _with_first_read(steps, at, buffers[at])
    _require_writers(buffers, steps)
    instance = Instance(
        steps=tuple(steps),
        buffers=tuple(buffers),
        instances=tuple(engine.instances for engine in problem.engines),
        capacities=tuple(map(_room, problem.memories)),
        ends=tuple(memory.capacity_nbytes for memory in problem.memories),
        reserved=tuple(memory.reserved for memory in problem.memories),
        barriers=problem.barriers,
        operations=len(problem.ops),
    )
    _require_an_order(problem, instance)
    return instance


def _require_few_pairs(problem: Problem, place: dict[str, Part]) -> None:
    """Who writes a buffer is compared with all that use it."""
    writers: Counter[str] = Counter()
    users: Counter[str] = Counter()
    for op in problem.ops:
        writers.update({place[name].root for name in op.writes})
        users.update({place[name].root for name in (*op.reads, *op.writes)})
    pairs = 0
    for root, count in writers.items():
        pairs += count * users[root]
        if pairs > _MOST_PAIRS:
            raise UserError(
                f"buffer {root}: {count} operations write it and {users[root]} use it; of all such"
                f" pairs a problem has {_MOST_PAIRS} at most",
                "fewer operations, each of which does more",
            )


def _require_one_content(mine: Sequence[Buffer]) -> None:
    """What shares bytes is not in memory and behind it, both at the begin."""
    filled = [each for each in mine if each.first_content is not FirstContent.PRODUCED]
    for each in filled[1:]:
        if each.first_content is not filled[0].first_content:
            raise UserError(
                f"buffers {filled[0].name} and {each.name} share their bytes, of which one is said"
                f" to be {filled[0].first_content} and the other {each.first_content}",
                "one `first_content` for both",
            )


def _require_writers(buffers: Sequence[WholeBuffer], steps: Sequence[Step]) -> None:
    """What is needed at the end comes from somewhere."""
    used = {buffer for step in steps for buffer in step.uses}
    for number, buffer in enumerate(buffers):
        if buffer.is_kept and not buffer.is_present and number not in used:
            raise UserError(
                f"buffer {buffer.name} is needed at the end, and nobody writes it",
                "an operation that writes it, or a `first_content` for it",
            )


def _require_an_order(problem: Problem, instance: Instance) -> None:
    """Engines that keep the given order do not make operations wait for later ones."""
    stuck = {*range(len(problem.ops))}.difference(instance.arranged(lambda at: at))
    if stuck:
        first = problem.ops[min(stuck)]
        raise UserError(
            f"operation {first.name} waits for one behind it on an engine that keeps its order, "
            f"such as {problem.engine_of(first).name}",
            "the order in which operations can run, or engines that are not in_order",
        )


def _room(memory: Memory) -> int:
    return memory.capacity_nbytes and max(
        1, memory.capacity_nbytes - sum(nbytes for _, nbytes in memory.reserved)
    )


def _bytes(
    problem: Problem,
    root: Buffer,
    mine: Sequence[Buffer],
    place: dict[str, Part],
    engines: dict[str, int],
) -> WholeBuffer:
    """What shares its bytes with `root`, which is no view: views may come before it."""
    memory = problem.memory_of(root)
    nbytes = max(place[each.name].end for each in mine)

    def cost(transfer: Transfer | None) -> tuple[int, int] | None:
        return None if transfer is None else (engines[transfer.engine], transfer.ticks(nbytes))

    whole = [each for each in mine if not place[each.name].begin]
    return WholeBuffer(
        name=root.name,
        nbytes=nbytes,
        memory=problem.memories.index(memory),
        alignment=max(each.alignment or memory.alignment for each in whole),
        pinned_at=root.pinned_at,
        is_present=any(each.first_content is FirstContent.PRESENT for each in mine),
        is_kept=any(each.needed_after for each in mine),
        save=cost(memory.save) if all(each.spillable for each in mine) else None,
        read=cost(memory.read),
    )


def _steps(
    problem: Problem,
    before: Sequence[tuple[int, ...]],
    place: dict[str, Part],
    number: dict[str, int],
    engines: dict[str, int],
) -> list[Step]:
    loads, pairs = problem.loads, places_to_take(problem, place)
    last: dict[int, int] = {}
    steps = []
    for at, op in enumerate(problem.ops):
        engine = engines[problem.engine_of(op).name]
        behind = (last[engine],) if engine in last else ()
        if problem.engines[engine].in_order:
            last[engine] = at
        touched = [number[place[name].root] for name in (*op.reads, *op.writes)]
        changed = [number[place[name].root] for name in op.writes]
        steps.append(
            Step(
                engine=engine,
                ticks=op.ticks,
                takes_all=op.takes_all,
                before=before[at],
                behind=behind,
                uses=tuple(dict.fromkeys(touched)),
                changes=() if op.name in loads else tuple(dict.fromkeys(changed)),
                in_place=tuple((number[operand], number[result]) for operand, result in pairs[at]),
            )
        )
    return steps


def _with_first_read(steps: Sequence[Step], buffer: int, its: WholeBuffer) -> list[Step]:
    """The steps with one more that brings a buffer, for which all its users wait."""
    cost = its.read
    if cost is None:
        return list(steps)
    new = len(steps)
    waiting = [
        replace(step, before=(*step.before, new)) if buffer in step.uses else step for step in steps
    ]
    return [*waiting, Step(engine=cost[0], ticks=cost[1], uses=(buffer,))]
