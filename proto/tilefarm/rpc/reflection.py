"""What services a server has, for tools on its machine such as grpcurl (grpc.reflection.v1alpha).

Boards may lack the package that has the messages; then there is no such service.
"""

from __future__ import annotations

import importlib.util
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final

from tilefarm.rpc import serving
from tilefarm.rpc.codec import Codec, parsed
from tilefarm.rpc.methods import Method
from tilefarm.trust.access import CALLING_ROLES, Identity

_PACKAGE: Final = "grpc_reflection"


def reflection_routes(services: Iterable[str]) -> list[serving.Route[Any, Any]]:
    """The route of a server with these services; none without the package."""
    if importlib.util.find_spec(_PACKAGE) is None:
        return []
    from grpc_reflection.v1alpha import reflection, reflection_pb2
    from grpc_reflection.v1alpha._async import ReflectionServicer

    servicer: Any = ReflectionServicer((*services, reflection.SERVICE_NAME))

    async def answers(questions: AsyncIterator[Any], _by: Identity) -> AsyncIterator[Any]:
        async for answer in servicer.ServerReflectionInfo(questions, None):
            yield answer

    return [
        serving.Route(
            Method(
                reflection.SERVICE_NAME,
                "ServerReflectionInfo",
                _messages(reflection_pb2.ServerReflectionRequest),
                _messages(reflection_pb2.ServerReflectionResponse),
                CALLING_ROLES,
                sends_many=True,
                answers_many=True,
                neighbours=True,
            ),
            answers,
        )
    ]


def _messages(kind: Any) -> Codec[Any]:
    """The codec of messages that are their own records."""
    return Codec(
        message=kind.DESCRIPTOR.full_name,
        encode=lambda message: bytes(message.SerializeToString()),
        decode=lambda content: parsed(kind, content),
    )
