"""Compiled kernels as functions of this process without arguments, and how long they take."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tilefarm.target import Target
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.emit import kernel_object
from compile_worker.lowering import lower
from compile_worker.schedule import replay
from compile_worker.te import nest_of

Call: TypeAlias = Callable[[], None]

_ENTRY: Final = "kernel"
_LINE_NBYTES: Final = 64


def compiled(
    workload: Workload, trace: Trace, target: Target, arrays: Mapping[str, NDArray[Any]], file: Path
) -> tuple[Call, NDArray[Any]]:
    """The kernel of a trace on some arrays, and its output.

    Args:
        file: where its shared object is written; nothing may be there that was loaded before.
    """
    func = lower(replay(trace, nest_of(workload, target), target), target)
    file.write_bytes(kernel_object(func, _ENTRY, target))
    out = workload.outputs[0]
    result = aligned(np.zeros(out.shape, out.dtype.value))
    operands = [*(arrays[spec.name] for spec in workload.inputs), result]
    handles = (ctypes.c_void_p * len(operands))(*(each.ctypes.data for each in operands))
    offsets = (ctypes.c_int64 * len(operands))()
    entry = getattr(ctypes.CDLL(str(file)), _ENTRY)

    def call() -> None:
        if entry(handles, offsets):
            raise RuntimeError(f"{file.name} ended with an error")
        del operands[len(handles) :]  # keeps them alive as long as the call

    return call, result


def aligned(array: NDArray[Any]) -> NDArray[Any]:
    """A copy that begins with a cache line, as buffers of programs do."""
    room = np.zeros(array.nbytes + _LINE_NBYTES, np.uint8)
    start = -room.ctypes.data % _LINE_NBYTES
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def turn_seconds(call: Call, seconds: float) -> float:
    """The least time of the thread that one of the calls takes that fit into `seconds`."""
    clock, least = time.CLOCK_THREAD_CPUTIME_ID, float("inf")
    end = time.monotonic() + seconds
    while True:
        before = time.clock_gettime_ns(clock)
        call()
        least = min(least, (time.clock_gettime_ns(clock) - before) * 1e-9)
        if time.monotonic() >= end:
            return least


def least_in_turns(calls: Sequence[Call], turns: int, seconds: float) -> list[float]:
    """The least time of each call; they take turns, so that what disturbs one disturbs all."""
    least = [float("inf")] * len(calls)
    for _ in range(turns):
        for at, call in enumerate(calls):
            least[at] = min(least[at], turn_seconds(call, seconds))
    return least
