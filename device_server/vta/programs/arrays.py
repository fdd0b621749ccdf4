"""Named arrays of an `.npz` archive, each checked before it is believed; nothing is unpickled."""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from tilefarm.closing import Closing
from tilefarm.errors import DataError
from tilefarm.plural import plural
from tilefarm.system_errors import unreadable

_MOST_NBYTES: Final = 1 << 30
_MOST_HEADER_NBYTES: Final = 4096

_HEADERS: Final[Mapping[tuple[int, int], Any]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}

_HINT: Final = "`tilefarm vta dump` writes them; device_server/vta/README.md has their fields"


class ArrayFile(Closing):
    """An open archive. Every complaint is a DataError that begins with the file and the field.

    Raises:
        DataError: there is no such file, or it is not an archive.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._archive = zipfile.ZipFile(path)
        except OSError as error:
            raise unreadable(path, error, _HINT) from None
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise DataError(
                f"{path}: is not an .npz archive, or is cut short: {error}", _HINT
            ) from None
        self._names = set(self._archive.namelist())

    def close(self) -> None:
        self._archive.close()

    def __contains__(self, field: str) -> bool:
        return f"{field}.npy" in self._names

    def refuse(self, field: str, why: str) -> DataError:
        """The error that says what is wrong with a field."""
        return DataError(f"{self.path}: field {field!r} {why}", _HINT)

    def array(self, field: str, dtype: str, shape: tuple[int | None, ...]) -> npt.NDArray[Any]:
        """The array of that name, read-only.

        Args:
            field: its name without `.npy`.
            dtype: what its elements must be; "U" is a text of any length.
            shape: what its shape must be; None stands for any extent.

        Raises:
            DataError: missing, damaged, too large, or of another type or shape.
        """
        content = self._content(field)
        stored_shape, fortran, stored = self._header(field, content)
        right_type = stored.kind == "U" if dtype == "U" else stored == np.dtype(dtype)
        if not right_type:
            raise self.refuse(field, f"holds {stored}, not {'text' if dtype == 'U' else dtype}")
        if not _fits(stored_shape, shape):
            wanted = "[" + ", ".join("n" if n is None else str(n) for n in shape) + "]"
            raise self.refuse(field, f"has shape {list(stored_shape)}, not {wanted}")
        rest = content.read()
        if len(rest) != math.prod(stored_shape) * stored.itemsize:
            raise self.refuse(
                field, f"is cut short or too long: {plural(len(rest), 'byte')} of elements"
            )
        if stored.itemsize == 0:
            return np.zeros(stored_shape, stored)
        flat = np.frombuffer(rest, stored)
        return flat.reshape(stored_shape, order="F" if fortran else "C")

    def number(self, field: str) -> int:
        """The one non-negative int64 of that name; raises as `array` does."""
        value = int(self.array(field, "int64", ())[()])
        if value < 0:
            raise self.refuse(field, f"is negative: {value}")
        return value

    def text(self, field: str) -> str:
        """The text of that name; raises as `array` does."""
        try:
            return str(self.array(field, "U", ())[()])
        except ValueError as error:
            raise self.refuse(field, f"is not a text: {error}") from None

    def _content(self, field: str) -> io.BytesIO:
        if field not in self:
            raise self.refuse(field, "is missing")
        name = f"{field}.npy"
        if self._archive.getinfo(name).file_size > _MOST_NBYTES:
            raise self.refuse(field, f"is larger than {_MOST_NBYTES} bytes")
        try:
            # One more than it claims, so that a lie about the size is seen and nothing explodes.
            with self._archive.open(name) as stored:
                return io.BytesIO(stored.read(self._archive.getinfo(name).file_size + 1))
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            OSError,
            ValueError,
            NotImplementedError,
            RuntimeError,
        ) as error:
            raise self.refuse(field, f"is damaged: {error}") from None

    def _header(
        self, field: str, content: io.BytesIO
    ) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
        try:
            version = np.lib.format.read_magic(content)
            read = _HEADERS[version]
            shape, fortran, dtype = read(content, max_header_size=_MOST_HEADER_NBYTES)
        except KeyError:
            raise self.refuse(field, "is an array of an unknown version") from None
        except Exception as error:
            # numpy parses this text with Python's own parser: any of its errors means damage.
            raise self.refuse(field, f"has a damaged header: {_line(error)}") from None
        if dtype.hasobject or any(extent < 0 for extent in shape):
            raise self.refuse(field, "holds Python objects or has no true shape")
        return shape, fortran, dtype


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(shape) == len(wanted) and all(
        w in (None, n) for n, w in zip(shape, wanted, strict=True)
    )


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
