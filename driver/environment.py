"""What results depend on besides the settings: versions and the machine."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Final

from tilefarm.plural import plural

_VERSIONED: Final = ("tilefarm", "numpy", "llvmlite", "onnx", "ray", "xgboost-cpu", "grpcio")


def versions() -> dict[str, str]:
    """Versions of what decides the results."""
    return {"python": platform.python_version(), **{name: _version(name) for name in _VERSIONED}}


def machine() -> str:
    """The machine that runs the driver, in words."""
    gib = _memory_nbytes() / 2**30
    return (
        f"{_processor()}, {plural(os.cpu_count() or 1, 'core')}, {gib:.0f} GiB, {platform.system()}"
    )


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    except OSError:
        pass
    return platform.machine()


def _memory_nbytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
