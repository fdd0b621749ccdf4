"""The library is asked whether it is of these sources before it is called."""

from __future__ import annotations

import ctypes
import hashlib
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from tilefarm.errors import InfraError

import driver.memory
from driver.memory.native import library as native

HEADER = Path(driver.memory.__file__).parent / "core" / "tilefarm_memory.h"
DECLARED = "0ff8bc49b1c2"
"""Of what interface 1 declares."""


def test_another_header_is_another_interface() -> None:
    """Raise TILEFARM_MEMORY_INTERFACE and INTERFACE where it differs, and write the digest."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
    (interface,) = re.findall(r"#define TILEFARM_MEMORY_INTERFACE (\d+)", text)
    assert int(interface) == native.INTERFACE
    assert hashlib.sha256("".join(text.split()).encode()).hexdigest()[:12] == DECLARED


@pytest.mark.parametrize("interface", [0, native.INTERFACE + 1])
def test_a_library_of_other_sources_is_not_called(
    interface: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    says = {"tilefarm_memory_interface": lambda: interface} if interface else {}
    monkeypatch.setattr(ctypes, "CDLL", lambda path: SimpleNamespace(**says))
    monkeypatch.setattr(native, "find_library", lambda: Path("old") / f"{interface}.so")
    with pytest.raises(InfraError, match=f"has interface {interface}") as raised:
        native.library()
    assert raised.value.hint == native.BUILD_COMMAND
