"""What a stream is made of: instructions by kind, micro-ops executed, bytes moved by memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tilefarm.target import VtaConfig
from tilefarm.vta_isa import Memory, element_nbytes

from device_server.vta.programs.instructions import (
    NEIGHBOURS,
    Alu,
    Finish,
    Gemm,
    Instruction,
    Transfer,
    Unknown,
    module_of,
)


@dataclass(slots=True, kw_only=True)
class StreamStatistics:
    """Counts of one stream; padding does not count as moved.

    Attributes:
        load, store, gemm, alu, nop, finish, unknown: instructions; a NOP counts only as that.
        gemm_uops: micro-ops executed by GEMM instructions that multiply; reset_uops by the others.
        alu_uops: micro-ops executed by ALU instructions.
        store_nbytes: written to DRAM.
        load_nbytes: by name of the memory; those that nothing is loaded into are absent.
    """

    load: int = 0
    store: int = 0
    gemm: int = 0
    alu: int = 0
    nop: int = 0
    finish: int = 0
    unknown: int = 0
    gemm_uops: int = 0
    reset_uops: int = 0
    alu_uops: int = 0
    store_nbytes: int = 0
    load_nbytes: dict[str, int] = field(default_factory=dict)

    @property
    def instructions(self) -> int:
        """All of them."""
        kinds = (self.load, self.store, self.gemm, self.alu, self.nop, self.finish, self.unknown)
        return sum(kinds)


def executed_uops(instruction: Gemm | Alu) -> int:
    """How many micro-ops an instruction executes; 0 where its range or a loop is empty."""
    uops = max(0, instruction.uop_end - instruction.uop_begin)
    return uops * instruction.iter_out * instruction.iter_in


def statistics(records: Iterable[Instruction], vta: VtaConfig) -> StreamStatistics:
    """Count a stream."""
    counted = StreamStatistics()
    sizes = element_nbytes(vta)
    for record in records:
        match record:
            case Transfer():
                _count_transfer(counted, record, sizes)
            case Gemm(reset=reset):
                counted.gemm += 1
                counted.gemm_uops += 0 if reset else executed_uops(record)
                counted.reset_uops += executed_uops(record) if reset else 0
            case Alu():
                counted.alu += 1
                counted.alu_uops += executed_uops(record)
            case Finish():
                counted.finish += 1
            case _:
                counted.unknown += 1
    return counted


def _count_transfer(counted: StreamStatistics, record: Transfer, sizes: tuple[int, ...]) -> None:
    if record.is_nop:
        counted.nop += 1
        return
    elements = record.x_size * record.y_size
    if record.store:
        counted.store += 1
        counted.store_nbytes += elements * sizes[Memory.OUT]
        return
    counted.load += 1
    if record.memory < len(Memory):
        name = Memory(record.memory).word
        loaded = elements * sizes[record.memory]
        counted.load_nbytes[name] = counted.load_nbytes.get(name, 0) + loaded


def unbalanced(records: Iterable[Instruction]) -> dict[str, tuple[int, int]]:
    """Queues of dependence tokens that do not end as they began.

    By name, "from->to": how many tokens more were pushed than popped (negative: waited for in
    vain), and the last instruction that touched the queue.
    """
    touched: dict[str, tuple[int, int]] = {}
    for number, record in enumerate(records):
        if isinstance(record, Unknown):
            continue
        module, tokens = module_of(record), record.tokens
        before, behind = NEIGHBOURS[module]
        changes = (
            (f"{before}->{module}", -tokens.pop_prev),
            (f"{behind}->{module}", -tokens.pop_next),
            (f"{module}->{before}", tokens.push_prev),
            (f"{module}->{behind}", tokens.push_next),
        )
        for queue, change in changes:
            if change:
                touched[queue] = (touched.get(queue, (0, 0))[0] + change, number)
    return {queue: last for queue, last in touched.items() if last[0]}
