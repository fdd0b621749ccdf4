"""The answering side of gRPC: handlers from records to records, the token gate, a server's life.

A handler takes a request record and gives a reply record or raises a TilefarmError; everything
about gRPC (decoding, status codes, deadlines) happens here.
"""

from __future__ import annotations

import hmac
import ipaddress
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeAlias, TypeVar, cast

import grpc
import grpc.aio

from tilefarm import status
from tilefarm.address import check_address
from tilefarm.errors import AccessError, InfraError, ProtocolError, SettingsError, TilefarmError
from tilefarm.log import Log
from tilefarm.methods import Method
from tilefarm.rpc import MESSAGE_NBYTES, Options, authorization

SERVER_OPTIONS: Final[Options] = (
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.ping_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.max_concurrent_streams", 128),
    ("grpc.max_receive_message_length", MESSAGE_NBYTES),
    # Two servers on one port would share its connections silently.
    ("grpc.so_reuseport", 0),
)
_CONCURRENT_RPCS: Final = 256
_STOP_GRACE_SECONDS: Final = 1.0

_Request = TypeVar("_Request")
_Reply = TypeVar("_Reply")
_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

if TYPE_CHECKING:
    _Interceptor = grpc.aio.ServerInterceptor[bytes, bytes]
else:
    _Interceptor = grpc.aio.ServerInterceptor  # Generic for the type checker only.


@dataclass(frozen=True, slots=True)
class Route(Generic[_Request, _Reply]):
    """One method with the function that answers it.

    The function takes the request (an async iterator of requests if the method sends many) and
    gives the reply's awaitable (an async iterator of replies if the method answers many).
    """

    method: Method[_Request, _Reply]
    answer: Callable[[Any], Any]


def unary(
    method: Method[_Request, _Reply], answer: Callable[[_Request], Awaitable[_Reply]]
) -> Route[_Request, _Reply]:
    """A route for one request and one reply."""
    return Route(method, answer)


def upload(
    method: Method[_Request, _Reply],
    answer: Callable[[AsyncIterator[_Request]], Awaitable[_Reply]],
) -> Route[_Request, _Reply]:
    """A route for many requests and one reply."""
    return Route(method, answer)


def download(
    method: Method[_Request, _Reply], answer: Callable[[_Request], AsyncIterator[_Reply]]
) -> Route[_Request, _Reply]:
    """A route for one request and many replies."""
    return Route(method, answer)


def handlers(routes: Iterable[Route[Any, Any]], log: Log) -> list[grpc.GenericRpcHandler[Any, Any]]:
    """GRPC's handlers for these routes."""
    services: dict[str, dict[str, Any]] = {}
    for route in routes:
        method = route.method
        services.setdefault(method.service, {})[method.name] = _handler(route, log)
    return [
        grpc.method_handlers_generic_handler(service, rows) for service, rows in services.items()
    ]


def _handler(route: Route[Any, Any], log: Log) -> Any:
    method, answer = route.method, route.answer

    async def one(content: bytes, context: _Context) -> bytes:
        try:
            _require_deadline(context)
            return method.reply.encode(await answer(_decoded(method, content)))
        except Exception as error:
            await _abort(context, error, method.name, log)

    async def many_in(contents: AsyncIterator[bytes], context: _Context) -> bytes:
        try:
            _require_deadline(context)
            requests = (_decoded(method, content) async for content in contents)
            return method.reply.encode(await answer(requests))
        except Exception as error:
            await _abort(context, error, method.name, log)

    async def many_out(content: bytes, context: _Context) -> AsyncIterator[bytes]:
        try:
            _require_deadline(context)
            async for reply in answer(_decoded(method, content)):
                yield method.reply.encode(reply)
        except Exception as error:
            await _abort(context, error, method.name, log)

    if method.sends_many:
        return grpc.stream_unary_rpc_method_handler(many_in)
    if method.answers_many:
        return grpc.unary_stream_rpc_method_handler(many_out)
    return grpc.unary_unary_rpc_method_handler(one)


def _decoded(method: Method[_Request, Any], content: bytes) -> _Request:
    try:
        return method.request.decode(content)
    except ValueError as error:
        raise ProtocolError(f"{method.name}: {error}") from None


def _require_deadline(context: _Context) -> None:
    if context.time_remaining() is None:
        raise ProtocolError("a call without a deadline")


async def _abort(context: _Context, error: Exception, name: str, log: Log) -> NoReturn:
    if not isinstance(error, TilefarmError):
        log(
            "fault",
            method=name,
            error=repr(error),
            trace="".join(traceback.format_exception(error)),
        )
        error = InfraError(f"{name} failed inside the server: {error!r}")
    await context.abort(status.code_of(error), status.details_of(error), status.metadata_of(error))
    raise AssertionError("abort raises")


class TokenGate(_Interceptor):
    """Lets calls through that know the token; answers UNAUTHENTICATED to all others."""

    def __init__(self, token: str) -> None:
        self._expected = authorization(token)[0][1].encode()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        metadata = cast(
            "Iterable[tuple[str, str | bytes]]", handler_call_details.invocation_metadata
        )
        given = next((value for key, value in metadata if key == "authorization"), "")
        given_bytes = given.encode() if isinstance(given, str) else given
        if hmac.compare_digest(given_bytes, self._expected):
            return await continuation(handler_call_details)
        return grpc.unary_unary_rpc_method_handler(_refuse)


async def _refuse(_: bytes, context: _Context) -> NoReturn:
    error = AccessError("no token, or not this farm's", "give the token of the tracker's farm")
    await context.abort(status.code_of(error), status.details_of(error), status.metadata_of(error))
    raise AssertionError("abort raises")


async def start(
    routes: Iterable[Route[Any, Any]], *, listen: str, token: str, log: Log
) -> tuple[grpc.aio.Server, str]:
    """A running server and the address that it has got.

    Args:
        routes: what it answers.
        listen: `host:port` on loopback (port 0 for any free one) or `unix:/path` (made 0600).
        token: the farm's shared secret.
        log: where faults inside handlers go.

    Raises:
        SettingsError: the address is not on loopback, not an address, or taken.
    """
    require_local(listen)
    if not token:
        raise SettingsError("an empty token protects nothing", "make one with 32 random bytes")
    server = grpc.aio.server(
        interceptors=[TokenGate(token)],
        options=SERVER_OPTIONS,
        maximum_concurrent_rpcs=_CONCURRENT_RPCS,
    )
    server.add_generic_rpc_handlers(tuple(handlers(routes, log)))
    address = _bind(server, listen)
    await server.start()
    return server, address


def _bind(server: grpc.aio.Server, listen: str) -> str:
    try:
        port = server.add_insecure_port(listen)
    except RuntimeError:
        port = 0
    if port == 0:
        raise SettingsError(f"cannot listen on {listen}: not an address, or taken", "port 0")
    if listen.startswith("unix:"):
        Path(listen.removeprefix("unix:")).chmod(0o600)
        return listen
    return f"{listen.rpartition(':')[0]}:{port}"


def require_local(listen: str) -> None:
    """Refuses to listen where strangers are: there is no TLS yet, and a token alone is readable.

    Raises:
        SettingsError: the address is none, or neither on loopback nor a unix socket.
    """
    if listen.startswith("unix:"):
        return
    check_address(listen, free_port=True)
    host = listen.rpartition(":")[0]
    if host == "localhost" or _is_loopback(host.strip("[]")):
        return
    raise SettingsError(
        f"{listen} is not on loopback, and without TLS (which is not there yet) anyone on the"
        " network could read the token and run code",
        "listen on 127.0.0.1 and reach it through an SSH tunnel",
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def stop(server: grpc.aio.Server) -> None:
    """Ends a server; calls in progress get a moment."""
    await server.stop(_STOP_GRACE_SECONDS)
