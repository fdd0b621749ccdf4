"""Float network to one with fake quantization, as a file has it that was quantized before.

    y = Conv2d(x)   becomes   y = FakeQuantize(ScaleSums(Conv2d(FakeQuantize(x), whole weights)))

Activations get uint8 over the range of the data, with a zero point; weights int8 with a scale for
each channel. That suits targets that compute in ONNX's own arithmetic, see `onnx_arithmetic`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from driver.network.graph import ir
from driver.network.graph.float_run import run_float
from driver.network.graph.grid import BOUNDS, Grid
from driver.network.graph.ir import FloatArray, Graph, GraphNode
from driver.network.graph.shapes import graph_of
from driver.network.integer.qir import INT8_MAX
from driver.network.quantize.calibrate import by_name, calibrate
from driver.network.quantize.floats import float_nodes
from driver.network.quantize.methods import MIN_MAX, CalibrationMethod
from driver.network.quantize.scales import ScaleGroups

_STEPS: Final = BOUNDS["uint8"][1]
_MOST_BIAS: Final = 1 << 30
"""In steps of its sums: those of products with 8 bits, of up to 2^16 of them, leave int32 never."""
_TINY: Final = float(np.finfo(np.float32).tiny)
"""Below it float32 loses digits, down to none: what has smaller steps is zero, on every machine."""
_MOVES: Final = (ir.Concat, ir.Gather, ir.MaxPool2d, ir.Reshape, ir.Slice)
_IN_FLOAT: Final = (ir.Softmax, ir.Take)
"""Operators that have no form in integers, wherever they are."""


def with_fake_quantization(
    graph: Graph,
    calibration: FloatArray | Mapping[str, FloatArray],
    *,
    method: CalibrationMethod = MIN_MAX,
    keep_float: Sequence[str] = (),
) -> Graph:
    """The network that rounds wherever integers would; see `quantize.onnx_arithmetic` for these.

    Args:
        graph: a float network, folded.
        calibration: float32 [samples, ...] per input by name, or the array itself for one input.
        method: what decides how far ranges go.
        keep_float: names of nodes that stay in float32; patterns as in file names.

    Raises:
        DataError: see `quantize.calibrate.calibrate`.
        SettingsError: see `quantize.floats.float_nodes`.
    """
    reaches = calibrate(graph, calibration, method)
    floats = float_nodes(graph, keep_float, reaches)
    rounding = _Rounding(graph, _grids(graph, calibration, reaches))
    for node in graph.nodes:
        if node.name in floats or isinstance(node.op, _IN_FLOAT):
            rounding.keep(node)
        elif isinstance(node.op, _MOVES):
            rounding.move(node)
        else:
            rounding.round(node)
    return graph_of(graph.name, graph.inputs, graph.outputs, rounding.nodes)


def _grids(
    graph: Graph,
    calibration: FloatArray | Mapping[str, FloatArray],
    reaches: Mapping[str, float],
) -> dict[str, Grid]:
    """The grid of every tensor: that of a concatenation is one for its parts, see `ScaleGroups`."""
    groups = ScaleGroups(graph, reaches)
    ends: dict[str, tuple[float, float]] = {}

    def observe(name: str, values: FloatArray) -> None:
        group = groups.group(name) if groups.is_joined(name) else name
        lo, hi = ends.get(group, (0.0, 0.0))
        reach = reaches[name]
        least, most = max(float(values.min()), -reach), min(float(values.max()), reach)
        ends[group] = (min(lo, least), max(hi, most))

    run_float(graph, by_name(graph, calibration), observe=observe)
    return {
        name: _over(*ends[groups.group(name) if groups.is_joined(name) else name])
        for name in graph.shapes
    }


def _over(lo: float, hi: float) -> Grid:
    """The finest grid of uint8 from lo to hi, with 0."""
    scale = float(np.float32((hi - lo) / _STEPS))
    if scale < _TINY:
        scale = 1.0
    return Grid(scale, min(max(round(-lo / scale), 0), _STEPS), "uint8")


@dataclass(frozen=True, slots=True)
class _Rounded:
    """A tensor that holds reals of a grid alone."""

    name: str
    grid: Grid


class _Rounding:
    """Walks a graph in order; knows which tensors are on a grid."""

    def __init__(self, graph: Graph, grids: Mapping[str, Grid]) -> None:
        self.nodes: list[GraphNode] = []
        self._grids = grids
        self._rounded: dict[str, _Rounded] = {}
        for each in graph.inputs:
            if each.grid is not None and each.grid.held in ("int8", "uint8"):
                self._rounded[each.name] = _Rounded(each.name, each.grid)

    def keep(self, node: GraphNode) -> None:
        """Adds an operator that works on reals, and makes such."""
        self.nodes.append(node)

    def move(self, node: GraphNode) -> None:
        """Adds an operator whose results are on the grid of its operands, if they have one."""
        grids = {self._rounded[name].grid for name in node.inputs if name in self._rounded}
        if len(grids) != 1 or any(name not in self._rounded for name in node.inputs):
            self.keep(node)
            return
        inputs = tuple(self._rounded[name].name for name in node.inputs)
        self.nodes.append(replace(node, inputs=inputs))
        self._rounded[node.output] = _Rounded(node.output, grids.pop())

    def round(self, node: GraphNode) -> None:
        """Adds an operator whose operands are rounded, and whose result is."""
        operands = [self._on_grid(name) for name in node.inputs]
        inputs = tuple(each.name for each in operands)
        real = f"{node.output}.real"
        if isinstance(node.op, ir.Layer):
            self._layer(node.name, node.op, operands[0], real)
        else:
            self.nodes.append(replace(node, inputs=inputs, output=real))
        self._round(f"{node.name}.rounded", real, node.output, self._grids[node.output])

    def _layer(self, name: str, op: ir.Layer, x: _Rounded, output: str) -> None:
        """A layer with whole weights, and what makes reals of its sums."""
        step = np.float32(x.grid.scale)
        lanes = (-1, *(1,) * (op.weight.ndim - 1))
        largest = np.abs(op.weight).reshape(len(op.weight), -1).max(axis=1, initial=0)
        scale = np.maximum(largest / INT8_MAX, np.abs(op.bias) / (step * _MOST_BIAS))
        is_zero = np.minimum(scale, step * scale) < _TINY
        scale = np.where(is_zero, 1 / max(float(step), 1.0), scale).astype(np.float32)
        whole = np.clip(np.rint(op.weight / scale.reshape(lanes)), -INT8_MAX, INT8_MAX)
        sums = ir.ScaleSums(
            bias=np.rint(op.bias.astype(np.float64) / (step * scale)).astype(np.int32),
            scale=step * scale,
            step=x.grid.scale,
        )
        layer = replace(
            op,
            weight=whole.astype(np.float32),
            bias=np.zeros_like(op.bias),
            lo=-np.inf,
            hi=np.inf,
        )
        chain: list[tuple[str, ir.Operator]] = [(name, layer), (f"{name}.scaled", sums)]
        if op.lo > -np.inf or op.hi < np.inf:
            chain.append((f"{name}.clipped", ir.Clip(lo=op.lo, hi=op.hi)))
        source = x.name
        for at, (title, each) in enumerate(chain):
            made = output if each is chain[-1][1] else f"{output}.{at}"
            self.nodes.append(GraphNode(name=title, op=each, inputs=(source,), output=made))
            source = made

    def _on_grid(self, name: str) -> _Rounded:
        if name not in self._rounded:
            self._round(f"{name}.rounding", name, f"{name}.rounded", self._grids[name])
            self._rounded[name] = self._rounded[f"{name}.rounded"]
        return self._rounded[name]

    def _round(self, title: str, source: str, output: str, grid: Grid) -> None:
        op = ir.FakeQuantize(grid=grid)
        self.nodes.append(GraphNode(name=title, op=op, inputs=(source,), output=output))
        self._rounded[output] = _Rounded(output, grid)
