"""What those of a bench's farm prove themselves with: one secret, and with TLS certificates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tilefarm.clock import Clock
from tilefarm.trust.access import CertificateName, FarmRole
from tilefarm.trust.credentials import create_token, read_token
from tilefarm.trust.tls import Credentials, TlsFolder

from driver.farm.authority import Authority

_USER: Final = "bench"
_HOSTS: Final = ("127.0.0.1", "localhost")
"""Where servers are called; a client calls a unix socket localhost."""

_DAYS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Proofs:
    """The farm's secret, and certificates that are issued as they are asked for.

    Args:
        folder: where all of that lies.
        authority: issues them; None: a farm without TLS.
        clock: dates them.
    """

    folder: Path
    authority: Authority | None
    clock: Clock

    @classmethod
    def create(cls, folder: Path, *, tls: bool, clock: Clock) -> Proofs:
        """Those of a farm that begins now.

        Raises:
            SettingsError: the folder cannot be written.
        """
        create_token(folder / "token")
        authority = Authority(folder / "authority") if tls else None
        if authority is not None:
            authority.create(now_seconds=clock.wall_seconds())
        return cls(folder, authority, clock)

    @property
    def token_file(self) -> Path:
        return self.folder / "token"

    def tls(self, role: FarmRole = FarmRole.SUBMIT, name: str = _USER) -> Path | None:
        """A folder with somebody's certificate, by default of who searches; None without TLS."""
        if self.authority is None:
            return None
        folder = self.folder / f"tls-{name}"
        if not folder.exists():
            self.authority.issue(
                CertificateName(role=role, name=name),
                _HOSTS,
                folder,
                now_seconds=self.clock.wall_seconds(),
                days=_DAYS,
            )
        return folder

    def words(self, role: FarmRole, name: str) -> tuple[str, ...]:
        """The options of a server's command."""
        tls = self.tls(role, name)
        secret = ("--token-file", str(self.token_file))
        return secret if tls is None else (*secret, "--tls", str(tls))

    def shown(self, role: FarmRole = FarmRole.SUBMIT, name: str = _USER) -> Credentials:
        """What somebody shows, by default who searches."""
        tls = self.tls(role, name)
        return Credentials(
            token=read_token(self.token_file), tls=None if tls is None else TlsFolder(tls)
        )
