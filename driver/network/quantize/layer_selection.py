"""The layers that the user names for something that not every layer can do."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from tilefarm.errors import SettingsError

_MOST_NAMES: Final = 3


def named(option: str, patterns: Sequence[str], lacking: Mapping[str, str]) -> list[str]:
    """The layers that patterns name and that can do it, in the order of the patterns.

    Args:
        option: in which the patterns are, for the error.
        patterns: names of layers; `*`, `?` and `[...]` as in file names, which leave out the layers
            that cannot.
        lacking: every layer of the network by its name with the reason why it cannot; empty if it
            can.

    Raises:
        SettingsError: a name or a pattern that no layer has, or only such as cannot; all are
            listed.
    """
    reasons, found = [], []
    for pattern in patterns:
        exact = [pattern] if pattern in lacking else []
        names = exact or [name for name in lacking if fnmatchcase(name, pattern)]
        able = [name for name in names if not lacking[name]]
        if not names:
            reasons.append(f"no layer is called {pattern!r}{_near(pattern, lacking)}")
        elif not able:
            why = dict.fromkeys(lacking[name] for name in names)
            reasons.append(f"{pattern}: {', '.join(why)}")
        found += able
    if reasons:
        hint = "tilefarm explain MODEL lists the layers; * stands for any letters"
        raise SettingsError(f"{option}: {'; '.join(reasons)}", hint)
    return found


def _near(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, known, _MOST_NAMES)
    return f"; near: {', '.join(near)}" if near else ""
