"""The three ways in which a call fails on its way, each brought about at one call of a method.

A request that is lost never arrives. A reply that is lost was given: what the call does is done. A
connection that is cut while the server works leaves it open what will be done.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final

import pytest
from kit.farm.proxy import Proxy
from tilefarm.rpc import methods
from tilefarm.rpc.caller import AsyncCaller, Caller
from tilefarm.rpc.methods import Method
from tilefarm.rpc.serving import Route

from device_server.device.servicer import DeviceServicer
from device_server.tracker.servicer import TrackerServicer


class Loss(Enum):
    """What is lost of a call."""

    REQUEST = "request"
    REPLY = "reply"
    CONNECTION = "connection"


LOOKING: Final = (
    methods.LIST_DEVICES,
    methods.LIST_REFUSED_RUNS,
    methods.GET_CAPABILITIES,
    methods.FIND_MISSING,
    methods.READ,
)
"""All methods that leave a server as it was."""

MUTATING: Final = tuple(
    method
    for method in vars(methods).values()
    if isinstance(method, Method) and method not in LOOKING
)
"""All methods that a call which is lost may leave half done."""


@dataclass(slots=True)
class Trap:
    """Spoils the next call of one method once it is armed, and no other.

    Attributes:
        sprung: set once it has.
        ended: calls of the method that a server has done with, be it in vain.
    """

    method: Method[Any, Any]
    loss: Loss
    sprung: threading.Event = field(default_factory=threading.Event)
    ended: int = 0
    _proxy: Proxy | None = None

    def set_up(self, patch: pytest.MonkeyPatch) -> None:
        """Put it between all callers and all servers that begin from now on."""
        for kind, name in ((Caller, "unary"), (Caller, "upload"), (AsyncCaller, "unary")):
            patch.setattr(kind, name, self._asking(getattr(kind, name)))
        for servicer in (TrackerServicer, DeviceServicer):
            patch.setattr(servicer, "routes", self._routing(servicer.routes))

    def arm(self, proxy: Proxy) -> None:
        """From now on the next call is spoiled, which goes through that proxy."""
        self._proxy = proxy

    def _asking(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def asked(caller: Any, method: Method[Any, Any], *args: Any, **options: Any) -> Any:
            if method is self.method and (proxy := self._springs(Loss.REQUEST)):
                proxy.truncate("up", 0)
            return call(caller, method, *args, **options)

        return asked

    def _routing(self, routes: Callable[[Any], list[Route[Any, Any]]]) -> Callable[..., Any]:
        def routed(servicer: Any) -> list[Route[Any, Any]]:
            return [self._trapped(route) for route in routes(servicer)]

        return routed

    def _trapped(self, route: Route[Any, Any]) -> Route[Any, Any]:
        if route.method is not self.method:
            return route

        async def answer(request: Any, by: Any) -> Any:
            if route.method.sends_many:
                request = self._broken_off(request)
            elif proxy := self._springs(Loss.CONNECTION):
                proxy.reset()
            try:
                return await route.answer(request, by)
            finally:
                self.ended += 1
                if proxy := self._springs(Loss.REPLY):
                    proxy.reset()

        return replace(route, answer=answer)

    async def _broken_off(self, messages: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Messages of which the first arrives."""
        async for message in messages:
            yield message
            if proxy := self._springs(Loss.CONNECTION):
                proxy.reset()

    def _springs(self, moment: Loss) -> Proxy | None:
        """The proxy that has to do something, once, if this is the moment."""
        if self.loss is not moment or self._proxy is None:
            return None
        proxy, self._proxy = self._proxy, None
        self.sprung.set()
        return proxy
