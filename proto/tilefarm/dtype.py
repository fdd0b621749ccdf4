"""Element types: their names, widths and numpy equivalents."""

from __future__ import annotations

from enum import Enum

import numpy as np


class DType(Enum):
    """The type of one scalar. The value is the name used in text, JSON and on the wire."""

    BOOL = "bool"
    INT8 = "int8"
    UINT8 = "uint8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"

    @property
    def nbytes(self) -> int:
        """Bytes of one element in memory."""
        return self.numpy.itemsize

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The numpy type with the same values."""
        return np.dtype(self.value)

    @property
    def is_float(self) -> bool:
        return self is DType.FLOAT32

    @property
    def is_integer(self) -> bool:
        return self not in (DType.FLOAT32, DType.BOOL)

    def __str__(self) -> str:
        return self.value
