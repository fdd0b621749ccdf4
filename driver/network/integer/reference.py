"""Right answers: the integer network, a single workload and a partitioned network in numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tilefarm.dtype import DType
from tilefarm.workload import TensorSpec, Workload

from driver.network.graph.columns import gathered
from driver.network.graph.ir import FloatArray
from driver.network.graph.parts import in_parts, samples_at_once, threads_for
from driver.network.integer import arithmetic as integer
from driver.network.integer import qir
from driver.network.integer.accelerated import ACCELERATED_KERNELS
from driver.network.integer.borders import written
from driver.network.integer.cpu_kernels import CPU_KERNELS
from driver.network.integer.network import Network
from driver.network.integer.qir import QuantGraph
from driver.network.integer.qlinear import QLinearOperator
from driver.network.integer.qlinear_arithmetic import apply_qlinear
from driver.network.integer.real_run import run_real

Array: TypeAlias = NDArray[Any]


def run_integer(
    graph: QuantGraph,
    inputs: Mapping[str, FloatArray],
    *,
    keep: bool = False,
    heard: Callable[[int], None] | None = None,
) -> dict[str, Array]:
    """The outputs by name, float32 [samples, ...], for inputs [samples, ...] in the graph's layout.

    With `keep` every tensor by its own name comes with them; an output that shares the name of a
    tensor is left out. `heard` gets the number of samples of a part that is done.
    """
    most = samples_at_once(tensor.shape for tensor in graph.tensors.values())
    return in_parts(
        lambda part: _run_part(graph, part, keep=keep),
        inputs,
        most,
        heard,
        threads=threads_for(most),
    )


def _run_part(
    graph: QuantGraph, inputs: Mapping[str, FloatArray], *, keep: bool
) -> dict[str, Array]:
    values: dict[str, Array] = {
        i.name: np.asarray(inputs[i.name], np.float32) for i in graph.inputs
    }
    last_use = {name: node for node in graph.nodes for name in node.inputs}
    wanted = {output.tensor for output in graph.outputs}
    for node in graph.nodes:
        values[node.output] = apply(node.op, *(values[name] for name in node.inputs))
        for name in {*node.inputs}:
            if not keep and name not in wanted and last_use[name] is node:
                del values[name]
    results = {output.name: values[output.tensor] for output in graph.outputs}
    return {**results, **values} if keep else results


_KERNELS: Final[Mapping[type[qir.QuantOperator], Callable[..., Array]]] = {
    qir.QConv2d: integer.conv2d,
    qir.QConvTranspose2d: integer.conv2d_transpose,
    qir.QDense: integer.dense,
    qir.QMatMul: integer.matmul,
    qir.QAdd: integer.add,
    qir.QAffine: integer.affine,
    qir.QRescale: integer.rescale,
    qir.QLookup: integer.lookup,
    qir.QProduct: integer.product,
    qir.QGather: gathered,
    qir.QMaxPool2d: integer.max_pool2d,
    qir.QAvgPool2d: integer.avg_pool2d,
    qir.QConcat: lambda *operands: np.concatenate(operands, axis=1),
    qir.QSlice: lambda x, start, stop: x[:, start:stop],
    qir.QReshape: lambda x, shape: x.reshape(x.shape[0], *shape),
    qir.QSoftmax: integer.softmax,
    qir.Quantize: integer.quantize,
    qir.Dequantize: integer.dequantize,
}
"""What computes each operator: a function of its operands and, by their names, its fields."""


def apply(op: qir.QuantOperator, *operands: Array) -> Array:
    """The result of one integer operator on logical tensors."""
    if isinstance(op, qir.Real):
        return run_real(op.op, operands)
    if isinstance(op, QLinearOperator):
        return apply_qlinear(op, *operands)
    return _KERNELS[type(op)](
        *operands, **{each.name: getattr(op, each.name) for each in fields(op)}
    )


def run_workload(workload: Workload, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The workload's outputs by name, on blocked arrays as `tilefarm.workload.OPERATORS` says.

    What it does not write of them is zero.
    """
    out = workload.outputs[0]
    arrays = {spec.name: inputs[spec.name].reshape(spec.shape) for spec in workload.inputs}
    kernels = ACCELERATED_KERNELS if workload.operator in ACCELERATED_KERNELS else CPU_KERNELS
    result = kernels[workload.operator](workload, arrays)
    return {out.name: np.ascontiguousarray(result.reshape(out.shape))}


def run_network(network: Network, inputs: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """One run of a partitioned network: inputs and outputs by name in their logical shapes."""
    memory = _Memory(network)
    for _ in _steps(network, inputs, memory):
        pass
    return {
        output.name: memory.read(
            output.tensor, TensorSpec(output.name, output.shape, DType.FLOAT32)
        ).copy()
        for output in network.outputs
    }


@dataclass(frozen=True, slots=True, eq=False)
class StepRun:
    """What one step read and made in one run, arrays by the parameters of its workload."""

    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]


def step_runs(network: Network, inputs: Mapping[str, FloatArray]) -> Iterator[StepRun]:
    """One run of a partitioned network, step by step. What is not constant is copied."""
    for step, each in zip(network.steps, _steps(network, inputs, _Memory(network)), strict=True):
        kept = {
            spec.name: values if network.tensors[name].kind == "constant" else values.copy()
            for (spec, name), values in zip(
                zip(step.workload.inputs, step.inputs, strict=True),
                each.inputs.values(),
                strict=True,
            )
        }
        yield StepRun(kept, each.outputs)


def _steps(
    network: Network, inputs: Mapping[str, FloatArray], memory: _Memory
) -> Iterator[StepRun]:
    """Runs the steps in a memory; arrays that are read are parts of it."""
    for i in network.inputs:
        memory.write(i.name, np.asarray(inputs[i.name], np.float32))
    for step in network.steps:
        specs = step.workload.inputs
        arrays = {
            spec.name: memory.read(name, spec)
            for spec, name in zip(specs, step.inputs, strict=True)
        }
        results = run_workload(step.workload, arrays)
        yield StepRun(arrays, results)
        for spec, name in zip(step.workload.outputs, step.outputs, strict=True):
            memory.write(name, results[spec.name], written(step.workload))


class _Memory:
    """The bytes of every tensor of a network; views are parts of others."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._bytes = {
            name: np.zeros(tensor.nbytes, np.uint8)
            for name, tensor in network.tensors.items()
            if tensor.kind not in ("constant", "view")
        }
        for name, values in network.constants.items():
            self._bytes[name] = np.frombuffer(values.tobytes(), np.uint8)

    def read(self, name: str, spec: TensorSpec) -> Array:
        """The tensor as a kernel with that parameter sees it."""
        place, offset = self._network.place_of(name)
        part = self._bytes[place][offset : offset + spec.nbytes]
        return part.view(spec.dtype.value).reshape(spec.shape)

    def write(self, name: str, values: Array, where: Array | bool = True) -> None:
        """Puts the bytes of `values` where the tensor is, all of them or only those `where`."""
        place, offset = self._network.place_of(name)
        part = self._bytes[place][offset : offset + values.nbytes]
        np.copyto(part.view(values.dtype).reshape(values.shape), values, where=where)
