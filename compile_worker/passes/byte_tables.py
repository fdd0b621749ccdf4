"""Loads that take an entry of a table of 256 bytes, by another byte."""

from __future__ import annotations

from typing import Final

from tilefarm.dtype import DType

from compile_worker.ir.expr import INDEX, Add, Cast, Const, Expr, Load
from compile_worker.isa import Isa

ENTRIES: Final = 256

_MIDDLE: Final = 128


def index_of_entry(isa: Isa, load: Load) -> Expr | None:
    """The byte that says which entry is loaded, if there is an instruction for that.

    It is uint8, or int8 that 128 is added to.
    """
    table, (at,) = load.buffer, load.index
    if not isa.has_byte_tables or table.shape != (ENTRIES,) or table.dtype.nbytes > 1:
        return None
    match at:
        case Cast(type=dtype, value=byte) if dtype is INDEX and byte.dtype is DType.UINT8:
            return byte
        case Add(Cast(type=dtype, value=byte), Const(value)):
            is_entry = dtype is INDEX and byte.dtype is DType.INT8 and value == _MIDDLE
            return byte if is_entry else None
    return None
