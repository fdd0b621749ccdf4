"""External data: weights in files beside a model, where the model's folder confines them."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Final

import onnx

_PLACE: Final = "weights belong in the model's folder, in files of the names that the model has"
_COPY: Final = "copy or download the file with the weights again"


class ExternalDataError(ValueError):
    """A file beside a model is no good, and with it every weight that should be in there."""

    def __init__(self, location: str, why: str, remedy: str) -> None:
        super().__init__(f"external data {location!r}: {why}")
        self.remedy = remedy


def location_of(tensor: onnx.TensorProto) -> str | None:
    """The file that a weight is in, as the model names it; None: the model's own."""
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        return None
    return {entry.key: entry.value for entry in tensor.external_data}.get("location", "")


def bytes_beside(tensor: onnx.TensorProto, folder: Path) -> bytes:
    """The bytes that a weight has in a file of the model's folder.

    Raises:
        ExternalDataError: the file is not usable, or ends before them.
        ValueError: no file could hold them.
    """
    location = location_of(tensor) or ""
    file = file_beside(location, folder)
    try:
        size = file.stat().st_size
        start, length = range_of(tensor, size)
        if start + length > size:
            why = f"cut off: {length} bytes from byte {start} on, of {size}"
            raise ExternalDataError(location, why, _COPY)
        with file.open("rb") as stream:
            stream.seek(start)
            return stream.read(length)
    except OSError as error:
        raise ExternalDataError(location, str(error.strerror), _COPY) from None


def file_beside(location: str, folder: Path) -> Path:
    """The file of that name below the model's folder, links followed.

    Raises:
        ExternalDataError: it is elsewhere, not there, or not a file.
    """
    try:
        return _confined(location, folder)
    except OSError as error:
        raise ExternalDataError(location, str(error.strerror), _PLACE) from None
    except (ValueError, RuntimeError) as error:  # links that lead round in a ring
        raise ExternalDataError(location, str(error), _PLACE) from None


def _confined(location: str, folder: Path) -> Path:
    if not location:
        raise ValueError("no file is named")
    root = folder.resolve()
    file = (root / location).resolve()
    if not file.is_relative_to(root):
        raise ValueError("it lies outside the model's folder")
    if not stat.S_ISREG(file.stat().st_mode):
        raise ValueError("it is not a file")
    return file


def range_of(tensor: onnx.TensorProto, size: int) -> tuple[int, int]:
    """First byte and number of bytes, in a file of that size."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    try:
        start = int(entries.get("offset", "0"))
        length = int(entries.get("length", max(0, size - start)))
        if start < 0 or length < 0:
            raise ValueError(f"{length} bytes from byte {start} on are no place")
    except ValueError as error:
        raise ValueError(f"external data {entries['location']!r}: {error}") from None
    return start, length
