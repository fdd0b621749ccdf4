"""What the modules of each design take, as spaces and passes count it.

The Chisel design: GEMM and immediate ALU operations N + 6, register ALU 2N + 6, one more to start;
loads beats + 6 and the memory's delay, with rows at no cost; stores 3 an element. The HLS design as
its Verilog does and with the memory of one board (`device_server/vta/runtime/HLS.md`): both kinds
of ALU operations 2N + 19, every row of a copy waits for the memory, weights move at half the speed
of the bus.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tilefarm.target import Target

_WEIGHT_BYTES_A_CYCLE: Final = 4
"""Of the HLS design, however wide its bus is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadCosts:
    """Cycles of a load: for each element of a memory, and `latency` beyond elements and rows."""

    inp: int
    wgt: int
    acc: int
    latency: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCosts:
    """Cycles of a store.

    Attributes:
        element: for each element; scattered: for one alone in its row.
        row: for each row; start: beyond its elements and rows.
    """

    element: int
    scattered: int
    row: int
    start: int

    @property
    def each_row(self) -> int:
        """Of a row that is not the first: without a cost of its own it is a store of its own."""
        return self.row or self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Cycles by what takes them.

    Attributes:
        start: of a GEMM or ALU instruction beyond its micro-ops.
        immediate: of an ALU operation with an immediate, for each vector; a register takes 2.
        row: of a copy, for each row; 0 where rows follow one another without a gap.
        uop_load: of loading a kernel's micro-ops; uop_quarters: for each of them, in quarters.
        loads_again: whether equal micro-ops are loaded for each operation that has them.
    """

    start: int
    immediate: int
    load: LoadCosts
    row: int
    store: StoreCosts
    uop_load: int
    uop_quarters: int
    loads_again: bool

    def vector(self, cycles: int, immediates: int) -> int:
        """Cycles of what follows the sums of an output vector.

        Args:
            cycles: of the operations, those with an immediate at one each.
            immediates: how many of them have one.
        """
        return cycles + (self.immediate - 1) * immediates

    def alu(self, operands: int) -> int:
        """Cycles of an ALU operation on so many vectors, for each vector of its result."""
        return max(operands, self.immediate)


def costs_of(target: Target) -> Costs:
    """What the design of a target's board takes."""
    vta, bus = target.geometry, target.timing.bus_nbytes
    inp, wgt, acc = (n // bus for n in (vta.inp_nbytes, vta.wgt_nbytes, vta.acc_nbytes))
    again = target.board.runtime == "original"
    delay = target.timing.dram_delay_cycles
    if target.board.design == "hls":
        latency = delay + _MEMORY_PATH
        out = max(1, vta.out_nbytes // bus)
        return Costs(
            start=20,
            immediate=2,
            load=LoadCosts(
                inp=max(1, inp),
                wgt=max(wgt, vta.wgt_nbytes // _WEIGHT_BYTES_A_CYCLE),
                acc=max(1, acc),
                latency=9,
            ),
            row=18 + latency,
            store=StoreCosts(element=out, scattered=13 + latency + out, row=13 + latency, start=3),
            uop_load=17 + latency,
            uop_quarters=4,
            loads_again=again,
        )
    return Costs(
        start=7,
        immediate=1,
        load=LoadCosts(inp=inp, wgt=wgt, acc=acc, latency=delay + 7),
        row=0,
        store=StoreCosts(element=3, scattered=6, row=0, start=3),
        uop_load=delay + 9,
        uop_quarters=2,
        loads_again=again,
    )


_MEMORY_PATH: Final = 29
"""Cycles from a request to its first beat beyond the memory's delay; fitted, see `HLS.md`."""
