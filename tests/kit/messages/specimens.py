"""One message of every kind with each of its fields set, made from the schemas alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Final

from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from tilefarm.measurement import Counters
from tilefarm.rpc import methods, wire
from tilefarm.rpc.codec import Codec
from tilefarm.rpc.methods import Method
from tilefarm.v1 import tracker_pb2

_DIGEST_NBYTES: Final = 32


def codecs() -> dict[str, Codec[Any]]:
    """Every codec of a request or a reply by its name in `tilefarm.rpc.wire`."""
    said = {
        id(codec)
        for method in vars(methods).values()
        if isinstance(method, Method)
        for codec in (method.request, method.reply)
    }
    return {name: value for name, value in vars(wire).items() if id(value) in said}


def blank(name: str) -> Message:
    """An empty message of a full name."""
    return message_factory.GetMessageClass(_descriptor(name))()


def filled(name: str) -> Iterator[Message]:
    """Messages of a full name with every field set; several if it is one thing or another."""
    descriptor = _descriptor(name)
    alternatives = max((len(oneof.fields) for oneof in descriptor.oneofs), default=1)
    for choice in range(alternatives):
        yield _filled(descriptor, choice)


def document(record: object) -> Any:
    """A record as plain JSON values: digests and bytes in hexadecimal, enums by their value."""
    if isinstance(record, Counters):
        return dict(record.counts)
    if is_dataclass(record) and not isinstance(record, type):
        return {field.name: document(getattr(record, field.name)) for field in fields(record)}
    match record:
        case dict():
            return {str(key): document(value) for key, value in record.items()}
        case list() | tuple() | set() | frozenset():
            return [document(value) for value in record]
        case bytes():
            return record.hex()
        case Enum():
            return record.value
        case _:
            return record


def _descriptor(name: str) -> Descriptor:
    return tracker_pb2.DESCRIPTOR.pool.FindMessageTypeByName(name)


def _filled(descriptor: Descriptor, choice: int) -> Message:
    message = blank(descriptor.full_name)
    for field in descriptor.fields:
        oneof = field.containing_oneof
        if oneof is not None and oneof.fields[choice % len(oneof.fields)] is not field:
            continue
        _fill(message, field)
    return message


def _fill(message: Message, field: FieldDescriptor) -> None:
    if field.message_type is not None:
        part = _filled(field.message_type, 0)
        place = getattr(message, field.name)
        (place.add() if field.is_repeated else place).CopyFrom(part)
    elif field.is_repeated:
        getattr(message, field.name).append(_value(field))
    else:
        setattr(message, field.name, _value(field))


def _value(field: FieldDescriptor) -> Any:
    """Some value of the field's type that is not its default, and tells it from its neighbours."""
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_BOOL:
            return True
        case FieldDescriptor.CPPTYPE_DOUBLE | FieldDescriptor.CPPTYPE_FLOAT:
            return field.number + 0.5
        case FieldDescriptor.CPPTYPE_ENUM:
            assert field.enum_type is not None
            return field.enum_type.values[-1].number
        case FieldDescriptor.CPPTYPE_STRING if field.type == FieldDescriptor.TYPE_BYTES:
            return bytes([field.number]) * _DIGEST_NBYTES  # Most are digests; all may be this long.
        case FieldDescriptor.CPPTYPE_STRING:
            return field.name
        case _:
            return 100 + field.number
