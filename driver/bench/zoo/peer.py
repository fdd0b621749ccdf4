"""ONNX Runtime on the samples of a network, where it is installed: `pip install onnxruntime`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Final

import numpy as np
from tilefarm.errors import InfraError, SettingsError

from driver.graph.ir import FloatArray, Graph, GraphInput
from driver.graph.parts import Arrays

_ERRORS_ONLY: Final = 3


def check_peer() -> None:
    """That ONNX Runtime can be imported.

    Raises:
        SettingsError: it is not there.
    """
    if importlib.util.find_spec("onnxruntime") is None:
        raise SettingsError("--onnxruntime: it is not installed", "pip install onnxruntime")


def peer_outputs(path: Path, graph: Graph, inputs: Arrays) -> dict[str, FloatArray]:
    """What ONNX Runtime makes of inputs [samples, ...] in the graph's layout, by output name.

    Raises:
        InfraError: it does not run the model.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = _ERRORS_ONLY
    samples = len(next(iter(inputs.values())))
    parts: dict[str, list[FloatArray]] = {o.name: [] for o in graph.outputs}
    try:
        session = onnxruntime.InferenceSession(str(path), options)
        axes = {i.name: len(i.shape) for i in session.get_inputs()}
        for start in range(0, samples, graph.batch):
            given = {
                i.name: _as_in_file(inputs[i.name][start : start + graph.batch], i, axes[i.name])
                for i in graph.inputs
            }
            for output, values in zip(graph.outputs, session.run(list(parts), given), strict=True):
                shape = graph.shapes[output.tensor]
                parts[output.name].append(np.asarray(values, np.float32).reshape(shape))
    except Exception as error:  # its exceptions have no common class of their own
        raise InfraError(f"ONNX Runtime does not run {path.name}: {error}") from None
    return {name: np.concatenate(each) for name, each in parts.items()}


def _as_in_file(values: FloatArray, given: GraphInput, axes: int) -> FloatArray:
    """In the file's layout; a network that mixes its first axis has no axis of samples there."""
    moved = values.transpose(np.argsort(given.axes))
    return moved.reshape(moved.shape[moved.ndim - axes :])
