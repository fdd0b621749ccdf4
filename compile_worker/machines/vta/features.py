"""What a lowered kernel will do, counted without running it: features for a cost model.

    <inp|wgt|acc|out>_nbytes _rows _dmas           DRAM traffic by memory
    gemm_cycles reset_cycles alu_cycles            micro-ops executed; register ALU ones count twice
    uops uop_loads kernels instructions            what the instruction stream is made of
    steps tiles operand_copies acc_copies          how much may overlap
    load_cycles compute_cycles store_cycles        how long each module is busy, by closed forms
    bound_cycles serial_cycles                     the busiest module; one after the other

The closed forms are those of VTA's RTL: one bus beat a cycle for loads, 3 cycles an element for
stores, N + 7 cycles for N micro-ops. Padding that depends on the tile is averaged, which is exact
because rows and columns depend on different loops.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from math import prod
from typing import Final

from tilefarm.target import Target

from compile_worker.ir.annotations import COPIES
from compile_worker.ir.expr import Expr, Var
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import (
    Alloc,
    Dma,
    For,
    If,
    MicroKernel,
    Pop,
    Push,
    Seq,
    Stmt,
)
from compile_worker.machines.vta.passes.check_instructions import CLOSING
from compile_worker.machines.vta.passes.slots import recorded_keys
from compile_worker.passes.averages import mean
from compile_worker.passes.nests import of_kind

KERNEL_CYCLES: Final = 7
"""Cycles of a GEMM or ALU instruction beyond its micro-ops."""

LOAD_CYCLES: Final = 23
"""Cycles of a load beyond its bus beats when nothing else is under way, with the default DRAM."""

STORE_CYCLES: Final = 3
"""Cycles of a store for every element and for every burst."""


def features_of(func: Func, target: Target) -> dict[str, float]:
    """Named features of a function that is lowered for VTA."""
    counted: defaultdict[str, float] = defaultdict(float)
    extents = {loop.var: loop.extent for loop in of_kind(func.body, For)}
    tally = _Tally(target, extents, counted)
    tally.visit(func.body, 1.0)
    return tally.features()


class _Tally:
    """Counts what statements do, times how often they are reached."""

    def __init__(
        self, target: Target, extents: Mapping[Var, int], counted: defaultdict[str, float]
    ) -> None:
        vta = target.geometry
        self._target = target
        self._extents = extents
        self._nbytes = {"inp": vta.inp_nbytes, "wgt": vta.wgt_nbytes, "acc": vta.acc_nbytes}
        self._counted = counted

    def visit(self, stmt: Stmt, times: float) -> None:
        match stmt:
            case For(extent=extent, body=body):
                self.visit(body, times * extent)
            case Seq(stmts):
                for each in stmts:
                    self.visit(each, times)
            case Alloc(body=body):
                self._alloc(stmt)
                self.visit(body, times)
            case If(then=Push() | Pop()):
                pass
            case If(condition, then):
                self.visit(then, times * self._mean(condition))
            case Dma():
                self._dma(stmt, times)
            case MicroKernel():
                self._kernel(stmt, times)
            case _:
                pass

    def _alloc(self, alloc: Alloc) -> None:
        copies = COPIES.of(alloc)
        name = "acc_copies" if alloc.buffer.scope == "acc" else "operand_copies"
        self._counted[name] = max(self._counted[name], copies)

    def _dma(self, dma: Dma, times: float) -> None:
        rows, columns = self._mean(dma.rows), self._mean(dma.columns)
        scope = "out" if dma.direction == "store" else dma.sram.buffer.scope
        nbytes = self._nbytes.get(scope, self._target.geometry.out_nbytes)
        self._counted[f"{scope}_dmas"] += times
        self._counted[f"{scope}_rows"] += times * rows
        self._counted[f"{scope}_nbytes"] += times * rows * columns * nbytes
        if scope == "out":
            self._counted["tiles"] += times

    def _kernel(self, kernel: MicroKernel, times: float) -> None:
        executed = len(kernel.uops) * prod(loop.extent for loop in kernel.loops)
        name = "alu" if kernel.engine == "alu" else "reset" if kernel.reset else "gemm"
        weight = 2 if kernel.engine == "alu" and kernel.src is not None else 1
        self._counted[f"{name}_cycles"] += times * executed * weight
        self._counted["kernels"] += times
        if name == "gemm":
            self._counted["steps"] += times
        keys = recorded_keys(kernel, self._extents)
        self._counted["uops"] += keys * len(kernel.uops)
        self._counted["uop_loads"] += min(times, keys)

    def _mean(self, expr: Expr) -> float:
        return mean(expr, self._extents)

    def features(self) -> dict[str, float]:
        c = self._counted
        beats = {
            n: c[f"{n}_nbytes"] / self._target.timing.bus_nbytes for n in ("inp", "wgt", "acc")
        }
        load = beats["inp"] + beats["wgt"] + LOAD_CYCLES * (c["inp_dmas"] + c["wgt_dmas"])
        own = c["gemm_cycles"] + c["reset_cycles"] + c["alu_cycles"] + KERNEL_CYCLES * c["kernels"]
        waiting = beats["acc"] + LOAD_CYCLES * (c["acc_dmas"] + c["uop_loads"]) + c["uops"] / 2
        store = STORE_CYCLES * (c["out_nbytes"] / self._target.geometry.out_nbytes + c["out_rows"])
        dmas = sum(c[f"{n}_dmas"] for n in ("inp", "wgt", "acc", "out"))
        modules = {"load_cycles": load, "compute_cycles": own + waiting, "store_cycles": store}
        named = {name: float(c[name]) for name in _COUNTED}
        return {
            **named,
            **modules,
            "instructions": dmas + c["kernels"] + c["uop_loads"] + CLOSING,
            "bound_cycles": max(modules.values()),
            "serial_cycles": sum(modules.values()),
        }


_COUNTED: Final = (
    *(f"{m}_{what}" for m in ("inp", "wgt", "acc", "out") for what in ("nbytes", "rows", "dmas")),
    "gemm_cycles",
    "reset_cycles",
    "alu_cycles",
    "uops",
    "uop_loads",
    "kernels",
    "steps",
    "tiles",
    "operand_copies",
    "acc_copies",
)
