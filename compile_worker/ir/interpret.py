"""The oracle: does what a function says, statement by statement, at any stage of lowering.

Every schedule primitive and every pass is right if this gives the same outputs before and after.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from compile_worker.ir.accelerator import ON_CHIP, Accelerator
from compile_worker.ir.annotations import BATCH, BLOCK
from compile_worker.ir.bulk import BulkNest, nest_at, run_nest
from compile_worker.ir.evaluate import Array, InterpretError, evaluate, memory_of, place
from compile_worker.ir.expr import Buffer, Var
from compile_worker.ir.func import Func
from compile_worker.ir.lockstep import Lockstep, lockstep_at, run_lockstep
from compile_worker.ir.ordering import ModuleOrder
from compile_worker.ir.printer import show
from compile_worker.ir.stmt import (
    Alloc,
    Block,
    Dma,
    For,
    If,
    MicroKernel,
    Pop,
    Push,
    Seq,
    Stmt,
    Store,
    Synchronize,
)
from compile_worker.ir.visit import walk

__all__ = ["InterpretError", "interpret"]

_GARBAGE: Final = 0x5A
"""What memory holds before anything is written to it, as a byte."""


def interpret(func: Func, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs of `func` by name; `arrays` gives the inputs, which stay as they are.

    Outputs are the parameters that the function writes. One that `arrays` names as well starts
    with those contents, otherwise with garbage. An array may have another shape than its parameter
    as long as it has as many elements: lowered functions have flat parameters.

    Raises:
        InterpretError: an access out of bounds, a parameter that is missing or of another size or
            type, tokens that do not come or are left over, instructions that race, an operand that
            the accelerator cannot take.
    """
    written = _written(func)
    memory = {param: _argument(param, arrays, param in written) for param in func.params}
    with np.errstate(all="ignore"):
        _Machine.of(func, memory).run_all(func.body)
    return {param.name: memory[param] for param in func.params if param in written}


def _written(func: Func) -> frozenset[Buffer]:
    """Parameters that the function writes."""
    stores = {node.buffer for node in walk(func.body) if isinstance(node, Store)}
    copies = {
        node.dram.buffer
        for node in walk(func.body)
        if isinstance(node, Dma) and node.direction == "store"
    }
    return frozenset((stores | copies) & set(func.params))


def _argument(param: Buffer, arrays: Mapping[str, Array], written: bool) -> Array:
    """A parameter's storage: the caller's array, copied if the function writes it."""
    if param.name not in arrays:
        if written:
            return _garbage(param)
        raise InterpretError(f"parameter {param.name} is missing")
    given = np.asarray(arrays[param.name])
    if given.size != math.prod(param.shape) or given.dtype != param.dtype.value:
        raise InterpretError(
            f"parameter {param.name} is {param.dtype}{list(param.shape)},"
            f" not {given.dtype}{list(given.shape)}"
        )
    taken = np.array(given, order="C") if written else np.ascontiguousarray(given)
    return taken.reshape(param.shape)


def _garbage(buffer: Buffer) -> Array:
    size = buffer.nbytes
    return np.full(size, _GARBAGE, np.uint8).view(buffer.dtype.value).reshape(buffer.shape)


@dataclass(slots=True)
class _Machine:
    """Memory, accelerator and loop variables while a function runs."""

    memory: dict[Buffer, Array]
    accelerator: Accelerator
    values: dict[Var, Any]
    nests: dict[For, tuple[BulkNest | None, Lockstep | None]]

    @classmethod
    def of(cls, func: Func, memory: dict[Buffer, Array]) -> _Machine:
        tokens = any(isinstance(node, Push | Pop) for node in walk(func.body))
        batch, block = BATCH.of(func), BLOCK.of(func)
        accelerator = Accelerator(batch, block, memory, ModuleOrder(tokens))
        return cls(memory, accelerator, {}, {})

    def run_all(self, body: Stmt) -> None:
        self.run(body)
        self.accelerator.order.finish()

    def run(self, stmt: Stmt) -> None:
        match stmt:
            case Seq(stmts):
                for each in stmts:
                    self.run(each)
            case For():
                self._loop(stmt)
            case If(condition, then, otherwise):
                if evaluate(condition, self.values, self.memory):
                    self.run(then)
                elif otherwise is not None:
                    self.run(otherwise)
            case Block(body=body, init=init, reductions=reductions):
                if init is not None and self._at_start(reductions):
                    self.run(init)
                self.run(body)
            case Store(buffer, index, value):
                new = evaluate(value, self.values, self.memory)
                at = place(buffer, index, self.values, self.memory)
                memory_of(buffer, self.memory)[at] = new
            case Alloc():
                self._scope(stmt)
            case _:
                self._device(stmt)

    def _device(self, stmt: Stmt) -> None:
        match stmt:
            case Dma():
                self.accelerator.copy(stmt, self.values)
            case MicroKernel():
                self.accelerator.compute(stmt, self.values)
            case Push():
                self.accelerator.order.push(stmt)
            case Pop():
                self.accelerator.order.pop(stmt)
            case Synchronize():
                self.accelerator.order.synchronize()
            case _:
                raise InterpretError(f"no meaning for {type(stmt).__name__}: {show(stmt)}")

    def _at_start(self, reductions: tuple[Var, ...]) -> bool:
        return all(evaluate(each, self.values, self.memory) == 0 for each in reductions)

    def _loop(self, loop: For) -> None:
        if loop not in self.nests:
            self.nests[loop] = nest_at(loop), lockstep_at(loop)
        nest, beside = self.nests[loop]
        if nest is not None and run_nest(nest, self.values, self.memory):
            return
        if beside is not None:
            run_lockstep(beside, self.values, self.memory, _garbage)
            return
        for value in range(loop.extent):
            self.values[loop.var] = value
            self.run(loop.body)
        self.values.pop(loop.var, None)

    def _scope(self, alloc: Alloc) -> None:
        buffer = alloc.buffer
        if buffer.scope in ON_CHIP:
            self.accelerator.allocate(alloc, _garbage(buffer))
        else:
            self.memory[buffer] = _garbage(buffer)
        self.run(alloc.body)
        del self.memory[buffer]
        self.accelerator.free(buffer)
