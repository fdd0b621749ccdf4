"""A compile as a list of texts: the nest, after each step of its trace, after each pass, LLVM."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from tilefarm.errors import (
    InfraError,
    ScheduleError,
    SettingsError,
    TilefarmError,
    UserError,
)
from tilefarm.target import Target
from tilefarm.trace import Step, Trace
from tilefarm.workload import Workload

from compile_worker.emit import kernel_text
from compile_worker.errors import Refused
from compile_worker.ir.func import Func
from compile_worker.ir.printer import show
from compile_worker.lowering import passes_of, step_names
from compile_worker.machine import Machines
from compile_worker.machines.known import MACHINES
from compile_worker.pipeline import SCHEDULED, Pass, applied
from compile_worker.schedule import replay
from compile_worker.te import nest_of

NEST: Final = "nest"
LLVM: Final = "llvm"
STREAM: Final = "stream"
ALL: Final = "all"
ENTRY: Final = "kernel"


@dataclass(frozen=True, slots=True)
class Shown:
    """The function after one step: the step's name, what it does, and the text it left.

    Steps of the trace are named by their numbers.
    """

    name: str
    caption: str
    text: str
    kind: str = "pass"


@dataclass(slots=True)
class CompileSteps:
    """The steps of one compile in order; `refusal` says why it went no further, if it did not."""

    shown: list[Shown] = field(default_factory=list)
    refusal: TilefarmError | None = None

    def after(self, name: str) -> Shown:
        """The text after a step.

        Raises:
            SettingsError: the compile has no such step, or stopped before it.
        """
        wanted = name
        if name == SCHEDULED:
            last = [each.name for each in self.shown if each.kind in ("nest", "trace")]
            wanted = last[-1]
        for each in self.shown:
            if each.name == wanted:
                return each
        if self.refusal is not None and name in known_names():
            raise SettingsError(
                f"--after {name}: the compile stopped before: {self.refusal.what}",
                self.refusal.hint or "without --after the steps up to there are listed",
            )
        numbers = sum(each.kind == "trace" for each in self.shown)
        trace = f"a step of the trace, 1 to {numbers}, or " if numbers else ""
        raise SettingsError(
            f"--after {name}: no such step", f"{trace}one of {', '.join(known_names())}"
        )

    def change(self, shown: Shown) -> list[str]:
        """Lines of a unified diff from the step before to this one; empty if nothing changed."""
        at = self.shown.index(shown)
        return difference(self.shown[at - 1].text if at else "", shown.text)


def known_names() -> list[str]:
    """Every name of a step but the numbers of a trace's."""
    return [NEST, SCHEDULED, *step_names(), LLVM, STREAM]


def compiled(
    workload: Workload, trace: Trace, target: Target, machines: Machines = MACHINES
) -> CompileSteps:
    """Compile and keep the text after every step, as far as the compile goes."""
    made = CompileSteps()
    try:
        for shown in _steps(workload, trace, target, machines):
            made.shown.append(shown)
    except UserError as refusal:
        made.refusal = refusal
    except Refused as refused:
        why = f"the schedule is more than {target.name} can do: {refused}"
        made.refusal = UserError(why, "smaller tiles, or another memory")
    except Exception as surprise:
        # What was shown so far is what one wants to see of a compiler that breaks.
        last = made.shown[-1].name if made.shown else NEST
        why = f"the compiler breaks after {last}: {type(surprise).__name__}: {surprise}"
        made.refusal = InfraError(why, "report it with the workload and the schedule")
    return made


def difference(before: str, after: str) -> list[str]:
    """The changed lines with a few around them, marked by `+`, `-` and space."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2)
    return list(lines)[2:]


def counted(change: Sequence[str]) -> tuple[int, int]:
    """Lines that a change adds and takes away."""
    return sum(x.startswith("+") for x in change), sum(x.startswith("-") for x in change)


def _steps(workload: Workload, trace: Trace, target: Target, machines: Machines) -> Iterator[Shown]:
    func = nest_of(workload, target)
    yield Shown(NEST, "the tensor expressions as plain loops", show(func), "nest")
    for number, step in enumerate(trace.steps, 1):
        func = _applied(number, step, func, target)
        yield Shown(str(number), str(step), show(func), "trace")
    for each in passes_of(func, target, machines):
        func = applied(each, func, target)
        yield Shown(each.name, _caption(each), show(func))
    text = kernel_text(func, ENTRY, target)
    yield Shown(LLVM, "what LLVM makes machine code of", text.strip(), "llvm")


def _applied(number: int, step: Step, func: Func, target: Target) -> Func:
    try:
        return replay(Trace((step,)), func, target)
    except ScheduleError as refusal:
        raise refusal.at(number, str(step)) from None


def _caption(each: Pass) -> str:
    """The first line of the file that a pass has to itself, or else its name in words."""
    home = each.run.__module__
    if home.endswith(f".{each.name}"):
        words = sys.modules[home].__doc__ or ""
        return words.strip().splitlines()[0].rstrip(".")
    return each.name.replace("_", " ")
