"""Kernels in C for a real runner: one that is right, one that crashes, one that never ends."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from kit.objects.foreign import LINKING
from tilefarm.digest import Digest
from tilefarm.measurement import BufferSpec, Role, RunJob

_SOURCE: Final = """
    #include <stdint.h>
    void* VTATLSCommandHandle(void);
    void* VTABufferCPUPtr(void*, void*);
    void VTASynchronize(void*, uint32_t);

    int32_t increment(void* const* buffers, const int64_t* offsets) {
      void* commands = VTATLSCommandHandle();
      const uint8_t* x = (const uint8_t*)VTABufferCPUPtr(commands, buffers[0]) + offsets[0];
      uint8_t* y = (uint8_t*)VTABufferCPUPtr(commands, buffers[1]) + offsets[1];
      for (int i = 0; i < 1024; ++i) y[i] = (uint8_t)(x[i] + 1);
      VTASynchronize(commands, 1u << 31);
      return 0;
    }
    int32_t slow(void* const* buffers, const int64_t* offsets) {
      unsigned chain = 1;  // each product waits for the one before, on any processor
      for (unsigned left = 1u << 27; left; --left) chain = chain * 1664525u + 1013904223u;
      *(volatile unsigned*)(char[4]){0} = chain;
      return increment(buffers, offsets);
    }
    int32_t crash(void* const* buffers, const int64_t* offsets) {
      *(volatile int*)(offsets[0] + 16) = (int)(intptr_t)buffers;
      return 0;
    }
    int32_t illegal(void* const* buffers, const int64_t* offsets) {
      __builtin_trap();
      return buffers && offsets;
    }
    int32_t loop(void* const* buffers, const int64_t* offsets) {
      for (volatile int forever = 1; forever;) {}
      return buffers && offsets;
    }
"""

SYSTEM_CALL: Final = """
    static long call(long number, long a, long b, long c, long d, long e, long f) {
      long result;
      register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
      __asm__ volatile("syscall" : "=a"(result)
                       : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                       : "rcx", "r11", "memory");
      return result;
    }
"""
"""C that makes a system call of x86-64 Linux without a C library."""

X: Final = bytes(range(256)) * 8
Y: Final = bytes((byte + 1) % 256 for byte in X)
"""What `increment` and, after about a second, `slow` make of X, in two samples."""


@cache
def kernels() -> bytes:
    """The kernels as a shared object."""
    with TemporaryDirectory() as folder:
        source, made = Path(folder, "k.c"), Path(folder, "k.so")
        source.write_text(_SOURCE)
        command = ["cc", "-O1", "-shared", "-fPIC", *LINKING, "-ffreestanding", "-o"]
        subprocess.run([*command, str(made), str(source)], check=True)
        return made.read_bytes()


def blobs() -> dict[Digest, bytes]:
    """What a device needs for `job`."""
    return {Digest.of(content): content for content in (kernels(), X)}


def job(entry: str, *, expected: bytes = Y, timeout_seconds: float = 60.0) -> RunJob:
    """One of the kernels on X, which should give `expected`."""
    return RunJob(
        artifact=Digest.of(kernels()),
        entry=entry,
        buffers=(
            BufferSpec(name="x", role=Role.INPUT, nbytes=1024, content=Digest.of(X)),
            BufferSpec(
                name="y", role=Role.OUTPUT, nbytes=1024, expected=Digest.of(expected), fetch=True
            ),
        ),
        samples=2,
        repeats=3,
        timeout_seconds=timeout_seconds,
    )
