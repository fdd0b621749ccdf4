"""Why a model cannot be taken: everything that was found, as one error."""

from __future__ import annotations

from pathlib import Path

from tilefarm.errors import ModelError


class Reasons:
    """Gathers what is wrong with one model while the rest of it is still looked at."""

    def __init__(self) -> None:
        self._found: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, why: str, hint: str) -> None:
        """Notes one reason, and what to try against it; a reason that is known counts once."""
        self._found.setdefault(why, hint)

    def error(self, path: Path) -> ModelError:
        """All reasons in the order in which they were found."""
        hints = "; ".join(dict.fromkeys(hint for hint in self._found.values() if hint))
        if len(self._found) == 1:
            return ModelError(f"{path}: {next(iter(self._found))}", hints)
        listed = "".join(f"\n  {why}" for why in self._found)
        return ModelError(f"{path}: cannot be taken for {len(self._found)} reasons:{listed}", hints)
