"""The accelerator's host code as LLVM text: calls of the runtime that queue instructions.

DRAM places are counted in elements of the memory type: byte offset / element bytes + index. What
the runtime answers is collected, and a run is only started when every answer was 0.
"""

from __future__ import annotations

from typing import Final

from tilefarm.target import VtaConfig

from compile_worker.codegen.llvm import PLAIN_CODE, HostWriter, entry_text
from compile_worker.codegen.runtime import handle_and_offset
from compile_worker.codegen.scalars import Scalars
from compile_worker.codegen.text import FunctionText
from compile_worker.ir.annotations import BASE
from compile_worker.ir.expr import INDEX, Buffer, Load
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
from compile_worker.ir.visit import find
from compile_worker.machines.vta.codegen.recorder import recorder
from compile_worker.machines.vta.codegen.runtime_abi import MEMORY, OUT_MEMORY, WAIT_CYCLES
from compile_worker.machines.vta.passes.slots import Digit, combinations, digits_of
from compile_worker.passes.nests import of_kind

CLOSURE_VALUES: Final = 99
"""Closure values that the runtime's micro-op cache tells apart: 0 to 98, for each handle."""


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
        self._key = text.in_entry("alloca [2 x i32]")
        self._whole_key = text.in_entry(f"getelementptr i32, ptr {self._key}, i64 1")
        text.do(f"store i32 0, ptr {self._status}")
        self._command = text.op("call ptr @VTATLSCommandHandle()")
        self._take_parameters()
        self.statement(self._func.body)
        text.do(f"ret i32 {text.op(f'load i32, ptr {self._status}')}")
        return "".join(self._sites) + entry_text(self._symbol, text, linkage, attributes=PLAIN_CODE)

    def _take_parameters(self) -> None:
        """Handles, element offsets of those that a copy touches, addresses of what is read."""
        offsets = {}
        for position, buffer in enumerate(self._func.params):
            self._handles[buffer], offsets[buffer] = handle_and_offset(self._text, position)
        for dma in of_kind(self._func.body, Dma):
            key = dma.dram.buffer, self._element_nbytes(dma)
            if key not in self._dram:
                shift = key[1].bit_length() - 1
                self._dram[key] = self._text.op(f"lshr i64 {offsets[key[0]]}, {shift}")
        for buffer in {load.buffer: None for load in find(self._func.body, Load)}:
            if buffer in offsets:
                command, handle = self._command, self._handles[buffer]
                start = self._text.op(f"call ptr @VTABufferCPUPtr(ptr {command}, ptr {handle})")
                place = self._text.op(f"getelementptr i8, ptr {start}, i64 {offsets[buffer]}")
                self._scalars.bind(buffer, place)

    def _element_nbytes(self, dma: Dma) -> int:
        if dma.direction == "store":
            return self._vta.out_nbytes
        vta = self._vta
        sizes = {"inp": vta.inp_nbytes, "wgt": vta.wgt_nbytes, "acc": vta.acc_nbytes}
        return sizes[dma.sram.buffer.scope]

    def alloc(self, stmt: Alloc) -> None:
        if not stmt.buffer.on_chip:
            super().alloc(stmt)
            return
        base = BASE.of(stmt)
        assert base is not None, "place_sram has not run"
        self._sram[stmt.buffer.name] = base

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
        handles = -(-combinations(digits) // CLOSURE_VALUES)
        self._sites.append(
            f"@{name}.handles = internal global [{handles} x ptr] zeroinitializer\n"
            + recorder(name, kernel, digits, self._sram)
        )
        handle, closure = f"ptr @{name}.handles", "ptr null, i32 0"
        if digits:
            handle, closure = self._keyed(f"{name}.handles", handles, digits)
        function = "VTAPushGEMMOp" if kernel.engine == "gemm" else "VTAPushALUOp"
        self._answer(f"{function}({handle}, ptr @{name}, {closure})")

    def _keyed(self, site: str, handles: int, digits: tuple[Digit, ...]) -> tuple[str, str]:
        """The handle and the closure of a key: its value for the runtime, the key behind it."""
        key, text = self._number_of(digits), self._text
        handle, value = f"ptr @{site}", key
        if handles > 1:
            row = text.op(f"udiv i32 {key}, {CLOSURE_VALUES}")
            handle = f"ptr {text.op(f'getelementptr ptr, ptr @{site}, i32 {row}')}"
            value = text.op(f"urem i32 {key}, {CLOSURE_VALUES}")
        text.do(f"store i32 {value}, ptr {self._key}")
        text.do(f"store i32 {key}, ptr {self._whole_key}")
        return handle, f"ptr {self._key}, i32 4"

    def _number_of(self, digits: tuple[Digit, ...]) -> str:
        """The mixed-radix number of the digits, first digit least significant."""
        total, radix = "0", 1
        for digit in digits:
            if digit.value.dtype is INDEX:
                value = self._scalars.narrow(digit.value)
            else:  # read by the host: it may be anything
                read = self._scalars.value(digit.value)
                value = self._text.op(f"and i32 {read}, {digit.cases - 1}")
            term = self._text.op(f"mul i32 {value}, {radix}")
            total = self._text.op(f"add i32 {total}, {term}")
            radix *= digit.cases
        return total

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
