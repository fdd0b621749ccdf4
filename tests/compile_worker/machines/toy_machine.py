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
from functools import partial
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.dtype import DType
from tilefarm.model import Engine, MachineModel, Memory
from tilefarm.space import Point
from tilefarm.target import Target
from tilefarm.trace import Step
from tilefarm.workload import TensorSpec, Workload

from compile_worker.draft import Draft
from compile_worker.generated import Generated
from compile_worker.ir.annotations import BASE
from compile_worker.ir.evaluate import evaluate
from compile_worker.ir.expr import Add, Buffer, Cast, Const, Expr, Load, Max, Min, Mul, Var
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import Alloc, Block, For, Seq, Stmt, Store
from compile_worker.ir.verify import Stage
from compile_worker.machine import Machine
from compile_worker.passes.check_memories import check_memories
from compile_worker.passes.nest_passes import NEST_PASSES
from compile_worker.passes.place_sram import place_sram
from compile_worker.pipeline import Pass

BOTH: Final = ("mover", "lanes")
INT8, INT32 = (DType.INT8,), (DType.INT32,)
MODEL: Final = MachineModel(
    kind="toy",
    engines=(Engine(name="mover"), Engine(name="lanes", instances=2)),
    memories=(
        Memory(name="near", nbytes=1024, readers=BOTH, writers=BOTH[:1], dtypes=INT8),
        Memory(name="wide", nbytes=1024, alignment=4, readers=BOTH, writers=BOTH, dtypes=INT32),
    ),
)
TARGET: Final = Target(name="toy", machine=MODEL)
LEAST, MOST = -(1 << 31), (1 << 31) - 1

Operand = list[Any]
"""Memory or parameter, first element, step; or a number, 0, 0."""

LAYERS: Final[dict[str, Any]] = {
    "dense": ("dot", "dot_co", (), {"weight": 1}),
    "add": ("sum", "out_h", ("upper", "lower", "sum"), {"a": 3, "b": 3, "out": 3}),
}
"""What sums up; a loop, the stages that can move there, and the operands with the axes it cuts."""


def steps(work: Workload, point: Point) -> Iterator[Step]:
    """The schedule of a point."""
    total, loop, stages, cut = LAYERS[work.operator]
    yield from (Step("cache_read", (each.name, "near")) for each in work.inputs)
    yield from (Step("set_scope", (stage, "wide")) for stage in (total, "lower", "upper"))
    near = [f"{each.name}_near" for each in work.inputs if each.name in cut]
    yield from (Step("compute_at", (it, loop)) for it in (*stages, *near) if not point["whole"])


def space(work: Workload, target: Target) -> Generated | None:
    """Operands come near whole or in parts, as far as there is room."""
    if work.operator not in LAYERS:
        return None
    draft, (*_, cut) = Draft(), LAYERS[work.operator]
    draft.tunable("whole", (0, 1))

    def room(tensors: tuple[TensorSpec, ...], cuts: Mapping[str, int]) -> int:
        return sum(prod(each.shape[cuts.get(each.name, 0) :]) for each in tensors)

    cuts: list[Mapping[str, int]] = [cut, {}]
    rows = [(i, room(work.inputs, at), 3 * room(work.outputs, at)) for i, at in enumerate(cuts)]
    draft.table("room", ("whole",), ("near", "wide"), rows)
    for memory in target.model.memories:
        draft.at_most(f"{memory.name}_sram", memory.name, memory.depth)
    return Generated(draft.space(work.operator, 1, {"whole": 0}), partial(steps, work))


def instructions(func: Func) -> list[Operand]:
    """What a lowered function is here: all loops but the innermost run, each of these is one."""
    first: dict[Buffer, int | None] = {}

    def operand(expr: Expr | Store, at: Mapping[Var, int], var: Var) -> Operand:
        match expr:
            case Cast(_, Load() as load):
                return operand(load, at, var)
            case Const(value=value):
                return [int(value), 0, 0]
            case Load(buffer, index) | Store(buffer, index):
                ats = [[int(evaluate(e, {**at, var: i}, {})) for e in index] for i in (0, 1)]
                start, then = (np.ravel_multi_index(each, buffer.shape, "clip") for each in ats)
                name = buffer.scope if buffer.on_chip else buffer.name
                return [name, (first.get(buffer) or 0) + int(start), int(then - start)]
        raise TypeError(f"no operand is {expr}")

    def select(stmt: Stmt, at: Mapping[Var, int]) -> Iterator[Operand]:
        match stmt:
            case Alloc(buffer, body):
                first[buffer] = BASE.of(stmt)
                yield from select(body, at)
            case Seq(stmts):
                yield from (each for part in stmts for each in select(part, at))
            case For(var, count, Block(body=Store(value=value) as store)):
                to, see = operand(store, at, var), partial(operand, at=at, var=var)
                match value:
                    case Add(Load(), Mul(x, y)):
                        yield ["mac", count, to, see(x), see(y)]
                    case Add(Mul() as a, Mul() as b):
                        yield ["move", count, to, [0, 0, 0]]
                        yield from (["mac", count, to, see(m.left), see(m.right)] for m in (a, b))
                    case Max(x, Const(value=lo)):
                        yield ["clip", count, to, see(x), [int(lo), 0, 0], [MOST, 0, 0]]
                    case Min(x, Const(value=hi)):
                        yield ["clip", count, to, see(x), [LEAST, 0, 0], [int(hi), 0, 0]]
                    case x:
                        yield ["move", count, to, see(x)]
            case Block():
                yield from select(For(Var("once"), 1, stmt), at)
            case For(var, extent, body):
                yield from (each for i in range(extent) for each in select(body, {**at, var: i}))
            case _:
                raise TypeError(f"no instruction for {type(stmt).__name__}")

    return list(select(func.body, {}))


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
        engine = "mover" if opcode == "move" else "lanes"
        target, there = cells(to, count, engine, "writers")
        reads = [cells(each, count, engine, "readers") for each in sources]
        values = [memory[at].astype(np.int64) for memory, at in reads]
        if opcode == "mac":
            np.add.at(target, there, (values[0] * values[1]).astype(target.dtype))
        else:
            target[there] = values[0] if opcode == "move" else np.clip(*values)


TOY: Final = Machine(
    kind="toy",
    passes=(
        *NEST_PASSES,
        Pass("check_memories", check_memories, Stage.DECOMPOSED),
        Pass("place_sram", place_sram, Stage.PLACED),
    ),
    space=space,
    text=lambda func, symbol, target: "\n".join(map(str, instructions(func))),
    build=lambda func, symbol, target: json.dumps(instructions(func)).encode(),
    features=lambda func, target: {"instructions": float(len(instructions(func)))},
)
