"""Addresses for a schedule: every residency lies somewhere while it lasts, in each memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from driver.memory.best.decoder import Action, Decoded, Move, move_of
from driver.memory.bounds import live_nbytes
from driver.memory.instance import Instance
from driver.memory.packing import packed
from driver.memory.plan import Bound, Reason, Residency
from driver.memory.problem import Memory, Problem
from driver.memory.span import Span


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


def placed(problem: Problem, instance: Instance, found: Decoded, seed: int) -> Places:
    """The lowest places that were found for a schedule; they may exceed a capacity."""
    stays = sorted(_stays(problem, instance, found), key=lambda s: (s.begin, s.buffer))
    residencies: list[Residency] = []
    peaks, bounds, methods = [], [], []
    for number, memory in enumerate(problem.memories):
        mine = [stay for stay in stays if stay.memory == number]
        if not mine:
            continue
        spans = [_span(instance, stay, memory) for stay in mine]
        step = min(span.alignment for span in spans)
        bound = live_nbytes(((s.begin, s.end, s.nbytes) for s in spans), step)
        best = packed(spans, memory.reserved, goal_nbytes=bound, seed=seed)
        peaks.append((memory.name, best.peak_nbytes))
        bounds.append(Bound(name="live bytes", nbytes=bound, memory=memory.name))
        methods.append(best.method)
        residencies += (
            _residency(instance, memory, stay, offset)
            for stay, offset in zip(mine, best.offsets, strict=True)
        )
    return Places(tuple(residencies), tuple(peaks), tuple(bounds), methods[0] if methods else "")


def fits(problem: Problem, places: Places) -> bool:
    """Whether every memory has room for what lies in it, and pinned buffers take turns."""
    room = {memory.name: memory.capacity_nbytes for memory in problem.memories}
    pinned = {buffer.name for buffer in problem.buffers if buffer.pinned_at is not None}
    stays = [r for r in places.residencies if r.buffer in pinned and r.reason is not Reason.SAVED]
    return all(not room[name] or peak <= room[name] for name, peak in places.peaks) and not any(
        a.memory == b.memory
        and a.begin < b.end
        and b.begin < a.end
        and a.offset < b.end_offset
        and b.offset < a.end_offset
        for a, b in combinations(stays, 2)
    )


def _stays(problem: Problem, instance: Instance, found: Decoded) -> Iterator[_Stay]:
    for each in found.residencies:
        yield _Stay(
            each.buffer,
            instance.buffers[each.buffer].memory,
            each.begin,
            each.end,
            _reason(instance, each.by),
        )
    moves = [(action, *move_of(action.token)) for action in found.actions if action.token < 0]
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
    return Reason.READ if by < 0 or by >= instance.operations else Reason.WRITTEN


def _span(instance: Instance, stay: _Stay, memory: Memory) -> Span:
    buffer = instance.buffers[stay.buffer]
    is_copy = stay.reason is Reason.SAVED
    return Span(
        begin=stay.begin,
        end=stay.end,
        nbytes=buffer.nbytes,
        alignment=memory.alignment if is_copy else buffer.alignment,
        pinned_at=None if is_copy else buffer.pinned_at,
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
