"""Element-wise blocks become ALU instructions.

    for c: for h: for b, o:                           alu add acc[0], acc[64]
      block biased {alu=1}:                     ->      loops (c: dst 8, src 1), (h: dst 1, src 0)
        acc[c, h, b, o] = acc[c, h, b, o] + bias[c, b, o]     uops (0, 0, 0)

The second operand is another accumulator element, a constant of 16 bits, or a shift that the host
reads from its memory: loops that this depends on stay loops of the host, around one instruction.
A multiplication by a power of two is a shift by a negative constant, which is one to the left.
Loops that go on where the next one ends are merged, so that one micro-op is usual.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tilefarm.target import Target
from tilefarm.vta_isa import AluOp

from compile_worker.errors import require
from compile_worker.ir.accelerator import IMMEDIATE, MOST_LEFT
from compile_worker.ir.annotations import ALU as ALU_BLOCK
from compile_worker.ir.expr import Add, Binary, Const, Expr, Load, Max, Min, Mul, Shr, Var, index
from compile_worker.ir.func import Func
from compile_worker.ir.nests import wrap
from compile_worker.ir.stmt import Block, For, MicroKernel, Ref, Stmt, Store
from compile_worker.ir.visit import substitute, variables
from compile_worker.machines.vta.limits import operation_exists, shift_fits
from compile_worker.machines.vta.passes.elements import (
    ElementPlace,
    element_loops,
    place_of,
    unsupported,
)
from compile_worker.machines.vta.passes.micro import LoopStep, folded, merged
from compile_worker.passes.nests import lower_blocks

STAGE: Final = "lower_alu"

OPCODES: Final[Mapping[type[Expr], str]] = {
    Min: AluOp.MIN.word,
    Max: AluOp.MAX.word,
    Add: AluOp.ADD.word,
    Shr: AluOp.SHR.word,
    Mul: AluOp.MUL.word,
}


_POWERS: Final = tuple(1 << bits for bits in range(MOST_LEFT + 1) if 1 << bits in IMMEDIATE)
"""What accumulators are multiplied by where they are shifted to the left."""


def lower_alu(func: Func, target: Target) -> Func:
    """Replace blocks marked {alu=1} by ALU instructions."""

    def lowered(block: Block, loops: Sequence[For], around: Mapping[Var, int]) -> Stmt:
        extents = {**around, **{loop.var: loop.extent for loop in loops}}
        return _operation(block, loops, extents, target)

    return lower_blocks(func, ALU_BLOCK, lowered)


def _operation(
    block: Block, loops: Sequence[For], extents: Mapping[Var, int], target: Target
) -> Stmt:
    store, operation, operand = _parts(block)
    opcode = OPCODES[type(operation)]
    dst = place_of(STAGE, store, extents)
    imm = _immediate(block, operation, operand)
    if opcode == "mul" and isinstance(imm, int) and imm in _POWERS:
        opcode, imm = "shr", -_POWERS.index(imm)
    elif opcode == "shr" and isinstance(imm, int):
        require(STAGE, shift_fits(target, imm))
    require(STAGE, operation_exists(target, opcode))
    src = place_of(STAGE, operand, extents) if imm is None and isinstance(operand, Load) else None
    if src is not None and src.lanes != dst.lanes:
        raise unsupported(STAGE, f"{block.name} combines different lanes")
    if isinstance(imm, Expr) and not variables(imm).isdisjoint(dst.lanes):
        raise unsupported(STAGE, f"{block.name} needs another constant for each lane")
    inner = element_loops(loops, (dst,) if src is None else (dst, src))
    if isinstance(imm, Expr):
        imm = substitute(imm, {loop.var: index(0) for loop in loops if loop.extent == 1})
    repeats = [loop for loop in inner if isinstance(imm, Expr) and loop.var in variables(imm)]
    inner = [loop for loop in inner if loop not in repeats]
    steps = [
        LoopStep(loop.extent, dst.element.terms.get(loop.var, 0), _step(src, loop.var))
        for loop in sorted(inner, key=lambda loop: -dst.element.terms.get(loop.var, 0))
    ]
    hardware, uops = folded(STAGE, target, merged(steps), "alu")
    own = [loop.var for loop in inner]
    kernel = MicroKernel(
        "alu",
        opcode,
        Ref(dst.buffer, dst.element.without(own).expr()),
        None if src is None else Ref(src.buffer, src.element.without(own).expr()),
        None,
        hardware,
        uops,
        imm=imm,
    )
    return wrap(repeats, kernel)


def _step(place: ElementPlace | None, var: Var) -> int:
    return 0 if place is None else place.element.terms.get(var, 0)


def _parts(block: Block) -> tuple[Store, Binary, Expr]:
    """The store, the operation and its second operand, for x = operation(x, operand)."""
    match block.body:
        case Store(buffer, index, Binary(left=left, right=right) as operation) as store:
            if type(operation) not in OPCODES:
                raise unsupported(STAGE, f"the ALU has no {type(operation).__name__}")
            own = Load(buffer, index)
            if left is own:
                return store, operation, right
            if right is own and not isinstance(operation, Shr):
                return store, operation, left
    raise unsupported(STAGE, f"{block.name} is not x = operation(x, operand)")


def _immediate(block: Block, operation: Binary, operand: Expr) -> int | Expr | None:
    """An operand that is part of the instruction; None for an accumulator."""
    match operand:
        case Const(value, _) if value in IMMEDIATE:
            return int(value)
        case Load(buffer, _) if buffer.scope == "acc":
            return None
        case Load(buffer, _) if buffer.scope == "dram" and isinstance(operation, Shr):
            return operand
    why = "the operand is no accumulator and no 16-bit constant, nor a shift that the host reads"
    raise unsupported(STAGE, f"{block.name}: {why}")
