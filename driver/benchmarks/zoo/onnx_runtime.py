"""ONNX Runtime on the samples of a network, in float and in its own int8, where it is installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from tilefarm.errors import InfraError, SettingsError

from driver.network import Arrays, FloatArray, Graph, GraphInput

_ERRORS_ONLY: Final = 3
"""For its quantizer's sessions too: each warns of every weight that is an input as well."""


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

    onnxruntime.set_default_logger_severity(_ERRORS_ONLY)
    parts: dict[str, list[FloatArray]] = {o.name: [] for o in graph.outputs}
    try:
        session = onnxruntime.InferenceSession(str(path))
        axes = {i.name: len(i.shape) for i in session.get_inputs()}
        for given in _runs(graph, inputs, axes):
            for output, values in zip(graph.outputs, session.run(list(parts), given), strict=True):
                shape = graph.shapes[output.tensor]
                parts[output.name].append(np.asarray(values, np.float32).reshape(shape))
    except Exception as error:  # its exceptions have no common class of their own
        raise InfraError(f"ONNX Runtime does not run {path.name}: {error}") from None
    return {name: np.concatenate(each) for name, each in parts.items()}


def quantized_by_peer(path: Path, graph: Graph, calibration: Arrays, to: Path) -> None:
    """Write ONNX Runtime's int8 of a float model: symmetric, a scale for each output channel of the
    weights, ranges from the least to the largest value, QDQ.

    Args:
        calibration: inputs [samples, ...] in the graph's layout, by name.

    Raises:
        InfraError: it does not take the model.
    """
    import onnxruntime
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self, axes: dict[str, int]) -> None:
            self._runs = _runs(graph, calibration, axes)

        def get_next(self) -> dict[str, Any] | None:
            return next(self._runs, None)

    onnxruntime.set_default_logger_severity(_ERRORS_ONLY)
    try:
        ready = to.with_suffix(".ready.onnx")
        quant_pre_process(str(path), str(ready), skip_symbolic_shape=True)
        ends = onnxruntime.InferenceSession(str(ready)).get_inputs()
        quantization.quantize_static(
            str(ready),
            str(to),
            Reader({end.name: len(end.shape) for end in ends}),
            per_channel=True,
            extra_options={"ActivationSymmetric": True, "WeightSymmetric": True},
        )
    except Exception as error:  # its exceptions have no common class of their own
        raise InfraError(f"ONNX Runtime does not quantize {path.name}: {error}") from None


def _runs(graph: Graph, inputs: Arrays, axes: dict[str, int]) -> Iterator[dict[str, FloatArray]]:
    """What each run of a model is given; `axes` has how many those of its file have."""
    for start in range(0, len(next(iter(inputs.values()))), graph.batch):
        yield {
            i.name: _as_in_file(inputs[i.name][start : start + graph.batch], i, axes[i.name])
            for i in graph.inputs
        }


def _as_in_file(values: FloatArray, given: GraphInput, axes: int) -> FloatArray:
    """In the file's layout; a network that mixes its first axis has no axis of samples there."""
    moved = values.transpose(np.argsort(given.axes))
    return moved.reshape(moved.shape[moved.ndim - axes :])
