"""A trail: a file that says after every step of a compile what the last step was and what it left.

When the process that compiles dies, its trail is what is known.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from compile_worker.ir.func import Func
from compile_worker.ir.printer import show
from compile_worker.lowering import LOWERING, SCHEDULED

STEPS: Final = ("nest", SCHEDULED, *(step.name for step in LOWERING), "code")
"""What a compile does, in order."""


@dataclass(frozen=True, slots=True)
class LastStep:
    """The last step of a compile that ended, and the IR it left; both empty if none did."""

    name: str = ""
    ir: str = ""

    @property
    def next(self) -> str:
        """The step that has not ended."""
        following = STEPS.index(self.name) + 1 if self.name in STEPS else 0
        return STEPS[min(following, len(STEPS) - 1)]


@dataclass(frozen=True, slots=True)
class Trail:
    """The file that a compile writes after every step; readers see it whole."""

    path: Path

    def write(self, name: str, func: Func) -> None:
        """Note a step that has ended; a compile goes on where that cannot be written."""
        draft = self.path.with_suffix(".draft")
        with contextlib.suppress(OSError):
            draft.write_text(json.dumps([name, show(func)]), encoding="utf-8")
            draft.replace(self.path)

    def read(self) -> LastStep:
        """How far the compile came."""
        try:
            name, ir = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return LastStep()
        return LastStep(name, ir)
