"""Float network to integer network: the shift-exact scheme, one rule for each operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from tilefarm.dtype import DType
from tilefarm.errors import ModelError

from driver.graph.calibrate import calibrate
from driver.graph.ir import (
    Add,
    Affine,
    AvgPool2d,
    Clip,
    Conv2d,
    Dense,
    FloatArray,
    Graph,
    GraphOutput,
    MaxPool2d,
    Node,
    Reshape,
    Shape,
    Softmax,
)
from driver.graph.qir import (
    INT8_MAX,
    Dequantize,
    QAdd,
    QAffine,
    QAvgPool2d,
    QConv2d,
    QDense,
    QMaxPool2d,
    QReshape,
    QSoftmax,
    QuantGraph,
    Quantize,
    QuantNode,
    QuantOperator,
    QuantTensor,
)
from driver.graph.shift_exact import (
    bounds,
    layer_parameters,
    least_out_scale,
    mean_parameters,
    sum_parameters,
)

_SOFTMAX_ENTRIES = 256
_LEAST_SCALE = 1e-30
"""Its inverse is still a float32."""


def quantize(graph: Graph, calibration: FloatArray | Mapping[str, FloatArray]) -> QuantGraph:
    """The integer network whose scales cover the calibration data.

    Args:
        graph: a float network, folded or not.
        calibration: float32 [samples, ...] per input by name, or the array itself for one input.

    Raises:
        ModelError: a layer whose sums cannot be kept within 32 bits; every such layer is listed.
    """
    return quantize_with(graph, calibrate(graph, calibration))


def quantize_with(graph: Graph, ranges: Mapping[str, float]) -> QuantGraph:
    """The integer network for given ranges: the largest magnitude of every tensor."""
    quantizer = _Quantizer(graph, ranges)
    reasons = []
    for node in graph.nodes:
        try:
            quantizer.take(node)
        except OverflowError as reason:
            reasons.append(f"{node.name} ({type(node.op).__name__}): {reason}")
            quantizer.skip(node)
    if reasons:
        raise ModelError("; ".join(reasons), "scale the weights of these layers down")
    return quantizer.finish()


@dataclass(frozen=True, slots=True)
class _Rule:
    """What became of one operator: its integer form and the scale of its result."""

    op: QuantOperator
    scale: float | None


class _Quantizer:
    """Walks a graph in order; knows the scale of every tensor made so far."""

    def __init__(self, graph: Graph, ranges: Mapping[str, float]) -> None:
        self._graph = graph
        self._ranges = ranges
        self._nodes: list[QuantNode] = []
        self._int8_of: dict[str, str] = {}
        self._tensors: dict[str, QuantTensor] = {
            i.name: QuantTensor(shape=i.shape, dtype=DType.FLOAT32) for i in graph.inputs
        }

    def take(self, node: Node) -> None:
        """Adds the integer form of one node.

        Raises:
            OverflowError: its sums cannot be kept within 32 bits.
        """
        if isinstance(node.op, Reshape):
            tensor = self._tensors[node.inputs[0]]
            self._emit(
                node.name, QReshape(shape=node.op.shape), node.inputs, node.output, tensor.scale
            )
            return
        names = tuple(self._as_int8(name) for name in node.inputs)
        if isinstance(node.op, Softmax):
            self._softmax(node, names[0])
            return
        rule = self._rule(node, [self._scale(name) for name in names])
        self._emit(node.name, rule.op, names, node.output, rule.scale)

    def skip(self, node: Node) -> None:
        """Gives a refused node's result a scale, so that the nodes behind it are still checked."""
        self._tensors[node.output] = QuantTensor(
            shape=self._graph.shapes[node.output], dtype=DType.INT8, scale=1.0
        )

    def finish(self) -> QuantGraph:
        """The network, its int8 outputs made real."""
        outputs = []
        for output in self._graph.outputs:
            tensor = self._tensors[output.tensor]
            name = output.tensor
            if tensor.scale is not None:
                name = self._fresh(f"{output.tensor}.float")
                op = Dequantize(scale=_float32(tensor.scale))
                self._emit(name, op, (output.tensor,), name, None)
            outputs.append(GraphOutput(name=output.name, tensor=name))
        return QuantGraph(
            name=self._graph.name,
            inputs=self._graph.inputs,
            outputs=tuple(outputs),
            nodes=tuple(self._nodes),
            tensors=self._tensors,
        )

    def _rule(self, node: Node, scales: list[float]) -> _Rule:
        in_scale = scales[0]
        wanted = self._wanted_scale(node.output)
        match node.op:
            case Conv2d() | Dense() | Affine() | Clip():
                return _layer_rule(node.op, in_scale, wanted, self._graph.shapes[node.inputs[0]])
            case Add(lo=lo, hi=hi):
                add = sum_parameters(in_scale, scales[1], wanted)
                low, high = bounds(lo, hi, add.out_scale)
                op = QAdd(mul_a=add.mul_a, mul_b=add.mul_b, shift=add.shift, lo=low, hi=high)
                return _Rule(op, add.out_scale)
            case AvgPool2d(window=window, divisor=divisor, lo=lo, hi=hi):
                mul, shift, scale = mean_parameters(
                    divisor, int(np.prod(window.kernel)), in_scale=in_scale, out_scale=wanted
                )
                low, high = bounds(lo, hi, scale)
                return _Rule(
                    QAvgPool2d(window=window, mul=mul, shift=shift, lo=low, hi=high), scale
                )
            case MaxPool2d(window=window):
                return _Rule(QMaxPool2d(window=window), in_scale)
        raise TypeError(f"no quantization rule for {type(node.op).__name__}")

    def _softmax(self, node: Node, source: str) -> None:
        """Softmax reads [N, C]; trailing axes of extent 1 are dropped and put back."""
        scale, shape = self._scale(source), self._graph.shapes[node.output]
        table = np.exp(-np.arange(_SOFTMAX_ENTRIES) * scale).astype(np.float32)
        op = QSoftmax(table=table)
        if len(shape) == 2:
            self._emit(node.name, op, (source,), node.output, None)
            return
        flat, result = self._fresh(f"{node.output}.flat"), self._fresh(f"{node.output}.rows")
        self._emit(flat, QReshape(shape=shape[1:2]), (source,), flat, scale)
        self._emit(node.name, op, (flat,), result, None)
        self._emit(result, QReshape(shape=shape[1:]), (result,), node.output, None)

    def _as_int8(self, name: str) -> str:
        """The int8 tensor of that value; a float one is quantized where it is first needed."""
        if self._tensors[name].scale is not None:
            return name
        if name not in self._int8_of:
            op = Quantize(inv_scale=_float32(1.0 / self._wanted_scale(name)))
            made = self._fresh(f"{name}.int8")
            self._emit(made, op, (name,), made, 1.0 / op.inv_scale)
            self._int8_of[name] = made
        return self._int8_of[name]

    def _emit(
        self,
        name: str,
        op: QuantOperator,
        inputs: tuple[str, ...],
        output: str,
        scale: float | None,
    ) -> None:
        self._nodes.append(QuantNode(name=name, op=op, inputs=inputs, output=output))
        self._tensors[output] = QuantTensor(
            shape=self._shape_of(op, inputs[0], output),
            dtype=DType.FLOAT32 if scale is None else DType.INT8,
            scale=scale,
        )

    def _shape_of(self, op: QuantOperator, source: str, output: str) -> Shape:
        """The graph's own shape, or that of a tensor which only the integer network has."""
        if output in self._graph.shapes:
            return self._graph.shapes[output]
        shape = self._tensors[source].shape
        return (shape[0], *op.shape) if isinstance(op, QReshape) else shape

    def _scale(self, name: str) -> float:
        scale = self._tensors[name].scale
        if scale is None:
            raise ValueError(f"{name} is not quantized")
        return scale

    def _wanted_scale(self, name: str) -> float:
        """The finest scale that covers the calibrated range; 1 for a tensor that is always zero."""
        reach = self._ranges[name]
        return max(reach / INT8_MAX, _LEAST_SCALE) if reach else 1.0

    def _fresh(self, name: str) -> str:
        while name in self._tensors or name in self._graph.shapes:
            name += "_"
        return name


def _layer_rule(
    op: Conv2d | Dense | Affine | Clip, in_scale: float, wanted: float, in_shape: Shape
) -> _Rule:
    match op:
        case Clip():
            ones = np.ones(in_shape[1], np.float32)
            weight, bias = ones[:, None], np.zeros_like(ones)
        case Affine(mul=mul, add=add):
            weight, bias = mul[:, None], add
        case _:
            weight, bias = op.weight, op.bias
    scale = max(wanted, least_out_scale(weight, in_scale))
    layer = layer_parameters(weight, bias, in_scale=in_scale, out_scale=scale)
    lo, hi = bounds(op.lo, op.hi, scale)
    match op:
        case Conv2d(window=window):
            return _Rule(
                QConv2d(
                    weight=layer.weight,
                    bias=layer.bias,
                    shift=layer.shift,
                    window=window,
                    lo=lo,
                    hi=hi,
                ),
                scale,
            )
        case Dense():
            return _Rule(
                QDense(weight=layer.weight, bias=layer.bias, shift=layer.shift, lo=lo, hi=hi),
                scale,
            )
    mul32 = layer.weight[:, 0].astype(np.int32)
    return _Rule(QAffine(mul=mul32, add=layer.bias, shift=layer.shift, lo=lo, hi=hi), scale)


def _float32(value: float) -> float:
    return float(np.float32(value))
