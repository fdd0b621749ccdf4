"""The VTA runtime's C functions and its numbers, as LLVM has them.

Those of the tables `tilefarm.vta_runtime` and `tilefarm.vta_isa`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tilefarm.vta_isa import AluOp, Memory, UopMode
from tilefarm.vta_runtime import OF_KERNELS, Function

from compile_worker.codegen.runtime import Runtime, handle_and_offset
from compile_worker.codegen.text import FunctionText


def _llvm(function: Function) -> str:
    """Its LLVM type: whatever is not a pointer has 32 bits, or is nothing."""

    def of(c_type: str) -> str:
        return "ptr" if "*" in c_type else "void" if c_type == "void" else "i32"

    return f"{of(function.result)} ({', '.join(map(of, function.parameters))})"


FUNCTIONS: Final[Mapping[str, str]] = {name: _llvm(each) for name, each in OF_KERNELS.items()}
"""LLVM function types by name: all that a compiled object may leave undefined."""

MEMORY: Final[Mapping[str, int]] = {
    memory.word: memory.value for memory in (Memory.WGT, Memory.INP, Memory.ACC)
}
"""Memory type of a LOAD by the scope that it fills."""

OUT_MEMORY: Final = Memory.OUT.value
"""Memory type of a STORE: the accumulator's narrow copy."""

GEMM_MODE: Final = UopMode.GEMM.value
ALU_MODE: Final = UopMode.ALU.value

ALU_OPCODES: Final[Mapping[str, int]] = {operation.word: operation.value for operation in AluOp}

WAIT_CYCLES: Final = 1 << 31
"""How long a synchronization may take; the value that TVM's own kernels pass."""


def _pointers(text: FunctionText, count: int) -> list[str]:
    """Where each parameter's memory is: the library knows, by a handle."""
    command = text.op("call ptr @VTATLSCommandHandle()")
    found = []
    for position in range(count):
        handle, offset = handle_and_offset(text, position)
        start = text.op(f"call ptr @VTABufferCPUPtr(ptr {command}, ptr {handle})")
        found.append(text.op(f"getelementptr i8, ptr {start}, i64 {offset}"))
    return found


RUNTIME: Final = Runtime(FUNCTIONS, _pointers)
