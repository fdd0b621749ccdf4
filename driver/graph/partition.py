"""Integer network to kernel calls on one target: what runs where, on which blocked tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tilefarm.dtype import DType
from tilefarm.target import Target
from tilefarm.workload import AttrValue, TensorSpec, Workload

from driver.graph.blocks import blocked_shape, is_view
from driver.graph.ir import Shape, Window
from driver.graph.network import (
    Network,
    NetworkOutput,
    NetworkStep,
    NetworkTensor,
    Place,
    TensorKind,
)
from driver.graph.pack import packed_conv_weight, packed_dense_weight, packed_lanes
from driver.graph.qir import (
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
    QuantTensor,
)

_ON_ACCELERATOR = "multiply-accumulates with a shift behind them: what GEMM and ALU do"
_WHY_CPU: Mapping[str, str] = {
    "quantize": "turns the user's float32 into int8",
    "dequantize": "turns int8 into the user's float32",
    "softmax": "needs float32 division",
    "relayout": "moves elements between lanes",
    "add": "element-wise on int8",
    "affine": "element-wise on int8",
    "max_pool2d": "no multiply-accumulates to win",
    "avg_pool2d": "no multiply-accumulates to win",
}


def partition(graph: QuantGraph, target: Target) -> Network:
    """The network as kernel calls in the graph's order.

    Convolution and dense run on the accelerator with their epilogue, the rest on the CPU. A reshape
    that leaves the blocked bytes in place makes no step; one in front of a dense layer is taken
    into the order of its weights.
    """
    partitioner = _Partitioner(graph, target)
    for node in graph.nodes:
        partitioner.take(node)
    return partitioner.finish()


class _Partitioner:
    """Walks the integer network in order and collects steps, tensors and constants."""

    def __init__(self, graph: QuantGraph, target: Target) -> None:
        self._graph = graph
        self._target = target
        self._steps: list[NetworkStep] = []
        self._tensors: dict[str, NetworkTensor] = {}
        self._constants: dict[str, NDArray[Any]] = {}
        self._holder: dict[str, str] = {}
        self._flattened: dict[str, QuantNode] = {}
        self._results = {output.tensor for output in graph.outputs}
        for i in graph.inputs:
            self._declare(i.name, i.shape, DType.FLOAT32, "input")
            self._holder[i.name] = i.name

    def take(self, node: QuantNode) -> None:
        """Adds the step of one node, if it needs one."""
        match node.op:
            case QReshape():
                self._reshape(node)
            case QConv2d() | QDense():
                self._layer(node)
            case QAffine(mul=mul, add=add, shift=shift, lo=lo, hi=hi):
                lanes = {"mul": mul, "add": add, "shift": shift}
                packed = {k: packed_lanes(v, self._target) for k, v in lanes.items()}
                self._cpu(node, "affine", packed, lo=lo, hi=hi)
            case QAvgPool2d(mul=mul, shift=shift, lo=lo, hi=hi, window=window):
                attrs = {**_window_attrs(window), "shift": shift, "lo": lo, "hi": hi}
                self._cpu(node, "avg_pool2d", {"mul": mul}, **attrs)
            case QMaxPool2d(window=window):
                self._cpu(node, "max_pool2d", {}, **_window_attrs(window))
            case QSoftmax(table=table):
                self._cpu(node, "softmax", {"table": table})
            case QAdd():
                op = node.op
                scales: dict[str, AttrValue] = {"mul_a": op.mul_a, "mul_b": op.mul_b}
                self._cpu(node, "add", {}, **scales, shift=op.shift, lo=op.lo, hi=op.hi)
            case Quantize(inv_scale=inv_scale):
                self._cpu(node, "quantize", {}, inv_scale=inv_scale)
            case Dequantize(scale=scale):
                self._cpu(node, "dequantize", {}, scale=scale)

    def finish(self) -> Network:
        """The network of everything taken so far."""
        outputs = tuple(
            NetworkOutput(
                name=output.name,
                tensor=self._as_result(output.tensor),
                shape=self._graph.tensors[output.tensor].shape,
            )
            for output in self._graph.outputs
        )
        return Network(
            name=self._graph.name,
            target=self._target,
            inputs=self._graph.inputs,
            outputs=outputs,
            steps=tuple(self._steps),
            tensors=self._tensors,
            constants=self._constants,
        )

    def _layer(self, node: QuantNode) -> None:
        op = node.op
        source, result = self._graph.tensors[node.inputs[0]], self._graph.tensors[node.output]
        if isinstance(op, QConv2d):
            operator, macs = "conv2d", math.prod(result.shape) * math.prod(op.weight.shape[1:])
            data = self._read(node.inputs[0])
            weight = packed_conv_weight(op.weight, self._target)
            window = op.window
            attrs: dict[str, AttrValue] = {
                "stride": window.stride,
                "pad": window.pad,
                "dilation": window.dilation,
            }
            data_shape = self._blocked(source.shape)
        elif isinstance(op, QDense):
            operator, macs = "dense", math.prod(result.shape) * op.weight.shape[1]
            data, flattened = self._dense_data(node.inputs[0])
            weight = packed_dense_weight(op.weight, self._target, flattened)
            attrs = {}
            batch, block = self._target.vta.batch, self._target.vta.block
            data_shape = (self._blocked(source.shape)[0], weight.shape[1], batch, block)
        else:
            raise TypeError(f"{node.name} is not a layer")
        constants = {
            "weight": weight,
            "bias": packed_lanes(op.bias, self._target),
            "shift": packed_lanes(op.shift, self._target),
        }
        self._step(
            node,
            operator,
            (TensorSpec("data", data_shape, DType.INT8),),
            (data,),
            constants,
            {**attrs, "lo": op.lo, "hi": op.hi},
            place="accelerator",
            macs=macs,
        )

    def _cpu(
        self,
        node: QuantNode,
        operator: str,
        constants: Mapping[str, NDArray[Any]],
        **attrs: AttrValue,
    ) -> None:
        names = ("a", "b") if operator == "add" else ("x",)
        specs = tuple(
            self._spec(name, self._graph.tensors[source])
            for name, source in zip(names, node.inputs, strict=True)
        )
        sources = tuple(self._read(source) for source in node.inputs)
        self._step(node, operator, specs, sources, constants, attrs, place="cpu")

    def _step(
        self,
        node: QuantNode,
        operator: str,
        data_specs: tuple[TensorSpec, ...],
        sources: tuple[str, ...],
        constants: Mapping[str, NDArray[Any]],
        attrs: Mapping[str, AttrValue],
        *,
        place: Place,
        macs: int = 0,
    ) -> None:
        out = self._spec("out", self._graph.tensors[node.output])
        names = tuple(self._constant(f"{node.name}.{k}", v) for k, v in constants.items())
        specs = tuple(TensorSpec(k, v.shape, DType(str(v.dtype))) for k, v in constants.items())
        workload = Workload(operator, data_specs + specs, (out,), tuple(attrs.items()))
        why = _ON_ACCELERATOR if place == "accelerator" else _WHY_CPU[operator]
        self._declare(node.output, out.shape, out.dtype, "intermediate")
        self._holder[node.output] = node.output
        self._steps.append(
            NetworkStep(
                name=node.name,
                workload=workload,
                inputs=sources + names,
                outputs=(node.output,),
                place=place,
                why=why,
                macs=macs,
            )
        )

    def _reshape(self, node: QuantNode) -> None:
        """A view where no byte moves; otherwise a relayout, made when somebody needs it."""
        source = self._graph.tensors[node.inputs[0]]
        result = self._graph.tensors[node.output]
        if source.dtype is DType.FLOAT32 or is_view(source.shape, result.shape):
            self._holder[node.output] = self._read(node.inputs[0])
        else:
            self._flattened[node.output] = node

    def _read(self, name: str) -> str:
        """The tensor that holds that value in the layout of its own shape."""
        if name not in self._holder:
            node = self._flattened[name]
            shapes = {
                "logical_in": self._graph.tensors[node.inputs[0]].shape,
                "logical_out": self._graph.tensors[name].shape,
            }
            self._cpu(node, "relayout", {}, **shapes)
        return self._holder[name]

    def _dense_data(self, name: str) -> tuple[str, Shape | None]:
        """Where a dense layer reads, and the shape whose blocked order its weights must follow."""
        if name in self._holder or name not in self._flattened:
            return self._read(name), None
        source = self._flattened[name].inputs[0]
        shape = self._graph.tensors[source].shape
        if shape[0] != self._graph.tensors[name].shape[0] or len(shape) < 3:
            return self._read(name), None
        return self._read(source), shape[1:]

    def _as_result(self, name: str) -> str:
        """Marks the tensor behind an output of the graph."""
        holder = self._read(name)
        tensor = self._tensors[holder]
        if tensor.kind == "intermediate":
            self._declare(holder, tensor.shape, tensor.dtype, "output")
        return holder

    def _declare(self, name: str, shape: Shape, dtype: DType, kind: TensorKind) -> None:
        self._tensors[name] = NetworkTensor(name=name, shape=shape, dtype=dtype, kind=kind)

    def _constant(self, name: str, values: NDArray[Any]) -> str:
        while name in self._tensors or name in self._graph.tensors:
            name += "_"
        self._constants[name] = np.ascontiguousarray(values)
        self._declare(name, values.shape, DType(str(values.dtype)), "constant")
        return name

    def _spec(self, name: str, tensor: QuantTensor) -> TensorSpec:
        """The parameter of a kernel for a logical tensor: float32 as it is, int8 in blocks."""
        if tensor.dtype is DType.FLOAT32:
            return TensorSpec(name, tensor.shape, DType.FLOAT32)
        return TensorSpec(name, self._blocked(tensor.shape), DType.INT8)

    def _blocked(self, shape: Shape) -> Shape:
        return blocked_shape(shape, self._target.vta.batch, self._target.vta.block)


def _window_attrs(window: Window) -> dict[str, AttrValue]:
    return {"kernel": window.kernel, "stride": window.stride, "pad": window.pad}
