"""The built library in this process: where it lies, and calls of it that Ctrl-C may end."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

from tilefarm.errors import InfraError
from tilefarm.threads import Breakage, start_thread

import driver

LIBRARY_NAME: Final = "libtilefarm_memory.so"
BUILD_COMMAND: Final = "make setup"

INTERFACE: Final = 2
"""TILEFARM_MEMORY_INTERFACE of `tilefarm_memory.h`, which the structures here are those of."""
INTEGERS: Final = ctypes.POINTER(ctypes.c_int64)
STOP: Final = ctypes.POINTER(ctypes.c_int32)
_SIGNAL_SECONDS: Final = 0.1

Answer = TypeVar("Answer")


class Table(ctypes.Structure):
    """`tilefarm_memory_lists`: one list a row."""

    _fields_ = (("first", INTEGERS), ("items", INTEGERS))


def integers(values: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    """An array of 64-bit integers."""
    return (ctypes.c_int64 * len(values))(*values)


def table(rows: Iterable[Sequence[int]]) -> Table:
    """One list a row."""
    first, items = [0], list[int]()
    for row in rows:
        items += row
        first.append(len(items))
    return Table(integers(first), integers(items))


def interruptible(call: Callable[[Any], Answer]) -> Answer:
    """What a call answers, made on a thread, so that a signal finds this one waiting.

    Args:
        call: gets the address of a number that is not zero once it is to end.
    """
    stop = ctypes.c_int32(0)
    found: list[Answer] = []
    breakage = Breakage()
    thread = start_thread(
        lambda: found.append(call(ctypes.pointer(stop))), name="memory", broken=breakage
    )
    try:
        while thread.is_alive():
            # A signal that another thread gets does not end a wait, only what comes after it.
            thread.join(_SIGNAL_SECONDS)
    except BaseException:
        stop.value = 1
        thread.join()
        raise
    breakage.check()
    return found[0]


def require_memory(failed: int) -> None:
    """Raises MemoryError where a call answered that it had not enough."""
    if failed:
        raise MemoryError("the memory scheduler needs more memory than there is")


@cache
def find_library() -> Path:
    """The newest built library.

    Raises:
        InfraError: there is none; says where it was looked for and how to build it.
    """
    packages = [Path(entry) for entry in driver.__path__]
    folders = [package / "lib" for package in packages]
    folders += [
        build
        for package in packages
        for build in (package.parent / "build").glob("*")
        if "sanitize" not in build.name  # Python cannot load them
    ]
    found = [folder / LIBRARY_NAME for folder in folders if (folder / LIBRARY_NAME).is_file()]
    if not found:
        places = ", ".join(str(folder) for folder in folders)
        raise InfraError(f"{LIBRARY_NAME} is not built; looked in {places}", BUILD_COMMAND)
    return max(found, key=lambda path: path.stat().st_mtime_ns)


def library() -> Any:
    """It, loaded.

    Raises:
        InfraError: see `find_library`; or it was built from other sources than these.
    """
    return _loaded(find_library())


@cache
def _loaded(path: Path) -> Any:
    found = ctypes.CDLL(str(path))
    try:
        interface = int(found.tilefarm_memory_interface())
    except AttributeError:
        interface = 0
    if interface != INTERFACE:
        raise InfraError(
            f"{path} has interface {interface}, and this version calls {INTERFACE}", BUILD_COMMAND
        )
    return found
