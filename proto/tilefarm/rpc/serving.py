"""The answering side of gRPC: handlers from records to records, behind authentication.

A handler takes a request record and who sent it, and gives a reply record or raises a
TilefarmError; everything about gRPC (decoding, status codes, deadlines) happens here.

Who calls is asked when a call's headers are there, whatever its method: for gRPC all of them take a
stream of messages, for it answers others only once they have sent one. Messages have to follow.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeAlias, TypeVar

import grpc
import grpc.aio

from tilefarm.clock import Clock
from tilefarm.errors import CapacityError, InfraError, ProtocolError, TilefarmError
from tilefarm.rpc import status, timing
from tilefarm.rpc.authentication import NEIGHBOUR, Arrival, Authentication
from tilefarm.rpc.call_slots import CallSlots
from tilefarm.rpc.connections import Connections
from tilefarm.rpc.methods import Method
from tilefarm.rpc.version import require_understood, version_in
from tilefarm.trust.access import Identity
from tilefarm.watch.log import Level, Log
from tilefarm.watch.rate_limit import RateLimit
from tilefarm.watch.trace_context import context_of

_Request = TypeVar("_Request")
_Reply = TypeVar("_Reply")
MESSAGE_SECONDS: Final = 30.0
"""Until the first message of a call, and from one to the next: four MiB over a slow line."""

NEIGHBOUR_SECONDS: Final = 2.0
"""The same of somebody on this machine, who needs no token and sends a few bytes."""

_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

if TYPE_CHECKING:
    _Handlers = grpc.GenericRpcHandler[bytes, bytes]
else:
    _Handlers = grpc.GenericRpcHandler  # Generic for the type checker only.


@dataclass(frozen=True, slots=True)
class Route(Generic[_Request, _Reply]):
    """One method with the function that answers it.

    The function takes the request (an async iterator of requests if the method sends many) and who
    sent it, and gives the reply's awaitable (an async iterator of replies if the method answers
    many).
    """

    method: Method[_Request, _Reply]
    answer: Callable[[Any, Identity], Any]


def unary(
    method: Method[_Request, _Reply], answer: Callable[[_Request, Identity], Awaitable[_Reply]]
) -> Route[_Request, _Reply]:
    """A route for one request and one reply."""
    return Route(method, answer)


def upload(
    method: Method[_Request, _Reply],
    answer: Callable[[AsyncIterator[_Request], Identity], Awaitable[_Reply]],
) -> Route[_Request, _Reply]:
    """A route for many requests and one reply."""
    return Route(method, answer)


def download(
    method: Method[_Request, _Reply],
    answer: Callable[[_Request, Identity], AsyncIterator[_Reply]],
) -> Route[_Request, _Reply]:
    """A route for one request and many replies."""
    return Route(method, answer)


Meter: TypeAlias = Callable[[str, str, float], None]
"""Takes each call that has ended: its method, gRPC's name of how, and the seconds that it took."""


def unmetered(_method: str, _code: str, _seconds: float) -> None:
    """A meter that counts nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What all handlers of a server share.

    Attributes:
        component: the server's name, in its log and in traces.
        authentication: who may call what.
        clock: times the calls.
        log: where faults inside handlers go, and who asked for more than there is.
        places: of calls that are answered at a time.
        connections: that there may be; gets to know on which of them somebody was let in.
        meter: counts the calls.
    """

    component: str
    authentication: Authentication
    clock: Clock
    log: Log
    places: CallSlots
    connections: Connections
    meter: Meter = unmetered


class Handlers(_Handlers):
    """GRPC's handlers for some routes; every other path is refused as well."""

    def __init__(self, routes: Iterable[Route[Any, Any]], desk: Desk) -> None:
        self._desk = desk
        excesses = _Excesses(desk)
        self._rows = {route.method.path: _handler(route, desk, excesses) for route in routes}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """The handler of a path."""
        path = handler_call_details.method
        return self._rows.get(path) or _refusal(path, self._desk.authentication)


@dataclass(slots=True)
class _Call:
    """One that is being answered; a caller who goes away has cancelled it.

    Attributes:
        arrival: what authentication is shown.
    """

    context: _Context
    metadata: Mapping[str, str | bytes]
    arrival: Arrival
    timing: timing.Timing | None
    code: grpc.StatusCode = grpc.StatusCode.CANCELLED
    caller: Identity | None = None

    def by(self, caller: Identity) -> None:
        """Somebody was let in."""
        self.caller = caller
        if self.timing is not None:
            self.timing.caller = str(caller)


class _Excesses:
    """Tells the server's owner, in moderation, who asked for more than a bound allows."""

    def __init__(self, desk: Desk) -> None:
        self._log = desk.log
        self._moderate = RateLimit(desk.clock)

    def note(self, call: _Call, method: str, error: Exception) -> None:
        """A call has failed; nothing if that was for another reason."""
        if not isinstance(error, CapacityError) or call.caller is None:
            return
        passed_over = self._moderate.passed_over()
        if passed_over is not None:
            self._log(
                "over_bounds",
                level=Level.WARNING,
                method=method,
                user=call.caller.user,
                peer=call.arrival.peer,
                why=error.what,
                not_told=passed_over or 0,
            )


def _handler(route: Route[Any, Any], desk: Desk, excesses: _Excesses) -> Any:
    method, answer = route.method, route.answer

    async def one_out(_: AsyncIterator[bytes], context: _Context) -> bytes:
        with _answering(desk, method, context) as call:
            try:
                with _let_in(desk, method, call) as by:
                    reply = await answer(await _asked(desk, method, call, by), by)
                    if method.outcome is not None:
                        desk.authentication.note(method, call.arrival, by, method.outcome(reply))
                    return _well(call, method.reply.encode(reply))
            except Exception as error:
                excesses.note(call, method.name, error)
                await _abort(call, error, method.name, desk.log)

    async def many_out(_: AsyncIterator[bytes], context: _Context) -> None:
        with _answering(desk, method, context) as call:
            try:
                with _let_in(desk, method, call) as by:
                    replies = answer(await _asked(desk, method, call, by), by)
                    async for reply in replies:
                        try:
                            await context.write(method.reply.encode(reply))
                        except asyncio.CancelledError as stop:
                            await replies.athrow(stop)  # which may know why, and say it
                    _well(call, b"")
            except Exception as error:
                excesses.note(call, method.name, error)
                await _abort(call, error, method.name, desk.log)

    if method.answers_many:
        return grpc.stream_stream_rpc_method_handler(many_out)
    return grpc.stream_unary_rpc_method_handler(one_out)


@contextmanager
def _answering(desk: Desk, method: Method[Any, Any], context: _Context) -> Iterator[_Call]:
    """Time and count a call, and do it in the name of the work that its headers name."""
    began = desk.clock.seconds()
    metadata = _metadata(context)
    with timing.serving(context_of(metadata.items()), desk.component, desk.clock) as timed:
        call = _Call(context, metadata, _arrival(method.path, context, metadata), timed)
        try:
            yield call
        finally:
            desk.meter(method.name, call.code.name, desk.clock.seconds() - began)


def _well(call: _Call, content: bytes) -> bytes:
    """The answer of a call that went well, with what it took in the trailing metadata."""
    call.code = grpc.StatusCode.OK
    if call.timing is not None:
        call.context.set_trailing_metadata(call.timing.trailer)
    return content


def _refusal(path: str, authentication: Authentication) -> Any:
    async def refuse(_: AsyncIterator[bytes], context: _Context) -> NoReturn:
        try:
            authentication.admit(None, _arrival(path, context, _metadata(context)))
        except TilefarmError as error:
            await _answer_error(context, error)
        raise AssertionError("nobody is let in without a method")

    return grpc.stream_unary_rpc_method_handler(refuse)


@contextmanager
def _let_in(desk: Desk, method: Method[Any, Any], call: _Call) -> Iterator[Identity]:
    """Who calls, if they may; holds a place for the call."""
    by = desk.authentication.admit(method, call.arrival)
    call.by(by)
    if not method.neighbours:  # whose clients are not ours: they name no version
        _require_terms(call)
    if by is NEIGHBOUR:
        place = desk.places.one_for_neighbours(method.name)
    else:
        desk.connections.know(call.arrival.peer)
        place = desk.places.one_for(by.user)
    with place:
        yield by


async def _asked(desk: Desk, method: Method[Any, Any], call: _Call, by: Identity) -> Any:
    """What a handler of the method takes: a request, or an iterator of many."""
    seconds = NEIGHBOUR_SECONDS if by is NEIGHBOUR else MESSAGE_SECONDS
    if method.sends_many:
        return _requests(method, call.context, seconds)
    content = await _message(call.context, seconds)
    if content is None:
        raise ProtocolError(f"{method.name} without a message")
    request = _decoded(method, content)
    if method.subject is not None:
        desk.authentication.note(method, call.arrival, by, method.subject(request))
    return request


async def _requests(
    method: Method[_Request, Any], context: _Context, seconds: float
) -> AsyncIterator[_Request]:
    while (content := await _message(context, seconds)) is not None:
        yield _decoded(method, content)


class _Silence(Exception):
    """Nothing more comes of a call."""


async def _message(context: _Context, seconds: float) -> bytes | None:
    """The next message of a call; None if that was the last."""
    try:
        async with asyncio.timeout(seconds):
            content = await context.read()
    except TimeoutError:
        raise _Silence(f"no message came within {seconds:g} s") from None
    return content if isinstance(content, bytes) else None


def _metadata(context: _Context) -> Mapping[str, str | bytes]:
    return dict(context.invocation_metadata() or ())


def _arrival(path: str, context: _Context, metadata: Mapping[str, str | bytes]) -> Arrival:
    proofs = context.auth_context()
    pem = b"".join(proofs.get("x509_pem_cert", ()))
    uris = proofs.get("peer_spiffe_id", ()) if pem else None
    return Arrival(
        path=path,
        authorization=str(metadata.get("authorization", "")),
        certificate=None if uris is None else b"".join(uris).decode(),
        peer=context.peer(),
        pem=pem,
    )


def _decoded(method: Method[_Request, Any], content: bytes) -> _Request:
    try:
        return method.request.decode(content)
    except ValueError as error:
        raise ProtocolError(
            f"{method.name}: {error}", "install the same version of tilefarm on both sides"
        ) from None


def _require_terms(call: _Call) -> None:
    """Nothing if a call is one that this server understands, and ends some day."""
    require_understood(version_in(call.metadata.items()), who="the caller")
    if call.context.time_remaining() is None:
        raise ProtocolError("a call without a deadline")


async def _abort(call: _Call, error: Exception, name: str, log: Log) -> NoReturn:
    if isinstance(error, _Silence):
        call.code = grpc.StatusCode.UNAVAILABLE
        await call.context.abort(call.code, str(error))
    if not isinstance(error, TilefarmError):
        log(
            "fault",
            level=Level.ERROR,
            method=name,
            error=repr(error),
            trace="".join(traceback.format_exception(error)),
        )
        error = InfraError(f"{name} failed inside the server: {error!r}")
    call.code = status.code_of(error)
    await _answer_error(call.context, error)


async def _answer_error(context: _Context, error: TilefarmError) -> NoReturn:
    await context.abort(status.code_of(error), status.details_of(error), status.metadata_of(error))
    raise AssertionError("abort raises")
