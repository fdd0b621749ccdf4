"""Networks as exporters write them: imported, brought to integers, and cut into kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from .exports import EXPORTS
from .importing import agrees_with_onnx


@pytest.mark.parametrize("name", EXPORTS)
def test_an_export(name: str, tmp_path: Path) -> None:
    graph = agrees_with_onnx(EXPORTS[name](), tmp_path)
    names = [each.name for each in graph.nodes]
    assert len(set(names)) == len(names)
