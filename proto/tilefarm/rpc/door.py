"""The door of a server: lets in who proves an identity whose role a method asks for; notes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from tilefarm.clock import Clock
from tilefarm.errors import AccessError, ForbiddenError, TilefarmError
from tilefarm.plural import plural
from tilefarm.rpc.methods import Method
from tilefarm.trust.access import CertificateName, Identity
from tilefarm.trust.revoked import RevokedCertificates
from tilefarm.trust.tokens import TokenBook, no_token
from tilefarm.watch.audit import Audit, AuditEntry
from tilefarm.watch.moderate import Moderate

_BEARER: Final = "Bearer "

LONGEST_PATH: Final = 200
"""Characters of a method that is none."""

LONGEST_SUBJECT: Final = 8192
"""Characters of what a call was about: the runs of one call."""

LONGEST_REASON: Final = 2000
"""Characters of why a call was refused."""

NEIGHBOUR: Final = Identity(user="", roles=frozenset())
"""Somebody on the same machine, who may do what harms nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knock:
    """One call as it arrives.

    Attributes:
        path: what is asked for.
        authorization: the metadata of that name.
        certificate: the caller's URI; empty if it has none, None if the server speaks no TLS.
        peer: the address of the connection.
        pem: the caller's certificate itself; empty if it has none.
    """

    path: str
    authorization: str
    certificate: str | None
    peer: str
    pem: bytes = b""


class Door:
    """Decides who may call what; whatever is not allowed by name is refused.

    Args:
        tokens: whose token is which.
        audit: gets refusals, in moderation, and what methods want to be remembered.
        clock: dates them.
        revoked: certificates that are refused.
    """

    def __init__(
        self,
        tokens: TokenBook,
        *,
        audit: Audit,
        clock: Clock,
        revoked: RevokedCertificates | None = None,
    ) -> None:
        self._tokens = tokens
        self._revoked = revoked
        self._audit = audit
        self._clock = clock
        self._strangers = Moderate(clock)
        self._others = Moderate(clock)

    def admit(self, method: Method[Any, Any] | None, knock: Knock) -> Identity:
        """Who calls, if they may; `method` is None if the server has none at that path.

        Raises:
            AccessError: nobody that is known here.
            CertificateError: somebody whose certificate was revoked.
            ForbiddenError: somebody whose role does not do that.
        """
        if method is not None and method.neighbours and knock.certificate is None:
            return NEIGHBOUR
        identity: Identity | None = None
        try:
            identity = self._identity(knock)
            allow(method, identity, knock.path)
        except TilefarmError as error:
            self._note_refusal(method, knock, identity, error.what)
            raise
        return identity

    def note(self, method: Method[Any, Any], knock: Knock, by: Identity, subject: str) -> None:
        """Remember a call that was let in."""
        self._note(method, knock, by, subject=subject, allowed=True)

    def _identity(self, knock: Knock) -> Identity:
        if self._revoked is not None and knock.pem:
            self._revoked.require_good(knock.pem)
        if not knock.authorization.startswith(_BEARER):
            raise no_token()
        holder = self._tokens.identity_of(knock.authorization.removeprefix(_BEARER))
        return holder if knock.certificate is None else certified(holder, knock.certificate)

    def _note_refusal(
        self, method: Method[Any, Any] | None, knock: Knock, identity: Identity | None, why: str
    ) -> None:
        passed_over = (self._others if identity else self._strangers).passed_over()
        if passed_over is None:
            return
        if passed_over:
            why += f" ({plural(passed_over, 'refusal')} before it are not noted)"
        self._note(method, knock, identity, allowed=False, why=why)

    def _note(
        self,
        method: Method[Any, Any] | None,
        knock: Knock,
        identity: Identity | None,
        *,
        subject: str = "",
        allowed: bool,
        why: str = "",
    ) -> None:
        self._audit(
            AuditEntry(
                at_seconds=self._clock.wall_seconds(),
                user=identity.user if identity else "",
                roles=",".join(sorted(r.value for r in identity.roles)) if identity else "",
                peer=knock.peer,
                method=method.name if method else knock.path[:LONGEST_PATH],
                subject=subject[:LONGEST_SUBJECT],
                allowed=allowed,
                why=why[-LONGEST_REASON:],
            )
        )


def certified(holder: Identity, uri: str) -> Identity:
    """The holder of a token, who also shows a certificate: both must speak of the same person.

    A farm's one secret names nobody; then the certificate alone says who calls.

    Raises:
        AccessError: the certificate names nobody, or somebody else.
    """
    try:
        named = CertificateName.of_uri(uri)
    except ValueError:
        raise AccessError(
            f"a certificate without a name of this farm ({uri or 'none'})",
            "--tls with a folder that `tilefarm pki issue` made",
        ) from None
    roles = holder.roles & {named.role}
    if not roles or holder.user not in ("", named.name):
        raise AccessError(
            f"the token is that of {holder}, the certificate that of {named}",
            "use the token and the certificate of one person",
        )
    return Identity(user=named.name, roles=roles)


def allow(method: Method[Any, Any] | None, identity: Identity, path: str) -> None:
    """Nothing if somebody's role does that.

    Raises:
        ForbiddenError: it does not, or nobody's does.
    """
    if method is None:
        raise ForbiddenError(f"{path} is no method of this server", "install the same version")
    if not method.roles & identity.roles:
        needed = " or ".join(sorted(role.value for role in method.roles))
        raise ForbiddenError(
            f"{method.name} is for the role {needed}, not for {identity}",
            f"ask who runs the farm for `tilefarm pki token --role {needed.split(' ')[0]}`",
        )
