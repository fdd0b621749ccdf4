"""Models of pairs around float layers as models of ONNX's operators on integers."""

from __future__ import annotations

from typing import Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

_BIASED: Final = {"Conv": "QLinearConv", "Gemm": "QGemm"}
_UNARY: Final = {"GlobalAveragePool": "QLinearGlobalAveragePool"}
_CLIPS: Final = ("Relu", "Clip")
_MOVES: Final = ("Reshape",)


def qlinear_form(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model whose layers and global pools are operators on integers.

    A ReLU or a clip behind one is left out: the grid that follows has to end where it does.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    makers = {node.output[0]: node for node in made.graph.node}
    values = {each.name: numpy_helper.to_array(each) for each in made.graph.initializer}
    for node in made.graph.node:
        if node.op_type == "QuantizeLinear":
            layer = makers.get(node.input[0])
            if layer is not None and layer.op_type in _CLIPS:
                _check_ends(layer, node, values)
                layer = makers[layer.input[0]]
            if layer is not None and layer.op_type in (*_BIASED, *_UNARY):
                _put_integers(node, layer, makers)
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    del made.graph.value_info[:]  # moves are of integers now
    _drop_unread(made.graph)
    return made


def _put_integers(
    node: onnx.NodeProto, layer: onnx.NodeProto, makers: dict[str, onnx.NodeProto]
) -> None:
    """Makes of a QuantizeLinear the operator on integers that has its result."""
    grid = list(node.input[1:])
    x = _integers_of(layer.input[0], makers)
    inputs = [*x, *grid]
    if layer.op_type in _BIASED:
        weight = list(makers[layer.input[1]].input)
        bias = [makers[layer.input[2]].input[0]]
        last = [*bias, *grid] if layer.op_type == "Gemm" else [*grid, *bias]
        inputs = [*x, *weight, *last]
    operator = (_BIASED | _UNARY)[layer.op_type]
    del node.input[:]
    node.input.extend(inputs)
    node.op_type = operator
    node.domain = "" if operator == "QLinearConv" else "com.microsoft"
    del node.attribute[:]
    node.attribute.extend(layer.attribute)


def _integers_of(name: str, makers: dict[str, onnx.NodeProto]) -> list[str]:
    """The integers that a tensor was made of, with their scale and zero point; moved as it was."""
    maker = makers[name]
    if maker.op_type in _MOVES:
        integers, *grid = _integers_of(maker.input[0], makers)
        maker.input[0] = integers
        return [name, *grid]
    assert maker.op_type == "DequantizeLinear", maker.op_type
    return list(maker.input)


def _check_ends(clip: onnx.NodeProto, node: onnx.NodeProto, values: dict[str, np.ndarray]) -> None:
    scale, zero = (values[name] for name in node.input[1:])
    ends = np.iinfo(zero.dtype)
    assert zero == ends.min, f"{clip.name} clips within the grid behind it"
    if len(clip.input) > 2:
        assert values[clip.input[2]] >= (ends.max - int(zero)) * scale * 0.99


def _drop_unread(graph: onnx.GraphProto) -> None:
    """Leaves out the nodes whose results nothing reads."""
    wanted = {output.name for output in graph.output}
    kept = []
    for node in reversed(graph.node):
        if wanted.intersection(node.output):
            kept.append(node)
            wanted.update(node.input)
    del graph.node[:]
    graph.node.extend(reversed(kept))
