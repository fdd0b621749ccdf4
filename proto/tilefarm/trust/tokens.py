"""Tokens: one secret for a whole farm, or a table of hashed ones with a user and a role each.

A server keeps hashes only, so its table may be copied to the hosts of devices. A token is 32 random
bytes, so a plain SHA-256 of it cannot be guessed, and looking a hash up tells nothing by its time.
"""

from __future__ import annotations

import hmac
import json
import stat
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Protocol

from tilefarm.clock import Clock
from tilefarm.digest import Digest
from tilefarm.documents import read_json
from tilefarm.errors import AccessError, SettingsError
from tilefarm.trust.access import CALLING_ROLES, ROLE_NAMES, FarmRole, Identity, is_name
from tilefarm.trust.hot_reload import HotReload

_VERSION: Final = 1


class TokenStore(Protocol):
    """Knows the farm's tokens."""

    def identity_of(self, token: str) -> Identity:
        """Whose token it is.

        Raises:
            AccessError: nobody's, or it has expired.
        """
        ...


def no_token() -> AccessError:
    """The refusal of whoever shows no token, or a wrong one."""
    return AccessError(
        "no token, or none of this farm's", "--token-file with the file that its owner gave you"
    )


class SharedSecret:
    """One secret that everybody knows who may do anything here.

    Raises:
        SettingsError: it is empty.
    """

    def __init__(self, secret: str) -> None:
        if not secret:
            raise SettingsError("an empty token protects nothing", "make one with 32 random bytes")
        self._secret = secret.encode()

    def identity_of(self, token: str) -> Identity:
        if not hmac.compare_digest(token.encode(), self._secret):
            raise no_token()
        return Identity(user="", roles=CALLING_ROLES)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEntry:
    """One row of a table; `expires_at` is in wall seconds, None for never."""

    hash: Digest
    user: str
    role: FarmRole
    expires_at: float | None = None


class TokenTable:
    """The tokens of a file, read again when it changes, so that nobody restarts a server for one.

    Raises:
        SettingsError: the file cannot be used.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._clock = clock
        self._entries = HotReload(path, _by_hash, _unusable)

    def identity_of(self, token: str) -> Identity:
        entry = self._entries.contents().get(Digest.of(token.encode()))
        if entry is None:
            raise no_token()
        if entry.expires_at is not None and self._clock.wall_seconds() >= entry.expires_at:
            raise AccessError(
                f"the token of {entry.user} has expired",
                f"ask who runs the farm for"
                f" `tilefarm pki token --role {entry.role.value} --user {entry.user}`",
            )
        return Identity(user=entry.user, roles=frozenset({entry.role}))


def read_table(path: Path) -> tuple[TokenEntry, ...]:
    """The rows of a table's file.

    Raises:
        SettingsError: others may write it, or it is not a table of tokens.
    """
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o022:
            raise SettingsError(f"{path}: others can write the tokens", f"chmod 644 {path}")
        document = read_json(path)
        if document["version"] != _VERSION:
            raise ValueError(f"version {document['version']!r}")
        return tuple(map(_entry, document["tokens"]))
    except OSError as error:
        raise _unusable(path, str(error.strerror)) from None
    except (ValueError, KeyError, TypeError) as error:
        raise _unusable(path, f"not a table of tokens ({error})") from None


def table_text(entries: tuple[TokenEntry, ...]) -> str:
    """The file of a table with these rows."""
    rows = [asdict(e) | {"hash": e.hash.hex, "role": e.role.value} for e in entries]
    return json.dumps({"version": _VERSION, "tokens": rows}, indent=1) + "\n"


def _entry(row: dict[str, object]) -> TokenEntry:
    user, expires_at = row["user"], row["expires_at"]
    if not isinstance(user, str) or not is_name(user):
        raise ValueError(f"the user {user!r}")
    if expires_at is not None and not isinstance(expires_at, int | float):
        raise ValueError(f"the expiry {expires_at!r}")
    if row["role"] not in [role.value for role in CALLING_ROLES]:
        raise ValueError(f"the role {row['role']!r}, not one of {ROLE_NAMES}")
    return TokenEntry(
        hash=Digest(str(row["hash"])), user=user, role=FarmRole(row["role"]), expires_at=expires_at
    )


def _by_hash(path: Path) -> dict[Digest, TokenEntry]:
    return {entry.hash: entry for entry in read_table(path)}


def _unusable(path: Path, why: str) -> SettingsError:
    return SettingsError(
        f"{path}: cannot read the table of tokens: {why}",
        "`tilefarm pki token --tokens FILE --role ROLE --user NAME` writes one",
    )
