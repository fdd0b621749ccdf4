"""What is wrong with a script, pointing at its source."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from tilefarm.errors import TilefarmError


class ScriptError(TilefarmError):
    """A script does what it may not: file and line, why, the line itself, and what is allowed."""


@dataclass(frozen=True, slots=True)
class ScriptSource:
    """Where a script's function is written: file, number of its first line, its lines."""

    file: str
    first: int
    lines: tuple[str, ...]

    def error(self, at: ast.AST, why: str, legal: str) -> ScriptError:
        """The error that something at a place of the syntax tree is."""
        line = int(getattr(at, "lineno", 1))
        text = self.lines[line - 1].strip() if line <= len(self.lines) else ""
        place = f"{Path(self.file).name}:{self.first + line - 1}"
        return ScriptError(f"{place}: {why}\n    {text}", legal)
