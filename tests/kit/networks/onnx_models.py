"""Small ONNX models for tests: nodes and weights in, a file out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

Dims = Sequence[int | str | None]


def node(operator: str, inputs: Sequence[str], *outputs: str, **attrs: Any) -> onnx.NodeProto:
    """A node named after its first output."""
    return helper.make_node(operator, list(inputs), list(outputs), name=f"{outputs[0]}_n", **attrs)


def model(
    nodes: Sequence[onnx.NodeProto],
    weights: Mapping[str, NDArray[Any]] | None = None,
    *,
    x: Dims = (1, 3, 4, 4),
    out: str = "y",
    opset: int = 17,
) -> onnx.ModelProto:
    """A model from input `x` of that shape to output `out`."""
    graph = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x)],
        [helper.make_tensor_value_info(out, onnx.TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in (weights or {}).items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    made.ir_version = 8
    return made


def saved(made: onnx.ModelProto, folder: Path, name: str = "model.onnx") -> Path:
    """The model as a file in `folder`."""
    file = folder / name
    file.write_bytes(made.SerializeToString())
    return file


def saved_beside(
    made: onnx.ModelProto, folder: Path, name: str = "model.onnx", weights: str = "w/net.bin"
) -> Path:
    """The model as a file in `folder`, with its weights in one file below that."""
    (folder / weights).parent.mkdir(parents=True, exist_ok=True)
    parted = onnx.ModelProto()
    parted.CopyFrom(made)
    with (folder / weights).open("wb") as stream:
        for tensor in parted.graph.initializer:
            entries = {"location": weights, "offset": stream.tell()}
            content = numpy_helper.to_array(tensor).tobytes()
            stream.write(content)
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
            for key, value in {**entries, "length": len(content)}.items():
                tensor.external_data.add(key=key, value=str(value))
    return saved(parted, folder, name)


def answers(made: onnx.ModelProto, x: NDArray[Any]) -> NDArray[Any]:
    """What ONNX's own reference says of input `x`, sample by sample."""
    evaluator = ReferenceEvaluator(made)
    results = []
    for sample in x:
        (result,) = evaluator.run(None, {"x": sample[None]}, intermediate=False)
        results.append(np.asarray(result))
    return np.concatenate(results)


def model_on(
    given: Mapping[str, NDArray[Any]],
    nodes: Sequence[onnx.NodeProto],
    weights: Mapping[str, NDArray[Any]] | None = None,
    *,
    out: Mapping[str, str] | str = "y",
    opset: int = 20,
) -> onnx.ModelProto:
    """A model whose inputs have the types and shapes of these arrays.

    `out` names the output, or has the element type of each.
    """
    types = {out: "float32"} if isinstance(out, str) else out
    graph = helper.make_graph(
        list(nodes),
        "test",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in given.items()
        ],
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), None
            )
            for name, dtype in types.items()
        ],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in (weights or {}).items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    made.ir_version = 10
    return made
