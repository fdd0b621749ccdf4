"""The calling side of gRPC: channels, token and certificate, deadlines, errors of our own.

Options follow measurements on gRPC 1.8x: `keepalive_timeout_ms` alone is not honoured (the HTTP/2
ping timeout decides, grpc/grpc#39239), and an http proxy of the environment must not see the farm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeVar, cast

import grpc
import grpc.aio

from tilefarm.address import check_address
from tilefarm.errors import AnswerError, FarmFault, SettingsError, TilefarmError
from tilefarm.rpc.methods import Method
from tilefarm.rpc.status import RpcFailure, error_from
from tilefarm.rpc.timing import calling
from tilefarm.rpc.version import announcement
from tilefarm.trust.tls import Credentials, TlsFolder
from tilefarm.watch.trace_context import context_headers

Options = tuple[tuple[str, int | str], ...]

MOST_MESSAGE_NBYTES: Final = 4 << 20
"""Of one request; larger things travel in chunks."""

MOST_REPLY_NBYTES: Final = 16 << 20
"""Of one reply: a list of as many devices as a tracker takes, in as many words."""

CHUNK_NBYTES: Final = 256 << 10
"""Bytes of a blob in one message of a stream."""

CHANNEL_OPTIONS: Final[Options] = (
    ("grpc.keepalive_time_ms", 5_000),
    ("grpc.keepalive_timeout_ms", 3_000),
    ("grpc.http2.ping_timeout_ms", 3_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 200),
    # For TCP, TLS and the first frame together, which a busy machine may need seconds for. One that
    # refuses is told of at once all the same, and is asked again as the other two limits say.
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.max_receive_message_length", MOST_REPLY_NBYTES),
    ("grpc.enable_http_proxy", 0),
    # Otherwise all callers of one address in a process would share a connection, and its streams.
    ("grpc.use_local_subchannel_pool", 1),
)

SMALL_MESSAGES: Final[Options] = (("grpc.http2.bdp_probe", 0),)
"""For small messages alone: else gRPC measures the line with a ping beside nearly each of them."""

_Request = TypeVar("_Request")
_Reply = TypeVar("_Reply")

_UNIX_OPTIONS: Final[Options] = (("grpc.default_authority", "localhost"),)
"""Whom a certificate has to name on a unix socket: gRPC takes the path, which no host is."""


def authorization(token: str) -> tuple[tuple[str, str], ...]:
    """The metadata that shows a token."""
    return (("authorization", f"Bearer {token}"),)


def _options(address: str) -> Options:
    return CHANNEL_OPTIONS + (_UNIX_OPTIONS if address.startswith("unix:") else ())


def _channel_credentials(tls: TlsFolder) -> grpc.ChannelCredentials:
    found = tls.read()
    return grpc.ssl_channel_credentials(found.authority, found.key, found.certificate)


class Caller:
    """Calls one peer, as whoever the credentials prove; thread-safe.

    Every failure of a call is raised as the TilefarmError that it stands for.

    Args:
        address: `host:port` or `unix:/path`.
        credentials: what proves who calls.
        peer: the name of the other side in messages.
        lost: the error class for "nobody answers".

    Raises:
        SettingsError: the address is none, or the certificates cannot be read.
    """

    def __init__(
        self, address: str, credentials: Credentials, *, peer: str, lost: type[FarmFault]
    ) -> None:
        check_address(address)
        options = _options(address)
        if credentials.tls is None:
            self._channel = grpc.insecure_channel(address, options=options)
        else:
            proof = _channel_credentials(credentials.tls)
            self._channel = grpc.secure_channel(address, proof, options=options)
        self._metadata = authorization(credentials.token) + announcement()
        self._peer = f"{peer} at {address}"
        self._lost = lost

    def close(self) -> None:
        self._channel.close()

    def unary(
        self, method: Method[_Request, _Reply], request: _Request, *, timeout_seconds: float
    ) -> _Reply:
        """One request, one reply."""
        content = _encoded(method, request)
        answered = calling(method.name)
        try:
            one = self._channel.unary_unary(method.path, bytes, bytes)
            reply, call = one.with_call(content, timeout=timeout_seconds, metadata=self._headers)
        except grpc.RpcError as failure:
            raise self._error(failure) from None
        answered(call.trailing_metadata())
        return _decoded(method, reply, self._peer)

    def upload(
        self,
        method: Method[_Request, _Reply],
        requests: Iterable[_Request],
        *,
        timeout_seconds: float,
    ) -> _Reply:
        """Many requests, one reply."""
        answered = calling(method.name)
        try:
            many = self._channel.stream_unary(method.path, method.request.encode, bytes)
            reply, call = many.with_call(
                iter(requests), timeout=timeout_seconds, metadata=self._headers
            )
        except grpc.RpcError as failure:
            raise self._error(failure) from None
        answered(call.trailing_metadata())
        return _decoded(method, reply, self._peer)

    def download(
        self, method: Method[_Request, _Reply], request: _Request, *, timeout_seconds: float
    ) -> Iterator[_Reply]:
        """One request, many replies."""
        call = self._channel.unary_stream(method.path, bytes, bytes)
        answered = calling(method.name)
        stream = call(_encoded(method, request), timeout=timeout_seconds, metadata=self._headers)
        try:
            for reply in stream:
                yield _decoded(method, reply, self._peer)
        except grpc.RpcError as failure:
            raise self._error(failure) from None
        answered(stream.trailing_metadata())

    @property
    def _headers(self) -> tuple[tuple[str, str], ...]:
        return self._metadata + context_headers()

    def _error(self, failure: grpc.RpcError) -> TilefarmError:
        return error_from(cast(RpcFailure, failure), peer=self._peer, lost=self._lost)


class AsyncCaller:
    """As Caller, for small unary calls from an event loop."""

    def __init__(
        self, address: str, credentials: Credentials, *, peer: str, lost: type[FarmFault]
    ) -> None:
        check_address(address)
        options = _options(address) + SMALL_MESSAGES
        if credentials.tls is None:
            self._channel = grpc.aio.insecure_channel(address, options=options)
        else:
            proof = _channel_credentials(credentials.tls)
            self._channel = grpc.aio.secure_channel(address, proof, options=options)
        self._metadata = authorization(credentials.token) + announcement()
        self._peer = f"{peer} at {address}"
        self._lost = lost

    async def close(self) -> None:
        await self._channel.close(None)

    async def unary(
        self, method: Method[_Request, _Reply], request: _Request, *, timeout_seconds: float
    ) -> _Reply:
        """One request, one reply."""
        content = _encoded(method, request)
        try:
            call = self._channel.unary_unary(method.path, bytes, bytes)
            reply = await call(content, timeout=timeout_seconds, metadata=self._metadata)
        except grpc.aio.AioRpcError as failure:
            raise error_from(cast(RpcFailure, failure), peer=self._peer, lost=self._lost) from None
        return _decoded(method, reply, self._peer)


def _encoded(method: Method[_Request, Any], request: _Request) -> bytes:
    try:
        return method.request.encode(request)
    except ValueError as error:
        raise SettingsError(
            f"{method.name} cannot say this: {error}", "text in UTF-8, numbers in their range"
        ) from None


def _decoded(method: Method[_Request, _Reply], content: bytes, peer: str) -> _Reply:
    try:
        return method.reply.decode(content)
    except ValueError as error:
        raise AnswerError(f"{peer} answered {method.name} out of protocol: {error}") from None
