"""ONNX Runtime behind its door; skipped where it is not installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from driver.network import import_model, load_data, model_files
from driver.program.onnx_runtime import LibraryNetwork, peer_layers, quantized_by_peer

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


def test_a_network_runs_as_it_is_and_quantized_and_tells_its_layers(tmp_path: Path) -> None:
    files = model_files("zoo:digits", None, tmp_path)
    graph = import_model(files.model)
    assert files.calibration is not None
    inputs = load_data(files.calibration, graph).inputs
    int8 = tmp_path / "int8.onnx"
    quantized_by_peer(files.model, graph, inputs, int8, is_symmetric=False)
    floats = LibraryNetwork(files.model, graph, inputs, threads=1).outputs()
    plain = LibraryNetwork(int8, graph, inputs, threads=1, is_optimized=False).outputs()
    for name, values in floats.items():
        assert np.argmax(values) == np.argmax(plain[name])
    layers = peer_layers(int8, graph, inputs, threads=1, runs=2)
    assert layers
    assert all(layer.seconds >= 0 and layer.operator for layer in layers)
