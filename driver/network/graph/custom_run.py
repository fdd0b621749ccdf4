"""Operators of users, run as their scripts say: loop by loop, in float32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.dtype import DType
from tilefarm.target import TARGETS
from tilefarm.workload import NUMBER_PREFIX, TensorSpec, Workload

from compile_worker.ir.interpret import interpret
from compile_worker.te import nest_of
from driver.network.graph.ir import Custom, FloatArray

_ANY: Final = TARGETS["sim"]
"""A script knows nothing of blocks: its loops are the same for all targets."""


def run_custom(op: Custom, operands: Sequence[FloatArray]) -> FloatArray:
    """The result [samples, ...] for operands [samples, ...].

    A script sees whole batches, whose samples it does not mix: what the last one lacks is filled up
    with its last sample.

    Raises:
        ValueError: the script does not fit the tensors.
    """
    batch, workload = op.held[0], custom_workload(op)
    results = []
    for start in range(0, len(operands[0]), batch):
        parts = {
            name: _whole(part[start : start + batch], batch).reshape(seen)
            for (name, seen), part in zip(op.operands, operands, strict=True)
        }
        made = run_script(workload, {**parts, **dict(op.constants)})
        results.append(made.reshape(op.held))
    return np.concatenate(results)[: len(operands[0])]


def _whole(part: FloatArray, batch: int) -> FloatArray:
    """Some samples and copies of the last one: a batch."""
    lacking = batch - len(part)
    return np.concatenate([part, np.repeat(part[-1:], lacking, axis=0)]) if lacking else part


def custom_workload(op: Custom) -> Workload:
    """What is compiled for it."""
    shapes = [*op.operands, *((name, values.shape) for name, values in op.constants)]
    numbers = {f"{NUMBER_PREFIX}{name}": float(value) for name, value in op.numbers}
    return Workload(
        "script",
        tuple(TensorSpec(name, tuple(shape), DType.FLOAT32) for name, shape in shapes),
        (TensorSpec("out", op.seen, DType.FLOAT32),),
        (("source", op.source), *numbers.items()),
    )


def run_script(workload: Workload, arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """What a workload's script makes of its inputs.

    Raises:
        ValueError: the script does not fit the tensors.
        InterpretError: it does what no kernel may, see `compile_worker.ir.interpret`.
    """
    return interpret(nest_of(workload, _ANY), arrays)[workload.outputs[0].name]
