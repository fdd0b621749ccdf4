"""A stand-in for the VTA runtime, made by our own back end: enough to run CPU kernels anywhere.

Handles are addresses, so a buffer is its own memory; queue functions do nothing and answer 0.
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tilefarm.target import Host

from compile_worker.codegen.link import shared_object
from compile_worker.codegen.machine import object_code
from compile_worker.machines.vta.codegen.runtime_abi import FUNCTIONS

Array = npt.NDArray[Any]


def runtime_double(folder: Path) -> Path:
    """The stand-in in a folder, built when it is not there yet; `call` puts kernels next to it."""
    library = folder / "libdouble.so"
    if library.exists():
        return library
    text = "\n".join(_definition(name, kind) for name, kind in FUNCTIONS.items())
    library.write_bytes(shared_object(object_code(text, Host(), fast_code=False), Host()))
    return library


def _definition(name: str, kind: str) -> str:
    result, arguments = kind.split(" ", 1)
    answer = {"ptr": "ret ptr null", "i32": "ret i32 0", "void": "ret void"}[result]
    if name == "VTABufferCPUPtr":
        answer = "ret ptr %1"
    return f"define {result} @{name}{arguments} {{\n  {answer}\n}}"


def call(
    double: Path, kernel: Path, entry: str, arrays: Sequence[Array], offsets: Sequence[int] = ()
) -> int:
    """Call an entry of a shared object on arrays' memory; gives its answer.

    Kernel and stand-in are loaded as the needs of one library, which keeps the stand-in's functions
    out of the sight of everything else in this process.
    """
    both = kernel.with_suffix(".both.so")
    command = ["ld", "-shared", "--no-as-needed", "-o", str(both), str(kernel), str(double)]
    subprocess.run(command, check=True)
    function = getattr(ctypes.CDLL(str(both)), entry)
    function.restype = ctypes.c_int32
    handles = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
    places = (ctypes.c_int64 * len(arrays))(*(offsets or [0] * len(arrays)))
    return int(function(handles, places))


def outputs_like(shapes: Mapping[str, tuple[tuple[int, ...], Any]]) -> dict[str, Array]:
    """Arrays full of garbage for a kernel to write: int8 as the interpreter's."""
    return {name: np.full(shape, 0x5A, dtype) for name, (shape, dtype) in shapes.items()}
