"""Integer network to kernel calls on one target: what runs where, on which blocked tensors."""

from __future__ import annotations

from functools import partial

from tilefarm.target import Target

from driver.network.integer.network import Network
from driver.network.integer.qir import (
    Dequantize,
    QAdd,
    QAffine,
    QAvgPool2d,
    QConcat,
    QConv2d,
    QConvTranspose2d,
    QDense,
    QGather,
    QLookup,
    QMatMul,
    QMaxPool2d,
    QProduct,
    QRescale,
    QReshape,
    QSlice,
    QSoftmax,
    QuantGraph,
    Quantize,
    QuantNode,
    Real,
)
from driver.network.partition.assembly import Assembly
from driver.network.partition.channels import Channels
from driver.network.partition.images import Images
from driver.network.partition.layer_calls import LayerCalls
from driver.network.partition.matmuls import MatMuls
from driver.network.partition.placement import OperatorPlacement
from driver.network.partition.processor import ProcessorCalls
from driver.network.partition.qlinear_partitioner import partition_qlinear
from driver.network.partition.real_steps import add_real_steps
from driver.network.partition.values import Values


def partition_network(graph: QuantGraph, target: Target) -> Network:
    """The network as kernel calls in the graph's order.

    Everything between the float32 tensors of the user runs on the accelerator, except what it has
    no form for or no room. Reshapes, concatenations and slices that leave the blocked bytes in
    place make no step; a reshape in front of a dense layer is taken into the order of its weights.

    Networks in ONNX's own arithmetic run on processors alone, see `partition.qlinear_partitioner`.

    Raises:
        ModelError: an operator of such a network has no kernel.
    """
    if graph.is_in_onnx_arithmetic:
        return partition_qlinear(graph, target)
    partitioner = _Partitioner(graph, target)
    for node in graph.nodes:
        partitioner.take(node)
    return partitioner.finish()


class _Partitioner:
    """Walks the integer network in order; knows which tensor holds each value."""

    def __init__(self, graph: QuantGraph, target: Target) -> None:
        self._graph = graph
        self._made = Assembly(graph, target)
        self._values = Values(graph, target, self._made)
        self._matmuls = MatMuls(graph, target, self._made, self._values)
        self._channels = Channels(graph, target, self._made, self._values)
        self._images = Images(graph, target, self._made, self._values)
        self._layers = LayerCalls(graph, target, self._made, self._values, self._images)
        self._processor = ProcessorCalls(graph, target, self._made, self._values)
        self._placement = OperatorPlacement(
            graph, target, self._made, self._values, self._processor
        )

    def take(self, node: QuantNode) -> None:
        """Adds the steps of one node, if it needs any."""
        match node.op:
            case QReshape():
                self._values.reshape(node)
            case QSlice():
                self._channels.cut(node, node.op)
            case QConcat():
                self._channels.join(node)
            case QConv2d():
                self._layers.conv(node, node.op)
            case QConvTranspose2d():
                self._layers.transposed(node, node.op)
            case QDense():
                self._layers.dense(node, node.op)
            case QMatMul():
                self._matmuls.call(node, node.op)
            case QAffine():
                self._layers.affine(node, node.op)
            case QAdd():
                self._placement.add(node, node.op)
            case QRescale(mul=mul, shift=shift):
                source, result = self._values.read(node.inputs[0]), self._values.result(node.output)
                self._channels.scale(
                    node.name, source, node.output, mul=mul, shift=shift, result=result
                )
            case QMaxPool2d(window=window):
                self._placement.max_pool(node, window)
            case QAvgPool2d():
                self._placement.avg_pool(node, node.op)
            case QLookup(table=table):
                self._processor.lookup(node, table)
            case QProduct():
                self._processor.product(node, node.op)
            case QGather() if self._matmuls.takes(node):
                pass
            case QGather() if node.inputs[0] in self._values.borders:
                pass
            case QGather() if self._images.is_all_windows(node):
                pass
            case QGather():
                self._processor.gather(node, node.op)
            case QSoftmax(table=table):
                self._processor.softmax(node, table)
            case Quantize() if self._images.is_all_windows(node):
                pass
            case Quantize():
                self._processor.quantize(node, node.op)
            case Real():
                tensors = self._graph.tensors
                operands = [(self._values.read(each), tensors[each].shape) for each in node.inputs]
                result_of = partial(self._values.result, node.output)
                add_real_steps(node, node.op, operands, self._made, result_of)
            case Dequantize():
                self._processor.dequantize(node, node.op)

    def finish(self) -> Network:
        """The network of everything taken so far."""
        return self._made.network(self._values.as_output)
