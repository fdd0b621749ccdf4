"""A checkout of one's own in which any commit of a repository can be built, one after the other.

It is a worktree of git: the user's own files and branch stay as they are, and what a build leaves
is there for the next commit, which then takes seconds.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tilefarm.errors import DataError, OutputError
from tilefarm.printable import printable

_GIT_SECONDS: Final = 120.0
_NAME: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z._/~^@{}-]*")


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit: its whole name, and the first line of its message."""

    name: str
    title: str

    @property
    def short(self) -> str:
        return self.name[:9]

    def __str__(self) -> str:
        return f"{self.short} {self.title}"


class Checkout:
    """Where commits are built.

    Args:
        repository: any checkout of it.
        folder: where the worktree is, or is made.
        build: the command that builds a commit, run in it.
        log: the file that gets what the build says.
    """

    def __init__(self, repository: Path, folder: Path, build: Sequence[str], log: Path) -> None:
        self.folder = folder
        self._repository = repository
        self._build = tuple(build)
        self._log = log

    def commits(self, good: str, bad: str) -> tuple[Commit, ...]:
        """From the good one to the bad one, the oldest first, along first parents.

        Raises:
            DataError: it is no repository, does not know them, or one is not before the other.
        """
        first, last = self._commit(good), self._commit(bad)
        if first == last:
            raise DataError(
                f"{good} and {bad} are the same commit",
                "--good COMMIT and --bad COMMIT name two others",
            )
        try:
            self._git("merge-base", "--is-ancestor", first.name, last.name)
        except _GitError:
            raise DataError(
                f"{good} is not before {bad}", "swap them, or name two commits of one branch"
            ) from None
        between = self._git(
            "log", "--first-parent", "--reverse", "--format=%H %s", f"{first.name}..{last.name}"
        )
        return first, *(Commit(*line.split(" ", 1)) for line in between.splitlines())

    def _commit(self, name: str) -> Commit:
        plain = name.rstrip("+")
        try:
            if not _NAME.fullmatch(plain):
                raise _GitError("not the name of a commit")
            text = self._git("log", "-1", "--format=%H %s", plain, "--")
        except _GitError as error:
            raise DataError(
                f"{printable(name)!r} is no commit of {self._repository}: {error}",
                "--checkout FOLDER is a clone of tilefarm that has it; `git fetch` there",
            ) from None
        return Commit(*text.strip().split(" ", 1))

    def built(self, commit: Commit) -> str:
        """Builds a commit in the folder; why it cannot be, or "".

        Raises:
            OutputError: there can be no worktree in the folder.
        """
        try:
            if not (self.folder / ".git").exists():
                self._git("worktree", "prune")
                self._git("worktree", "add", "--detach", "--force", str(self.folder), commit.name)
            self._git("checkout", "--detach", "--force", commit.name, where=self.folder)
        except _GitError as error:
            raise OutputError(
                f"{self.folder}: no worktree of {self._repository} can be there: {error}",
                "choose another --history, or `git worktree remove --force` what is there",
            ) from None
        with self._log.open("ab") as log:
            log.write(f"\n== {commit}\n".encode())
            log.flush()
            try:
                done = subprocess.run(self._build, cwd=self.folder, stdout=log, stderr=log)
            except OSError as error:
                return f"{self._build[0]}: {error.strerror}"
        return "" if done.returncode == 0 else f"does not build, see {self._log}"

    def remove(self) -> None:
        """Takes the worktree away again; where that fails, it stays."""
        if self.folder.exists():
            try:
                self._git("worktree", "remove", "--force", str(self.folder))
            except _GitError:
                return

    def _git(self, *words: str, where: Path | None = None) -> str:
        command = ["git", "-C", str(where or self._repository), *words]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=_GIT_SECONDS
            )
        except OSError as error:
            raise _GitError(f"git: {error.strerror}") from None
        except subprocess.TimeoutExpired:
            raise _GitError(f"git takes more than {_GIT_SECONDS:g} s") from None
        if done.returncode:
            said = done.stderr.strip().splitlines()
            raise _GitError(printable(said[-1] if said else f"exit code {done.returncode}"))
        return done.stdout


class _GitError(Exception):
    """What git says instead."""
