"""The kernel of `compile_worker.codegen.peak` as a call of this process."""

from __future__ import annotations

import ctypes
from pathlib import Path

from tilefarm.target import Host

from compile_worker.codegen.peak import ENTRY, peak_object
from driver.benchmarks.processor.kernels import Call


def peak_call(host: Host, file: Path) -> tuple[Call, int] | None:
    """A call that multiplies at the host's limit, and how many products it makes.

    None where the best instruction of the host is none that is known.
    """
    made = peak_object(host)
    if made is None:
        return None
    file.write_bytes(made.code)
    entry = getattr(ctypes.CDLL(str(file)), ENTRY)
    operands = (ctypes.c_uint8 * made.operands_nbytes)(*range(made.operands_nbytes))
    sums = (ctypes.c_uint8 * made.sums_nbytes)()
    buffers = (ctypes.c_void_p * 2)(ctypes.addressof(operands), ctypes.addressof(sums))
    offsets = (ctypes.c_int64 * 2)()
    kept = operands, sums

    def call() -> None:
        assert kept, "what the addresses lead to lives as long as the call"
        entry(buffers, offsets)

    return call, made.products
