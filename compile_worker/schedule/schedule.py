"""A schedule: a function and the primitives that brought it to its present form."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeAlias, cast

from tilefarm.errors import ScheduleError
from tilefarm.target import Target
from tilefarm.trace import Argument, Step, Trace

from compile_worker.ir.func import Func

P = ParamSpec("P")

EMPTY: Final = Trace()


@dataclass(frozen=True, slots=True)
class Schedule:
    """`trace` applied to the function that it was started with gives `func`, on `target`."""

    func: Func
    target: Target
    trace: Trace = EMPTY


Primitive: TypeAlias = Callable[Concatenate[Schedule, P], Schedule]


def primitive(rewrite: Callable[Concatenate[Schedule, P], Func]) -> Primitive[P]:
    """Make a schedule primitive out of a function that rewrites the scheduled function.

    What it returns carries the step in its trace, so that no primitive can forget to record itself.
    Arguments are strings and ints as the annotations of `rewrite` declare them; anything else, as a
    trace from elsewhere may hold, is a ScheduleError.
    """
    name = rewrite.__name__
    check = _checker(name, inspect.signature(rewrite, eval_str=True))

    @wraps(rewrite)
    def apply(schedule: Schedule, /, *args: P.args, **kwargs: P.kwargs) -> Schedule:
        if kwargs:
            raise TypeError(f"{name} takes its arguments by position: they are a trace's")
        check(args)
        func = rewrite(schedule, *args, **kwargs)
        step = Step(name, cast("tuple[Argument, ...]", args))
        return Schedule(func, schedule.target, Trace((*schedule.trace.steps, step)))

    return cast("Primitive[P]", apply)


def _checker(name: str, signature: inspect.Signature) -> Callable[[tuple[Any, ...]], None]:
    """A function that raises ScheduleError unless arguments have the declared number and types."""
    declared = list(signature.parameters.values())[1:]
    rest = declared.pop() if declared and declared[-1].kind is declared[-1].VAR_POSITIONAL else None
    usage = f"takes {', '.join(map(str, [*declared, *([rest] if rest else [])]))}"

    def check(args: tuple[Argument, ...]) -> None:
        kinds = [p.annotation for p in declared]
        kinds += [rest.annotation] * (len(args) - len(kinds)) if rest else []
        fits = len(args) == len(kinds) and all(
            type(arg) in allowed for arg, allowed in zip(args, map(_types, kinds), strict=True)
        )
        if not fits:
            given = ", ".join(map(repr, args))
            raise ScheduleError(name, given, usage, "these arguments, in this order")

    return check


def _types(annotation: Any) -> tuple[type, ...]:
    """The classes that an annotation such as `int | str` allows."""
    return getattr(annotation, "__args__", None) or (annotation,)
