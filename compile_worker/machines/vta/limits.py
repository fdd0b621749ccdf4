"""What the accelerator's encodings and memories can hold, for search space and lowering alike.

Each predicate gives None when its argument fits, otherwise a Violation whose name is also the name
of the search space's constraint. Field widths are those of the table `tilefarm.vta_isa`; the
micro-op distance is that of VTA's HLS pipeline and runtime recorder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from tilefarm.plural import plural
from tilefarm.target import Target
from tilefarm.vta_isa import GEMM, INSTRUCTION_BITS, TRANSFER

from compile_worker.errors import Violation
from compile_worker.ir.instructions import PAD_LIMIT
from compile_worker.ir.stmt import HardwareLoop, MicroOp

Engine: TypeAlias = Literal["gemm", "alu"]

MOST_ROWS: Final = TRANSFER.field("y_size").values[-1]
MOST_STRIDE: Final = TRANSFER.field("x_stride").values[-1]
MOST_ITERATIONS: Final = GEMM.field("iter_out").values[-1]
"""The largest values of instruction fields; columns, all pads and both loops have the same ones."""

INSTRUCTION_QUEUE_NBYTES: Final = 32 << 20
INSTRUCTION_NBYTES: Final = INSTRUCTION_BITS // 8
QUEUE_RESERVE: Final = 6
"""The runtime synchronizes by itself, in the midst of tokens, when fewer instructions are free."""

NEVER: Final = 1 << 30
"""Distance between two writes that never meet."""


def uop_capacity(target: Target) -> int:
    """Micro-ops that may be resident at once."""
    return min(target.geometry.uop_depth, target.limits.kernel_uops)


def uops_fit(target: Target, uops: int) -> Violation | None:
    """Whether all micro-ops of a function, one copy per slot combination, can be resident."""
    capacity = uop_capacity(target)
    if uops <= capacity:
        return None
    return Violation("uop_sram", f"{uops} micro-ops, of which {capacity} can be resident")


def acc_distance(
    loops: Sequence[HardwareLoop], uops: Sequence[MicroOp], *, horizon: int = 64
) -> int:
    """Smallest distance between two writes of one accumulator within an instruction.

    Counted in executed micro-ops; distances above `horizon` are not told apart from NEVER.
    """
    outer, inner = ([*loops, *[HardwareLoop(1, 0, 0, 0)] * 2])[:2]
    last: dict[int, list[int]] = {}
    for position, uop in enumerate(uops):
        last.setdefault(uop.dst, []).append(position)
    count, best = len(uops), horizon + 1
    for step in range(outer.extent * inner.extent):
        if (step - 1) * count + 1 >= best:
            break
        for shift in _shifts(step, outer, inner):
            best = min(best, _nearest(last, uops, shift, step * count, best))
    return best if best <= horizon else NEVER


def _shifts(step: int, outer: HardwareLoop, inner: HardwareLoop) -> set[int]:
    """By how much dst moves over `step` iterations of the folded loops, all cases."""
    o, i = divmod(step, inner.extent)
    cases = {o * outer.dst + i * inner.dst}
    if i and o + 1 < outer.extent:  # carried into the next iteration of the outer loop
        cases.add((o + 1) * outer.dst + (i - inner.extent) * inner.dst)
    return cases


def _nearest(
    written: dict[int, list[int]], uops: Sequence[MicroOp], shift: int, base: int, best: int
) -> int:
    """Smallest positive base + (later - earlier) of equal dst when the later moved by `shift`."""
    for earlier, uop in enumerate(uops):
        for later in written.get(uop.dst - shift, ()):
            if 0 < (distance := base + later - earlier) < best:
                best = distance
    return best


def acc_distance_ok(target: Target, distance: int) -> Violation | None:
    """Whether an accumulator is written again late enough for the pipeline."""
    least = target.limits.acc_distance
    if distance >= least:
        return None
    return Violation(
        "acc_distance",
        f"an accumulator is written again {distance} micro-ops later, and needs {least}",
    )


def dma_fields_fit(
    rows: int, columns: int, stride: int, pads: tuple[int, int, int, int]
) -> Violation | None:
    """Whether one copy fits a LOAD or STORE: rows, columns and stride 16 bits, each pad 4 bits.

    A copy without a row or column is refused too: the hardware hangs on it.
    """
    sizes = {"rows": rows, "columns": columns}
    for name, value in sizes.items():
        if not 1 <= value <= MOST_ROWS:
            return Violation("dma_fields", f"{value} {name} in one copy, not 1 to {MOST_ROWS}")
    if not 0 <= stride <= MOST_STRIDE:
        return Violation("dma_fields", f"row stride {stride} in one copy, not 0 to {MOST_STRIDE}")
    if not all(0 <= pad <= PAD_LIMIT for pad in pads):
        return Violation("dma_fields", f"padding {pads} in one copy, each 0 to {PAD_LIMIT}")
    return None


def loop_fields_fit(
    target: Target,
    loops: Sequence[HardwareLoop],
    uops: Sequence[MicroOp],
    *,
    engine: Engine = "gemm",
) -> Violation | None:
    """Whether loops fit an instruction's fields and every index stays inside its memory."""
    acc, wgt = target.geometry.acc_depth, target.geometry.wgt_depth
    src = target.geometry.inp_depth if engine == "gemm" else acc
    for loop in loops:
        if not 1 <= loop.extent <= MOST_ITERATIONS:
            return Violation(
                "loop_fields", f"a hardware loop of {loop.extent}, not 1 to {MOST_ITERATIONS}"
            )
        for name, factor, depth in (
            ("dst", loop.dst, acc),
            ("src", loop.src, src),
            ("wgt", loop.wgt, wgt),
        ):
            if not 0 <= factor < depth:
                return Violation("loop_fields", f"{name} step {factor}, not 0 to {depth - 1}")
    for name, depth in (("dst", acc), ("src", src), ("wgt", wgt)):
        reach = sum((loop.extent - 1) * int(getattr(loop, name)) for loop in loops)
        largest = max((int(getattr(uop, name)) for uop in uops), default=0) + reach
        if largest >= depth:
            return Violation(
                "loop_fields", f"{name} index up to {largest}, of {plural(depth, 'element')}"
            )
    return None


def operation_exists(target: Target, opcode: str) -> Violation | None:
    """Whether the target's ALU has an operation: of those that are used, MUL may be missing."""
    if opcode != "mul" or target.limits.alu_mul:
        return None
    return Violation("alu_mul", f"the ALU of {target.name} has no MUL")


def shift_fits(target: Target, bits: int) -> Violation | None:
    """Whether one ALU instruction shifts accumulators to the right by that many bits."""
    most = target.limits.max_shift
    if 0 <= bits <= most:
        return None
    return Violation(
        "max_shift", f"a shift by {bits}, and the ALU of {target.name} has 0 to {most}"
    )


def instruction_capacity() -> int:
    """Instructions that one run may queue before the runtime would synchronize by itself."""
    return INSTRUCTION_QUEUE_NBYTES // INSTRUCTION_NBYTES - QUEUE_RESERVE


def instructions_fit(instructions: int) -> Violation | None:
    """Whether one run's instructions fit the runtime's queue."""
    capacity = instruction_capacity()
    if instructions <= capacity:
        return None
    return Violation(
        "insn_queue", f"{plural(instructions, 'instruction')} in one run, at most {capacity}"
    )
