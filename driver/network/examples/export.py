"""Writes the digit classifier as ONNX, with the scaling of its raw 0..16 pixels inside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from driver.network.examples.classifier import WINDOW, Parameters

_OPSET = 17
_IR_VERSION = 8


def write_onnx(parameters: Parameters, file: Path, *, pixel_scale: float) -> None:
    """The classifier from 1x1x8x8 raw pixels to 1x10 probabilities, as a checked ONNX file."""
    weights = {**parameters, "pixel_scale": np.array(pixel_scale, np.float32)}
    graph = helper.make_graph(
        _nodes(),
        "digits",
        [helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, [1, 1, 8, 8])],
        [helper.make_tensor_value_info("probability", onnx.TensorProto.FLOAT, [1, 10])],
        [numpy_helper.from_array(values, name) for name, values in weights.items()],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", _OPSET)], producer_name="tilefarm"
    )
    model.ir_version = _IR_VERSION
    onnx.checker.check_model(model, full_check=True)
    file.write_bytes(model.SerializeToString(deterministic=True))


def _nodes() -> list[onnx.NodeProto]:
    conv: dict[str, Any] = {"kernel_shape": WINDOW.kernel, "pads": WINDOW.pad}
    return [
        _node("Mul", ["image", "pixel_scale"], "scaled"),
        _node("Conv", ["scaled", "conv1.w", "conv1.b"], "conv1", **conv),
        _node("Relu", ["conv1"], "relu1"),
        _node("Conv", ["relu1", "conv2.w", "conv2.b"], "conv2", **conv),
        _node("Relu", ["conv2"], "relu2"),
        _node("Conv", ["relu2", "conv3.w", "conv3.b"], "conv3", **conv),
        _node("Add", ["conv3", "relu2"], "residual"),
        _node("Relu", ["residual"], "relu3"),
        _node("MaxPool", ["relu3"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        _node("Conv", ["pool", "conv4.w", "conv4.b"], "conv4", **conv),
        _node("Relu", ["conv4"], "relu4"),
        _node("GlobalAveragePool", ["relu4"], "mean"),
        _node("Flatten", ["mean"], "flat"),
        _node("Gemm", ["flat", "dense.w", "dense.b"], "dense", transB=1),
        _node("Softmax", ["dense"], "probability", axis=-1),
    ]


def _node(operator: str, inputs: list[str], output: str, **attrs: Any) -> onnx.NodeProto:
    return helper.make_node(operator, inputs, [output], name=output, **attrs)
