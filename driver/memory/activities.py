"""What a plan does, engine by engine: activities, what each waited for, and the critical path."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from driver.memory.dependencies import dependencies, parts
from driver.memory.plan import Plan, Reason, TransferKind
from driver.memory.problem import EngineKind, FirstContent, Problem


class ActivityKind(StrEnum):
    """What an engine is busy with."""

    COMPUTE = "compute"
    MOVE = "move"
    """An operation of the problem on a DMA engine: a load, or a result given away."""
    LOAD = "load"
    """The first read of a buffer that lies in the backing memory."""
    SAVE = "save"
    """A buffer is written to the backing memory, to make room or before it does."""
    RELOAD = "reload"
    """A buffer comes back."""
    REPEAT = "repeat"
    """An operation runs again, and brings its result back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """One operation or transfer on an engine.

    Attributes:
        lane: the engine, with the instance where it has several.
        is_critical: on the chain that decides when the plan ends.
    """

    name: str
    kind: ActivityKind
    lane: str
    begin: int
    end: int
    is_critical: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """How long a buffer lies ready, in ticks, before something uses what was brought."""

    buffer: str
    ticks: int


@dataclass(frozen=True, slots=True)
class _Row:
    """An activity before it is known whether it is critical; `key` of operation or transfer."""

    key: tuple[str, int]
    activity: Activity


def lanes(problem: Problem) -> tuple[str, ...]:
    """Every instance of every engine, in the order of the problem."""
    return tuple(
        _lane(engine.name, instance, engine.instances)
        for engine in problem.engines
        for instance in range(engine.instances)
    )


def _lane(engine: str, instance: int, instances: int) -> str:
    return engine if instances == 1 else f"{engine} {max(instance, 0)}"


def activities(problem: Problem, plan: Plan) -> tuple[Activity, ...]:
    """All that engines do, by begin; what takes every instance is shown on the first one."""
    rows = sorted(_rows(problem, plan), key=lambda r: (r.activity.begin, r.activity.lane))
    critical = set(_critical(problem, plan, rows))
    return tuple(
        Activity(
            name=row.activity.name,
            kind=row.activity.kind,
            lane=row.activity.lane,
            begin=row.activity.begin,
            end=row.activity.end,
            is_critical=row.key in critical,
        )
        for row in rows
    )


def busy_ticks(done: tuple[Activity, ...], lane: str) -> int:
    """Ticks for which a lane is not idle."""
    return sum(each.end - each.begin for each in done if each.lane == lane)


def leads(problem: Problem, plan: Plan) -> tuple[Lead, ...]:
    """Of every buffer that was brought, from the end of that to its first use."""
    place = parts(problem)
    loads = problem.loads
    times = {each.op: each for each in plan.ops}
    uses: dict[str, list[int]] = defaultdict(list)
    brought: list[tuple[str, int]] = []
    for op in problem.ops:
        if op.name in loads:
            brought.append((place[op.writes[0]].root, times[op.name].end))
            continue
        for name in (*op.reads, *op.writes):
            uses[place[name].root].append(times[op.name].begin)
    brought += [(t.buffer, t.end) for t in plan.transfers if t.kind is TransferKind.READ]
    found = []
    for buffer, end in brought:
        if later := [begin for begin in uses[buffer] if begin >= end]:
            found.append(Lead(buffer=buffer, ticks=min(later) - end))
    return tuple(found)


def _rows(problem: Problem, plan: Plan) -> Iterator[_Row]:
    engines = {engine.name: engine for engine in problem.engines}
    ops = {op.name: op for op in problem.ops}
    for number, each in enumerate(plan.ops):
        engine = problem.engine_of(ops[each.op])
        is_compute = engine.kind is EngineKind.COMPUTE
        yield _Row(
            ("op", number),
            Activity(
                name=each.op,
                kind=ActivityKind.COMPUTE if is_compute else ActivityKind.MOVE,
                lane=_lane(engine.name, each.instance, engine.instances),
                begin=each.begin,
                end=each.end,
            ),
        )
    for number, each in enumerate(plan.repeats):
        engine = problem.engine_of(ops[each.op])
        yield _Row(
            ("repeat", number),
            Activity(
                name=f"repeat {each.op}",
                kind=ActivityKind.REPEAT,
                lane=_lane(engine.name, each.instance, engine.instances),
                begin=each.begin,
                end=each.end,
            ),
        )
    first = _first_reads(problem, plan)
    for number, move in enumerate(plan.transfers):
        kind = ActivityKind.SAVE
        if move.kind is TransferKind.READ:
            kind = ActivityKind.LOAD if number in first else ActivityKind.RELOAD
        yield _Row(
            ("transfer", number),
            Activity(
                name=f"{kind} {move.buffer}",
                kind=kind,
                lane=_lane(move.engine, move.instance, engines[move.engine].instances),
                begin=move.begin,
                end=move.end,
            ),
        )


def _first_reads(problem: Problem, plan: Plan) -> set[int]:
    """Transfers, by number, that bring a buffer for the first time."""
    backed = {b.name for b in problem.buffers if b.first_content is FirstContent.BACKED}
    begins: dict[str, tuple[int, int]] = {}
    for number, each in enumerate(plan.transfers):
        if each.buffer in backed and each.kind is TransferKind.READ:
            begins[each.buffer] = min(
                begins.get(each.buffer, (each.begin, number)), (each.begin, number)
            )
    return {number for _, number in begins.values()}


def _critical(problem: Problem, plan: Plan, rows: list[_Row]) -> Iterator[tuple[str, int]]:
    """Back from what ends last: each begins when the one before it ends, and because of that."""
    by_end: dict[int, list[_Row]] = defaultdict(list)
    for row in rows:
        by_end[row.activity.end].append(row)
    causes = _Causes(problem, plan)
    now = max(rows, key=lambda r: r.activity.end, default=None)
    while now is not None:
        yield now.key
        now = causes.strongest(by_end[now.activity.begin], now)


class _Causes:
    """How strong a reason the end of one activity is for the begin of another."""

    def __init__(self, problem: Problem, plan: Plan) -> None:
        number = {op.name: at for at, op in enumerate(problem.ops)}
        self._before = dependencies(problem)
        self._number = [number[each.op] for each in plan.ops]
        place = parts(problem)
        self._touched: dict[tuple[str, int], set[str]] = {
            ("transfer", at): {each.buffer} for at, each in enumerate(plan.transfers)
        }
        whose = [("op", at, of) for at, of in enumerate(self._number)]
        whose += [("repeat", at, number[each.op]) for at, each in enumerate(plan.repeats)]
        for what, at, of in whose:
            op = problem.ops[of]
            self._touched[what, at] = {place[name].root for name in (*op.reads, *op.writes)}
        self._left = {(r.buffer, r.end) for r in plan.residencies if r.reason is not Reason.SAVED}

    def strongest(self, before: Sequence[_Row], now: _Row) -> _Row | None:
        """Of those that end as another begins, the one that it waited for most surely."""
        rows = [each for each in before if each.activity.end > each.activity.begin]
        return max(rows, key=lambda row: self._weight(row, now), default=None)

    def _weight(self, early: _Row, late: _Row) -> int:
        """3 for a dependency, 2 for the same engine, 1 for bytes that came free, else 0."""
        if early.key[0] == late.key[0] == "op":
            if self._number[early.key[1]] in self._before[self._number[late.key[1]]]:
                return 3
        elif self._touched[early.key] & self._touched[late.key]:
            return 3
        if early.activity.lane == late.activity.lane:
            return 2
        end = early.activity.end
        return int(any((buffer, end) in self._left for buffer in self._touched[early.key]))
