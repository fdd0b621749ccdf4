"""Element types: their names and widths. A name is also what numpy calls the type."""

from __future__ import annotations

from enum import Enum
from typing import Final


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
        return _NBYTES[self]

    @property
    def is_float(self) -> bool:
        return self is DType.FLOAT32

    @property
    def is_integer(self) -> bool:
        return self not in (DType.FLOAT32, DType.BOOL)

    def __str__(self) -> str:
        return self.value


_NBYTES: Final = {
    DType.BOOL: 1,
    DType.INT8: 1,
    DType.UINT8: 1,
    DType.INT16: 2,
    DType.INT32: 4,
    DType.INT64: 8,
    DType.FLOAT32: 4,
}
