"""Which history is meant, which row of it, and which night."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from tilefarm.errors import DataError, SettingsError

if TYPE_CHECKING:
    from driver.jobs.nightly.history.history import History
    from driver.jobs.nightly.records import Row

_FILE: Final = "history.sqlite"
_SHOWN: Final = 10


def opened(path: Path, *, read_only: bool) -> History:
    """The history of a folder, or in a file.

    Raises:
        SettingsError: there is none.
        OutputError: it cannot be used; see `History`.
    """
    from driver.jobs.nightly.history.history import History

    file = path / _FILE if path.is_dir() else path
    if not file.exists():
        raise SettingsError(f"{path}: no history is there", "the --history of `tilefarm nightly`")
    return History(file, read_only=read_only)


def chosen_row(history: History, name: str) -> Row:
    """The row of that name.

    Raises:
        DataError: none has it; those that there are.
    """
    rows = {str(row): row for row in history.rows()}
    if name not in rows:
        more = ", ..." if len(rows) > _SHOWN else ""
        known = ", ".join(map(repr, list(rows)[:_SHOWN])) + more
        raise DataError(f"no row {name!r} in the history", f"one of {known}" if rows else "")
    return rows[name]


def chosen_night(history: History, name: str) -> str:
    """The night of that name; the last one for "".

    Raises:
        DataError: there is none.
    """
    nights = [night.name for night in history.nights()]
    if not nights:
        raise DataError("the history has no night", "`tilefarm nightly` measures one")
    if not name:
        return nights[-1]
    found = [night for night in nights if night.startswith(name)]
    if len(found) != 1:
        raise DataError(
            f"{len(found)} nights begin with {name!r}",
            f"more of its name, as {nights[-1]}",
        )
    return found[0]
