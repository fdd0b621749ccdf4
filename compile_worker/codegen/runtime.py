"""The library below compiled objects: what they may call, and how host code gets at its data.

Every entry has one C type, whatever the library makes of a buffer:

    int32_t entry(void* const* buffers, const int64_t* offsets);
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from compile_worker.codegen.text import FunctionText


@dataclass(frozen=True, slots=True)
class Runtime:
    """One library.

    Attributes:
        functions: LLVM function types by name; an object may leave nothing else undefined.
        pointers: writes what finds the memory of the first so many parameters of an entry.
    """

    functions: Mapping[str, str]
    pointers: Callable[[FunctionText, int], list[str]]

    @property
    def declarations(self) -> str:
        """LLVM declarations of every function."""
        return "\n".join(_declaration(name, kind) for name, kind in self.functions.items())


def _declaration(name: str, kind: str) -> str:
    result, arguments = kind.split(" ", 1)
    return f"declare {result} @{name}{arguments} nounwind"


def handle_and_offset(text: FunctionText, position: int) -> tuple[str, str]:
    """The (handle, byte offset) pair of one parameter."""
    slot = text.op(f"getelementptr ptr, ptr %buffers, i64 {position}")
    handle = text.op(f"load ptr, ptr {slot}")
    place = text.op(f"getelementptr i64, ptr %offsets, i64 {position}")
    return handle, text.op(f"load i64, ptr {place}")


def plain_pointers(text: FunctionText, count: int) -> list[str]:
    """Where buffers are memory: a pointer and an offset each."""
    pairs = [handle_and_offset(text, position) for position in range(count)]
    return [text.op(f"getelementptr i8, ptr {start}, i64 {offset}") for start, offset in pairs]


PLAIN = Runtime({}, plain_pointers)
"""No library at all."""
