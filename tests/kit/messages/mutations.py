"""Messages with something wrong in them: bytes and protobuf fields changed at random."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

_INTEGERS: Final = (
    -(1 << 63),
    -(1 << 31),
    -2,
    -1,
    0,
    1,
    2,
    7,
    1 << 16,
    1 << 31,
    1 << 40,
    1 << 62,
    1 << 64,
)
_RANGES: Final = {
    FieldDescriptor.CPPTYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, (1 << 32) - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, (1 << 64) - 1),
}
_REALS: Final = (0.0, -1.0, 1e-38, 1e38, float("inf"), float("-inf"), float("nan"))
_LONGEST_PART: Final = 40

T = TypeVar("T")
M = TypeVar("M", bound=Message)


def damaged_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    """Some bytes changed, a part cut out, or a part repeated."""
    damaged = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        start, stop = sorted(int(place) for place in rng.integers(len(damaged), size=2))
        part = slice(start, min(stop, start + _LONGEST_PART))
        match rng.integers(4):
            case 0:
                del damaged[part]
            case 1:
                damaged[start:start] = damaged[part]
            case _:
                damaged[start] = int(rng.integers(256))
    return bytes(damaged)


def damaged_fields(sound: M, words: Sequence[str], rng: np.random.Generator) -> M:
    """One to three fields, anywhere in the message, changed, removed or doubled.

    `words` is what a text may become.
    """
    damaged = type(sound)()
    damaged.CopyFrom(sound)
    for _ in range(int(rng.integers(1, 4))):
        _damage(_one_of(list(_messages(damaged)), rng), words, rng)
    return damaged


def words_of(model: onnx.ModelProto) -> list[str]:
    """Names and operators that mean something in a model, and some that do not."""
    nodes = model.graph.node
    names = {name for node in nodes for name in (*node.input, *node.output, node.op_type)}
    return ["", "?", "If", "Loop", "com.microsoft", "../../x", *sorted(names)]


def _messages(message: Message) -> Iterator[Message]:
    """The message and all within it."""
    yield message
    for field, value in message.ListFields():
        if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
            for part in value if _is_repeated(value) else [value]:
                yield from _messages(part)


def _damage(message: Message, words: Sequence[str], rng: np.random.Generator) -> None:
    if not message.ListFields():
        return
    field, values = _one_of(message.ListFields(), rng)
    is_message = field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE
    if not _is_repeated(values):
        if is_message or rng.random() < 0.2:
            message.ClearField(field.name)
        else:
            setattr(message, field.name, _another(field, words, rng))
        return
    at = int(rng.integers(len(values)))
    match rng.integers(3):
        case 0:
            del values[at]
        case 1:
            values.append(values[at])
        case _ if is_message:
            values[at].CopyFrom(_one_of(values, rng))
        case _:
            values[at] = _another(field, words, rng)


def _another(field: FieldDescriptor, words: Sequence[str], rng: np.random.Generator) -> Any:
    """Some value of the field's type."""
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_FLOAT | FieldDescriptor.CPPTYPE_DOUBLE:
            return _one_of(_REALS, rng)
        case FieldDescriptor.CPPTYPE_ENUM if field.enum_type is not None:
            return _one_of(field.enum_type.values, rng).number
        case FieldDescriptor.CPPTYPE_STRING:
            word = _one_of(words, rng)
            return word.encode() if field.type == FieldDescriptor.TYPE_BYTES else word
        case FieldDescriptor.CPPTYPE_BOOL:
            return bool(rng.integers(2))
    low, high = _RANGES[field.cpp_type]
    return min(max(_one_of(_INTEGERS, rng), low), high)


def _is_repeated(value: object) -> bool:
    return hasattr(value, "extend")


def _one_of(values: Sequence[T], rng: np.random.Generator) -> T:
    return values[int(rng.integers(len(values)))]
