"""Primitives that leave a mark for a later pass: annotate, pragma."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tilefarm.errors import ScheduleError

from compile_worker.ir.func import Func
from compile_worker.ir.stmt import Alloc, Block, For, Mark, Stmt
from compile_worker.schedule.guards import one_of
from compile_worker.schedule.places import (
    alloc_path,
    block_path,
    loop_path,
    replaced,
)
from compile_worker.schedule.schedule import Schedule, primitive

PLACES: Final = {"block": block_path, "loop": loop_path, "buffer": alloc_path}

PRAGMAS: Final[Mapping[tuple[str, str], tuple[int | str, ...]]] = {
    ("block", "dma"): ("load", "store"),
    ("block", "alu"): (1,),
    ("block", "keep"): (1,),
}
"""Marks that lowering knows, and their values. A block that copies is done by the DMA (dma), one
that works element by element on accumulators by the ALU (alu); one of the host is stored, not
computed where it is read, if it is to be kept (keep)."""


@primitive
def annotate(schedule: Schedule, kind: str, name: str, key: str, value: int | str) -> Func:
    """Mark a block, loop or buffer; a mark of the same key is replaced.

        block a   ->   block a {dma=load}           annotate("block", "a", "dma", "load")

    Raises:
        ScheduleError: `kind` is not "block", "loop" or "buffer", or there is no such thing.
    """
    if kind not in PLACES:
        why = f"{kind!r} is nothing that can be marked"
        raise ScheduleError("annotate", name, why, f"one of {', '.join(PLACES)}")
    path = PLACES[kind]("annotate", schedule.func, name)
    return replaced(schedule.func, path, marked(path.target, (key, value)))


@primitive
def pragma(schedule: Schedule, kind: str, name: str, key: str, value: int | str) -> Func:
    """Mark something for lowering: `annotate`, with marks that lowering knows and nothing else.

        block a   ->   block a {keep=1}             pragma("block", "a", "keep", 1)

    Raises:
        ScheduleError: no such pragma, a value that it does not take, or there is no such thing.
    """
    known = [each for place, each in PRAGMAS if place == kind]
    if key not in known:
        everything = [f"{each} of a {place}" for place, each in PRAGMAS]
        why = f"there is no pragma {key!r} of a {kind}"
        raise ScheduleError("pragma", name, why, one_of(known or everything))
    allowed = PRAGMAS[kind, key]
    if value not in allowed:
        why = f"{key} cannot be {value!r}"
        raise ScheduleError("pragma", name, why, one_of([repr(each) for each in allowed]))
    path = PLACES[kind]("pragma", schedule.func, name)
    return replaced(schedule.func, path, marked(path.target, (key, value)))


def marked(stmt: Stmt, mark: Mark) -> Stmt:
    """A block, loop or allocation with one more mark, in place of one of the same key."""
    match stmt:
        case Block(name, body, init, reductions, marks):
            return Block(name, body, init, reductions, _with(marks, mark))
        case For(var, extent, inner, kind, marks):
            return For(var, extent, inner, kind, _with(marks, mark))
        case Alloc(buffer, inner, marks):
            return Alloc(buffer, inner, _with(marks, mark))
        case _:
            raise TypeError(f"{type(stmt).__name__} takes no marks")


def _with(marks: tuple[Mark, ...], mark: Mark) -> tuple[Mark, ...]:
    return (*(m for m in marks if m[0] != mark[0]), mark)
