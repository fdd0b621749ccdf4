"""The C functions of VTA's runtime in one table: what kernels call, and what a host calls.

Whatever declares, forwards, looks up or admits them takes them from here: the compiler and the
check of uploaded objects read the table; `device_server/vta/runtime/generate.py` makes the C header
`vta_runtime.h` of it.

Source: vta/runtime/runtime.h of TVM v0.14. Numbers of memories and modules are those of `vta_isa`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Function:
    """A function as C declares it."""

    result: str
    name: str
    parameters: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters without their types."""
        return tuple(_NAME.findall(parameter)[0] for parameter in self.parameters)


_NAME: Final = re.compile(r"(?<=\(\*)\w+(?=\))|\w+$")
_PROTOTYPE: Final = re.compile(r"(.*?[ *])(\w+)\((.*)\);")


def _functions(prototypes: str) -> Mapping[str, Function]:
    """One prototype a paragraph or line, by name."""
    made = {}
    for prototype in re.findall(r"[^;]+;", " ".join(prototypes.split())):
        found = _PROTOTYPE.fullmatch(prototype.strip())
        assert found is not None, prototype
        result, name, parameters = found.groups()
        made[name] = Function(result.strip(), name, tuple(filter(None, parameters.split(", "))))
    return made


HANDLING: Final = _functions("""
    void* VTATLSCommandHandle();
    void* VTABufferCPUPtr(void* command, void* buffer);
""")
"""What kernels get at the queue and at their buffers with."""

QUEUING: Final = _functions("""
    void VTALoadBuffer2D(void* command, void* from, uint32_t from_offset, uint32_t x, uint32_t y,
        uint32_t stride, uint32_t x_pad_0, uint32_t y_pad_0, uint32_t x_pad_1, uint32_t y_pad_1,
        uint32_t sram, uint32_t memory);
    void VTAStoreBuffer2D(void* command, uint32_t sram, uint32_t memory, void* to,
        uint32_t to_offset, uint32_t x, uint32_t y, uint32_t stride);
    void VTAUopPush(uint32_t mode, uint32_t reset, uint32_t dst, uint32_t src, uint32_t wgt,
        uint32_t opcode, uint32_t use_imm, int32_t imm);
    void VTAUopLoopBegin(uint32_t extent, uint32_t dst, uint32_t src, uint32_t wgt);
    void VTAUopLoopEnd();
    int VTAPushGEMMOp(void** handle, int (*record)(void*), void* closure, int nbytes);
    int VTAPushALUOp(void** handle, int (*record)(void*), void* closure, int nbytes);
    int VTADepPush(void* command, int from, int to);
    int VTADepPop(void* command, int from, int to);
""")
"""What kernels have an accelerator do."""

SYNCHRONIZING: Final = _functions("void VTASynchronize(void* command, uint32_t wait_cycles);")
"""What runs what is queued."""

OF_HOSTS: Final = _functions("""
    void* VTABufferAlloc(size_t nbytes);
    void VTABufferFree(void* buffer);
    void VTABufferCopy(const void* from, size_t from_offset, void* to, size_t to_offset,
        size_t nbytes, int kind);
    void VTAWriteBarrier(void* command, void* buffer, uint32_t bits, uint32_t start,
        uint32_t extent);
    void VTAReadBarrier(void* command, void* buffer, uint32_t bits, uint32_t start,
        uint32_t extent);
""")
"""What else every library of a board has."""

RARE: Final = _functions("""
    void VTARuntimeShutdown();
    void VTASetDebugMode(void* command, int flags);
""")
"""What a board's library may lack."""

OF_KERNELS: Final[Mapping[str, Function]] = {**HANDLING, **QUEUING, **SYNCHRONIZING}
"""What compiled kernels call."""

FUNCTIONS: Final[Mapping[str, Function]] = {**OF_HOSTS, **OF_KERNELS, **RARE}
"""All of them: what an object may leave undefined."""
