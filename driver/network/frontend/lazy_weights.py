"""A model without its large weights, which stay in its file until they are wanted, one by one.

Protobuf holds a message that it reads twice, and gives each weight as one more copy. So the bytes
of large weights are not read at all at first: the file's outer structure is walked through, and
what is left of such a weight is where in the file its bytes are, as if they were external data.

Source of the numbers: https://protobuf.dev/programming-guides/encoding/ and onnx.proto.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import onnx

Content: TypeAlias = memoryview

HERE: Final = "\0"
"""The location of weights that are in the model's own file: no other file can have that name."""

_LARGE_NBYTES: Final = 1 << 16
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT: Final = 10
GRAPH: Final = 7
"""The field of a model, as those below are of a graph and of a tensor."""
INITIALIZER: Final = 5
RAW_DATA: Final = 9
_EXTERNAL: Final = (13, 14)


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a message: its number and wire type, and where it, and what is in it, begins."""

    number: int
    wire: int
    begin: int
    content: int
    end: int


def thin_model(content: Content) -> bytes:
    """The serialized model without its large weights.

    Raises:
        ValueError: these bytes are no message.
    """
    made = bytearray()
    for field in _fields(content, 0, len(content)):
        if (field.number, field.wire) == (GRAPH, _LENGTH):
            graph = _thin_graph(content, field)
            made += heading(GRAPH, len(graph)) + graph
        else:
            made += content[field.begin : field.end]
    return bytes(made)


def _thin_graph(content: Content, graph: _Field) -> bytes:
    made = bytearray()
    for field in _fields(content, graph.content, graph.end):
        large = field.end - field.content >= _LARGE_NBYTES
        if (field.number, field.wire) == (INITIALIZER, _LENGTH) and large:
            tensor = _thin_tensor(content, field)
            made += heading(INITIALIZER, len(tensor)) + tensor
        else:
            made += content[field.begin : field.end]
    return bytes(made)


def _thin_tensor(content: Content, tensor: _Field) -> bytes:
    """All but the raw data of a tensor, and where these are; all of it where they are small."""
    fields = list(_fields(content, tensor.content, tensor.end))
    raw = [field for field in fields if (field.number, field.wire) == (RAW_DATA, _LENGTH)]
    whole = content[tensor.content : tensor.end]
    if len(raw) != 1 or any(field.number in _EXTERNAL for field in fields):
        return bytes(whole)
    begin, nbytes = raw[0].content, raw[0].end - raw[0].content
    if nbytes < _LARGE_NBYTES:
        return bytes(whole)
    place = onnx.TensorProto(data_location=onnx.TensorProto.EXTERNAL)
    for key, value in (("location", HERE), ("offset", str(begin)), ("length", str(nbytes))):
        place.external_data.add(key=key, value=value)
    kept = b"".join(content[field.begin : field.end] for field in fields if field is not raw[0])
    return kept + bytes(place.SerializeToString())


def _fields(content: Content, begin: int, end: int) -> Iterator[_Field]:
    """The fields of the message between two places.

    Raises:
        ValueError: it is cut off, or none.
    """
    at = begin
    while at < end:
        tag, place = _varint(content, at, end)
        number, wire = tag >> 3, tag & 7
        if wire == _LENGTH:
            nbytes, place = _varint(content, place, end)
        elif wire == _VARINT:
            nbytes = _varint(content, place, end)[1] - place
        elif wire in (_FIXED64, _FIXED32):
            nbytes = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {wire}")
        if nbytes > end - place:
            raise ValueError("cut off")
        yield _Field(number, wire, at, place, place + nbytes)
        at = place + nbytes


def _varint(content: Content, at: int, end: int) -> tuple[int, int]:
    """A number, and where it ends."""
    value = 0
    for count, byte in enumerate(content[at : min(end, at + _LONGEST_VARINT)]):
        value |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            return value, at + count + 1
    raise ValueError("a number without an end")


def heading(number: int, nbytes: int) -> bytes:
    """What stands before the content of a field with a length."""
    made = bytearray()
    for value in (number << 3 | _LENGTH, nbytes):
        while value >= 0x80:
            made.append(value & 0x7F | 0x80)
            value >>= 7
        made.append(value)
    return bytes(made)
