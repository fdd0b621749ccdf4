"""No number of any message that cannot be gets past the wire."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from tilefarm.rpc.codec import parsed
from tilefarm.rpc.ranges import LONGEST_SECONDS, MOST, ORDINALS
from tilefarm.v1 import device_pb2, tracker_pb2

EXTREMES: Final[dict[int, tuple[float, ...]]] = {
    FieldDescriptor.TYPE_DOUBLE: (math.nan, math.inf, -math.inf, -1e-9, 1.1e9, 1e308),
    FieldDescriptor.TYPE_UINT64: (MOST + 1, 2**63 - 1, 2**63, 2**64 - 1),
}
FITTING: Final[dict[int, tuple[float, ...]]] = {
    FieldDescriptor.TYPE_DOUBLE: (0.0, 1e-9, LONGEST_SECONDS),
    FieldDescriptor.TYPE_UINT64: (0, 1, MOST),
}
BOUNDED_BY_TYPE: Final = frozenset(
    {
        FieldDescriptor.TYPE_BOOL,
        FieldDescriptor.TYPE_BYTES,
        FieldDescriptor.TYPE_ENUM,
        FieldDescriptor.TYPE_INT32,
        FieldDescriptor.TYPE_MESSAGE,
        FieldDescriptor.TYPE_STRING,
        FieldDescriptor.TYPE_UINT32,
    }
)
"""What holds no infinities, and nothing that a float or a database cannot hold."""


Kind = type[Message]


def fields() -> Iterator[tuple[Kind, FieldDescriptor]]:
    for file in (device_pb2.DESCRIPTOR, tracker_pb2.DESCRIPTOR):
        for message in file.message_types_by_name.values():
            for field in message.fields:
                yield GetMessageClass(message), field


NUMBERS: Final = [(k, f) for k, f in fields() if f.type in EXTREMES and f.name not in ORDINALS]


def with_number(kind: Kind, field: FieldDescriptor, value: float) -> bytes:
    message: Any = kind()
    if field.is_repeated:
        getattr(message, field.name).extend([0, value])
    else:
        setattr(message, field.name, value)
    return bytes(message.SerializeToString())


def test_every_field_is_of_a_kind_that_has_a_rule() -> None:
    assert {field.type for _, field in fields()} <= BOUNDED_BY_TYPE | EXTREMES.keys()
    assert len(NUMBERS) > 40


@pytest.mark.parametrize(("kind", "field"), NUMBERS, ids=lambda x: getattr(x, "full_name", ""))
def test_a_number_that_cannot_be_is_no_record(kind: Kind, field: FieldDescriptor) -> None:
    for value in EXTREMES[field.type]:
        with pytest.raises(ValueError, match=rf"{kind.DESCRIPTOR.name}\.{field.name} is "):
            parsed(kind, with_number(kind, field, value))
    for value in FITTING[field.type]:
        parsed(kind, with_number(kind, field, value))


def test_messages_within_messages_are_looked_at_as_well() -> None:
    reply = device_pb2.RunBatchResponse(
        runs=[
            device_pb2.RunResponse(),
            device_pb2.RunResponse(
                measurement=device_pb2.Measurement(
                    profile=[device_pb2.CallTime(cycles=1), device_pb2.CallTime(cycles=2**63)]
                )
            ),
        ]
    )
    with pytest.raises(ValueError, match=r"CallTime\.cycles is 9223372036854775808"):
        parsed(device_pb2.RunBatchResponse, reply.SerializeToString())


@pytest.mark.parametrize("name", sorted(ORDINALS))
def test_ordinals_are_any_number_that_travels(name: str) -> None:
    for kind, field in fields():
        if field.name == name:
            parsed(kind, with_number(kind, field, 2**64 - 1))
