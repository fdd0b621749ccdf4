"""A network as it grows: kernel calls, the tensors between them, and constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.dtype import DType
from tilefarm.names import unused
from tilefarm.target import Target
from tilefarm.workload import ACCELERATED, AttrValue, TensorSpec, Workload

from driver.network.graph.ir import Shape
from driver.network.integer.blocks import blocked_shape, plane_shape
from driver.network.integer.network import (
    Network,
    NetworkOutput,
    NetworkStep,
    NetworkTensor,
    TensorKind,
)
from driver.network.integer.qir import QuantGraph, QuantTensor
from driver.network.partition.borders import with_early_borders
from driver.network.partition.unsupported import misfit

_NOTHING: Final[Mapping[str, tuple[str, Shape]]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant operand by its name in the network; equal names with equal values are one."""

    name: str
    values: NDArray[Any]


class Assembly:
    """Collects steps, tensors and constants of one network."""

    def __init__(self, graph: QuantGraph, target: Target) -> None:
        self._graph = graph
        self._target = target
        self._steps: dict[str, NetworkStep] = {}
        self._constants: dict[str, NDArray[Any]] = {}
        self.tensors: dict[str, NetworkTensor] = {}
        for i in graph.inputs:
            self.declare(i.name, i.shape, DType.FLOAT32, "input")

    def call(
        self,
        name: str,
        operator: str,
        data: Mapping[str, tuple[str, Shape]],
        constants: Mapping[str, Constant],
        attrs: Mapping[str, AttrValue],
        *,
        result: str,
        shape: Shape,
        why: str,
        dtype: DType = DType.INT8,
        macs: int = 0,
        behind: Mapping[str, tuple[str, Shape]] = _NOTHING,
    ) -> None:
        """Adds a step.

        Args:
            name: of the step; lengthened where another step has it.
            operator: of `tilefarm.workload.OPERATORS`.
            data: tensor and shape, as the kernel sees it, of every operand that is computed.
            constants: the other operands, by the names of the kernel's parameters like `data`.
            attrs: of the workload.
            result: the tensor that is written; one that nobody declared is made.
            shape: the result's, as the kernel sees it.
            why: the reason for the step's place, see `NetworkStep`; what the accelerator has an
                operator for, but no room, is on the processor for that reason.
            dtype: the result's.
            macs: useful multiply-accumulates.
            behind: operands like `data` that the kernel takes behind the constants.
        """
        if result not in self.tensors:
            self.declare(result, shape, dtype, "intermediate")
        names = [self.constant(each) for each in constants.values()]
        name = unused(name, self._steps)
        workload = self.workload(operator, data, constants, attrs, shape, dtype, behind)
        has_operator = operator in ACCELERATED
        refusal = misfit(workload, self._target) if has_operator else ""
        self._steps[name] = NetworkStep(
            name=name,
            workload=workload,
            inputs=(*_tensors(data), *names, *_tensors(behind)),
            outputs=(result,),
            place="accelerator" if has_operator and not refusal else "cpu",
            why=refusal or why,
            macs=macs,
        )

    def workload(
        self,
        operator: str,
        data: Mapping[str, tuple[str, Shape]],
        constants: Mapping[str, Constant],
        attrs: Mapping[str, AttrValue],
        shape: Shape,
        dtype: DType = DType.INT8,
        behind: Mapping[str, tuple[str, Shape]] = _NOTHING,
    ) -> Workload:
        """The workload of a step, see `call`."""
        fixed = [
            TensorSpec(parameter, each.values.shape, DType(str(each.values.dtype)))
            for parameter, each in constants.items()
        ]
        out = TensorSpec("out", shape, dtype)
        inputs = (*self._specs(data), *fixed, *self._specs(behind))
        return Workload(operator, inputs, (out,), tuple(attrs.items()))

    def _specs(self, operands: Mapping[str, tuple[str, Shape]]) -> list[TensorSpec]:
        """Of operands that are computed, by the names of parameters."""
        return [
            TensorSpec(parameter, seen, self.tensors[tensor].dtype)
            for parameter, (tensor, seen) in operands.items()
        ]

    def declare(
        self,
        name: str,
        shape: Shape,
        dtype: DType,
        kind: TensorKind,
        *,
        parent: str = "",
        offset: int = 0,
    ) -> str:
        """Makes a tensor known, or changes what is known of it; gives its name."""
        self.tensors[name] = NetworkTensor(
            name=name, shape=shape, dtype=dtype, kind=kind, parent=parent, offset=offset
        )
        return name

    def constant(self, constant: Constant) -> str:
        """The tensor that holds the constant."""
        name, values = constant.name, np.ascontiguousarray(constant.values)
        while name in self.tensors or name in self._graph.tensors:
            known = self._constants.get(name)
            if known is not None and known.tobytes() == values.tobytes():
                return name
            name += "_"
        self._constants[name] = values
        return self.declare(name, values.shape, DType(str(values.dtype)), "constant")

    def fresh(self, name: str) -> str:
        """A tensor's name that is not taken."""
        return unused(name, self.tensors, self._graph.tensors)

    def blocked(self, shape: Shape) -> Shape:
        """The shape in memory of a logical int8 tensor."""
        return blocked_shape(shape, self._target.lanes.batch, self._target.lanes.block)

    def stored(self, tensor: QuantTensor) -> Shape:
        """The shape in memory of a logical tensor: float32 as it is, int8 in blocks.

        int16 is two planes of int8 in blocks.
        """
        if tensor.dtype is DType.FLOAT32:
            return tensor.shape
        shape = self.blocked(tensor.shape)
        return plane_shape(shape) if tensor.dtype is DType.INT16 else shape

    def given_out(self, name: str) -> str:
        """Marks a tensor as an output; an input, or what is an output already, is copied."""
        if self.tensors[name].kind != "intermediate":
            name = self._copied(name)
        tensor = self.tensors[name]
        return self.declare(name, tensor.shape, tensor.dtype, "output")

    def _copied(self, name: str) -> str:
        """Another tensor of the same float32 values."""
        row = (1, math.prod(self.tensors[name].shape))
        copy = self.fresh(f"{name}.copy")
        self.call(
            copy,
            "concat",
            {"x0": (name, row)},
            {},
            {},
            result=copy,
            shape=row,
            dtype=DType.FLOAT32,
            why="copies what is given out under one more name",
        )
        return copy

    def network(self, as_output: Callable[[str], str]) -> Network:
        """The network of everything added so far; `as_output` gives the tensor of an output."""
        outputs = tuple(
            NetworkOutput(
                name=output.name,
                tensor=as_output(output.tensor),
                shape=self._graph.tensors[output.tensor].shape,
                grid=output.grid,
            )
            for output in self._graph.outputs
        )
        return Network(
            name=self._graph.name,
            target=self._target,
            inputs=self._graph.inputs,
            outputs=outputs,
            steps=with_early_borders(self._steps.values()),
            tensors=self.tensors,
            constants=self._constants,
        )


def _tensors(operands: Mapping[str, tuple[str, Shape]]) -> list[str]:
    return [tensor for tensor, _ in operands.values()]


def as_image(shape: Shape) -> Shape:
    """[N, C, ...] as [N, C, H, W], the same bytes when blocked."""
    n, c, *rest = shape
    height = rest[0] if rest else 1
    return (n, c, height, int(np.prod(rest[1:], initial=1)))
