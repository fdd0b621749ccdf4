"""An ONNX file written weight by weight: protobuf would hold a large model three times over."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx

from driver.network.frontend.lazy_weights import GRAPH, INITIALIZER, RAW_DATA, heading
from driver.network.graph.ir import FloatArray


def write_model(
    path: Path,
    model: onnx.ModelProto,
    graph: onnx.GraphProto,
    weights: Mapping[str, FloatArray],
    graph_rest: onnx.GraphProto,
    model_rest: onnx.ModelProto,
) -> None:
    """Write a model whose graph has these weights.

    Fields have the order that protobuf gives them: `graph` and `model` have those in front of the
    weights, and of the graph, and the rests have those behind.

    Raises:
        OSError: the file cannot be written.
    """
    heads = {name: _head(name, values) for name, values in weights.items()}
    front, back = graph.SerializeToString(deterministic=True), graph_rest.SerializeToString()
    within = sum(len(head) + weights[name].nbytes for name, head in heads.items())
    with path.open("wb") as file:
        file.write(model.SerializeToString())
        file.write(heading(GRAPH, len(front) + within + len(back)) + front)
        for name, head in heads.items():
            file.write(head)
            file.write(np.ascontiguousarray(weights[name], "<f4").data)
        file.write(back + model_rest.SerializeToString())


def _head(name: str, values: FloatArray) -> bytes:
    """All of a weight in a graph but its bytes."""
    tensor = onnx.TensorProto(name=name, data_type=onnx.TensorProto.FLOAT, dims=values.shape)
    head = tensor.SerializeToString() + heading(RAW_DATA, values.nbytes)
    return heading(INITIALIZER, len(head) + values.nbytes) + head
