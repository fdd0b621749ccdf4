"""The accelerator's host code as LLVM text: calls of the runtime that queue instructions.

DRAM places are counted in elements of the memory type: byte offset / element bytes + index. What
the runtime answers is collected, and a run is only started when every answer was 0.
"""

from __future__ import annotations

from typing import Final

from tilefarm.target import VtaConfig

from compile_worker.codegen.llvm import PLAIN_CODE, HostWriter, entry_text, handle_and_offset
from compile_worker.codegen.recorder import recorder
from compile_worker.codegen.runtime_abi import MEMORY, OUT_MEMORY, WAIT_CYCLES
from compile_worker.codegen.scalars import Scalars
from compile_worker.codegen.text import FunctionText
from compile_worker.ir.expr import Buffer
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import (
    Alloc,
    Dma,
    MicroKernel,
    Module,
    Pop,
    Push,
    Ref,
    Stmt,
    Synchronize,
)
from compile_worker.passes.nests import of_kind
from compile_worker.passes.slots import Digit, digits_of

_ON_CHIP: Final = frozenset(MEMORY)


def accelerator_kernel(
    func: Func, symbol: str, vta: VtaConfig, linkage: str = "", *, waits: bool = True
) -> str:
    """LLVM text of the host code of a function whose work is done by the accelerator.

    Unless it `waits`, the work is only queued, and somebody else starts it.
    """
    return _QueueWriter(func, symbol, vta, waits=waits).write(linkage)


class _QueueWriter(HostWriter):
    """Writes one entry, its micro-op recorders and their handles."""

    def __init__(self, func: Func, symbol: str, vta: VtaConfig, *, waits: bool) -> None:
        text = FunctionText(symbol)
        super().__init__(text, Scalars(text, {}))
        self._func = func
        self._symbol = symbol
        self._vta = vta
        self._waits = waits
        self._sites: list[str] = []
        self._sram: dict[str, int] = {}
        self._handles: dict[Buffer, str] = {}
        self._dram: dict[tuple[Buffer, int], str] = {}

    def write(self, linkage: str) -> str:
        text = self._text
        self._status = text.in_entry("alloca i32")
        self._key = text.in_entry("alloca i32")
        text.do(f"store i32 0, ptr {self._status}")
        self._command = text.op("call ptr @VTATLSCommandHandle()")
        self._take_parameters()
        self.statement(self._func.body)
        text.do(f"ret i32 {text.op(f'load i32, ptr {self._status}')}")
        return "".join(self._sites) + entry_text(self._symbol, text, linkage, attributes=PLAIN_CODE)

    def _take_parameters(self) -> None:
        """Handles and element offsets of every parameter that a copy touches."""
        offsets = {}
        for position, buffer in enumerate(self._func.params):
            self._handles[buffer], offsets[buffer] = handle_and_offset(self._text, position)
        for dma in of_kind(self._func.body, Dma):
            key = dma.dram.buffer, self._element_nbytes(dma)
            if key not in self._dram:
                shift = key[1].bit_length() - 1
                self._dram[key] = self._text.op(f"lshr i64 {offsets[key[0]]}, {shift}")

    def _element_nbytes(self, dma: Dma) -> int:
        if dma.direction == "store":
            return self._vta.out_nbytes
        vta = self._vta
        sizes = {"inp": vta.inp_nbytes, "wgt": vta.wgt_nbytes, "acc": vta.acc_nbytes}
        return sizes[dma.sram.buffer.scope]

    def alloc(self, stmt: Alloc) -> None:
        if stmt.buffer.scope not in _ON_CHIP:
            super().alloc(stmt)
            return
        self._sram[stmt.buffer.name] = int(dict(stmt.marks)["base"])

    def device_statement(self, stmt: Stmt) -> None:
        match stmt:
            case Dma(direction="load"):
                self._load(stmt)
            case Dma():
                self._store_out(stmt)
            case MicroKernel():
                self._micro_kernel(stmt)
            case Push(source, sink):
                self._token("VTADepPush", source, sink)
            case Pop(source, sink):
                self._token("VTADepPop", source, sink)
            case Synchronize():
                self._synchronize()
            case _:
                super().device_statement(stmt)

    def _load(self, dma: Dma) -> None:
        narrow = self._scalars.narrow
        handle, offset = self._dram_place(dma)
        sizes = [dma.columns, dma.rows, dma.stride]
        pads = [dma.pad_left, dma.pad_top, dma.pad_right, dma.pad_bottom]
        numbers = ", ".join(f"i32 {narrow(e)}" for e in (*sizes, *pads))
        memory = MEMORY[dma.sram.buffer.scope]
        self._text.do(
            f"call void @VTALoadBuffer2D(ptr {self._command}, ptr {handle}, i32 {offset},"
            f" {numbers}, i32 {self._sram_place(dma.sram)}, i32 {memory})"
        )

    def _store_out(self, dma: Dma) -> None:
        handle, offset = self._dram_place(dma)
        sizes = (dma.columns, dma.rows, dma.stride)
        numbers = ", ".join(f"i32 {self._scalars.narrow(e)}" for e in sizes)
        self._text.do(
            f"call void @VTAStoreBuffer2D(ptr {self._command}, i32 {self._sram_place(dma.sram)},"
            f" i32 {OUT_MEMORY}, ptr {handle}, i32 {offset}, {numbers})"
        )

    def _dram_place(self, dma: Dma) -> tuple[str, str]:
        """Handle and element offset of the DRAM side."""
        start = self._dram[dma.dram.buffer, self._element_nbytes(dma)]
        place = self._text.op(f"add i64 {start}, {self._scalars.value(dma.dram.element)}")
        return self._handles[dma.dram.buffer], self._text.op(f"trunc i64 {place} to i32")

    def _sram_place(self, ref: Ref) -> str:
        base = self._sram[ref.buffer.name]
        element = self._scalars.narrow(ref.element)
        if element.isdecimal():
            return str(base + int(element))
        return self._text.op(f"add i32 {element}, {base}")

    def _micro_kernel(self, kernel: MicroKernel) -> None:
        name = f"{self._symbol}.site{len(self._sites)}"
        digits = digits_of(kernel, self._extents)
        self._sites.append(
            f"@{name}.handle = internal global ptr null\n"
            + recorder(name, kernel, digits, self._sram)
        )
        key, nbytes = ("null", 0) if not digits else (self._write_key(digits), 4)
        function = "VTAPushGEMMOp" if kernel.engine == "gemm" else "VTAPushALUOp"
        self._answer(f"{function}(ptr @{name}.handle, ptr @{name}, ptr {key}, i32 {nbytes})")

    def _write_key(self, digits: tuple[Digit, ...]) -> str:
        """The mixed-radix number of the digits, first digit least significant, in memory."""
        total, radix = "0", 1
        for digit in digits:
            value = self._scalars.narrow(digit.value)
            term = self._text.op(f"mul i32 {value}, {radix}")
            total = self._text.op(f"add i32 {total}, {term}")
            radix *= digit.cases
        self._text.do(f"store i32 {total}, ptr {self._key}")
        return self._key

    def _token(self, function: str, source: Module, sink: Module) -> None:
        self._answer(f"{function}(ptr {self._command}, i32 {source.value}, i32 {sink.value})")

    def _answer(self, call: str) -> None:
        """Call a function that answers 0 when all is well, and remember any other answer."""
        answer = self._text.op(f"call i32 @{call}")
        before = self._text.op(f"load i32, ptr {self._status}")
        self._text.do(
            f"store i32 {self._text.op(f'or i32 {before}, {answer}')}, ptr {self._status}"
        )

    def _synchronize(self) -> None:
        if not self._waits:
            return
        status = self._text.op(f"load i32, ptr {self._status}")
        with self._text.when(self._text.op(f"icmp eq i32 {status}, 0")):
            self._text.do(f"call void @VTASynchronize(ptr {self._command}, i32 {WAIT_CYCLES})")
