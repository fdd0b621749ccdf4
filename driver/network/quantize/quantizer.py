"""Float network to integer network: the shift-exact scheme, one rule for each operator."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from tilefarm.dtype import DType
from tilefarm.errors import ModelError, SettingsError
from tilefarm.names import unused

from driver.network.graph import ir
from driver.network.graph.ir import FloatArray, Graph, GraphNode, Shape
from driver.network.integer import qir
from driver.network.integer.qir import INT8_MAX, QuantGraph, QuantNode, QuantTensor, result_type
from driver.network.integer.real_views import places_of
from driver.network.quantize.float_form import FloatForm, form_of
from driver.network.quantize.floats import float_nodes
from driver.network.quantize.integer_weights import read_by_layers
from driver.network.quantize.options import AS_USUAL, DATA_NEEDED, Quantization
from driver.network.quantize.power_of_two_requantization import (
    LARGEST_INPUT,
    MAX_SHIFT,
    LargestMagnitudes,
)
from driver.network.quantize.refining import Refinement, refined, refined_without_data
from driver.network.quantize.rules import RuleContext, rescale_rule, rule_for
from driver.network.quantize.scales import ScaleGroups
from driver.network.quantize.synthetic_inputs import made_up_inputs
from driver.network.quantize.wide_activations import largest_results, wide_results, with_spare
from driver.network.quantize.wide_weights import wide_nodes
from driver.network.quantize.zero_points import with_rounded_middles

_SOFTMAX_ENTRIES = 256
_LEAST_SCALE = 1e-30
"""Its inverse is still a float32."""
_SAME_SCALE = 1e-6
"""What rounding to float32 may do to a scale."""
_BLOCK = 16


def quantize(
    graph: Graph,
    calibration: FloatArray | Mapping[str, FloatArray] | None,
    how: Quantization = AS_USUAL,
    *,
    block: int = _BLOCK,
    max_shift: int = MAX_SHIFT,
    form: FloatForm | None = None,
) -> QuantGraph:
    """The integer network whose scales cover the ranges that the model gives, else the data's.

    Args:
        graph: a float network, folded or not.
        calibration: float32 [samples, ...] per input by name, or the array itself for one input;
            None where the model gives every range.
        how: what the user decides.
        block: channels of one vector of the target.
        max_shift: by how many bits sums of weights are shifted at most.
        form: of the same arguments, if that is known, see `quantize.float_form.form_of`.

    Raises:
        ModelError: a layer whose sums cannot be kept within 32 bits; every such layer is listed.
        DataError: see `quantize.ranges.ranges_of`.
        SettingsError: what is wanted needs data, or see `quantize.floats.float_nodes`,
            `quantize.wide_weights.wide_nodes` and
            `quantize.wide_activations.wide_results`.
    """
    if calibration is None and how.needs_data:
        raise SettingsError(
            f"{graph.name}: {DATA_NEEDED} --calibrate DATA.npz", "give data, or leave them out"
        )
    form = form or form_of(graph, calibration, how)
    graph = form.graph
    quantized = quantize_with(
        graph,
        form.ranges,
        block,
        how.keep_float,
        how.wide or (),
        sorted(form.wide_results),
        multiplied=how.requantize == "mul",
        max_shift=max_shift,
    )
    if form.middle:
        quantized = with_rounded_middles(quantized, graph, form.middle)
    wanted = Refinement(
        block=block,
        # weights that were rounded once already have no bit to spare
        shares=how.share_shifts or (how.share_shifts is None and not graph.ranges),
        shares_all=bool(how.share_shifts),
        fits=how.fit_weights,
        corrects=how.correct_bias is not False,
    )
    if calibration is not None:
        return refined(quantized, graph, calibration, wanted)
    quantized = refined_without_data(quantized, graph, wanted)
    made_up = made_up_inputs(graph)
    if made_up is None:
        return quantized
    return refined(quantized, graph, made_up, replace(wanted, shares=False, fits=False))


def require_layers(graph: Graph, how: Quantization) -> None:
    """Nothing if the network has the layers that the user names, so that nothing is begun first.

    Raises:
        SettingsError: see `float_nodes`, `wide_nodes` and `wide_results`.
    """
    floats = float_nodes(graph, how.keep_float)
    wide_nodes(graph, how.wide or (), floats)
    wide_results(graph, how.wide_activations or (), floats)


def quantize_with(
    graph: Graph,
    ranges: Mapping[str, float],
    block: int = _BLOCK,
    keep_float: Sequence[str] = (),
    wide: Sequence[str] = (),
    wide_activations: Sequence[str] = (),
    *,
    multiplied: bool = False,
    max_shift: int = MAX_SHIFT,
) -> QuantGraph:
    """The integer network for given ranges: the largest magnitude of every tensor.

    Its layers have factors if they are `multiplied`; those that patterns name are in float, or have
    weights or results of 16 bits.

    Raises:
        ModelError, SettingsError: as for `quantize`.
    """
    floats = float_nodes(graph, keep_float, ranges)
    with_wide_weights = wide_nodes(graph, wide, floats)
    with_wide_results = wide_results(graph, wide_activations, floats)
    quantizer = _Quantizer(
        graph,
        ranges,
        floats,
        block,
        wide=with_wide_weights,
        most=largest_results(graph, with_wide_results, with_wide_weights, max_shift),
        multiplied=multiplied,
        max_shift=max_shift,
    )
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


class _Quantizer:
    """Walks a graph in order; knows the scale of every tensor made so far."""

    def __init__(
        self,
        graph: Graph,
        ranges: Mapping[str, float],
        floats: Mapping[str, str],
        block: int,
        *,
        wide: Collection[str],
        most: Mapping[str, int],
        multiplied: bool,
        max_shift: int,
    ) -> None:
        self._graph = graph
        self._floats = floats
        self._ties = ScaleGroups(graph, ranges)
        self._ranges = with_spare(graph, self._ties.ranges(ranges), most)
        self._largest: dict[str, float] = {}
        self._block = block
        self._wide = wide
        self._most = most
        self._multiplied = multiplied
        self._max_shift = max_shift
        self._coarser = read_by_layers(graph) if graph.ranges else frozenset()
        self._nodes: list[QuantNode] = []
        self._int8_of: dict[str, str] = {}
        self._float_of: dict[str, str] = {}
        self._tensors: dict[str, QuantTensor] = {
            i.name: QuantTensor(shape=i.shape, dtype=DType.FLOAT32) for i in graph.inputs
        }

    def take(self, node: GraphNode) -> None:
        """Adds the integer form of one node.

        Raises:
            OverflowError: its sums cannot be kept within 32 bits.
        """
        if isinstance(node.op, ir.SubtractZeroPoint):
            self._centered(node.inputs[0], node.output, node.op.middle)
            return
        if node.name in self._floats:
            names = tuple(self._as_float(name) for name in node.inputs)
            op = qir.Real(op=node.op, why=self._floats[node.name])
            self._emit(node.name, op, names, node.output, None)
            return
        if isinstance(node.op, ir.Reshape):
            tensor = self._tensors[node.inputs[0]]
            self._emit(
                node.name, qir.QReshape(shape=node.op.shape), node.inputs, node.output, tensor.scale
            )
            self._tensors[node.output] = replace(tensor, shape=self._tensors[node.output].shape)
            return
        names = tuple(self._as_int8(name) for name in node.inputs)
        if isinstance(node.op, ir.Add | ir.Product):
            names = tuple(self._repeated(name, node.output) for name in names)
        if isinstance(node.op, ir.Softmax):
            self._softmax(node, names[0])
            return
        if isinstance(node.op, ir.Concat):
            self._concat(node, names)
            return
        at = RuleContext(
            in_scales=tuple(self._scale(name) for name in names),
            in_shape=self._graph.shapes[node.inputs[0]],
            wanted=self._wanted_scale(node.output),
            block=self._block,
            may_be_coarser=node.output in self._coarser,
            multiplied=self._multiplied,
            were_whole=bool(self._graph.ranges),
            max_shift=self._max_shift,
            is_wide=node.name in self._wide,
            largest=LargestMagnitudes(
                operand=self._tensors[names[0]].largest,
                result=self._most.get(node.output, LARGEST_INPUT),
            ),
        )
        rule = rule_for(node.op, at)
        self._emit(node.name, rule.op, names, node.output, rule.scale)

    def skip(self, node: GraphNode) -> None:
        """Gives a refused node's result a scale, so that the nodes behind it are still checked."""
        self._tensors[node.output] = QuantTensor(
            shape=self._graph.shapes[node.output], dtype=DType.INT8, scale=1.0
        )

    def finish(self) -> QuantGraph:
        """The network, its int8 outputs made real."""
        outputs = []
        for output in self._graph.outputs:
            outputs.append(replace(output, tensor=self._as_float(output.tensor)))
        return QuantGraph(
            name=self._graph.name,
            inputs=self._graph.inputs,
            outputs=tuple(outputs),
            nodes=tuple(self._nodes),
            tensors=self._tensors,
        )

    def _concat(self, node: GraphNode, names: tuple[str, ...]) -> None:
        """Operands that did not get the largest scale of all are brought to it."""
        scale = max(self._scale(name) for name in names)
        joined = []
        for name in names:
            if not math.isclose(self._scale(name), scale, rel_tol=_SAME_SCALE):
                rule = rescale_rule(self._scale(name), scale)
                made = self._fresh(f"{name}.rescaled")
                self._emit(made, rule.op, (name,), made, scale)
                name = made
            joined.append(name)
        self._emit(node.name, qir.QConcat(), tuple(joined), node.output, scale)

    def _softmax(self, node: GraphNode, source: str) -> None:
        """Softmax reads [N, C]; trailing axes of extent 1 are dropped and put back."""
        scale, shape = self._scale(source), self._graph.shapes[node.output]
        table = np.exp(-np.arange(_SOFTMAX_ENTRIES) * scale).astype(np.float32)
        op = qir.QSoftmax(table=table)
        if len(shape) == 2:
            self._emit(node.name, op, (source,), node.output, None)
            return
        flat, result = self._fresh(f"{node.output}.flat"), self._fresh(f"{node.output}.rows")
        self._emit(flat, qir.QReshape(shape=shape[1:2]), (source,), flat, scale)
        self._emit(node.name, op, (flat,), result, None)
        self._emit(result, qir.QReshape(shape=shape[1:]), (result,), node.output, None)

    def _centered(self, source: str, made: str, middle: float) -> None:
        """An input of the user's less its middle in int8, or a result with its middle in float."""
        scale = self._tensors[source].scale
        if scale is None:
            self._quantize(source, made, self._wanted_scale(made), middle)
        else:
            op = qir.Dequantize(scale=_float32(scale), offset=_float32(-middle))
            self._emit(made, op, (source,), made, None)

    def _as_int8(self, name: str) -> str:
        """The int8 tensor of that value; a float one is quantized where it is first needed."""
        if self._tensors[name].scale is not None:
            return name
        if name not in self._int8_of:
            self._int8_of[name] = made = self._fresh(f"{name}.int8")
            self._quantize(name, made, self._wanted_scale(name))
        return self._int8_of[name]

    def _quantize(self, source: str, made: str, scale: float, middle: float = 0.0) -> None:
        """Makes int8 of a float32 tensor less its middle."""
        op = qir.Quantize(inv_scale=_float32(1.0 / scale), offset=_float32(-middle / scale))
        self._emit(made, op, (source,), made, 1.0 / op.inv_scale)

    def _as_float(self, name: str) -> str:
        """The float32 tensor of that value; an int8 one is made real where that is first needed."""
        scale = self._tensors[name].scale
        if scale is None:
            return name
        if name not in self._float_of:
            made = self._fresh(f"{name}.float")
            self._emit(made, qir.Dequantize(scale=_float32(scale)), (name,), made, None)
            self._float_of[name] = made
        return self._float_of[name]

    def _repeated(self, name: str, result: str) -> str:
        """An int8 operand with as many elements as the result of a binary operator."""
        shape, wanted = self._tensors[name].shape, self._graph.shapes[result]
        if shape == wanted:
            return name
        index = np.ascontiguousarray(np.broadcast_to(places_of(shape), wanted[1:]))
        made = self._fresh(f"{result}.of.{name}")
        self._emit(made, qir.QGather(index=index), (name,), made, self._scale(name))
        return made

    def _emit(
        self,
        name: str,
        op: qir.QuantOperator,
        inputs: tuple[str, ...],
        output: str,
        scale: float | None,
    ) -> None:
        self._nodes.append(QuantNode(name=name, op=op, inputs=inputs, output=output))
        shape, dtype, largest = self._shape_of(op, inputs[0], output), DType.INT8, LARGEST_INPUT
        if scale is None:
            dtype = DType.FLOAT32
        elif isinstance(op, qir.QConv2d | qir.QDense) and result_type(op.lo, op.hi) is DType.INT16:
            dtype, largest = DType.INT16, max(-op.lo, op.hi)
        self._tensors[output] = QuantTensor(shape=shape, dtype=dtype, scale=scale, largest=largest)
        if scale is not None and self._is_tied(output):
            group = self._ties.group(output)
            self._largest[group] = max(self._largest.get(group, 0.0), scale)

    def _is_tied(self, name: str) -> bool:
        return name in self._graph.shapes and self._ties.is_joined(name)

    def _shape_of(self, op: qir.QuantOperator, source: str, output: str) -> Shape:
        """The graph's own shape, or that of a tensor which only the integer network has."""
        if output in self._graph.shapes:
            return self._graph.shapes[output]
        shape = self._tensors[source].shape
        match op:
            case qir.QReshape():
                return (shape[0], *op.shape)
            case qir.QGather():
                return (shape[0], *op.index.shape)
        return shape

    def _scale(self, name: str) -> float:
        scale = self._tensors[name].scale
        if scale is None:
            raise ValueError(f"{name} is not quantized")
        return scale

    def _wanted_scale(self, name: str) -> float:
        """The finest scale that covers the calibrated range; 1 for a tensor that is always zero.

        Not finer than that of tensors made before it which must have the same.
        """
        reach = self._ranges[name]
        finest = max(reach / self._most.get(name, INT8_MAX), _LEAST_SCALE) if reach else 1.0
        return max(finest, self._largest.get(self._ties.group(name), 0.0))

    def _fresh(self, name: str) -> str:
        return unused(name, self._tensors, self._graph.shapes)


def _float32(value: float) -> float:
    return float(np.float32(value))
