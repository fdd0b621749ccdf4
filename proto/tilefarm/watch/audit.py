"""The audit: one line of JSON for each thing that somebody did on a server, or was refused.

A line holds who (user, roles, address), what (method and its subject), when, and whether it was
allowed; only its owner can read the file. It grows to a bound; then it becomes FILE.1, what was
that FILE.2, and so on, and the oldest one goes: who wants to keep more moves files away in time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tilefarm.errors import SettingsError
from tilefarm.watch.log import Log

MOST_AUDIT_NBYTES: Final = 64 << 20
"""Of one file: some 200,000 runs."""

MOST_OLDER_AUDITS: Final = 7
"""Files beside the one that is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One thing that was done or refused.

    Attributes:
        at_seconds: wall seconds.
        user: who; empty for a stranger, and on a farm with one secret for all.
        roles: theirs, with commas.
        peer: the address of the connection, in gRPC's words.
        method: the method's name, or the path that was asked for.
        subject: what it was done to: a device, a lease, an artifact's digest.
        allowed: whether it was.
        why: the reason of a refusal.
    """

    at_seconds: float
    user: str
    roles: str
    peer: str
    method: str
    subject: str = ""
    allowed: bool
    why: str = ""


Audit = Callable[[AuditEntry], None]
"""Takes entries."""


class AuditFile:
    """Appends entries to a file of mode 0600; says so in the log once if the disk is full.

    Raises:
        SettingsError: the file cannot be written.
    """

    def __init__(self, path: Path, log: Log) -> None:
        self._path = path
        self._log = log
        self._failing = False
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(self._opened())
        except OSError as error:
            raise SettingsError(
                f"{path}: cannot write the audit: {error.strerror}", "name a file in your folder"
            ) from None

    def __call__(self, entry: AuditEntry) -> None:
        try:
            self._append(json.dumps(asdict(entry)) + "\n")
            self._failing = False
        except OSError as error:
            if not self._failing:
                self._log("audit_fails", file=self._path, why=error.strerror)
            self._failing = True

    def _append(self, line: str) -> None:
        # Opened for each line, so that a file that was moved away to be kept is begun anew.
        content = line.encode()
        number = self._opened()
        try:
            full = os.fstat(number).st_size + len(content) > MOST_AUDIT_NBYTES
            if full:
                self._rotate()
                os.close(number)
                number = self._opened()
            os.write(number, content)
        finally:
            os.close(number)

    def _rotate(self) -> None:
        files = (self._path, *_older(self._path))
        if files[-1].exists():
            self._log("audit_forgets", file=files[-1])
        for older, newer in zip(files[:0:-1], files[-2::-1], strict=True):
            if newer.exists():
                newer.replace(older)

    def _opened(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def _older(path: Path) -> tuple[Path, ...]:
    """Where older entries are, the latest first."""
    return tuple(
        path.with_name(f"{path.name}.{number}") for number in range(1, MOST_OLDER_AUDITS + 1)
    )


class AuditLog:
    """Writes refusals to the log; for servers that keep no audit of their own."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def __call__(self, entry: AuditEntry) -> None:
        if not entry.allowed:
            self._log(
                "refused", user=entry.user, peer=entry.peer, method=entry.method, why=entry.why
            )


def read_audit(path: Path) -> Iterator[AuditEntry]:
    """The entries of a file and of older ones beside it, oldest first.

    A last line that was cut off is passed over.

    Raises:
        SettingsError: the file cannot be read, or is no audit.
    """
    for older in reversed(_older(path)):
        if older.exists():
            yield from _entries(older)
    yield from _entries(path)


def _entries(path: Path) -> Iterator[AuditEntry]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text"
        raise _no_audit(f"{path}: cannot read the audit: {reason}") from None
    for number, line in enumerate(lines[:-1], 1):
        try:
            yield AuditEntry(**json.loads(line))
        except (ValueError, TypeError):
            raise _no_audit(f"{path}: line {number} is not one of an audit") from None


def _no_audit(what: str) -> SettingsError:
    return SettingsError(what, "name a file that a server's --audit has written")
