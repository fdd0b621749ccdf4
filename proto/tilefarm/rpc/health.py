"""The standard health service of gRPC (grpc.health.v1), for probes and load balancers.

https://github.com/grpc/grpc/blob/master/doc/health-checking.md says what is asked and answered. The
empty service is the server; a tracker also answers for `device/NAME`. Boards may lack the package
that has the messages; then there is no such service.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncIterator, Callable
from enum import IntEnum
from functools import cache
from typing import Any, Final, TypeAlias

from tilefarm.errors import NoDeviceError
from tilefarm.rpc import serving
from tilefarm.rpc.codec import Codec, parsed
from tilefarm.rpc.methods import Method
from tilefarm.trust.access import CALLING_ROLES, Identity

SERVICE: Final = "grpc.health.v1.Health"
_PACKAGE: Final = "grpc_health"
_LOOK_SECONDS: Final = 1.0


class Health(IntEnum):
    """How a service is; the numbers are the protocol's."""

    UNKNOWN = 0
    SERVING = 1
    NOT_SERVING = 2
    SERVICE_UNKNOWN = 3


HealthOf: TypeAlias = Callable[[str], Health]
"""How the service of a name is; SERVICE_UNKNOWN if there is none."""


def installed() -> bool:
    """Whether the package with the messages is here."""
    return importlib.util.find_spec(_PACKAGE) is not None


@cache
def check_method() -> Method[str, Health]:
    """Ask once: a service's name in, its health out."""
    return _method("Check", answers_many=False)


@cache
def watch_method() -> Method[str, Health]:
    """Hear of every change until the deadline."""
    return _method("Watch", answers_many=True)


def health_routes(health_of: HealthOf) -> list[serving.Route[Any, Any]]:
    """The routes of a server whose health is that; none without the package."""
    if not installed():
        return []

    async def check(service: str, _by: Identity) -> Health:
        health = health_of(service)
        if health is Health.SERVICE_UNKNOWN:
            raise NoDeviceError(f"{service!r} is no service here", "the empty name is the server")
        return health

    async def watch(service: str, _by: Identity) -> AsyncIterator[Health]:
        told: Health | None = None
        while True:
            health = health_of(service)
            if health is not told:
                yield health
            told = health
            await asyncio.sleep(_LOOK_SECONDS)

    return [
        serving.unary(check_method(), check),
        serving.download(watch_method(), watch),
    ]


def _method(name: str, *, answers_many: bool) -> Method[str, Health]:
    from grpc_health.v1 import health_pb2

    request = health_pb2.HealthCheckRequest
    reply = health_pb2.HealthCheckResponse
    return Method(
        SERVICE,
        name,
        Codec(
            message=request.DESCRIPTOR.full_name,
            encode=lambda service: request(service=service).SerializeToString(),
            decode=lambda content: parsed(request, content).service,
        ),
        Codec(
            message=reply.DESCRIPTOR.full_name,
            encode=lambda health: reply(status=health.value).SerializeToString(),
            decode=lambda content: Health(parsed(reply, content).status),
        ),
        CALLING_ROLES,
        neighbours=True,
        answers_many=answers_many,
    )
