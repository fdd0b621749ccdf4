"""Generation rules of a user's: they take part in the spaces of scripts, where those are made.

That is where the user is. What goes to compile workers is the schedule of a point, in primitives
that they know, so nothing of a rule runs there, and no rule can make a kernel wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final, TypeVar

from tilefarm.errors import SettingsError
from tilefarm.space import Point
from tilefarm.trace import Step, Trace

from compile_worker.draft import Draft, Emptied
from compile_worker.machines.cpu.space.script_context import ScriptContext, ScriptRule
from compile_worker.plugins.failure import failure
from compile_worker.plugins.patience import OverdueError, patience

SECONDS: Final = 10.0
"""What a rule may take at a time."""

_R = TypeVar("_R")


def guarded(rule: ScriptRule) -> ScriptRule:
    """The rule, in which whatever goes wrong is one line that names it."""

    def steps(context: ScriptContext, point: Point) -> Iterator[Step]:
        yield from _called(rule.name, lambda: [_step(each) for each in rule.steps(context, point)])

    def declare(draft: Draft, context: ScriptContext) -> None:
        _called(rule.name, lambda: rule.declare(draft, context))

    def unmet(context: ScriptContext) -> str:
        return str(_called(rule.name, lambda: rule.unmet(context)))

    return replace(rule, unmet=unmet, declare=declare, steps=steps)


def _step(given: object) -> Step:
    if not isinstance(given, Step):
        raise TypeError(f"its steps have a {type(given).__name__}, no Step")
    Trace((given,)).to_json()  # It travels as that: what has no such form fails here.
    return given


def _called(name: str, call: Callable[[], _R]) -> _R:
    try:
        with patience(SECONDS):
            return call()
    except Emptied:
        raise
    except (Exception, SystemExit, OverdueError) as error:
        raise SettingsError(
            f"--plugin: the rule {name} fails: {failure(error)}",
            "an `unmet` that says where it does not apply, or leave the rule out",
        ) from None
