"""A whole machine in one file: two memories, two engines, three instructions, and what runs them.

    move  d[i] = s[i], or a number       the mover: between dram and both memories
    mac   d[i] += x[i] * y[i]            the lanes: operands in `near` or numbers, sums in `wide`
    clip  d[i] = min(max(s[i], lo), hi)  the lanes, in `wide`

Every instruction works on n elements, each operand by its own step; a step of 0 sums up in place.
An artifact is these instructions as JSON. Nothing of the compiler knows this machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.dtype import DType
from tilefarm.model import Engine, MachineModel, Memory
from tilefarm.target import Target

from compile_worker.errors import Violation, require
from compile_worker.ir.evaluate import evaluate
from compile_worker.ir.expr import Add, Buffer, Cast, Const, Expr, Load, Max, Min, Mul, Var
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import Alloc, Block, For, Seq, Stmt, Store
from compile_worker.ir.verify import Stage
from compile_worker.ir.visit import find
from compile_worker.machine import Machine
from compile_worker.passes.compact_buffers import compact_buffers
from compile_worker.passes.decompose_reductions import decompose_reductions
from compile_worker.pipeline import Pass

BOTH: Final = ("mover", "lanes")
MODEL: Final = MachineModel(
    kind="toy",
    engines=(Engine(name="mover"), Engine(name="lanes", instances=2)),
    memories=(
        Memory(name="near", nbytes=1024, readers=BOTH, writers=("mover",), dtypes=(DType.INT8,)),
        Memory(
            name="wide", nbytes=1024, alignment=4, readers=BOTH, writers=BOTH, dtypes=(DType.INT32,)
        ),
    ),
)
TARGET: Final = Target(name="toy", machine=MODEL)
ENGINE: Final = {"move": "mover", "mac": "lanes", "clip": "lanes"}
LEAST, MOST = -(1 << 31), (1 << 31) - 1

Operand = list[Any]
"""Memory or parameter, first element, step; or a number, 0, 0."""


def check_room(func: Func, target: Target) -> Func:
    """Refuse what the memories cannot hold; changes nothing."""
    for memory in target.model.memories:
        inside = [each.buffer for each in find(func, Alloc) if each.buffer.scope == memory.name]
        elements = sum(prod(buffer.shape) for buffer in inside)
        if elements > memory.depth:
            why = f"{elements} elements in {memory.name}, which has {memory.depth}"
            require("check_room", Violation(f"{memory.name}_room", why))
    return func


@dataclass(slots=True)
class _Selector:
    """Runs all loops but the innermost, and takes an instruction for each of these."""

    first: dict[Buffer, int] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)

    def select(self, stmt: Stmt, at: Mapping[Var, int]) -> Iterator[Operand]:
        match stmt:
            case Alloc(buffer, body):
                if buffer not in self.first:  # a loop comes here again
                    self.first[buffer] = self.used.get(buffer.scope, 0)
                    self.used[buffer.scope] = self.first[buffer] + prod(buffer.shape)
                yield from self.select(body, at)
            case Seq(stmts):
                for each in stmts:
                    yield from self.select(each, at)
            case For(var, extent, Block(body=Store() as store)):
                yield from self._instructions(store, var, extent, at)
            case Block(body=Store() as store):
                yield from self._instructions(store, Var("once"), 1, at)
            case For(var, extent, body):
                for value in range(extent):
                    yield from self.select(body, {**at, var: value})
            case _:
                raise TypeError(f"no instruction for {type(stmt).__name__}")

    def _instructions(
        self, store: Store, var: Var, count: int, at: Mapping[Var, int]
    ) -> Iterator[Operand]:
        def operand(expr: Expr | Store) -> Operand:
            match expr:
                case Cast(_, Load() as load):
                    return operand(load)
                case Const(value=value):
                    return [int(value), 0, 0]
                case Load(buffer, index) | Store(buffer, index):
                    places = [self._place(buffer, index, {**at, var: i}) for i in (0, 1)]
                    name = buffer.name if buffer.scope == "dram" else buffer.scope
                    return [name, places[0], places[1] - places[0]]
            raise TypeError(f"no operand is {expr}")

        to = operand(store)
        match store.value:
            case Add(Load(), Mul(x, y)):
                yield ["mac", count, to, operand(x), operand(y)]
            case Add(Mul(a, b), Mul(c, d)):
                yield ["move", count, to, [0, 0, 0]]
                yield ["mac", count, to, operand(a), operand(b)]
                yield ["mac", count, to, operand(c), operand(d)]
            case Max(source, Const(value=lo)):
                yield ["clip", count, to, operand(source), [int(lo), 0, 0], [MOST, 0, 0]]
            case Min(source, Const(value=hi)):
                yield ["clip", count, to, operand(source), [LEAST, 0, 0], [int(hi), 0, 0]]
            case source:
                yield ["move", count, to, operand(source)]

    def _place(self, buffer: Buffer, index: tuple[Expr, ...], at: Mapping[Var, int]) -> int:
        here = 0
        for size, each in zip(buffer.shape, index, strict=True):
            here = here * size + int(evaluate(each, at, {}))
        return self.first.get(buffer, 0) + here


def instructions(func: Func) -> list[Operand]:
    """What a lowered function is on this machine."""
    return list(_Selector().select(func.body, {}))


def run(code: bytes, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Run an artifact on flat arrays by parameter; each engine reaches its memories alone."""
    held = {m.name: np.zeros(m.depth, m.dtypes[0].value) for m in MODEL.memories}

    def cells(operand: Operand, count: int, engine: str, users: str) -> tuple[Any, Any]:
        name, first, step = operand
        if not isinstance(name, str):
            return np.full(1, name), np.zeros(count, int)
        reached = name in arrays if engine == "mover" else False
        assert reached or engine in getattr(MODEL.memory(name), users), f"{engine}: no {name}"
        return {**held, **arrays}[name], first + step * np.arange(count)

    for opcode, count, to, *sources in json.loads(code):
        target, there = cells(to, count, ENGINE[opcode], "writers")
        reads = [cells(each, count, ENGINE[opcode], "readers") for each in sources]
        values = [memory[at].astype(np.int64) for memory, at in reads]
        if opcode == "mac":
            np.add.at(target, there, (values[0] * values[1]).astype(target.dtype))
        else:
            target[there] = values[0] if opcode == "move" else np.clip(*values)


TOY: Final = Machine(
    kind="toy",
    memories=frozenset({"near", "wide"}),
    passes=(
        Pass("decompose_reductions", decompose_reductions, Stage.DECOMPOSED),
        Pass("compact_buffers", compact_buffers, Stage.DECOMPOSED),
        Pass("check_room", check_room, Stage.DECOMPOSED),
    ),
    build=lambda func, symbol, target: json.dumps(instructions(func)).encode(),
    features=lambda func, target: {"instructions": float(len(instructions(func)))},
)
