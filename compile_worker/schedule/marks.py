"""Primitives that leave a mark for a later pass: annotate, pragma, lower_with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, TypeVar

from tilefarm.digest import Digest
from tilefarm.errors import ScheduleError
from tilefarm.trace import Step

from compile_worker.ir.annotations import (
    ALU,
    DMA,
    KEEP,
    LOWER_WITH,
    WHAT,
    Annotation,
    find_annotation,
    names_on,
    with_mark,
)
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import Alloc, Block, For, Mark, Stmt
from compile_worker.schedule.guards import one_of
from compile_worker.schedule.places import (
    Path,
    alloc_path,
    block_path,
    loop_path,
    replaced,
)
from compile_worker.schedule.schedule import Schedule, primitive

_Scheduled: TypeAlias = type[Block] | type[For] | type[Alloc]
_V = TypeVar("_V", bound=int | str)

PLACES: Final[Mapping[str, tuple[_Scheduled, Callable[[str, Func, str], Path]]]] = {
    "block": (Block, block_path),
    "loop": (For, loop_path),
    "buffer": (Alloc, alloc_path),
}
"""What can be marked, as schedules call it, and how it is found by its name."""

PRAGMAS: Final[tuple[Annotation[Block, Any, Any], ...]] = (DMA, ALU, KEEP)
"""Annotations that choose who does a block."""


@primitive
def annotate(schedule: Schedule, kind: str, name: str, key: str, value: int | str) -> Func:
    """Mark a block, loop or buffer; a mark of the same name is replaced.

        block a   ->   block a {dma=load}           annotate("block", "a", "dma", "load")

    Raises:
        ScheduleError: `kind` is not "block", "loop" or "buffer", there is no such thing, no such
            annotation of it, or the annotation has no such value.
    """
    if kind not in PLACES:
        why = f"{kind!r} is nothing that can be marked"
        raise ScheduleError("annotate", name, why, f"one of {', '.join(PLACES)}")
    on, find = PLACES[kind]
    annotation = find_annotation(key, on)
    if annotation is None:
        why = f"there is no annotation {key!r} of a {kind}"
        raise ScheduleError("annotate", name, why, one_of(names_on(on)))
    mark = _mark("annotate", name, annotation, value)
    path = find("annotate", schedule.func, name)
    return replaced(schedule.func, path, marked(path.target, mark))


@primitive
def pragma(schedule: Schedule, kind: str, name: str, key: str, value: int | str) -> Func:
    """Say who does a block: `annotate`, with the annotations that choose that and nothing else.

        block a   ->   block a {keep=1}             pragma("block", "a", "keep", 1)

    Raises:
        ScheduleError: no such pragma, a value that it does not take, or there is no such thing.
    """
    known = {each.name: each for each in PRAGMAS if kind in map(WHAT.__getitem__, each.on)}
    if key not in known:
        everything = [f"{each.name} of a {WHAT[on]}" for each in PRAGMAS for on in each.on]
        why = f"there is no pragma {key!r} of a {kind}"
        raise ScheduleError("pragma", name, why, one_of(list(known) or everything))
    mark = _mark("pragma", name, known[key], value)
    path = PLACES[kind][1]("pragma", schedule.func, name)
    return replaced(schedule.func, path, marked(path.target, mark))


@primitive
def lower_with(schedule: Schedule, name: str, plugin: str) -> Func:
    """Have a pass of a user's lower the function, behind those that were named before.

        func f   ->   func f {lower_with="mine@3f1c..."}          lower_with("mine", "3f1c...")

    Whether the pass is known is asked where the function is lowered.

    Raises:
        ScheduleError: no name of a Python function, or no digest of a plugin.
    """
    try:
        named = f"{name}@{Digest(plugin)}"
    except ValueError as error:
        raise ScheduleError("lower_with", name, str(error), "the digest of a plugin") from None
    if not name.isidentifier():
        raise ScheduleError("lower_with", name, "it is no name", "that of a pass in a plugin")
    func = schedule.func
    words = " ".join(filter(None, (LOWER_WITH.of(func), named)))
    return Func(func.name, func.params, func.body, with_mark(func.attrs, LOWER_WITH(words)))


def annotate_step(annotation: Annotation[Any, _V, Any], name: str, value: _V) -> Step:
    """The step of a trace that gives what is called `name` a mark."""
    kind = next(kind for kind, (on, _) in PLACES.items() if on in annotation.on)
    return Step("annotate", (kind, name, annotation.name, annotation(value).value))


def marked(stmt: Stmt, mark: Mark) -> Stmt:
    """A block, loop or allocation with one more mark, in place of one of the same name."""
    match stmt:
        case Block(name, body, init, reductions, marks):
            return Block(name, body, init, reductions, with_mark(marks, mark))
        case For(var, extent, inner, kind, marks):
            return For(var, extent, inner, kind, with_mark(marks, mark))
        case Alloc(buffer, inner, marks):
            return Alloc(buffer, inner, with_mark(marks, mark))
        case _:
            raise TypeError(f"{type(stmt).__name__} takes no marks")


def _mark(
    primitive: str, name: str, annotation: Annotation[Any, Any, Any], value: int | str
) -> Mark:
    """The annotation's mark with a value of a trace."""
    mark = annotation.read(value)
    if mark is None:
        why = f"{annotation.name} cannot be {value!r}"
        raise ScheduleError(primitive, name, why, str(annotation.values))
    return mark
