"""The VTA runtime's C functions that compiled kernels call, and its numbers for memories.

Source: vta/runtime/runtime.h of TVM v0.14; the numbers are those of the table `tilefarm.vta_isa`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tilefarm.vta_isa import AluOp, Memory, UopMode

FUNCTIONS: Final[Mapping[str, str]] = {
    "VTATLSCommandHandle": "ptr ()",
    "VTABufferCPUPtr": "ptr (ptr, ptr)",
    "VTALoadBuffer2D": "void (ptr, ptr, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32)",
    "VTAStoreBuffer2D": "void (ptr, i32, i32, ptr, i32, i32, i32, i32)",
    "VTAUopPush": "void (i32, i32, i32, i32, i32, i32, i32, i32)",
    "VTAUopLoopBegin": "void (i32, i32, i32, i32)",
    "VTAUopLoopEnd": "void ()",
    "VTAPushGEMMOp": "i32 (ptr, ptr, ptr, i32)",
    "VTAPushALUOp": "i32 (ptr, ptr, ptr, i32)",
    "VTADepPush": "i32 (ptr, i32, i32)",
    "VTADepPop": "i32 (ptr, i32, i32)",
    "VTASynchronize": "void (ptr, i32)",
}
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


def declarations() -> str:
    """LLVM declarations of every function of the ABI."""
    return "\n".join(_declaration(name, kind) for name, kind in FUNCTIONS.items())


def _declaration(name: str, kind: str) -> str:
    result, arguments = kind.split(" ", 1)
    return f"declare {result} @{name}{arguments} nounwind"
