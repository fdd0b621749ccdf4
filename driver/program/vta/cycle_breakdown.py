"""Where the cycles of a kernel go: what the compute module did in each of them, by cause."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields

import numpy as np
import numpy.typing as npt
from tilefarm.measurement import Counters

from device_server.vta.programs.instructions import (
    Alu,
    Gemm,
    Instruction,
    Transfer,
    Unknown,
    module_of,
)
from device_server.vta.programs.stream_statistics import executed_uops

REGISTER_CYCLES = 2
"""An ALU operation reads its second operand in a cycle of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleBreakdown:
    """Cycles by what the compute module did in them. Nothing is counted twice or left out.

    The compute module multiplies, and so bounds a kernel; loads and stores show where it waits.

    Attributes:
        gemm: micro-ops that multiply, one a cycle.
        reset: micro-ops that clear an accumulator.
        alu: micro-ops of the vector unit: one a cycle with an immediate, two with a register.
        start: pipelines that fill and drain, an instruction at a time.
        load: of accumulators and micro-ops, which this module loads itself, as far as data came.
        memory: waited for DRAM in such a load.
        token: waited for the load module's data or for the store module to let go of a slot.
        queue: waited for the next instruction to be fetched.
        idle: between two instructions, and after the last one.
    """

    gemm: int = 0
    reset: int = 0
    alu: int = 0
    start: int = 0
    load: int = 0
    memory: int = 0
    token: int = 0
    queue: int = 0
    idle: int = 0

    @property
    def cycles(self) -> int:
        return sum(asdict(self).values())

    def __add__(self, other: CycleBreakdown) -> CycleBreakdown:
        mine, more = asdict(self), asdict(other)
        return CycleBreakdown(**{cause: mine[cause] + more[cause] for cause in mine})

    def times(self, count: int) -> CycleBreakdown:
        """The cycles of `count` such kernels."""
        return CycleBreakdown(**{cause: count * cycles for cause, cycles in asdict(self).items()})


CAUSES = tuple(field.name for field in fields(CycleBreakdown))


def spent(
    records: Iterable[Instruction], spans: npt.NDArray[np.int64], counters: Counters
) -> CycleBreakdown:
    """What a run's cycles went to.

    Args:
        records: the instructions of the run.
        spans: int64[n, 2], of each instruction the first cycle and the one after its last.
        counters: of the same run.
    """
    gemm = reset = alu = start = load = 0
    for record, (begin, end) in zip(records, spans.tolist(), strict=True):
        if isinstance(record, Unknown) or module_of(record) != "compute":
            continue
        taken = end - begin
        match record:
            case Gemm():
                uops = executed_uops(record)
                gemm += 0 if record.reset else uops
                reset += uops if record.reset else 0
                start += taken - uops
            case Alu():
                cycles = executed_uops(record) * (1 if record.use_imm else REGISTER_CYCLES)
                alu += cycles
                start += taken - cycles
            case Transfer(is_nop=False):
                load += taken
            case _:
                start += taken
    memory = counters["compute_memory_stall_cycles"]
    token, queue = counters["compute_token_stall_cycles"], counters["compute_queue_stall_cycles"]
    known = gemm + reset + alu + start + load + token + queue
    return CycleBreakdown(
        gemm=gemm,
        reset=reset,
        alu=alu,
        start=start,
        load=load - memory,
        memory=memory,
        token=token,
        queue=queue,
        idle=counters.cycles - known,
    )
