"""ONNX Runtime on a network, in float and in its own int8, where it is installed: answers, times.

The only place that imports it. Its optimizer is on unless somebody wants its answers by the letter.
"""

from __future__ import annotations

import importlib.util
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from tilefarm.errors import InfraError, SettingsError

from driver.network import Arrays, FloatArray, Graph, GraphInput
from driver.report.comparison import LibraryLayer

_KERNEL: Final = "_kernel_time"
"""How the profiler's names of what a node takes end."""
_ERRORS_ONLY: Final = 3
"""For its quantizer's sessions too: each warns of every weight that is an input as well."""


INSTALL: Final = "pip install 'tilefarm[onnxruntime]', or pip install onnxruntime"


def has_peer() -> bool:
    """Whether ONNX Runtime can be imported."""
    return importlib.util.find_spec("onnxruntime") is not None


def peer_version() -> str:
    """Of the ONNX Runtime that is there."""
    import onnxruntime

    return str(onnxruntime.__version__)


class LibraryNetwork:
    """A model that ONNX Runtime has loaded, and one batch of inputs for it.

    Args:
        inputs: [samples, ...] in the graph's layout, by name; the first batch is taken.
        threads: that compute.
        is_optimized: whether its optimizer may fuse; without, it computes node by node.
        profile: whether runs are told node by node, which slows them down; see `layers`.

    Raises:
        InfraError: it does not take the model.
    """

    def __init__(
        self,
        path: Path,
        graph: Graph,
        inputs: Arrays,
        *,
        threads: int,
        is_optimized: bool = True,
        profile: Path | None = None,
    ) -> None:
        import onnxruntime

        onnxruntime.set_default_logger_severity(_ERRORS_ONLY)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        level = onnxruntime.GraphOptimizationLevel
        options.graph_optimization_level = (
            level.ORT_ENABLE_ALL if is_optimized else level.ORT_DISABLE_ALL
        )
        if profile is not None:
            options.enable_profiling, options.profile_file_prefix = True, str(profile)
        providers = ["CPUExecutionProvider"]
        try:
            self._session = onnxruntime.InferenceSession(str(path), options, providers=providers)
            axes = {i.name: len(i.shape) for i in self._session.get_inputs()}
            self._given = next(_runs(graph, inputs, axes))
            self.call()
        except Exception as error:  # its exceptions have no common class of their own
            raise InfraError(f"ONNX Runtime does not run {path.name}: {error}") from None
        self._graph = graph

    def call(self) -> None:
        """Run the batch."""
        self._session.run(None, self._given)

    def outputs(self) -> dict[str, FloatArray]:
        """What it makes of the batch, in the graph's shapes."""
        found = self._session.run([o.name for o in self._graph.outputs], self._given)
        return {
            o.name: np.asarray(values, np.float32).reshape(self._graph.shapes[o.tensor])
            for o, values in zip(self._graph.outputs, found, strict=True)
        }

    def end_profile(self) -> Path:
        """The file of all runs, node by node."""
        return Path(self._session.end_profiling())


def peer_layers(
    path: Path, graph: Graph, inputs: Arrays, *, threads: int, runs: int
) -> list[LibraryLayer]:
    """What each node takes in the best of some runs, in order; by ONNX Runtime's own profiler.

    Raises:
        InfraError: it does not take the model.
    """
    with tempfile.TemporaryDirectory(prefix="tilefarm-onnxruntime-") as folder:
        network = LibraryNetwork(
            path, graph, inputs, threads=threads, profile=Path(folder) / "layers"
        )
        for _ in range(runs):
            network.call()
        events = json.loads(network.end_profile().read_text(encoding="utf-8"))
    return layers_in(events)


def layers_in(events: list[dict[str, Any]]) -> list[LibraryLayer]:
    """Nodes of a profile with the least that each took, in the order in which they ran first."""
    least: dict[str, LibraryLayer] = {}
    for event in events:
        if event.get("cat") != "Node" or not event["name"].endswith(_KERNEL):
            continue
        name, seconds = event["name"].removesuffix(_KERNEL), 1e-6 * event["dur"]
        if name not in least or seconds < least[name].seconds:
            least[name] = LibraryLayer(name, event["args"].get("op_name", ""), seconds)
    return list(least.values())


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


def quantized_by_peer(
    path: Path, graph: Graph, calibration: Arrays, to: Path, *, is_symmetric: bool = True
) -> None:
    """Write ONNX Runtime's int8 of a float model: a scale for each output channel of the weights,
    ranges from the least to the largest value, QDQ.

    Args:
        is_symmetric: activations are int8 without a zero point; else uint8 with one, which is what
            it has its fastest kernels for.
        calibration: inputs [samples, ...] in the graph's layout, by name.

    Raises:
        InfraError: it does not take the model.
    """
    import onnxruntime
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    types = quantization.QuantType

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
            activation_type=types.QInt8 if is_symmetric else types.QUInt8,
            weight_type=types.QInt8,
            extra_options={"ActivationSymmetric": is_symmetric, "WeightSymmetric": True},
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
