"""What the accelerator's instructions do to its memories: copies, GEMM and ALU.

A hardware element of "inp" and "acc" is a batch x block tile, one of "wgt" a block x block tile
stored output lane before input lane. Bits are as in the RTL: 32-bit accumulators wrap, a store
narrows by truncation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from tilefarm.vta_isa import ALU, AluOp

from compile_worker.ir.annotations import BASE, SLOTS
from compile_worker.ir.evaluate import Array, InterpretError, Values, coordinate, memory_of
from compile_worker.ir.expr import Buffer, Const, Expr
from compile_worker.ir.ordering import Footprint, ModuleOrder
from compile_worker.ir.printer import show
from compile_worker.ir.stmt import Alloc, Dma, MicroKernel, Module, Ref

ON_CHIP: Final = frozenset({"inp", "wgt", "acc"})

_BANK_DTYPES: Final[Mapping[str, str]] = {"inp": "int8", "wgt": "int8", "acc": "int32"}

_ALU: Final[Mapping[str, Callable[[Array, Array], Array]]] = {
    AluOp.MIN.word: np.minimum,
    AluOp.MAX.word: np.maximum,
    AluOp.ADD.word: np.add,
    AluOp.SHR.word: lambda values, bits: (values << np.maximum(-bits, 0)) >> np.maximum(bits, 0),
    AluOp.MUL.word: np.multiply,
}

MOST_LEFT: Final = 16
"""How far a shift by a negative constant goes to the left on every design."""

IMMEDIATE: Final = ALU.field("imm").values


@dataclass(slots=True)
class Scratchpad:
    """Storage of one on-chip buffer, as hardware elements.

    `results` says which elements hold a GEMM or ALU result: only those can be stored. `memory` is
    the on-chip memory and `origin` the first element in it; a buffer that has not been placed is a
    memory of its own.
    """

    scope: str
    elements: Array
    results: Array
    memory: str
    origin: int = 0


@dataclass(slots=True)
class Accelerator:
    """On-chip memories and what executes on them, in program order.

    `memory` maps every buffer alive to its storage, also those on the chip: as plain arrays, for
    programs that have not been lowered yet.
    """

    batch: int
    block: int
    memory: dict[Buffer, Array]
    order: ModuleOrder
    _pads: dict[Buffer, Scratchpad] = field(default_factory=dict)
    _banks: dict[str, tuple[Array, Array]] = field(default_factory=dict)
    _turns: Counter[str] = field(default_factory=Counter)
    _offsets: dict[MicroKernel, tuple[Array, Array, Array]] = field(default_factory=dict)

    def lanes(self, scope: str) -> int:
        """Values in one hardware element of a memory."""
        return self.block * (self.block if scope == "wgt" else self.batch)

    def allocate(self, alloc: Alloc, contents: Array) -> None:
        """Makes room for an on-chip buffer, filled with `contents`."""
        buffer = alloc.buffer
        lanes = self.lanes(buffer.scope)
        if contents.size % lanes:
            self.memory[buffer] = contents
            return
        pad = self._pad(alloc, contents.reshape(-1, lanes))
        pad.results[:] = False
        self._pads[buffer] = pad
        self.memory[buffer] = pad.elements.reshape(buffer.shape)

    def free(self, buffer: Buffer) -> None:
        self._pads.pop(buffer, None)

    def _pad(self, alloc: Alloc, contents: Array) -> Scratchpad:
        """At its base, or in a memory of its own: one for each of its slots, in turn."""
        buffer, count, first = alloc.buffer, len(contents), BASE.of(alloc)
        if first is None:
            turn = self._turns[buffer.name] % SLOTS.of(alloc)
            self._turns[buffer.name] += 1
            name = f"{buffer.name} (slot {turn})" if turn else buffer.name
            return Scratchpad(buffer.scope, contents, np.zeros(count, bool), name)
        bank, results = self._bank(buffer.scope, first + count)
        window = slice(first, first + count)
        bank[window] = contents
        return Scratchpad(buffer.scope, bank[window], results[window], buffer.scope, first)

    def _bank(self, scope: str, count: int) -> tuple[Array, Array]:
        """The memory that placed buffers share, so that misplaced ones spoil one another."""
        if scope not in self._banks:
            shape = (1 << 16, self.lanes(scope))
            self._banks[scope] = np.zeros(shape, _BANK_DTYPES[scope]), np.zeros(shape[0], bool)
        bank = self._banks[scope]
        if count > len(bank[0]):
            raise InterpretError(f"{scope} has no element {count - 1}")
        return bank

    def _scratchpad(self, ref: Ref) -> Scratchpad:
        if ref.buffer not in self._pads:
            raise InterpretError(f"{ref.buffer.name} is no on-chip buffer of whole elements here")
        return self._pads[ref.buffer]

    def copy(self, dma: Dma, values: Values) -> None:
        """LOAD or STORE."""
        pad = self._scratchpad(dma.sram)
        number = _Numbers(values, self.memory)
        rows, columns, stride = number(dma.rows), number(dma.columns), number(dma.stride)
        top, left = number(dma.pad_top), number(dma.pad_left)
        bottom, right = number(dma.pad_bottom), number(dma.pad_right)
        if rows < 1 or columns < 1 or min(top, left, bottom, right) < 0:
            raise InterpretError(f"{show(dma)}: {rows} rows of {columns} elements are impossible")
        outer = memory_of(dma.dram.buffer, self.memory).reshape(-1, pad.elements.shape[1])
        grid = np.arange(rows)[:, None] * stride + np.arange(columns)
        there = _checked(number(dma.dram.element) + grid, len(outer), dma.dram, dma)
        height, width = top + rows + bottom, left + columns + right
        here = number(dma.sram.element) + np.arange(height * width).reshape(height, width)
        _checked(here, len(pad.elements), dma.sram, dma)
        if dma.direction == "load":
            self._load(dma, pad, outer, there, here, (top, left))
        elif (top, left, bottom, right) != (0, 0, 0, 0):
            raise InterpretError(f"{show(dma)}: a store cannot pad")
        else:
            self._store(dma, pad, outer, there, here)

    def _load(
        self,
        dma: Dma,
        pad: Scratchpad,
        outer: Array,
        there: Array,
        here: Array,
        at: tuple[int, int],
    ) -> None:
        if outer.dtype != pad.elements.dtype:
            raise InterpretError(f"{show(dma)}: {outer.dtype} loaded as {pad.elements.dtype}")
        top, left = at
        rows, columns = there.shape
        pad.elements[here] = 0
        pad.elements[here[top : top + rows, left : left + columns]] = outer[there]
        pad.results[here] = False
        module = Module.COMPUTE if pad.scope == "acc" else Module.LOAD
        reads = [Footprint(dma.dram.buffer.name, there.ravel())]
        self.order.instruction(module, reads, [self._access(pad, here)], dma)

    def _store(self, dma: Dma, pad: Scratchpad, outer: Array, there: Array, here: Array) -> None:
        if pad.scope != "acc" or not pad.results[here].all():
            raise InterpretError(f"{show(dma)}: stores what no GEMM or ALU operation has produced")
        outer[there] = pad.elements[here].astype(outer.dtype)
        writes = [Footprint(dma.dram.buffer.name, there.ravel())]
        self.order.instruction(Module.STORE, [self._access(pad, here)], writes, dma)

    def _access(self, pad: Scratchpad, elements: Array) -> Footprint:
        return Footprint(pad.memory, pad.origin + elements.ravel())

    def compute(self, kernel: MicroKernel, values: Values) -> None:
        """One GEMM or ALU instruction."""
        dst, src, wgt = self._indices(kernel)
        number = _Numbers(values, self.memory)
        out = self._operand(kernel, kernel.dst, dst, number)
        reads = [self._access(*out)]
        if kernel.engine == "alu":
            operand = self._operand(kernel, kernel.src, src, number) if kernel.src else None
            self._alu(kernel, out, operand, 0 if operand else _immediate(kernel, number))
            reads += [self._access(*operand)] if operand else []
        elif kernel.reset:
            out[0].elements[out[1]] = 0
            out[0].results[out[1]] = False
            reads = []
        else:
            if kernel.src is None or kernel.wgt is None:
                raise InterpretError(f"{show(kernel)}: GEMM needs src and wgt")
            left = self._operand(kernel, kernel.src, src, number)
            right = self._operand(kernel, kernel.wgt, wgt, number)
            self._gemm(out, left, right)
            reads += [self._access(*left), self._access(*right)]
        self.order.instruction(Module.COMPUTE, reads, [self._access(*out)], kernel)

    def _operand(
        self, kernel: MicroKernel, ref: Ref, offsets: Array, number: _Numbers
    ) -> tuple[Scratchpad, Array]:
        pad = self._scratchpad(ref)
        at = number(ref.element) + offsets
        return pad, _checked(at, len(pad.elements), ref, kernel)

    def _indices(self, kernel: MicroKernel) -> tuple[Array, Array, Array]:
        """Offsets of dst, src and wgt of every micro-op that is executed, in order."""
        found = self._offsets.get(kernel)
        if found is None:
            found = self._offsets[kernel] = _offsets(kernel)
        return found

    def _gemm(
        self,
        out: tuple[Scratchpad, Array],
        left: tuple[Scratchpad, Array],
        right: tuple[Scratchpad, Array],
    ) -> None:
        acc, dst = out
        batch, block = self.batch, self.block
        inputs = left[0].elements[left[1]].reshape(-1, batch, block).astype(np.float32)
        weights = right[0].elements[right[1]].reshape(-1, block, block).astype(np.float32)
        products = inputs @ weights.transpose(0, 2, 1)  # exact: below 2**24 in magnitude
        sums = products.reshape(len(dst), -1).astype(np.int32)
        np.add.at(acc.elements, dst, sums)
        acc.results[dst] = True

    def _alu(
        self,
        kernel: MicroKernel,
        out: tuple[Scratchpad, Array],
        operand: tuple[Scratchpad, Array] | None,
        immediate: int,
    ) -> None:
        acc, dst = out
        apply = _ALU[kernel.opcode]
        values = acc.elements
        if operand is None:
            source = np.full((len(dst), values.shape[1]), immediate, values.dtype)
        else:
            source = operand[0].elements[operand[1]]
            if set(dst.tolist()) & set(operand[1].tolist()) and operand[0] is acc:
                raise InterpretError(f"{show(kernel)}: reads what it writes")
        least = 0 if isinstance(kernel.imm, Expr) or operand else -MOST_LEFT
        if kernel.opcode == "shr" and ((source < least) | (source > 31)).any():
            raise InterpretError(f"{show(kernel)}: shift outside {least}..31")
        if len(np.unique(dst)) == len(dst):
            values[dst] = apply(values[dst], source)
        else:
            for at, amount in zip(dst.tolist(), source, strict=True):
                values[at] = apply(values[at], amount)
        acc.results[dst] = True


def _offsets(kernel: MicroKernel) -> tuple[Array, Array, Array]:
    """What every micro-op that is executed adds to its bases: the same each time."""
    uops = np.array([(u.dst, u.src, u.wgt) for u in kernel.uops], np.int64).reshape(-1, 3)
    for loop in reversed(kernel.loops):
        steps = np.arange(loop.extent)[:, None] * np.array([loop.dst, loop.src, loop.wgt])
        uops = (steps[:, None, :] + uops).reshape(-1, 3)
    if not len(uops) or len(kernel.loops) > 2:
        raise InterpretError(f"{show(kernel)}: needs a micro-op and at most two loops")
    return uops[:, 0], uops[:, 1], uops[:, 2]


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Evaluates the index expressions of one instruction."""

    values: Values
    memory: dict[Buffer, Array]

    def __call__(self, expr: Expr) -> int:
        if type(expr) is Const:  # sizes and paddings, for every instruction again
            return int(expr.value)
        return int(coordinate(expr, self.values, self.memory))


def _immediate(kernel: MicroKernel, number: _Numbers) -> int:
    """The constant operand: a number of 16 bits, which the host may have read."""
    imm = number(kernel.imm) if isinstance(kernel.imm, Expr) else kernel.imm
    if imm is None or imm not in IMMEDIATE:
        raise InterpretError(f"{show(kernel)}: needs src, or imm of 16 bits")
    return imm


def _checked(at: Array, count: int, ref: Ref, stmt: Dma | MicroKernel) -> Array:
    if at.min() < 0 or at.max() >= count:
        bad = at.min() if at.min() < 0 else at.max()
        what = f"element {bad} of {ref.buffer.name}, which has {count}"
        raise InterpretError(f"{show(stmt)}: {what}")
    return at
