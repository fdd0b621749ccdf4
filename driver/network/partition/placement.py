"""What both sides have an operator for: the accelerator's where it fits, else the processor's."""

from __future__ import annotations

from collections.abc import Mapping

from tilefarm.target import Target

from driver.network.graph.ir import Shape, Window
from driver.network.integer.qir import QAdd, QAvgPool2d, QuantGraph, QuantNode
from driver.network.integer.signs import never_negative
from driver.network.partition.assembly import Assembly, Constant
from driver.network.partition.layers import MAXIMA, SCALES, Attrs, diagonal, pool_attrs
from driver.network.partition.processor import ProcessorCalls
from driver.network.partition.unsupported import misfit
from driver.network.partition.values import Values


class OperatorPlacement:
    """Makes the calls of operators that both sides have."""

    def __init__(
        self,
        graph: QuantGraph,
        target: Target,
        made: Assembly,
        values: Values,
        alone: ProcessorCalls,
    ) -> None:
        self._target = target
        self._made = made
        self._values = values
        self._alone = alone
        self._positive = never_negative(graph)

    def add(self, node: QuantNode, op: QAdd) -> None:
        """A sum of two tensors of different scales."""
        operands = {
            name: self._values.operand(tensor)
            for name, tensor in zip("ab", node.inputs, strict=True)
        }
        scales = {
            "scale_a": diagonal(op.mul_a, self._target),
            "scale_b": diagonal(op.mul_b, self._target),
        }
        attrs: Attrs = {"shift": op.shift, "lo": op.lo, "hi": op.hi}
        why = self._accelerated(node, "scaled_add", operands, scales, attrs, SCALES)
        if why:
            self._made.call(
                node.name,
                "add",
                operands,
                {},
                {"mul_a": op.mul_a, "mul_b": op.mul_b, **attrs},
                result=self._values.result(node.output),
                shape=self._values.image(node.output),
                why=why,
            )

    def max_pool(self, node: QuantNode, window: Window) -> None:
        """The largest of each window."""
        attrs = pool_attrs(window)
        why = "its input may be negative, and padding counts as 0 on the accelerator"
        if node.inputs[0] in self._positive:
            data = {"x": self._values.operand(node.inputs[0])}
            identity = {"identity": diagonal(1, self._target)}
            why = self._accelerated(node, "window_max2d", data, identity, attrs, MAXIMA)
        if why:
            self._alone.step(node, "max_pool2d", why, {}, **attrs)

    def avg_pool(self, node: QuantNode, op: QAvgPool2d) -> None:
        """The mean of each window."""
        attrs: Attrs = {**pool_attrs(op.window), "shift": op.shift, "lo": op.lo, "hi": op.hi}
        why = "windows at the border count fewer elements and have multipliers of their own"
        if (op.mul == op.mul.flat[0]).all():
            data = {"x": self._values.operand(node.inputs[0])}
            scale = {"scale": diagonal(int(op.mul.flat[0]), self._target)}
            why = self._accelerated(node, "window_sum2d", data, scale, attrs, SCALES)
        if why:
            constants = {"mul": Constant(f"{node.name}.mul", op.mul)}
            self._alone.step(node, "avg_pool2d", why, constants, **attrs)

    def _accelerated(
        self,
        node: QuantNode,
        operator: str,
        data: Mapping[str, tuple[str, Shape]],
        tiles: Mapping[str, Constant],
        attrs: Attrs,
        why: str,
    ) -> str:
        """Adds a step on the accelerator, or says why it cannot be there.

        For what the processor has an operator of its own for, which needs no tiles.
        """
        shape = self._values.image(node.output)
        reason = misfit(self._made.workload(operator, data, tiles, attrs, shape), self._target)
        if not reason:
            result = self._values.result(node.output)
            self._made.call(
                node.name, operator, data, tiles, attrs, result=result, shape=shape, why=why
            )
        return reason
