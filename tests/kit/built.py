"""Tests that run real kernels are skipped where what these need is missing, with the reason."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable
from typing import Final

import pytest
from tilefarm.errors import InfraError

from device_server.vta.library.native import find_executable, find_library


def no_simulator() -> str:
    """Why there is no simulator; empty where it is built."""
    try:
        find_library(), find_executable()
    except InfraError as error:
        return error.what
    return ""


def no_c_kernels() -> str:
    """Why no kernel that is written in C can run here; empty where one can."""
    if platform.machine() != "x86_64" or shutil.which("cc") is None:
        return "needs a C compiler for x86-64"
    return no_simulator()


def require(missing: Callable[[], str]) -> None:
    """Skips the test that asks, or all that use the fixture that asks, if something is missing."""
    if reason := missing():
        pytest.skip(reason)


needs_simulator: Final = pytest.mark.skipif(bool(no_simulator()), reason=no_simulator() or "built")
needs_c_kernels: Final = pytest.mark.skipif(bool(no_c_kernels()), reason=no_c_kernels() or "built")
