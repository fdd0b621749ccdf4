"""Tokens of a farm's table: granting one with its role, and taking all of a user back."""

from __future__ import annotations

from pathlib import Path

from tilefarm.digest import Digest
from tilefarm.trust.access import FarmRole
from tilefarm.trust.credentials import create_token
from tilefarm.trust.secret_file import make_folder
from tilefarm.trust.tokens import TokenEntry, read_table, table_text

from driver.atomic_write import write_atomically


def grant(
    table: Path, out: Path, *, user: str, role: FarmRole, expires_at: float | None = None
) -> None:
    """A fresh token in a file of its own, and its hash in a table, which is made if there is none.

    Raises:
        SettingsError: one of the files cannot be used.
        OutputError: the table cannot be written.
    """
    entries = read_table(table) if table.exists() else ()
    for path in (table, out):
        make_folder(path.parent)
    token = create_token(out)
    hash = Digest.of(token.encode())
    entry = TokenEntry(hash=hash, user=user, role=role, expires_at=expires_at)
    write_atomically(table, table_text((*entries, entry)).encode())


def revoke(table: Path, user: str) -> int:
    """Take all tokens of a user out of a table; how many there were.

    Raises:
        SettingsError: the table cannot be used.
        OutputError: it cannot be written.
    """
    entries = read_table(table)
    kept = tuple(entry for entry in entries if entry.user != user)
    write_atomically(table, table_text(kept).encode())
    return len(entries) - len(kept)
