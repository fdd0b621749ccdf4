"""How a server knows its callers and remembers what they did, read from its files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tilefarm.clock import Clock, SystemClock
from tilefarm.errors import SettingsError
from tilefarm.rpc.authentication import Authentication
from tilefarm.trust.credentials import current_tls
from tilefarm.trust.revoked import RevokedCertificates
from tilefarm.trust.tls import TlsFolder
from tilefarm.trust.tokens import SharedSecret, TokenStore, TokenTable
from tilefarm.watch.audit import AuditFile, AuditLog
from tilefarm.watch.log import Log


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """How a server knows and remembers its callers.

    Attributes:
        tokens: whose token is which.
        tls: its certificates; None on one machine.
        audit: the file of who did what; None: refusals go to the log.
        revoked: certificates that are refused; None: none is.
    """

    tokens: TokenStore
    tls: TlsFolder | None = None
    audit: Path | None = None
    revoked: RevokedCertificates | None = None

    def authentication(self, log: Log, clock: Clock) -> Authentication:
        """What lets calls in at such a server.

        Raises:
            SettingsError: the audit cannot be written.
        """
        audit = AuditFile(self.audit, log) if self.audit else AuditLog(log)
        return Authentication(self.tokens, audit=audit, clock=clock, revoked=self.revoked)


def security(
    secret: str | None,
    table: Path | None,
    *,
    tls: Path | None,
    audit: Path | None,
    revoked: Path | None = None,
) -> Security:
    """How a server knows its callers: by a table of tokens, or by one secret where there is none.

    Raises:
        SettingsError: there is neither, or a file cannot be used.
        CertificateError: the server's certificate is out of date.
    """
    clock = SystemClock()
    if table is None and secret is None:
        raise SettingsError(
            "a server needs --token-file or --tokens", "--token-file farm.token makes a secret"
        )
    book = SharedSecret(secret or "") if table is None else TokenTable(table, clock)
    if revoked is not None and tls is None:
        raise SettingsError("--revoked without --tls: there are no certificates", "--tls DIR")
    return Security(
        tokens=book,
        tls=current_tls(tls, clock),
        audit=audit,
        revoked=None if revoked is None else RevokedCertificates(revoked),
    )
