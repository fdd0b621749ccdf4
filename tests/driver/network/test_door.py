"""The door of the network compiler: what it offers, to the type checker and at run time."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import driver.network as door


def offered() -> dict[str, str]:
    """What the type checker is told: the module of each name."""
    return {
        alias.name: node.module.removeprefix("driver.network.")
        for node in ast.walk(ast.parse(Path(str(door.__file__)).read_text()))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("driver.")
        for alias in node.names
    }


def test_what_is_offered_is_there() -> None:
    assert all(getattr(door, name) is not None for name in offered())


def test_a_name_is_not_that_of_a_part() -> None:
    parts = {path.stem for path in Path(str(door.__file__)).parent.iterdir()}
    assert "frontend" in parts
    assert not parts & offered().keys()


def test_nothing_else_is_offered() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = door.nothing  # type: ignore[attr-defined]


def test_settings_are_had_without_the_compiler() -> None:
    script = (
        "import sys\nfrom driver.network import ANSWER_KINDS, DEFAULT_METHOD, Quantization\n"
        "sys.exit(str({'onnx', 'llvmlite'} & set(sys.modules) or ''))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert not done.stderr.strip(), done.stderr
