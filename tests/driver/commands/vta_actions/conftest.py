"""Program files to run commands on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kit.built import no_simulator, require
from kit.kernels.programs import DENSE_CYCLES, dense_program

from device_server.vta.library.library import VtaLibrary
from device_server.vta.programs.program import Program, write_program
from driver import cli

Vta = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="session", autouse=True)
def _built() -> None:
    require(no_simulator)


@pytest.fixture
def vta(capsys: pytest.CaptureFixture[str]) -> Vta:
    """Runs `tilefarm vta` with the words; (exit code, output, errors)."""

    def run(*words: str | Path) -> tuple[int, str, str]:
        code = cli.main(["vta", *map(str, words)])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return code, captured.out, captured.err

    return run


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., Path]:
    """Writes a program file: the dense one, or that with other fields."""

    def write(name: str = "dense", program: Program | None = None, **fields: Any) -> Path:
        path = tmp_path / f"{name}.npz"
        program = program or replace(dense_program(), cycles=DENSE_CYCLES)
        write_program(path, replace(program, **fields))
        return path

    return write


@pytest.fixture(scope="session")
def library() -> VtaLibrary:
    return VtaLibrary()
