"""A pass of a user's own, as a Python file declares it.

    @custom_pass(after="flatten")
    def write_out_short_loops(func: Func, target: Target) -> Func:
        ...

It rewrites the IR and leaves its meaning alone, as every pass here. Compile workers get its file's
text and run it, so whatever goes wrong in it is one line that names it, within a limit of time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from tilefarm.artifact import PluginText
from tilefarm.target import Target

from compile_worker.ir.func import Func
from compile_worker.pipeline import OverduePassError, PassError
from compile_worker.plugins.failure import failure
from compile_worker.plugins.patience import OverdueError, patience

SECONDS: Final = 10.0
"""What a pass may take for one kernel; the compiler's own take some milliseconds."""

Rewrite: TypeAlias = Callable[[Func, Target], Func]


@dataclass(frozen=True, slots=True)
class CustomPass:
    """A rewrite of the IR, and the step of lowering that it runs right after."""

    name: str
    after: str
    run: Rewrite


def custom_pass(*, after: str) -> Callable[[Rewrite], CustomPass]:
    """Declares the function below it as a pass of its own name.

    Args:
        after: the pass behind which it runs, on every kernel whose machine has one of that name;
            "scheduled" means before all of them. `tilefarm show` lists them.
    """

    def declared(function: Rewrite) -> CustomPass:
        return CustomPass(function.__name__, after, function)

    return declared


def guarded(mine: CustomPass, plugin: PluginText) -> Rewrite:
    """The rewrite, in which whatever goes wrong is one line that names the pass.

    Raises:
        OverduePassError: it took longer than it may.
        PassError: it fails.
    """

    def run(func: Func, target: Target) -> Func:
        try:
            with patience(SECONDS):
                return mine.run(func, target)
        except OverdueError as late:
            raise OverduePassError(
                f"pass {mine.name} of {plugin.named} is {late}", "a loop in it may never end"
            ) from None
        except (Exception, SystemExit) as error:
            raise PassError(
                f"pass {mine.name} of {plugin.named} fails: {failure(error, plugin.named)}",
                "return the function as it is where the pass does not apply",
            ) from None

    return run
