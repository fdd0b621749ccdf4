"""Errors as gRPC status codes and back: one table, and the class's name beside the code.

The code says what a stranger needs to know; the name in the trailing metadata gives our own clients
the same error that the server raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

import grpc

from tilefarm import errors
from tilefarm.printable import printable, printable_lines
from tilefarm.rpc.connection_errors import connection_error

_Code = grpc.StatusCode

CODES: Final[Mapping[type[errors.TilefarmError], grpc.StatusCode]] = {
    errors.TilefarmError: _Code.INTERNAL,
    errors.UserError: _Code.INVALID_ARGUMENT,
    errors.ModelError: _Code.INVALID_ARGUMENT,
    errors.DataError: _Code.INVALID_ARGUMENT,
    errors.TargetError: _Code.INVALID_ARGUMENT,
    errors.SettingsError: _Code.INVALID_ARGUMENT,
    errors.OutputError: _Code.INVALID_ARGUMENT,
    errors.DiskError: _Code.RESOURCE_EXHAUSTED,
    errors.ScheduleError: _Code.INVALID_ARGUMENT,
    errors.NoDeviceError: _Code.NOT_FOUND,
    errors.DevicesInUseError: _Code.NOT_FOUND,
    errors.ClockError: _Code.NOT_FOUND,
    errors.FarmFault: _Code.INTERNAL,
    errors.InfraError: _Code.INTERNAL,
    errors.ProtocolError: _Code.INVALID_ARGUMENT,
    errors.ClusterLostError: _Code.INTERNAL,
    errors.AnswerError: _Code.INTERNAL,
    errors.MissingBlobError: _Code.FAILED_PRECONDITION,
    errors.CorruptBlobError: _Code.DATA_LOSS,
    errors.CapacityError: _Code.RESOURCE_EXHAUSTED,
    errors.BusyError: _Code.RESOURCE_EXHAUSTED,
    errors.SelfTestError: _Code.INTERNAL,
    errors.DeviceLostError: _Code.UNAVAILABLE,
    errors.SuspectError: _Code.UNAVAILABLE,
    errors.ImplausibleError: _Code.UNAVAILABLE,
    errors.DeviceSilentError: _Code.UNAVAILABLE,
    errors.LeaseError: _Code.ABORTED,
    errors.UnreachableError: _Code.UNAVAILABLE,
    errors.AccessError: _Code.UNAUTHENTICATED,
    # An older side knows no such error, and takes the code for a refusal that is for good.
    errors.VersionError: _Code.PERMISSION_DENIED,
    errors.ForbiddenError: _Code.PERMISSION_DENIED,
    errors.CertificateError: _Code.UNAUTHENTICATED,
}
"""A row for every error class; a subclass without one has its nearest ancestor's."""

LOST_CODES: Final = frozenset({_Code.UNAVAILABLE, _Code.DEADLINE_EXCEEDED, _Code.CANCELLED})
"""Nobody answered. An unasked CANCELLED is an overloaded channel's way to say UNAVAILABLE."""

NAME_KEY: Final = "tilefarm-error"
HINT_KEY: Final = "tilefarm-hint-bin"
RETRY_KEY: Final = "tilefarm-retry-ms"
_LONGEST_RETRY_SECONDS: Final = 60.0
_DETAILS_LENGTH: Final = 2000

# A ScheduleError has other arguments and crosses no wire; it arrives as the UserError that it is.
_BY_NAME: Final = {kind.__name__: kind for kind in CODES if kind is not errors.ScheduleError}
_BY_CODE: Final = {
    _Code.INVALID_ARGUMENT: errors.ProtocolError,
    _Code.FAILED_PRECONDITION: errors.MissingBlobError,
    _Code.DATA_LOSS: errors.CorruptBlobError,
    _Code.RESOURCE_EXHAUSTED: errors.CapacityError,
    _Code.ABORTED: errors.LeaseError,
    _Code.UNAUTHENTICATED: errors.AccessError,
    _Code.PERMISSION_DENIED: errors.ForbiddenError,
}


class RpcFailure(Protocol):
    """What sync and asyncio calls say when they fail."""

    def code(self) -> grpc.StatusCode: ...

    def details(self) -> str | None: ...

    def trailing_metadata(self) -> Iterable[tuple[str, str | bytes]] | None: ...


def code_of(error: errors.TilefarmError) -> grpc.StatusCode:
    """The status code of an error: its class's row, or its nearest ancestor's."""
    return next(CODES[kind] for kind in type(error).__mro__ if kind in CODES)


def details_of(error: errors.TilefarmError) -> str:
    """The error's first line, short enough for a header."""
    return error.what[:_DETAILS_LENGTH]


def metadata_of(error: errors.TilefarmError) -> tuple[tuple[str, str | bytes], ...]:
    """Trailing metadata that lets `error_from` give the same error."""
    name = next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _BY_NAME)
    pairs = ((NAME_KEY, name), (HINT_KEY, error.hint[:_DETAILS_LENGTH].encode()))
    if isinstance(error, errors.BusyError | errors.DeviceLostError) and error.retry_seconds:
        return (*pairs, (RETRY_KEY, f"{1000 * error.retry_seconds:.0f}"))
    return pairs


def error_from(
    failure: RpcFailure, *, peer: str, lost: type[errors.FarmFault]
) -> errors.TilefarmError:
    """The error that a failed call stands for.

    Args:
        failure: the exception that gRPC raised.
        peer: whom was asked, in words, for example "device sim0 at 127.0.0.1:4000".
        lost: the class for "nobody answers".
    """
    pairs = dict(failure.trailing_metadata() or ())
    details = printable(failure.details() or "", _DETAILS_LENGTH)
    named = _BY_NAME.get(str(pairs.get(NAME_KEY)))
    if named is errors.BusyError or (
        named and issubclass(named, errors.DeviceLostError) and RETRY_KEY in pairs
    ):
        return named(details, _text(pairs.get(HINT_KEY)), _retry_seconds(pairs.get(RETRY_KEY)))
    if named:
        return named(details, _text(pairs.get(HINT_KEY)))
    code = failure.code()
    if code in LOST_CODES:
        return connection_error(f"{code.name}: {details}", peer=peer, lost=lost)
    kind = _BY_CODE.get(code, errors.InfraError)
    return kind(f"{peer} failed the call ({code.name}: {details})")


def _retry_seconds(value: object) -> float:
    """The delay that a server asks for, within reason whatever it says."""
    digits = str(value)[:9]
    milliseconds = int(digits) if digits.isascii() and digits.isdigit() else 1000
    return min(milliseconds / 1000, _LONGEST_RETRY_SECONDS)


def _text(value: object) -> str:
    text = value.decode(errors="replace") if isinstance(value, bytes) else ""
    return printable_lines(text[:_DETAILS_LENGTH])
