"""Looks at everything that a run needs of this machine."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tilefarm.errors import TilefarmError
from tilefarm.power import power_state
from tilefarm.sandbox import SandboxLevel
from tilefarm.target import TARGETS

from device_server.runner.runner import Runner
from device_server.vta.library import native

_MODULES: Final = ("numpy", "onnx", "llvmlite", "grpc", "xgboost", "rich")
_MEMORY_NBYTES: Final = 2 << 30
_DISK_NBYTES: Final = 1 << 30
_INSTALL: Final = "make setup, or pip install ."


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFinding:
    """One thing that was looked at. `repair` is a command, for what is not good."""

    subject: str
    good: bool
    detail: str
    repair: str = ""


def examine() -> list[DoctorFinding]:
    """Everything, in the order in which it should be repaired."""
    return [
        _python(),
        _packages(),
        _ray(),
        _native("library", native.find_library),
        _native("runner", native.find_executable),
        _sandbox(),
        _clock(),
        _memory(),
        _disk(),
        _ports(),
    ]


def _python() -> DoctorFinding:
    version = ".".join(map(str, sys.version_info[:3]))
    return DoctorFinding(
        subject="python",
        good=sys.version_info >= (3, 11),
        detail=version,
        repair="install Python 3.11 or newer",
    )


def _packages() -> DoctorFinding:
    missing = [name for name in _MODULES if importlib.util.find_spec(name) is None]
    return DoctorFinding(
        subject="packages",
        good=not missing,
        detail=f"missing: {', '.join(missing)}" if missing else ", ".join(_MODULES),
        repair=_INSTALL,
    )


def _ray() -> DoctorFinding:
    found = importlib.util.find_spec("ray") is not None
    return DoctorFinding(
        subject="ray",
        good=found,
        detail="installed" if found else "missing",
        repair=f"{_INSTALL}; or use --no-ray",
    )


def _native(subject: str, find: Callable[[], Path]) -> DoctorFinding:
    try:
        return DoctorFinding(subject=subject, good=True, detail=str(find()))
    except TilefarmError as error:
        return DoctorFinding(subject=subject, good=False, detail=error.what, repair=error.hint)


def _sandbox() -> DoctorFinding:
    """What a child that runs kernels cannot do here, as one says itself."""
    try:
        with Runner(target=TARGETS["sim"]) as runner:
            level = runner.sandbox
    except TilefarmError as error:
        return DoctorFinding(subject="sandbox", good=False, detail=error.what, repair=error.hint)
    return DoctorFinding(
        subject="sandbox",
        good=SandboxLevel.of(level).is_at_least(SandboxLevel.SECCOMP),
        detail=level,
        repair="allow seccomp here (a container's security profile may forbid it)",
    )


def _clock() -> DoctorFinding:
    """Whether times of kernels on this processor will tell about the kernels."""
    state = power_state()
    return DoctorFinding(
        subject="clock",
        good=state.is_steady,
        detail=state.words,
        repair="plug it in, and `cpupower frequency-set -g performance`; else times of --target cpu"
        " drift",
    )


def _memory() -> DoctorFinding:
    nbytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    return DoctorFinding(
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


def _disk() -> DoctorFinding:
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    return DoctorFinding(
        subject="disk",
        good=free >= _DISK_NBYTES,
        detail=f"{free / 2**30:.1f} GiB free in {folder}",
        repair=f"free some space in {folder}",
    )


def _ports() -> DoctorFinding:
    """Whether processes of this machine can talk to one another."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            detail, good = f"127.0.0.1:{server.getsockname()[1]} was free", True
    except OSError as error:
        detail, good = f"cannot listen on 127.0.0.1: {error.strerror}", False
    return DoctorFinding(
        subject="ports", good=good, detail=detail, repair="bring the loopback interface up"
    )
