"""Proves a plan right or names what is wrong, from the definitions alone.

Shares no code with the planner, only the records: it looks at every operation, transfer and
residency, and compares all that share a buffer, an engine or an address.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

from driver.memory.plan import Plan, PlannedOp, PlannedTransfer, Reason, Residency, TransferKind
from driver.memory.problem import Buffer, EngineKind, FirstContent, Memory, Op, Problem
from driver.memory.validate_reuse import Tenant, Timed, Touch, unsafe


@dataclass(frozen=True, slots=True)
class PlanVerdict:
    """What was found: "good", or the name of the first rule that is broken, and by what."""

    name: str
    why: str = ""

    def __bool__(self) -> bool:
        return self.name == "good"


GOOD: Final = PlanVerdict("good")


def validate(problem: Problem, plan: Plan) -> PlanVerdict:
    """GOOD, or the first violation: operations, engine, barriers, order, address, overlap,
    transfer, residency, content, sums, or reuse.
    """
    both = _Both(problem, plan)
    for rule in (
        _operations, _engines, _barriers, _order, _addresses, _overlaps, _transfers, _residencies,
        _contents, _kept, _sums, _reuse,
    ):  # fmt: skip
        for verdict in rule(both):
            return verdict
    return GOOD


@dataclass(frozen=True, slots=True)
class _Write:
    """An operation writes bytes [low, high) of a whole buffer."""

    number: int
    name: str
    low: int
    high: int


class _Both:
    """A problem and its plan by name."""

    def __init__(self, problem: Problem, plan: Plan) -> None:
        self.problem = problem
        self.plan = plan
        self.buffers = {b.name: b for b in problem.buffers}
        self.memories = {m.name: m for m in problem.memories}
        self.engines = {e.name: e for e in problem.engines}
        self.ops = {op.name: op for op in problem.ops}
        self.times = {each.op: each for each in plan.ops}
        self.repeats: dict[str, list[PlannedOp]] = defaultdict(list)
        for each in plan.repeats:
            self.repeats[each.op].append(each)

    @cached_property
    def places(self) -> dict[str, tuple[str, int]]:
        """(whole buffer, offset in it) of every buffer."""
        group: dict[str, str] = {}
        found = {}
        for buffer in self.problem.buffers:
            offset, whole = 0, buffer
            while whole.view_of:
                offset, whole = offset + whole.view_offset, self.buffers[whole.view_of]
            if whole.group:
                found[buffer.name] = (group.setdefault(whole.group, whole.name), offset)
            else:
                found[buffer.name] = (whole.name, offset)
        return found

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Bytes of every whole buffer; of a group, those of its largest."""
        sizes: dict[str, int] = defaultdict(int)
        for name, (whole, offset) in self.places.items():
            sizes[whole] = max(sizes[whole], offset + self.buffers[name].nbytes)
        return dict(sizes)

    @cached_property
    def writes(self) -> dict[str, list[_Write]]:
        """Of every whole buffer, in the given order."""
        found: dict[str, list[_Write]] = defaultdict(list)
        for number, op in enumerate(self.problem.ops):
            for name in op.writes:
                whole, low = self.places[name]
                high = low + self.buffers[name].nbytes
                found[whole].append(_Write(number, name, low, high))
        return found

    @cached_property
    def homes(self) -> dict[str, list[Residency]]:
        """Residencies of every buffer outside backing memories, by begin."""
        found: dict[str, list[Residency]] = defaultdict(list)
        for each in sorted(self.plan.residencies, key=lambda r: r.begin):
            if each.reason is not Reason.SAVED:
                found[each.buffer].append(each)
        return found

    @cached_property
    def copies(self) -> dict[str, list[Residency]]:
        """Residencies of every buffer in backing memories."""
        found: dict[str, list[Residency]] = defaultdict(list)
        for each in self.plan.residencies:
            if each.reason is Reason.SAVED:
                found[each.buffer].append(each)
        return found

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each operation in the problem."""
        return {op.name: number for number, op in enumerate(self.problem.ops)}

    @cached_property
    def moves(self) -> dict[str, list[PlannedTransfer]]:
        found: dict[str, list[PlannedTransfer]] = defaultdict(list)
        for each in self.plan.transfers:
            found[each.buffer].append(each)
        return found

    def engine_of(self, op: Op) -> str:
        return op.engine or self.problem.engines[0].name

    def memory_of(self, whole: str) -> Memory:
        return self.memories[self.buffers[whole].memory or self.problem.memories[0].name]

    @cached_property
    def by_number(self) -> list[PlannedOp]:
        """When each operation of the problem runs, for the first time."""
        return [self.times[op.name] for op in self.problem.ops]

    def time(self, number: int) -> PlannedOp:
        return self.by_number[number]

    def runs(self, number: int) -> list[PlannedOp]:
        """Every time that an operation runs, the first one first."""
        return [self.by_number[number], *self.repeats.get(self.problem.ops[number].name, ())]

    def is_load(self, number: int) -> bool:
        op = self.problem.ops[number]
        is_dma = self.engines[self.engine_of(op)].kind is EngineKind.DMA
        return is_dma and not op.reads and len(op.writes) == 1

    @cached_property
    def members(self) -> dict[str, list[Buffer]]:
        """The buffers that each whole one has in it, itself among them."""
        found: dict[str, list[Buffer]] = defaultdict(list)
        for name, (root, _) in self.places.items():
            found[root].append(self.buffers[name])
        return found

    @cached_property
    def filled(self) -> set[str]:
        """Whole buffers that hold something before any operation wrote it."""
        return {
            self.places[b.name][0]
            for b in self.problem.buffers
            if b.first_content is not FirstContent.PRODUCED
        }

    def is_backed(self, whole: str) -> bool:
        return any(b.first_content is FirstContent.BACKED for b in self.members[whole])

    def is_spillable(self, whole: str) -> bool:
        return all(b.spillable for b in self.members[whole])

    def operand_home(self, number: int, run: PlannedOp, name: str) -> Residency | None:
        """Where an operand lies as an operation runs; its place may become that of a result."""
        whole, _ = self.places[name]
        if (found := self.home(whole, run.begin, run.end)) is not None:
            return found
        pairs = self.problem.ops[number].in_place
        taken = {self.places[b][0] for a, b in pairs if self.places[a][0] == whole}
        for old in self.homes.get(whole, ()):
            for new in (each for result in taken for each in self.homes.get(result, ())):
                is_place = (old.memory, old.offset, old.nbytes) == (
                    new.memory, new.offset, new.nbytes,
                )  # fmt: skip
                if is_place and old.end == new.begin == run.begin and run.end <= new.end:
                    return old
        return None

    def touched_by_op(self, run: PlannedOp) -> Iterator[tuple[Residency, int, int, bool]]:
        """(residency, bytes of it from and to, whether they are written) of a run."""
        number = self.numbers[run.op]
        op = self.problem.ops[number]
        for name in dict.fromkeys((*op.reads, *op.writes)):
            home = self.operand_home(number, run, name)
            assert home is not None
            low = self.places[name][1]
            yield home, low, low + self.buffers[name].nbytes, name in op.writes

    def touched_by_move(self, move: PlannedTransfer) -> Iterator[tuple[Residency, int, int, bool]]:
        """Likewise of a transfer: its buffer's home, and the copy in the backing memory."""
        is_read = move.kind is TransferKind.READ
        home = self.home(move.buffer, move.begin, move.end)
        copies = (
            copy
            for copy in self.copies.get(move.buffer, ())
            if copy.begin <= move.begin and move.end <= copy.end
        )
        for each, writes in ((home, is_read), (next(copies, None), not is_read)):
            if each is not None:
                yield each, 0, each.nbytes, writes

    def home(self, whole: str, begin: int, end: int) -> Residency | None:
        """The residency that a buffer has from begin to end."""
        for each in self.homes.get(whole, ()):
            if each.begin <= begin and end <= each.end:
                return each
        return None


def _operations(both: _Both) -> Iterator[PlanVerdict]:
    if sorted(both.plan.order) != sorted(both.ops):
        yield PlanVerdict("operations", "they are not those of the problem, each once")
        return
    for each in both.plan.ops:
        op = both.ops[each.op]
        if each.begin < 0 or each.end - each.begin != op.ticks:
            yield PlanVerdict("operations", f"{op.name} takes {op.ticks} ticks, not {each}")
    for number, op in enumerate(both.problem.ops):
        for name in op.after:
            if both.times[name].end > both.time(number).begin:
                yield PlanVerdict("operations", f"{op.name} begins before {name} has ended")
    for each in both.plan.repeats:
        yield from _repeat(both, each)


def _repeat(both: _Both, again: PlannedOp) -> Iterator[PlanVerdict]:
    """What runs again is allowed to, and brings back what it alone writes, the whole of it."""
    op = both.ops.get(again.op)
    if op is None or not op.repeatable or len(op.writes) != 1:
        yield PlanVerdict("operations", f"{again.op} is not to run again")
        return
    if again.end - again.begin != op.ticks or again.begin < both.times[op.name].end:
        yield PlanVerdict("operations", f"{op.name} takes {op.ticks} ticks, and again not {again}")
    whole, low = both.places[op.writes[0]]
    is_whole = low == 0 and both.buffers[op.writes[0]].nbytes == both.sizes[whole]
    if len(both.writes[whole]) > 1 or whole in both.filled or not is_whole:
        yield PlanVerdict("content", f"{op.name}, run again, loses what else is in {whole}")
    if all(home.begin != again.begin for home in both.homes.get(whole, ())):
        yield PlanVerdict("residency", f"{whole} is there when {op.name} runs again")


def _engines(both: _Both) -> Iterator[PlanVerdict]:
    """No instance does two things at once."""
    busy: dict[tuple[str, int], list[tuple[int, int, str]]] = defaultdict(list)
    for each in (*both.plan.ops, *both.plan.repeats):
        op = both.ops[each.op]
        engine = both.engines[both.engine_of(op)]
        if (each.instance == -1) is not op.takes_all or not -1 <= each.instance < engine.instances:
            yield PlanVerdict("engine", f"{op.name} is on instance {each.instance} of {engine}")
        every = range(engine.instances) if op.takes_all else (each.instance,)
        for instance in every:
            busy[engine.name, instance].append((each.begin, each.end, op.name))
    for move in both.plan.transfers:
        if move.engine not in both.engines or not (
            0 <= move.instance < both.engines[move.engine].instances
        ):
            yield PlanVerdict("engine", f"no engine for {move}")
            return
        what = f"{move.kind} {move.buffer}"
        busy[move.engine, move.instance].append((move.begin, move.end, what))
    for (engine_name, _), spans in busy.items():
        spans.sort()
        for (_, end, first), (begin, _, second) in pairwise(spans):
            if begin < end:
                yield PlanVerdict("engine", f"{first} and {second} at once on {engine_name}")


def _barriers(both: _Both) -> Iterator[PlanVerdict]:
    """No more runs at a time than there are barriers."""
    most = both.problem.barriers
    plan = both.plan
    changes = [change for each in plan.timed for change in ((each.begin, 1), (each.end, -1))]
    running = 0
    for tick, change in sorted(changes):
        running += change
        if most and running > most:
            yield PlanVerdict("barriers", f"{running} run at {tick}, with {most} barriers")


def _order(both: _Both) -> Iterator[PlanVerdict]:
    last: dict[str, PlannedOp] = {}
    for number, op in enumerate(both.problem.ops):
        engine, time = both.engine_of(op), both.time(number)
        if not both.engines[engine].in_order:
            continue
        if engine in last and last[engine].begin > time.begin:
            yield PlanVerdict("order", f"{op.name} begins before {last[engine].op} on {engine}")
        last[engine] = time


def _addresses(both: _Both) -> Iterator[PlanVerdict]:
    alignments: dict[str, int] = {}
    pins: dict[str, int] = {}
    for name, (whole, offset) in both.places.items():
        buffer = both.buffers[name]
        if not offset:
            wanted = buffer.alignment or both.memory_of(whole).alignment
            alignments[whole] = max(wanted, alignments.get(whole, 1))
        if buffer.pinned_at is not None:
            pins[whole] = buffer.pinned_at
    for each in both.plan.residencies:
        if each.buffer not in both.sizes or each.nbytes != both.sizes[each.buffer]:
            yield PlanVerdict("address", f"no whole buffer has these bytes: {each}")
            return
        home = both.memory_of(each.buffer)
        is_copy = each.reason is Reason.SAVED
        if each.memory != (home.backing if is_copy else home.name):
            yield PlanVerdict("address", f"{each.buffer} is not to lie in {each.memory}")
            return
        memory = both.memories[each.memory]
        alignment = memory.alignment if is_copy else alignments[each.buffer]
        if each.offset % alignment:
            yield PlanVerdict("address", f"{each.buffer}: {each.offset} is no {alignment} times")
        if not is_copy and pins.get(each.buffer, each.offset) != each.offset:
            yield PlanVerdict("address", f"{each.buffer} is pinned at {pins[each.buffer]}")
        capacity = memory.capacity_nbytes
        if each.offset < 0 or (capacity and each.end_offset > capacity):
            yield PlanVerdict("address", f"{each.buffer} at {each.offset} leaves {memory.name}")
        for begin, nbytes in memory.reserved:
            if each.nbytes and each.offset < begin + nbytes and begin < each.end_offset:
                yield PlanVerdict("address", f"{each.buffer} at {each.offset} is on reserved bytes")


def _overlaps(both: _Both) -> Iterator[PlanVerdict]:
    """Those that are alive at once, found by a sweep over time, share no bytes."""
    alive: list[Residency] = []
    for new in sorted(both.plan.residencies, key=lambda r: r.begin):
        if new.end < new.begin:
            yield PlanVerdict("overlap", f"{new.buffer} ends at {new.end}, begun at {new.begin}")
        alive = [old for old in alive if old.end > new.begin]
        for old in alive:
            if old.memory != new.memory:
                continue
            if old.buffer == new.buffer and (old.reason, new.reason).count(Reason.SAVED) != 1:
                yield PlanVerdict("overlap", f"{new.buffer} lies twice in {new.memory}")
            meet = old.offset < new.end_offset and new.offset < old.end_offset
            if meet and old.nbytes and new.nbytes:
                yield PlanVerdict("overlap", f"{old.buffer} and {new.buffer} share bytes, alive")
        alive.append(new)


def _transfers(both: _Both) -> Iterator[PlanVerdict]:
    """They cost what their memory says, from and to where a buffer lies."""
    for each in both.plan.transfers:
        memory = both.memory_of(each.buffer)
        cost = memory.save if each.kind is TransferKind.SAVE else memory.read
        is_first = _is_first_read(both, each)
        if cost is None or not (is_first or both.is_spillable(each.buffer)):
            yield PlanVerdict("transfer", f"{each.buffer} may not leave {memory.name}")
            return
        ticks = cost.ticks(both.sizes[each.buffer])
        if each.engine != cost.engine or each.end - each.begin != ticks or each.begin < 0:
            yield PlanVerdict("transfer", f"{each} is to take {ticks} ticks of {cost.engine}")
        home = both.home(each.buffer, each.begin, each.end)
        if home is None:
            yield PlanVerdict("transfer", f"{each.buffer} is not in {memory.name} while it moves")
        elif each.kind is TransferKind.READ and (home.reason, home.begin) != (
            Reason.READ,
            each.begin,
        ):
            yield PlanVerdict("transfer", f"{each.buffer} is read at {each.begin} without need")


def _is_first_read(both: _Both, move: PlannedTransfer) -> bool:
    """Whether it brings what the backing memory has at the begin, for the first time."""
    homes = both.homes.get(move.buffer, [])
    return (
        move.kind is TransferKind.READ
        and both.is_backed(move.buffer)
        and bool(homes)
        and homes[0].begin == move.begin
    )


def _residencies(both: _Both) -> Iterator[PlanVerdict]:
    """What an operation touches is there, and each residency begins as it says."""
    for number, op in enumerate(both.problem.ops):
        for run in both.runs(number):
            for name in (*op.reads, *op.writes):
                if both.operand_home(number, run, name) is None:
                    yield PlanVerdict("residency", f"{name} is not in memory while {op.name} runs")
    for whole, homes in both.homes.items():
        writes = {
            run.begin for write in both.writes.get(whole, ()) for run in both.runs(write.number)
        }
        reads = {m.begin for m in both.moves.get(whole, ()) if m.kind is TransferKind.READ}
        for home in homes:
            begins = {Reason.WRITTEN: writes, Reason.READ: reads, Reason.PRESENT: {0}}[home.reason]
            if home.begin not in begins:
                yield PlanVerdict("residency", f"nothing begins {home}")
            if home.reason is Reason.PRESENT and whole not in both.filled:
                yield PlanVerdict("residency", f"{whole} is not present at the begin")


def _contents(both: _Both) -> Iterator[PlanVerdict]:
    """What is read is what the given order means, and it was not lost in between."""
    for number, op in enumerate(both.problem.ops):
        for time in both.runs(number):
            for name in op.reads:
                yield from _content(both, number, time, name)
    for writes in both.writes.values():
        for at, late in enumerate(writes):
            begin = both.time(late.number).begin
            for early in writes[:at]:
                is_one = early.name == late.name or early.number == late.number
                is_shared = early.low < late.high and late.low < early.high
                if is_shared and not is_one and both.time(early.number).end > begin:
                    yield PlanVerdict("content", f"{early.name} overwrites {late.name}")
    for moves in both.moves.values():
        for move in moves:
            if move.kind is TransferKind.READ and not _is_saved(both, move):
                yield PlanVerdict("content", f"what is read for {move.buffer} is not what it held")


def _content(both: _Both, number: int, time: PlannedOp, name: str) -> Iterator[PlanVerdict]:
    whole, low = both.places[name]
    high = low + both.buffers[name].nbytes
    writes = [
        w
        for w in both.writes.get(whole, ())
        if low < high and w.low < high and low < w.high and w.number != number
    ]
    has_earlier = whole in both.filled or any(w.number < number for w in writes)
    op = both.problem.ops[number]
    home = both.operand_home(number, time, name)
    assert home is not None
    for write in writes:
        wrote = both.time(write.number)
        if has_earlier and write.number > number:
            if wrote.begin < time.end:
                yield PlanVerdict("content", f"{wrote.op} overwrites what {op.name} reads")
            continue
        if wrote.end > time.begin:
            yield PlanVerdict("content", f"{op.name} reads {name} before {wrote.op} wrote it")
        if home.reason is Reason.WRITTEN and not any(
            home.begin <= run.begin and run.end <= time.begin for run in both.runs(write.number)
        ):
            yield PlanVerdict("content", f"what {wrote.op} wrote of {name} was dropped")
    if home.reason is Reason.READ and not any(
        m.kind is TransferKind.READ and m.begin == home.begin and m.end <= time.begin
        for m in both.moves.get(whole, ())
    ):
        yield PlanVerdict("content", f"{op.name} reads {name} before it is back")


def _is_saved(both: _Both, read: PlannedTransfer) -> bool:
    """Whether the backing memory holds, as a buffer is read, what was last written to it."""
    written = [
        write.number
        for write in both.writes.get(read.buffer, ())
        if both.time(write.number).begin < read.begin
    ]
    changes = [both.time(number) for number in written if not both.is_load(number)]
    if not changes and (written or both.is_backed(read.buffer)):
        return all(both.time(number).end <= read.begin for number in written)
    last = max((each.end for each in changes), default=0)
    return any(
        save.kind is TransferKind.SAVE
        and last <= save.begin
        and save.end <= read.begin
        and not any(
            run.begin < save.end and save.begin < run.end
            for number in written
            for run in both.runs(number)
        )
        and any(
            copy.reason is Reason.SAVED and copy.begin <= save.begin and read.end <= copy.end
            for copy in both.plan.residencies
            if copy.buffer == read.buffer
        )
        for save in both.moves[read.buffer]
    )


def _kept(both: _Both) -> Iterator[PlanVerdict]:
    """What is there before or needed after lies in memory then."""
    end = both.plan.makespan_ticks
    for name, (whole, _) in both.places.items():
        buffer: Buffer = both.buffers[name]
        homes = both.homes.get(whole, [])
        if buffer.needed_after:
            if not homes or homes[-1].end < end:
                yield PlanVerdict("residency", f"{name} is not in memory at the end")
            elif homes[-1].reason is Reason.WRITTEN and any(
                all(run.begin < homes[-1].begin for run in both.runs(write.number))
                for write in both.writes.get(whole, ())
            ):
                yield PlanVerdict("content", f"a part of {name} was dropped before the end")
        is_used = bool(homes) or buffer.needed_after
        if (
            buffer.first_content is FirstContent.PRESENT
            and is_used
            and (not homes or homes[0].begin != 0 or homes[0].reason is not Reason.PRESENT)
        ):
            yield PlanVerdict("residency", f"{name} is not in memory at the begin")


def _sums(both: _Both) -> Iterator[PlanVerdict]:
    plan = both.plan
    makespan = max((each.end for each in plan.timed), default=0)
    if plan.makespan_ticks != makespan:
        yield PlanVerdict("sums", f"the makespan is {makespan}, not {plan.makespan_ticks}")
    for memory in both.memories:
        mine = (r.end_offset for r in plan.residencies if r.memory == memory and r.nbytes)
        peak = max(mine, default=0)
        if plan.peak_nbytes(memory) != peak:
            yield PlanVerdict("sums", f"the peak of {memory} is {peak}")
    first = {name for name, homes in both.homes.items() if homes[0].reason is Reason.READ}
    moved = sum(both.sizes[each.buffer] for each in plan.transfers)
    extra = moved - sum(both.sizes[name] for name in first)
    if plan.extra_nbytes != extra:
        yield PlanVerdict("sums", f"{extra} bytes are moved besides, not {plan.extra_nbytes}")


def _reuse(both: _Both) -> Iterator[PlanVerdict]:
    """Edges and turns keep those apart that use the same bytes."""
    plan = both.plan
    if plan.reuse_edges is None:
        return
    touches: dict[int, list[Touch]] = defaultdict(list)
    number_of = {id(each): number for number, each in enumerate(plan.residencies)}
    done: list[Timed] = []
    for at, each in enumerate(plan.timed):
        if isinstance(each, PlannedOp):
            found = both.touched_by_op(each)
            engine = both.engines[both.engine_of(both.ops[each.op])]
        else:
            found = both.touched_by_move(each)
            engine = both.engines[each.engine]
        for home, low, high, writes in found:
            place = home.offset + low, home.offset + high
            touches[number_of[id(home)]].append(Touch(at, *place, writes))
        every = range(engine.instances) if each.instance < 0 else (each.instance,)
        done.append(
            Timed(
                name=each.op if isinstance(each, PlannedOp) else f"{each.kind} {each.buffer}",
                begin=each.begin,
                end=each.end,
                instances=tuple((engine.name, instance) for instance in every),
            )
        )
    tenants = [
        Tenant(
            memory=each.memory,
            low=each.offset,
            high=each.end_offset,
            begin=each.begin,
            touches=tuple(touches[number]),
        )
        for number, each in enumerate(plan.residencies)
    ]
    for why in unsafe(done, plan.reuse_edges, tenants):
        yield PlanVerdict("reuse", why)
