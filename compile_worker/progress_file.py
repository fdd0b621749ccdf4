"""A file that says after every step of a compile what the last step was and what it left.

When the process that compiles dies, this is what is known.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tilefarm.target import Target

from compile_worker.ir.func import Func
from compile_worker.ir.printer import show
from compile_worker.machine import machine_of
from compile_worker.machines.known import MACHINES
from compile_worker.pipeline import SCHEDULED

NEST: Final = "nest"
"""What a compile begins with."""

CODE: Final = "code"
"""What a compile does behind the last pass."""


def steps_of(func: Func, target: Target) -> tuple[str, ...]:
    """What a compile of a scheduled function does, in order."""
    passes = machine_of(func, target, MACHINES).passes
    return (NEST, SCHEDULED, *(step.name for step in passes), CODE)


@dataclass(frozen=True, slots=True)
class LastStep:
    """The last step of a compile that ended, and the IR it left; both empty if none did.

    `next` is the step that has not ended; it is not kept with the others.
    """

    name: str = ""
    ir: str = ""
    next: str = field(default=NEST, compare=False)


@dataclass(frozen=True, slots=True)
class ProgressFile:
    """The file that a compile writes after every step; readers see it whole."""

    path: Path

    def write(self, target: Target, name: str, func: Func) -> None:
        """Note a step that has ended; a compile goes on where that cannot be written."""
        steps = (NEST, SCHEDULED) if name == NEST else steps_of(func, target)
        following = steps[steps.index(name) + 1] if name in steps[:-1] else CODE
        draft = self.path.with_suffix(".draft")
        with contextlib.suppress(OSError):
            draft.write_text(json.dumps([name, show(func), following]), encoding="utf-8")
            draft.replace(self.path)

    def read(self) -> LastStep:
        """How far the compile came."""
        try:
            name, ir, following = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return LastStep()
        return LastStep(name, ir, following)
