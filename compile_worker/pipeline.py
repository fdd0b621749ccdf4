"""A pass, and pipelines of passes: how one runs, and how a pass of a user's goes in.

Every pass is a function from function to function in a file of its own, and leaves the meaning
alone: `interpret` gives the same answer before and after.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from tilefarm.errors import UserError
from tilefarm.target import Target

from compile_worker.ir.func import Func
from compile_worker.ir.simplify import simplify
from compile_worker.ir.verify import Stage, VerifyError, verify

Watcher: TypeAlias = Callable[[str, Func], None]

SCHEDULED: Final = "scheduled"
"""What comes before the first pass, by the name that watchers and `with_pass` know it by."""


class PassError(UserError):
    """A user's pass cannot go where it should, or leaves what it must not."""


class OverduePassError(PassError):
    """A user's pass takes longer than it may."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A named step of lowering, and the stage whose rules hold afterwards.

    With `is_verified` these rules are checked each time it has run, as for every pass of a user.
    """

    name: str
    run: Callable[[Func, Target], Func]
    leaves: Stage
    is_verified: bool = False


def simplify_pass(func: Func, target: Target) -> Func:
    """`simplify` as a pass."""
    del target
    return simplify(func)


def look_away(name: str, func: Func) -> None:
    """The watcher that does not look."""


def applied(step: Pass, func: Func, target: Target) -> Func:
    """The function after one pass; raises as `lower` does."""
    made = step.run(func, target)
    if not step.is_verified:
        return made
    if not isinstance(made, Func):
        raise PassError(f"pass {step.name} gives {type(made).__name__}, not a function of the IR")
    try:
        verify(made, step.leaves)
    except VerifyError as broken:
        stage = step.leaves.name.lower()
        why = f"pass {step.name} breaks a rule of the stage {stage}: {broken.what}"
        raise PassError(why, "see the rules in compile_worker/ir/verify.py") from None
    except Exception as error:  # nodes that hold what no node holds
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise PassError(f"pass {step.name} gives what is no IR: {why}") from None
    if made.params != func.params:
        raise PassError(
            f"pass {step.name} changes the parameters, which callers know",
            "a Func with the name, params and attrs that it had, and another body",
        )
    return made


def stages_by_name(passes: Sequence[Pass]) -> dict[str, Stage]:
    """The stage that lowering is at after each pass, and before the first one."""
    return {SCHEDULED: Stage.SCHEDULED, **{each.name: each.leaves for each in passes}}


def inserted(passes: Sequence[Pass], step: Pass, *, after: str) -> tuple[Pass, ...]:
    """A pipeline with one more pass, behind the one that is called `after`; always verified.

    Raises:
        PassError: a name that is taken, or a stage that lowering is not at there.
        ValueError: no such pass.
    """
    names = [*stages_by_name(passes)]
    if step.name in names:
        raise PassError(f"there already is a pass {step.name!r}", "give it another name")
    at = names.index(after)
    stages = [*stages_by_name(passes).values(), Stage.FLAT]
    if not stages[at] <= step.leaves <= stages[at + 1]:
        fitting = dict.fromkeys(stage.name for stage in stages[at : at + 2])
        why = f"pass {step.name} leaves {step.leaves.name}, behind {after} it cannot"
        raise PassError(why, f"let it leave {' or '.join(fitting)}")
    return (*passes[:at], replace(step, is_verified=True), *passes[at:])
