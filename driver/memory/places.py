"""Addresses for a schedule: every residency lies somewhere while it lasts, in each memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from driver.memory.allocate import Allocation, Interval, allocate
from driver.memory.bounds import live_nbytes
from driver.memory.instance import Instance
from driver.memory.plan import Bound, Reason, Residency
from driver.memory.problem import Memory, Problem
from driver.memory.schedule import Action, Move, Schedule, Token, move_of

_NODES: Final = 50_000
"""Of the exact search for one schedule's addresses: some 50 ms."""
_MANY: Final = 3_000
"""Intervals beyond which packing does alone: a search would hardly come to their ends."""


@dataclass(frozen=True, slots=True)
class Places:
    """Residencies with their addresses, what bounds their peaks, and how they were found."""

    residencies: tuple[Residency, ...]
    peaks: tuple[tuple[str, int], ...]
    bounds: tuple[Bound, ...]
    method: str


@dataclass(frozen=True, slots=True)
class _Stay:
    """A buffer in a memory, from begin to end."""

    buffer: int
    memory: int
    begin: int
    end: int
    reason: Reason
    offset: int | None = None
    by: Token | None = None


def placed(
    problem: Problem,
    instance: Instance,
    found: Schedule,
    *,
    seed: int,
    seconds: float,
    is_bounded: bool = True,
) -> Places | None:
    """The lowest places that were found for a schedule.

    None where it has none within the capacities, or, not bounded by them, where buffers that are
    pinned to the same bytes are there at once.
    """
    stays = sorted(
        _stays(problem, instance, found), key=lambda s: (s.begin, s.end > s.begin, s.buffer)
    )
    residencies: list[Residency] = []
    peaks, bounds, methods = [], [], []
    for number, memory in enumerate(problem.memories):
        mine = [stay for stay in stays if stay.memory == number]
        if not mine:
            continue
        chains = _chains(instance, mine)
        intervals = [_interval(instance, mine, chain, memory) for chain in chains]
        step = min(each.alignment for each in intervals)
        live = live_nbytes(((s.lower, s.upper, s.nbytes) for s in intervals), step)
        if all(stay.offset is not None for stay in mine):
            offsets, method = tuple(stay.offset or 0 for stay in mine), "as they came"
        else:
            best = allocate(
                intervals,
                capacity_nbytes=(memory.capacity_nbytes or None) if is_bounded else None,
                reserved=memory.reserved,
                smallest=True,
                nodes=_NODES if len(intervals) <= _MANY else 0,
                seconds=seconds,
                seed=seed,
            )
            if not isinstance(best, Allocation):
                return None
            of_stay = {
                at: offset
                for chain, offset in zip(chains, best.offsets, strict=True)
                for at in chain
            }
            offsets = tuple(of_stay[at] for at in range(len(mine)))
            method = "searched" if best.nodes else "packed"
        made = [
            _residency(instance, memory, stay, offset)
            for stay, offset in zip(mine, offsets, strict=True)
        ]
        peaks.append((memory.name, max((r.end_offset for r in made if r.nbytes), default=0)))
        bounds.append(Bound(name="live bytes", nbytes=live, memory=memory.name))
        methods.append(method)
        residencies += made
    return Places(tuple(residencies), tuple(peaks), tuple(bounds), methods[0] if methods else "")


def _stays(problem: Problem, instance: Instance, found: Schedule) -> Iterator[_Stay]:
    for each in found.stays:
        yield _Stay(
            each.buffer,
            instance.buffers[each.buffer].memory,
            each.begin,
            each.end,
            _reason(instance, each.by),
            each.offset,
            each.by,
        )
    moves = [(action, *move_of(action.token)) for action in found.actions if action.token < 0]
    moves = [each for each in moves if each[1] is not Move.AGAIN]
    names = [memory.name for memory in problem.memories]
    saves = {buffer for _, move, buffer in moves if move is Move.SAVE}
    for buffer in sorted(saves):
        backing = names.index(problem.memories[instance.buffers[buffer].memory].backing)
        mine = [(action, move) for action, move, whose in moves if whose == buffer]
        for begin, end in _copies(mine):
            yield _Stay(buffer, backing, begin, end, Reason.SAVED)


def _copies(moves: Sequence[tuple[Action, Move]]) -> Iterator[tuple[int, int]]:
    """From each save to the last read before the next one."""
    begin = end = 0
    for action, move in sorted(moves, key=lambda each: each[0].begin):
        if move is Move.SAVE:
            if end:
                yield begin, end
            begin, end = action.begin, action.end
        elif end:
            end = action.end
    if end:
        yield begin, end


def _reason(instance: Instance, by: int | None) -> Reason:
    if by is None:
        return Reason.PRESENT
    if by < 0:
        return Reason.WRITTEN if move_of(by)[0] is Move.AGAIN else Reason.READ
    return Reason.READ if by >= instance.operations else Reason.WRITTEN


def _chains(instance: Instance, stays: Sequence[_Stay]) -> list[list[int]]:
    """Stays, by number, that share their bytes: each result takes the place of its operand."""
    ends = {(stay.buffer, stay.end): at for at, stay in enumerate(stays)}
    begun = {(stay.buffer, stay.begin) for stay in stays}
    chain_of: dict[int, list[int]] = {}
    found: list[list[int]] = []
    for at, stay in enumerate(stays):
        chain: list[int] | None = None
        if stay.reason is Reason.WRITTEN and stay.by is not None and stay.by >= 0:
            free = [
                (operand, result)
                for operand, result in instance.steps[stay.by].in_place
                if (operand, stay.begin) in ends and (result, stay.begin) in begun
            ]
            if (operand := _taken(free).get(stay.buffer)) is not None:
                chain = chain_of[ends[operand, stay.begin]]
        if chain is None:
            chain = []
            found.append(chain)
        chain.append(at)
        chain_of[at] = chain
    return found


def _taken(pairs: Iterable[tuple[int, int]]) -> dict[int, int]:
    """The operand whose place each result has: the first pairs come first, each place goes once."""
    found: dict[int, int] = {}
    for operand, result in pairs:
        if operand not in found.values():
            found.setdefault(result, operand)
    return found


def _interval(
    instance: Instance, stays: Sequence[_Stay], chain: Sequence[int], memory: Memory
) -> Interval:
    first, last = stays[chain[0]], stays[chain[-1]]
    buffer = instance.buffers[first.buffer]
    is_copy = first.reason is Reason.SAVED
    pinned_at = buffer.pinned_at if first.offset is None else first.offset
    return Interval(
        lower=first.begin,
        upper=max(
            last.end, first.begin + 1
        ),  # what is only kept where nothing runs has a place too
        nbytes=buffer.nbytes,
        alignment=memory.alignment if is_copy else buffer.alignment,
        fixed_offset=None if is_copy else pinned_at,
    )


def _residency(instance: Instance, memory: Memory, stay: _Stay, offset: int) -> Residency:
    buffer = instance.buffers[stay.buffer]
    return Residency(
        buffer=buffer.name,
        memory=memory.name,
        offset=offset,
        nbytes=buffer.nbytes,
        begin=stay.begin,
        end=stay.end,
        reason=stay.reason,
    )
