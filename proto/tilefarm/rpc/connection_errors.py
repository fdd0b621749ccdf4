"""Why a connection failed: what gRPC's words on it mean, and what to try.

The words are those of gRPC 1.8x and its BoringSSL; a test makes each of them happen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tilefarm.errors import CertificateError, DeviceLostError, DeviceSilentError, FarmFault


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trouble:
    """What gRPC's words on a connection mean.

    `kind` is None if trying again may help; `gone` tells that there is nobody who could answer.
    """

    words: tuple[str, ...]
    what: str
    hint: str
    kind: type[FarmFault] | None = None
    gone: bool = False


_TROUBLES: Final = (
    _Trouble(
        words=("certificate has expired",),
        what="its certificate has expired",
        hint="`tilefarm pki rotate` the folder that it was started with",
        kind=CertificateError,
    ),
    _Trouble(
        words=("certificate is not yet valid",),
        what="its certificate is not valid yet",
        hint="set the clocks of both machines right",
        kind=CertificateError,
    ),
    _Trouble(
        words=("CERTIFICATE_VERIFY_FAILED", "purpose"),
        what="its certificate is not that of a server",
        hint="`tilefarm pki issue --role tracker` or `--role device` makes one",
        kind=CertificateError,
    ),
    _Trouble(
        words=("CERTIFICATE_VERIFY_FAILED",),
        what="its certificate was not issued by the farm of --tls",
        hint="use the folder that this farm's `tilefarm pki issue` made",
        kind=CertificateError,
    ),
    _Trouble(
        words=("certificate signature failure",),
        what="its certificate was not issued by the farm of --tls",
        hint="use the folder that this farm's `tilefarm pki issue` made",
        kind=CertificateError,
    ),
    _Trouble(
        words=("Hostname Verification Check failed",),
        what="its certificate is for other host names",
        hint="`tilefarm pki show` lists them; `tilefarm pki issue --host NAME` adds one",
        kind=CertificateError,
    ),
    _Trouble(
        words=("WRONG_VERSION_NUMBER",),
        what="it does not speak TLS",
        hint="start it with --tls, or leave --tls away here",
        kind=CertificateError,
    ),
    _Trouble(
        words=("failed to connect", "Socket closed"),
        what="it closes the connection before a call",
        hint="if it speaks TLS, give --tls; if you do, `tilefarm pki show` says whether your"
        " certificate has expired or is of another farm",
    ),
    _Trouble(
        words=("Connection refused",),
        what="nobody listens there",
        hint="start it, or check its address",
        gone=True,
    ),
    _Trouble(
        words=("No such file or directory",),
        what="there is no such socket",
        hint="start it, or check its address",
        gone=True,
    ),
    _Trouble(
        words=("errors resolving",),
        what="its host name is unknown",
        hint="check the name, or use an address",
    ),
    _Trouble(
        words=("DEADLINE_EXCEEDED",),
        what="the time for an answer is over",
        hint="check that it runs and can be reached",
    ),
)

_GONE: Final[dict[type[FarmFault], type[FarmFault]]] = {DeviceSilentError: DeviceLostError}
"""What the error of somebody silent becomes where nobody is."""


def connection_error(words: str, *, peer: str, lost: type[FarmFault]) -> FarmFault:
    """The error of a call that nobody answered.

    Args:
        words: gRPC's status and details.
        peer: whom was asked, in words.
        lost: the class where trying again may help.
    """
    for trouble in _TROUBLES:
        if all(word in words for word in trouble.words):
            kind = trouble.kind or (_GONE.get(lost, lost) if trouble.gone else lost)
            return kind(f"{peer} does not answer: {trouble.what}", trouble.hint)
    return lost(f"{peer} does not answer ({words})", "check that it runs and can be reached")
