"""Softmax over channels by a table of exponentials, in a fixed order of float32 operations."""

from __future__ import annotations

from tilefarm.workload import Workload

from compile_worker.ir.expr import Buffer
from compile_worker.te.script import script
from compile_worker.te.script_words import Cells, buffer, float32, int32, int64
from compile_worker.te.tensor import Tensor
from compile_worker.te.work import Work


@script
def channels(x: Cells, table: Cells, out: Cells, *, batch: int, lanes: int) -> None:
    """The largest value of each row, table entries by the distance from it, shares of their sum."""
    top = buffer(int32, out.shape[0])
    power = buffer(float32, out.shape[0], out.shape[1])
    sum = buffer(float32, out.shape[0])
    for n in range(out.shape[0]):
        row = n // batch if batch > 1 else n
        lane = n % batch if batch > 1 else 0
        top[n] = -128
        for c in range(out.shape[1]):
            top[n] = max(top[n], int32(x[row, c // lanes, lane, c % lanes]))
    for n in range(out.shape[0]):
        row = n // batch if batch > 1 else n
        lane = n % batch if batch > 1 else 0
        for c in range(out.shape[1]):
            power[n, c] = table[int64(top[n] - int32(x[row, c // lanes, lane, c % lanes]))]
    for n in range(out.shape[0]):
        sum[n] = 0
        for c in range(out.shape[1]):
            sum[n] += power[n, c]
    for n in range(out.shape[0]):
        for c in range(out.shape[1]):
            out[n, c] = power[n, c] / sum[n]


def softmax(workload: Workload, inputs: list[Tensor]) -> list[Work]:
    """Stages top, power, sum and the output [N, C] float32, over logical channels only.

    x [N/b, C/c, b, c] is int8; table[k] is what exp gives k steps below the largest value.
    """
    spec = workload.outputs[0]
    batch, lanes = inputs[0].shape[-2:]
    out = Buffer(spec.name, spec.shape, spec.dtype, "dram")
    return [channels(inputs, [out], batch=batch, lanes=lanes)]
