"""ONNX files as a target wants them: with their own integer arithmetic, or as float networks."""

from __future__ import annotations

from pathlib import Path

from tilefarm.target import Target

from driver.network.frontend.dynamic_dimensions import Extents
from driver.network.frontend.onnx import import_model
from driver.network.graph.ir import Graph
from driver.network.quantize.processor_quantization import has_own_arithmetic


def import_for(target: Target, path: Path, extents: Extents | None = None) -> Graph:
    """The network in a file; what is quantized in it keeps its own arithmetic for a processor.

    Raises:
        SettingsError, ModelError: as `frontend.onnx.import_model`.
    """
    if not target.has_accelerator:
        graph = import_model(path, extents, keeps_integers=True)
        if has_own_arithmetic(graph):
            return graph
    return import_model(path, extents)
