"""From tensors to a function: one loop nest per stage, each around one block.

    for conv_n in 0:N: ... for conv_kw in 0:KW:
      block conv {init: conv[...] = 0}
        conv[...] = conv[...] + data[...] * weight[...]

Loops run over the result's axes and then over the reduction's, in the order they were written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compile_worker.ir.expr import Buffer
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import Alloc, Block, For, Mark, Stmt, Store, sequence
from compile_worker.te.tensor import Axis, Computation, Tensor
from compile_worker.te.work import Work


def nest(
    name: str,
    inputs: Sequence[Tensor],
    stages: Sequence[Tensor | Work],
    attrs: tuple[Mark, ...] = (),
) -> Func:
    """The function that computes `stages` in order; the last one makes its outputs.

    What else they make lives in allocations around the whole body.
    """
    outputs = [tensor.buffer for tensor in _made(stages[-1])]
    body = sequence(stage_nest(stage) for stage in stages)
    for buffer in reversed([each for stage in stages for each in _buffers(stage)]):
        if buffer not in outputs:
            body = Alloc(buffer, body)
    return Func(name, (*(tensor.buffer for tensor in inputs), *outputs), body, attrs)


def _made(stage: Tensor | Work) -> tuple[Tensor, ...]:
    return stage.tensors if isinstance(stage, Work) else (stage,)


def _buffers(stage: Tensor | Work) -> tuple[Buffer, ...]:
    """Everything that a stage writes."""
    scratch = stage.scratch if isinstance(stage, Work) else ()
    return (*scratch, *(tensor.buffer for tensor in _made(stage)))


def stage_nest(tensor: Tensor | Work) -> Stmt:
    """The loops and the block that compute every element of one tensor, or the work's own."""
    if isinstance(tensor, Work):
        return tensor.body
    stage = tensor.stage
    if stage is None:
        raise ValueError(f"{tensor.buffer.name} is a placeholder: there is nothing to compute")
    return loops((*stage.axes, *stage.reduced), _block(tensor, stage))


def loops(axes: Iterable[Axis], body: Stmt) -> Stmt:
    """Serial loops around `body`, the first axis outermost."""
    for axis in reversed(tuple(axes)):
        body = For(axis.var, axis.extent, body)
    return body


def _block(tensor: Tensor, stage: Computation) -> Block:
    buffer, at = tensor.buffer, stage.at
    if stage.reduction is None:
        return Block(buffer.name, Store(buffer, at, stage.value))
    update = Store(buffer, at, stage.reduction.combine(buffer[at], stage.value))
    init = Store(buffer, at, stage.reduction.start)
    return Block(buffer.name, update, init, tuple(axis.var for axis in stage.reduced))
