"""A record's way to bytes and back, by the types of its fields.

A field of a record is the field of that name in its message: text, numbers and bytes as they are, a
digest as its 32 bytes, a member of an enum as the value whose name ends in its own, records as
messages, a tuple as a repeated field, and a pair as a message of two fields. What may be None is a
field that may be absent; one record or another is a oneof. A field that the message lacks travels
elsewhere: outputs and timelines do, as blobs.

Decoding raises ValueError on whatever is not a record: a digest of another length, an unspecified
enum, an outcome that is missing, a number that cannot be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from types import NoneType
from typing import Any, Final, Generic, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from tilefarm.digest import Digest
from tilefarm.measurement import Counters
from tilefarm.rpc.ranges import require_ranges

_M = TypeVar("_M", bound=Message)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Codec(Generic[_T]):
    """One record's way to bytes and back; `message` is the full name of its message."""

    message: str
    encode: Callable[[_T], bytes]
    decode: Callable[[bytes], _T]


def codec(kind: type[Message], record: type[_T], **names: str) -> Codec[_T]:
    """The codec between a record and the message of `kind` that carries it.

    `names` are those of the message's fields that have other names than the record's.
    """
    way = _record_way(record, kind, **names)
    return Codec(
        message=kind.DESCRIPTOR.full_name,
        encode=lambda value: bytes(way.there(value).SerializeToString()),
        decode=lambda content: way.back(parsed(kind, content)),
    )


def parsed(kind: type[_M], content: bytes) -> _M:
    """The message in these bytes.

    Raises:
        ValueError: they are none, or one of its numbers cannot be.
    """
    try:
        message = kind.FromString(content)
    except DecodeError as error:
        raise ValueError(f"not a {kind.DESCRIPTOR.full_name}: {error}") from None
    require_ranges(message)
    return message


class _Way(NamedTuple):
    """From a value to what a message holds, and back."""

    there: Callable[[Any], Any]
    back: Callable[[Any], Any]


class _FieldWay(NamedTuple):
    """From a record to the fields of a message that one of its fields sets, and back."""

    name: str
    there: Callable[[Any], dict[str, Any]]
    back: Callable[[Any], Any]


_AS_IT_IS: Final = _Way(lambda value: value, lambda value: value)
_AS_BYTES: Final = _Way(
    lambda digest: bytes.fromhex(digest.hex), lambda content: Digest(content.hex())
)


def _record_way(record: type[Any], kind: type[Message], **names: str) -> _Way:
    kinds = get_type_hints(record)
    descriptor: Any = kind.DESCRIPTOR  # Its stubs know two classes of descriptors.
    ways = [
        way
        for field in fields(record)
        if (way := _field_way(field, kinds[field.name], descriptor, names.get(field.name)))
    ]

    def there(value: Any) -> Message:
        content: dict[str, Any] = {}
        for way in ways:
            content |= way.there(getattr(value, way.name))
        return kind(**content)

    return _Way(there, lambda held: record(**{way.name: way.back(held) for way in ways}))


def _field_way(
    field: Field[Any], kind: object, descriptor: Descriptor, told: str | None
) -> _FieldWay | None:
    """The way of one field of a record; None if the message has none for it."""
    name = told or field.name
    if name in descriptor.oneofs_by_name:
        return _choice_way(field.name, kind, descriptor, name)
    place = descriptor.fields_by_name.get(name)
    if place is None:
        return None
    may_lack = NoneType in get_args(kind)
    (kind, *_) = [each for each in get_args(kind) if each is not NoneType] if may_lack else [kind]
    way = _value_way(kind, place, field.default)
    if not may_lack:
        return _FieldWay(
            field.name,
            lambda value: {name: way.there(value)},
            lambda message: way.back(getattr(message, name)),
        )

    def back(message: Message) -> Any:
        held = getattr(message, name)
        return way.back(held) if (message.HasField(name) if place.has_presence else held) else None

    return _FieldWay(
        field.name, lambda value: {} if value is None else {name: way.there(value)}, back
    )


def _choice_way(own_name: str, kind: object, descriptor: Descriptor, name: str) -> _FieldWay:
    """One record or another; the oneof has their messages in the order of the union."""
    kinds, places = get_args(kind), descriptor.oneofs_by_name[name].fields
    ways = {
        place.name: (each, _value_way(each, place, MISSING))
        for each, place in zip(kinds, places, strict=True)
    }

    def there(value: Any) -> dict[str, Any]:
        return {at: way.there(value) for at, (each, way) in ways.items() if isinstance(value, each)}

    def back(message: Message) -> Any:
        at = message.WhichOneof(name)
        if at is None:
            raise ValueError(f"{descriptor.name} without an {name}")
        return ways[at][1].back(getattr(message, at))

    return _FieldWay(own_name, there, back)


def _value_way(kind: Any, place: FieldDescriptor, default: object) -> _Way:
    """The way of a value of that type into that field."""
    if get_origin(kind) is tuple and get_args(kind)[1] is Ellipsis:
        way = _value_way(get_args(kind)[0], place, MISSING)
        return _Way(lambda values: map(way.there, values), lambda held: tuple(map(way.back, held)))
    if get_origin(kind) is tuple:
        return _pair_way(get_args(kind), _message_of(place))
    if kind is Digest:
        return _AS_BYTES
    if kind is Counters:
        return _counters_way(_message_of(place))
    if is_dataclass(kind) and isinstance(kind, type):
        return _record_way(kind, GetMessageClass(_message_of(place)))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _enum_way(kind, place, default)
    if kind not in (str, int, float, bool, bytes):
        raise TypeError(f"{place.full_name} cannot hold {kind}")
    return _AS_IT_IS


def _message_of(place: FieldDescriptor) -> Descriptor:
    if place.message_type is None:
        raise TypeError(f"{place.full_name} is no message")
    return place.message_type


def _pair_way(kinds: tuple[object, ...], descriptor: Descriptor) -> _Way:
    """A pair is a message of two fields, in their order."""
    message = GetMessageClass(descriptor)
    ways = [
        (place.name, _value_way(kind, place, MISSING))
        for kind, place in zip(kinds, descriptor.fields, strict=True)
    ]

    def there(values: tuple[Any, ...]) -> Message:
        pairs = zip(ways, values, strict=True)
        return message(**{name: way.there(value) for (name, way), value in pairs})

    return _Way(there, lambda held: tuple(way.back(getattr(held, name)) for name, way in ways))


def _counters_way(descriptor: Descriptor) -> _Way:
    """The message has a field for each of VTA's; it refuses names of other machines."""
    message, names = GetMessageClass(descriptor), [place.name for place in descriptor.fields]
    return _Way(
        lambda counters: message(**dict(counters.counts)),
        lambda held: Counters(**{name: getattr(held, name) for name in names}),
    )


def _enum_way(kind: type[Enum], place: FieldDescriptor, default: object) -> _Way:
    """Members are the values whose names end in theirs; what is unspecified is the default."""
    if place.enum_type is None:
        raise TypeError(f"{place.full_name} is no enum")
    prefix = place.enum_type.values[0].name.removesuffix("UNSPECIFIED")
    values = place.enum_type.values_by_name
    number_of = {member: values[prefix + member.name].number for member in kind}
    member_of: dict[int, Any] = {number: member for member, number in number_of.items()}
    if default is not MISSING:
        member_of[0] = default

    def back(number: int) -> Any:
        if number not in member_of:
            raise ValueError(f"no such enum value: {number}")
        return member_of[number]

    return _Way(number_of.__getitem__, back)
