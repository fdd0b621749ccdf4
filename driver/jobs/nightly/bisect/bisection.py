"""The bisection as it goes on: a commit after the other, each measurement kept as it comes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from tilefarm.errors import OutputError
from tilefarm.system_errors import unwritable

from driver.jobs.nightly.bisect.checkout import Commit
from driver.jobs.nightly.bisect.commit_search import CommitSearch

SCHEMA: Final = 1


class MeasuredCommits:
    """What was measured of commits, in a file to which each line is added as it is known.

    Args:
        path: the file; a line that a kill has cut off is as if it had never been.
        about: what is measured, and by which it is known; a file about something else is refused.
    """

    def __init__(self, path: Path, about: str) -> None:
        self._path = path
        self._lines = list[tuple[str, float | str]]()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            whole = path.read_bytes() if path.exists() else b""
            self._read(whole[: whole.rfind(b"\n") + 1], about)
            if not whole.endswith(b"\n"):
                path.write_bytes(whole[: whole.rfind(b"\n") + 1])
                if not self._lines and not path.stat().st_size:
                    self._add({"schema": SCHEMA, "about": about})
        except OSError as error:
            raise unwritable(path, error, "choose another --history") from None

    def _read(self, whole: bytes, about: str) -> None:
        try:
            documents: list[dict[str, Any]] = [json.loads(line) for line in whole.splitlines()]
            for document in documents[:1]:
                if document["schema"] != SCHEMA or document["about"] != about:
                    raise OutputError(
                        f"{self._path} is of another bisection: {document['about']}",
                        "--again begins anew",
                    )
            self._lines = [(line["commit"], line["said"]) for line in documents[1:]]
        except (ValueError, KeyError, TypeError):
            raise OutputError(
                f"{self._path} is no record of a bisection", "--again begins anew"
            ) from None

    def add(self, commit: Commit, said: float | str) -> None:
        """Keeps a time, or why there is none."""
        self._lines.append((commit.name, said))
        try:
            self._add({"commit": commit.name, "said": said})
        except OSError as error:
            raise unwritable(self._path, error, "make room; the same command continues") from None

    def _add(self, document: dict[str, Any]) -> None:
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(document) + "\n")

    def known(self, commits: Sequence[Commit], spread: float) -> CommitSearch:
        """The search with everything that the file has of these commits."""
        numbers = {commit.name: at for at, commit in enumerate(commits)}
        search = CommitSearch(count=len(commits), spread=spread)
        for name, said in self._lines:
            at = numbers.get(name)
            if at is not None:
                is_time = not isinstance(said, str)
                search = search.measured(at, float(said)) if is_time else search.without(at)
        return search


def bisected(
    commits: Sequence[Commit],
    spread: float,
    kept: MeasuredCommits,
    measure: Callable[[Commit], float | str],
    say: Callable[[str], None],
) -> CommitSearch:
    """Measures until the commit is found, or nothing more can be said.

    Args:
        spread: see `CommitSearch`.
        kept: what is known already, and gets the rest.
        measure: cycles or seconds of a commit, or why there are none.
        say: told what is measured, a line each.
    """
    search = kept.known(commits, spread)
    while (at := search.next()) is not None:
        left = sum(chance > 0.001 for chance in search.likely())
        say(f"{commits[at]}: one of {left} that may be it" if search.levels else f"{commits[at]}")
        said = measure(commits[at])
        kept.add(commits[at], said)
        if isinstance(said, str):
            say(f"  cannot be measured: {said}")
            search = search.without(at)
        else:
            say(f"  {said:.6g}")
            search = search.measured(at, said)
    return search
