"""Parties of a farm with certificates: an authority in a folder, and folders that it issued."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kit.farm.in_process import TOKEN
from tilefarm.clock import SystemClock
from tilefarm.rpc.security import Security
from tilefarm.trust.access import CertificateName, FarmRole
from tilefarm.trust.revoked import RevokedCertificates
from tilefarm.trust.tls import Credentials, TlsFolder
from tilefarm.trust.tokens import SharedSecret

from driver.farm.authority import Authority
from driver.farm.revoking import revoke_certificates

DAY_SECONDS = 86400.0


class Parties:
    """Issues folders of one authority, below a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority(folder / "authority")
        self.authority.create(now_seconds=SystemClock().wall_seconds())

    def issue(
        self,
        role: FarmRole,
        name: str,
        *,
        hosts: Sequence[str] = ("127.0.0.1",),
        age_days: float = 0.0,
        out: Path | None = None,
    ) -> Path:
        """A folder whose certificate was made some days ago, to be good for one day."""
        folder = out or self.folder / name
        self.authority.issue(
            CertificateName(role=role, name=name),
            hosts,
            folder,
            now_seconds=SystemClock().wall_seconds() - age_days * DAY_SECONDS,
            days=1.0,
        )
        return folder

    def security(
        self, folder: Path, audit: Path | None = None, revoked: Path | None = None
    ) -> Security:
        """A server with the certificates of a folder, on a farm with one secret."""
        return Security(
            tokens=SharedSecret(TOKEN),
            tls=TlsFolder(folder),
            audit=audit,
            revoked=RevokedCertificates(revoked) if revoked else None,
        )

    def revoke(self, name: str, revoked: Path) -> int:
        """All certificates of somebody; how many."""
        return revoke_certificates(
            self.authority.folder, revoked, name, now_seconds=SystemClock().wall_seconds()
        )

    def credentials(self, folder: Path) -> Credentials:
        """A client with the certificates of a folder."""
        return Credentials(token=TOKEN, tls=TlsFolder(folder))
