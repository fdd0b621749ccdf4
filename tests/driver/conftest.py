"""A current folder whose files must not be executed, and tell when they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

NAMES = (
    *("driver", "compile_worker", "device_server", "tuner", "tilefarm"),
    *("numpy", "llvmlite", "grpc", "google", "ray", "typing_extensions", "msgpack", "psutil"),
    *("random", "json", "struct", "tempfile", "socket", "logging", "asyncio", "queue", "uuid"),
)


@pytest.fixture
def executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder is one whose files write their names into this file, which is absent."""
    told = tmp_path / "executed"
    here = tmp_path / "here"
    here.mkdir()
    for name in NAMES:
        (here / f"{name}.py").write_text(
            f"with open({str(told)!r}, 'a') as file:\n    print(__file__, file=file)\n"
            "raise SystemExit('executed')\n"
        )
    monkeypatch.chdir(here)
    monkeypatch.setenv("PYTHONSAFEPATH", "")  # each of them does it for itself
    yield told
    assert not told.exists(), told.read_text()
