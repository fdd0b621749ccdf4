"""What a problem must be before anything is planned: each rule one line with the place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

from tilefarm.errors import UserError

from driver.memory.problem import Buffer, EngineKind, FirstContent, Memory, Op, Problem

MOST: Final = 1 << 44
"""Bytes and ticks of one thing at most: sums over all that a plan may hold are exact in 64 bits."""

MOST_ROWS: Final = 20_000
"""Operations, and buffers, at most: as many as the allocator takes, and planned in a minute; as
many instances of an engine have all to do that there is.
"""
MOST_NESTED: Final = 100
"""Views of one another at most."""


def require_sound(problem: Problem) -> None:
    """Raises UserError with the first thing that contradicts itself or cannot be."""
    for what in _faults(problem):
        raise UserError(what, "`tilefarm plan --help` says what each row of a problem means")


def _faults(problem: Problem) -> Iterator[str]:
    if not problem.engines or not problem.memories:
        yield "a problem has an engine and a memory at least"
    for kind, count in (("operations", len(problem.ops)), ("buffers", len(problem.buffers))):
        if count > MOST_ROWS:
            yield f"{count} {kind}, {MOST_ROWS} at most"
    for kind, names in (
        ("engine", [e.name for e in problem.engines]),
        ("memory", [m.name for m in problem.memories]),
        ("buffer", [b.name for b in problem.buffers]),
        ("operation", [op.name for op in problem.ops]),
    ):
        seen: set[str] = set()
        for name in names:
            if not name or name in seen:
                yield f"{kind} {name!r} is there twice" if name else f"{kind} without a name"
            seen.add(name)
    if not 0 <= problem.barriers < MOST:
        yield f"{problem.barriers} barriers: one is enough for every problem, and 0 sets no limit"
    for engine in problem.engines:
        if not 0 < engine.instances <= MOST_ROWS:
            yield f"engine {engine.name} has {engine.instances} instances, {MOST_ROWS} at most"
    for memory in problem.memories:
        yield from _of_memory(problem, memory)
    buffers = {b.name: b for b in problem.buffers}
    for buffer in problem.buffers:
        yield from _of_buffer(problem, buffer, buffers)
    yield from _of_groups(problem.buffers)
    ops = {op.name for op in problem.ops}
    engines = {e.name for e in problem.engines}
    for op in problem.ops:
        yield from _of_op(op, buffers, ops, engines)


def _of_memory(problem: Problem, memory: Memory) -> Iterator[str]:
    name = f"memory {memory.name}"
    if not 0 <= memory.capacity_nbytes < MOST or not 0 < memory.alignment < MOST:
        yield f"{name}: capacity {memory.capacity_nbytes}, alignment {memory.alignment}"
    for offset, nbytes in memory.reserved:
        if not 0 <= offset < MOST or not 0 <= nbytes < MOST:
            yield f"{name}: reserved are {nbytes} bytes at {offset}"
        if memory.capacity_nbytes and offset + nbytes > memory.capacity_nbytes:
            yield f"{name}: what is reserved at {offset} ends beyond its {memory.capacity_nbytes}"
    for (begin, nbytes), (then, _) in pairwise(sorted(memory.reserved)):
        if begin + nbytes > then:
            yield f"{name}: what is reserved at {begin} and at {then} overlaps"
    if not memory.backing and not memory.save and not memory.read:
        return
    if memory.backing not in {m.name for m in problem.memories} - {memory.name}:
        yield f"{name}: its backing memory {memory.backing!r} is none of the others"
    for what, transfer in (("save", memory.save), ("read", memory.read)):
        if transfer is None:
            yield f"{name}: with a backing memory it wants the cost to {what}"
        elif transfer.engine not in {e.name for e in problem.engines if e.kind is EngineKind.DMA}:
            yield f"{name}: {what} by {transfer.engine!r}, which is no engine of the kind dma"
        elif not 0 <= transfer.latency_ticks < MOST or not 0 <= transfer.nbytes_per_tick < MOST:
            yield f"{name}: {what} takes {transfer.latency_ticks} ticks and {transfer}"


def _of_buffer(problem: Problem, buffer: Buffer, buffers: dict[str, Buffer]) -> Iterator[str]:
    name = f"buffer {buffer.name}"
    if not 0 <= buffer.nbytes < MOST or not 0 <= buffer.alignment < MOST:
        yield f"{name}: {buffer.nbytes} bytes, alignment {buffer.alignment}"
    if buffer.memory and buffer.memory not in {m.name for m in problem.memories}:
        yield f"{name}: unknown memory {buffer.memory!r}"
    memory = problem.memory_of(buffer)
    if buffer.view_of:
        yield from _of_view(problem, buffer, buffers)
    else:
        yield from _of_first_content(buffer, memory)
    if buffer.pinned_at is not None and (
        buffer.pinned_at < 0 or buffer.pinned_at % problem.alignment_of(buffer)
    ):
        yield f"{name}: pinned at {buffer.pinned_at}, alignment {problem.alignment_of(buffer)}"
    pin, capacity = buffer.pinned_at, memory.capacity_nbytes
    if pin is not None and capacity and pin + buffer.nbytes > capacity:
        yield f"{name}: pinned at {pin} it ends beyond the {capacity} of {memory.name}"
    for offset, nbytes in memory.reserved:
        if pin is not None and pin < offset + nbytes and offset < pin + buffer.nbytes:
            yield f"{name}: pinned at {pin}, on what is reserved at {offset}"


def _of_first_content(buffer: Buffer, memory: Memory) -> Iterator[str]:
    if buffer.first_content is FirstContent.BACKED and not memory.backing:
        yield f"buffer {buffer.name}: backed, but {memory.name} has no backing memory"


def _of_view(problem: Problem, buffer: Buffer, buffers: dict[str, Buffer]) -> Iterator[str]:
    name = f"buffer {buffer.name}"
    whole = buffers.get(buffer.view_of)
    if whole is None:
        yield f"{name}: a view of the unknown buffer {buffer.view_of!r}"
        return
    if not 0 <= buffer.view_offset <= whole.nbytes - buffer.nbytes:
        yield f"{name}: at {buffer.view_offset} it ends beyond {whole.name}, whose view it is"
    if buffer.group or buffer.pinned_at is not None or buffer.memory not in ("", whole.memory):
        yield f"{name}: a view lies where {whole.name} does: no group, pin or memory of its own"
    seen = {buffer.name}
    while whole.view_of in buffers:
        if whole.name in seen:
            yield f"{name}: views of one another"
            return
        seen.add(whole.name)
        if len(seen) > MOST_NESTED:
            yield f"{name}: a view of a view, and so on, {MOST_NESTED} times at most"
            return
        whole = buffers[whole.view_of]
    if not whole.view_of:
        yield from _of_first_content(buffer, problem.memory_of(whole))


def _of_groups(buffers: Iterable[Buffer]) -> Iterator[str]:
    first: dict[str, Buffer] = {}
    for buffer in buffers:
        if buffer.group:
            other = first.setdefault(buffer.group, buffer)
            if (other.memory, other.pinned_at) != (buffer.memory, buffer.pinned_at):
                yield (
                    f"group {buffer.group}: {other.name} and {buffer.name} are to share an offset, "
                    "but have other memories or pins"
                )


def _of_op(op: Op, buffers: dict[str, Buffer], names: set[str], engines: set[str]) -> Iterator[str]:
    name = f"operation {op.name}"
    if op.engine and op.engine not in engines:
        yield f"{name}: unknown engine {op.engine!r}"
    for used in (*op.reads, *op.writes):
        if used not in buffers:
            yield f"{name} uses the unknown buffer {used!r}"
    for other in op.after:
        if other not in names:
            yield f"{name} waits for the unknown operation {other!r}"
    for operand, result in op.in_place:
        if operand not in op.reads or result not in op.writes:
            yield f"{name}: {result!r} in place of {operand!r}, which it is to write and to read"
    if op.duration_ticks is None and not op.samples:
        yield f"{name}: neither a duration nor samples of it"
    elif not 0 < op.ticks < MOST or any(not 0 < each < MOST for each in op.samples):
        yield f"{name}: a duration of {op.ticks} ticks, samples {list(op.samples)}"
