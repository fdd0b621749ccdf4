"""Looks at everything that a run needs of this machine."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tilefarm.errors import TilefarmError

from device_server import native

_MODULES: Final = ("numpy", "onnx", "llvmlite", "grpc", "xgboost", "rich")
_MEMORY_NBYTES: Final = 2 << 30
_DISK_NBYTES: Final = 1 << 30
_INSTALL: Final = "make setup, or pip install ."


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at. `repair` is a command, for what is not good."""

    subject: str
    good: bool
    detail: str
    repair: str = ""


def examine() -> list[Finding]:
    """Everything, in the order in which it should be repaired."""
    return [
        _python(),
        _packages(),
        _ray(),
        _native("library", native.find_library),
        _native("runner", native.find_executable),
        _linker(),
        _memory(),
        _disk(),
    ]


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding(
        subject="python",
        good=sys.version_info >= (3, 11),
        detail=version,
        repair="install Python 3.11 or newer",
    )


def _packages() -> Finding:
    missing = [name for name in _MODULES if importlib.util.find_spec(name) is None]
    return Finding(
        subject="packages",
        good=not missing,
        detail=f"missing: {', '.join(missing)}" if missing else ", ".join(_MODULES),
        repair=_INSTALL,
    )


def _ray() -> Finding:
    found = importlib.util.find_spec("ray") is not None
    return Finding(
        subject="ray",
        good=found,
        detail="installed" if found else "missing",
        repair=f"{_INSTALL}; or use --no-ray",
    )


def _native(subject: str, find: Callable[[], Path]) -> Finding:
    try:
        return Finding(subject=subject, good=True, detail=str(find()))
    except TilefarmError as error:
        return Finding(subject=subject, good=False, detail=error.what, repair=error.hint)


def _linker() -> Finding:
    path = shutil.which("ld")
    return Finding(
        subject="linker",
        good=path is not None,
        detail=path or "no `ld` on the path",
        repair="apt-get install binutils",
    )


def _memory() -> Finding:
    nbytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    return Finding(
        subject="memory",
        good=_available_nbytes(nbytes) >= _MEMORY_NBYTES,
        detail=f"{_available_nbytes(nbytes) / 2**30:.1f} GiB available",
        repair="close something, or use --workers 1 --no-ray",
    )


def _available_nbytes(fallback: int) -> int:
    """What the kernel could give without swapping, caches included."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return fallback


def _disk() -> Finding:
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    return Finding(
        subject="disk",
        good=free >= _DISK_NBYTES,
        detail=f"{free / 2**30:.1f} GiB free in {folder}",
        repair=f"free some space in {folder}",
    )
