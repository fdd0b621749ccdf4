"""Passes of users: in the schedules of the process that loaded them, and where these are compiled.

    driver    --plugin mine.py    every schedule ends with lower_with("mine", digest of mine.py)
    worker    gets the job, with the schedule and the text of mine.py: lowering finds the pass

So a pass is part of a schedule's identity, and of everything that is kept by it: kernels, trials,
records. A schedule travels without code; where nobody has given the file, it is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tilefarm.artifact import PluginText
from tilefarm.digest import Digest
from tilefarm.errors import SettingsError
from tilefarm.trace import Step, Trace

from compile_worker.generated import Generated
from compile_worker.ir.annotations import LOWER_WITH
from compile_worker.ir.func import Func
from compile_worker.pipeline import Pass, PassError, inserted, stages_by_name
from compile_worker.plugins.custom_pass import Rewrite
from compile_worker.schedule.marks import lower_with
from compile_worker.schedule.tensorize import tensorize

PRIMITIVE: Final = lower_with.__name__


@dataclass(frozen=True, slots=True)
class UserPass:
    """A pass of one file.

    Attributes:
        after: the step that it runs right after.
        run: guarded; see `compile_worker.plugins.custom_pass`.
        origin: the file's digest, which tells this pass from an earlier version of it.
    """

    name: str
    after: str
    run: Rewrite
    plugin: PluginText
    origin: Digest

    @property
    def step(self) -> Step:
        """What a schedule says that is lowered with it."""
        return Step(PRIMITIVE, (self.name, self.origin.hex))


_chosen: list[UserPass] = []
"""With which this process makes schedules."""

_known: dict[Step, UserPass] = {}
"""These, and those that jobs brought."""


def set_passes_of_users(passes: Iterable[UserPass]) -> None:
    """Schedules that this process makes from now on are lowered with these, and with no others.

    Raises:
        SettingsError: two passes have one name.
    """
    chosen = list(passes)
    names = [each.name for each in chosen]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SettingsError(f"--plugin: there already is a pass {twice}", "give it another name")
    _chosen[:] = chosen
    _known.clear()
    know_passes(chosen)


def know_passes(passes: Iterable[UserPass]) -> None:
    """Schedules that name them can be compiled in this process."""
    _known.update({each.step: each for each in passes})


def knows_plugin(plugin: PluginText) -> bool:
    """Whether the passes of that text are known."""
    return any(each.plugin == plugin for each in _known.values())


def default_trace() -> Trace:
    """The schedule that nobody has chosen: nothing but what it is lowered with."""
    return Trace(tuple(each.step for each in _chosen))


def with_default_trace(made: Generated) -> Generated:
    """A space whose schedules are lowered with the passes that this process was told to load."""
    last = default_trace().steps
    if not last:
        return made
    return Generated(made.space, lambda point: (*made.steps(point), *last), made.rules)


def divided(trace: Trace) -> tuple[Trace, Trace]:
    """The steps that schedule, and those that say what the kernel is lowered with."""
    ours = tuple(step for step in trace.steps if step.primitive != PRIMITIVE)
    return Trace(ours), Trace(tuple(step for step in trace.steps if step.primitive == PRIMITIVE))


def lowered_as_here(trace: Trace) -> Trace:
    """The schedule with the passes that this process was told to load, as its own have them.

    Another version of a file is other code for the same schedule, as another version of the
    compiler is. A pass of a name that is not loaded stays, and is refused where it is compiled.
    """
    ours, named = divided(trace)
    here = default_trace().steps
    digests = {str(name): str(digest) for name, digest in (step.args for step in here)}
    missing = (step for step in named.steps if step.args[0] not in digests)
    return Trace((*(_of_here(step, digests) for step in ours.steps), *here, *missing))


def _of_here(step: Step, digests: Mapping[str, str]) -> Step:
    """A step that hands loops to an intrinsic of a user's, with the one that is loaded here."""
    if step.primitive != tensorize.__name__ or len(step.args) != 2:
        return step
    stage, name = step.args
    label = str(name).rpartition("_")[0]
    if label not in digests:
        return step
    return Step(step.primitive, (stage, f"{label}_{Digest(digests[label]).short}"))


def plugins_of(trace: Trace) -> tuple[PluginText, ...]:
    """What a compile worker needs besides the schedule: the files of the passes that it names.

    Those that are not known here are left out, and the worker says so.
    """
    named = (_known[step].plugin for step in divided(trace)[1].steps if step in _known)
    return tuple(dict.fromkeys(named))


def require_passes(trace: Trace) -> None:
    """Nothing if every pass that a schedule names is known here.

    Raises:
        PassError: one is not.
    """
    for step in divided(trace)[1].steps:
        if step not in _known:
            raise _unknown(step)


def with_user_passes(passes: Sequence[Pass], func: Func) -> tuple[Pass, ...]:
    """A machine's passes with those that a function is to be lowered with, in their places.

    Of two behind one step the first one that the schedule names runs first. One whose step the
    machine does not have is left out: the schedule is for the other machine of the target.

    Raises:
        PassError: a pass is not known here, or its name is one of the compiler's.
    """
    found = tuple(passes)
    for mine in reversed([*_named_by(func)]):
        found = with_user_pass(found, mine)
    return found


def with_user_pass(passes: Sequence[Pass], mine: UserPass) -> tuple[Pass, ...]:
    """The same with one more, which leaves the stage that it finds.

    Raises:
        PassError: its name is one of the compiler's.
    """
    stages = stages_by_name(passes)
    if mine.after not in stages:
        return tuple(passes)
    return inserted(passes, Pass(mine.name, mine.run, stages[mine.after]), after=mine.after)


def _named_by(func: Func) -> Iterator[UserPass]:
    for words in (LOWER_WITH.of(func) or "").split():
        step = Step(PRIMITIVE, tuple(words.split("@")))
        if step not in _known:
            raise _unknown(step)
        yield _known[step]


def _unknown(step: Step) -> PassError:
    name, digest = map(str, step.args)
    other = next((each.origin.hex for each in _chosen if each.name == name), "")
    loaded = (
        f"and what is loaded is another version, {other[:12]}" if other else "which is not loaded"
    )
    return PassError(
        f"the schedule needs the pass {name} of the plugin {digest[:12]}, {loaded}",
        "--plugin with the file that has it; what replays a kernel needs that very version",
    )
