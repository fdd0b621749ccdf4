"""8-bit RGB images of PNG files, by zlib alone (Portable Network Graphics, third edition, W3C)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.errors import DataError
from tilefarm.system_errors import unreadable

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_PIXEL_NBYTES: Final = 3
_EIGHT_BITS_RGB: Final = (8, 2, 0, 0, 0)
"""Depth, colour type, compression, filter method, and no interlacing."""
_MOST_PIXELS: Final = 1 << 26
_HINT: Final = "save it as an 8-bit RGB image without interlacing"


def read_png(path: Path) -> NDArray[np.uint8]:
    """The pixels [height, width, 3] of an image.

    Raises:
        DataError: the file cannot be read, is damaged, or is another kind of PNG.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error, "see that the folder of the zoo is complete") from None
    try:
        return _pixels(content)
    except (ValueError, struct.error, zlib.error) as error:
        raise DataError(f"{path}: {error}", _HINT) from None


def _pixels(content: bytes) -> NDArray[np.uint8]:
    """The image, or ValueError with the reason why there is none."""
    if not content.startswith(_SIGNATURE):
        raise ValueError("not a PNG file")
    chunks = list(_chunks(content))
    header = next((body for kind, body in chunks if kind == b"IHDR"), b"")
    width, height, *form = struct.unpack(">IIBBBBB", header)
    if tuple(form) != _EIGHT_BITS_RGB:
        raise ValueError("not an 8-bit RGB image without interlacing")
    if not 0 < width * height <= _MOST_PIXELS:
        raise ValueError(f"{width}x{height} pixels: not an image of this program")
    row_nbytes = 1 + _PIXEL_NBYTES * width
    packed = b"".join(body for kind, body in chunks if kind == b"IDAT")
    rows = zlib.decompressobj().decompress(packed, height * row_nbytes)
    if len(rows) != height * row_nbytes:
        raise ValueError("its pixels are cut off")
    return _unfiltered(rows, height, row_nbytes).reshape(height, width, _PIXEL_NBYTES)


def _chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Kind and body of every part of the file."""
    at = len(_SIGNATURE)
    while at < len(content):
        try:
            nbytes, kind = struct.unpack_from(">I4s", content, at)
            body = content[at + 8 : at + 8 + nbytes]
            (stated,) = struct.unpack_from(">I", content, at + 8 + nbytes)
        except struct.error:
            raise ValueError("cut off") from None
        if zlib.crc32(kind + body) != stated:
            raise ValueError("damaged: a checksum is wrong")
        yield kind, body
        at += 12 + nbytes


def _unfiltered(rows: bytes, height: int, row_nbytes: int) -> NDArray[np.uint8]:
    """Rows begin with the number of their filter; what it added to each byte is taken off."""
    image = np.zeros((height, row_nbytes - 1), np.uint8)
    above = bytearray(row_nbytes - 1)
    for y in range(height):
        number, *row = rows[y * row_nbytes : (y + 1) * row_nbytes]
        if number not in _FILTERS:
            raise ValueError(f"damaged: row {y} has the filter {number}")
        above = _FILTERS[number](bytearray(row), above)
        image[y] = above
    return image


def _plain(row: bytearray, above: bytearray) -> bytearray:
    del above
    return row


def _from_left(row: bytearray, above: bytearray) -> bytearray:
    del above
    for at in range(_PIXEL_NBYTES, len(row)):
        row[at] = (row[at] + row[at - _PIXEL_NBYTES]) & 255
    return row


def _from_above(row: bytearray, above: bytearray) -> bytearray:
    return bytearray((value + up) & 255 for value, up in zip(row, above, strict=True))


def _from_mean(row: bytearray, above: bytearray) -> bytearray:
    for at, up in enumerate(above):
        left = row[at - _PIXEL_NBYTES] if at >= _PIXEL_NBYTES else 0
        row[at] = (row[at] + (left + up) // 2) & 255
    return row


def _from_nearest(row: bytearray, above: bytearray) -> bytearray:
    """Paeth's: the neighbour that is nearest to left + above - above left; ties in that order."""
    for at, up in enumerate(above):
        inside = at >= _PIXEL_NBYTES
        left = row[at - _PIXEL_NBYTES] if inside else 0
        corner = above[at - _PIXEL_NBYTES] if inside else 0
        by_left, by_up = abs(up - corner), abs(left - corner)
        by_corner = abs(left + up - 2 * corner)
        if by_left <= by_up and by_left <= by_corner:
            nearest = left
        else:
            nearest = up if by_up <= by_corner else corner
        row[at] = (row[at] + nearest) & 255
    return row


_FILTERS: Final[Mapping[int, Callable[[bytearray, bytearray], bytearray]]] = {
    0: _plain,
    1: _from_left,
    2: _from_above,
    3: _from_mean,
    4: _from_nearest,
}
"""What undoes each filter, for the bytes of a row and those of the row above."""
