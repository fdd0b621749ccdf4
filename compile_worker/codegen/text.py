"""The text of one LLVM function under construction: fresh values, labels, loops and branches."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tilefarm.dtype import DType

VALUE_TYPES: Final = {
    DType.BOOL: "i1",
    DType.INT8: "i8",
    DType.UINT8: "i8",
    DType.INT16: "i16",
    DType.INT32: "i32",
    DType.INT64: "i64",
    DType.FLOAT32: "float",
}

MEMORY_TYPES: Final = {**VALUE_TYPES, DType.BOOL: "i8"}


class FunctionText:
    """Lines of one function, in order. Values are named %v1, %v2, …; blocks L1, L2, …"""

    def __init__(self, name: str) -> None:
        self.name = name
        self.block = "entry"
        self._prelude: list[str] = []
        self._lines: list[str] = []
        self._values = 0
        self._labels = 0

    def op(self, instruction: str) -> str:
        """Append an instruction with a result; gives the result's name."""
        self._values += 1
        result = f"%v{self._values}"
        self._lines.append(f"  {result} = {instruction}")
        return result

    def do(self, instruction: str) -> None:
        """Append an instruction without a result."""
        self._lines.append(f"  {instruction}")

    def in_entry(self, instruction: str) -> str:
        """As `op`, but before everything else: the place for local storage."""
        self._values += 1
        result = f"%v{self._values}"
        self._prelude.append(f"  {result} = {instruction}")
        return result

    def fresh_label(self) -> str:
        self._labels += 1
        return f"L{self._labels}"

    def begin(self, label: str) -> None:
        """Start a basic block."""
        self._lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        self.do(f"br label %{label}")

    def branch(self, condition: str, then: str, otherwise: str) -> None:
        self.do(f"br i1 {condition}, label %{then}, label %{otherwise}")

    @contextmanager
    def loop(self, extent: int) -> Iterator[str]:
        """The code of the `with` body `extent` (at least one) times; gives the i64 counter."""
        head, latch, leave = self.fresh_label(), self.fresh_label(), self.fresh_label()
        before = self.block
        self.jump(head)
        self.begin(head)
        counter = self.op(f"phi i64 [ 0, %{before} ], [ %{latch}.next, %{latch} ]")
        yield counter
        self.jump(latch)
        self.begin(latch)
        self.do(f"%{latch}.next = add nuw nsw i64 {counter}, 1")
        again = self.op(f"icmp ult i64 %{latch}.next, {extent}")
        self.branch(again, head, leave)
        self.begin(leave)

    @contextmanager
    def stride(self, begin: str, step: str, extent: int) -> Iterator[str]:
        """The code of the `with` body for i64 `begin` (below `extent`), `begin` + `step`, …"""
        head, latch, leave = self.fresh_label(), self.fresh_label(), self.fresh_label()
        before = self.block
        self.jump(head)
        self.begin(head)
        counter = self.op(f"phi i64 [ {begin}, %{before} ], [ %{latch}.next, %{latch} ]")
        yield counter
        self.jump(latch)
        self.begin(latch)
        self.do(f"%{latch}.next = add nsw i64 {counter}, {step}")
        again = self.op(f"icmp slt i64 %{latch}.next, {extent}")
        self.branch(again, head, leave)
        self.begin(leave)

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """The code of the `with` body if the i1 `condition` holds."""
        inside, after = self.fresh_label(), self.fresh_label()
        self.branch(condition, inside, after)
        self.begin(inside)
        yield
        self.jump(after)
        self.begin(after)

    def body(self) -> str:
        """All lines, from the entry block on."""
        return "\n".join(["entry:", *self._prelude, *self._lines])


def literal(value: float, dtype: DType) -> str:
    """A constant in LLVM's spelling; floats as the bits of the double with the same value."""
    if dtype.is_float:
        single = struct.unpack("<f", struct.pack("<f", value))[0]
        return f"0x{struct.unpack('<Q', struct.pack('<d', single))[0]:016X}"
    if dtype is DType.BOOL:
        return "true" if value else "false"
    return str(int(value))
