"""Host code as LLVM text: loops, branches, stores, local storage, and the entry's C type.

    int32_t entry(void* const* buffers, const int64_t* offsets);

CPU kernels work on the buffers' memory. Parameters of one call must not overlap.
"""

from __future__ import annotations

from typing import Final

from tilefarm.dtype import DType

from compile_worker.codegen.matrix_products import write_matrix_product
from compile_worker.codegen.parallel import call_shared, one_part, parallel_loop, part_text
from compile_worker.codegen.runtime import Runtime
from compile_worker.codegen.scalars import Scalars
from compile_worker.codegen.text import MEMORY_TYPES, FunctionText
from compile_worker.codegen.tile_calls import tile_functions, write_tile_call
from compile_worker.codegen.vectors import Vectors
from compile_worker.ir.expr import Var
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import Alloc, Block, For, If, LoopKind, Seq, Stmt, Store
from compile_worker.ir.tile_intrinsics import tile_call
from compile_worker.isa import SCALAR, Isa
from compile_worker.passes.matrix_products import matrix_product_by

NO_BUILTINS: Final = 'nounwind "no-builtins"'
"""Loops that copy or clear memory stay loops: an artifact may not call the C library."""

PLAIN_CODE: Final = f"{NO_BUILTINS} noinline optnone"
"""For code that only calls the runtime: optimizing it takes longer than running it ever will."""


def cpu_kernel(func: Func, symbol: str, isa: Isa, runtime: Runtime, linkage: str = "") -> str:
    """A CPU kernel: the entry finds the buffers' memory, an inner function works on it."""
    inner = FunctionText(f"{symbol}.body")
    names = {buffer: f"%p{i}" for i, buffer in enumerate(func.params)}
    writer = HostWriter(inner, Scalars(inner, names), isa)
    shared = parallel_loop(func)
    if shared is None:
        writer.statement(func.body)
    else:
        one_part(inner, shared, lambda counter: writer.iteration(shared, counter))
    inner.do("ret void")
    arguments = ", ".join(f"ptr noalias {name}" for name in names.values())
    entry = FunctionText(symbol)
    pointers = runtime.pointers(entry, len(func.params))
    if shared is None:
        passed = ", ".join(f"ptr {pointer}" for pointer in pointers)
        entry.do(f"call void @{inner.name}({passed})")
        part = ""
    else:
        arguments = f"{arguments}, i64 %number, i64 %parts"
        part = part_text(f"{symbol}.part", inner.name, len(pointers), NO_BUILTINS)
        call_shared(entry, f"{symbol}.part", pointers)
    entry.do("ret i32 0")
    return (
        tile_functions(func.body, inner.name, NO_BUILTINS)
        + f"define internal void @{inner.name}({arguments}) {NO_BUILTINS} {{\n{inner.body()}\n}}\n"
        + part
        + entry_text(symbol, entry, linkage)
    )


def entry_text(
    symbol: str, text: FunctionText, linkage: str = "", *, attributes: str = NO_BUILTINS
) -> str:
    """The definition of an entry: its C type around the text of its body."""
    head = f"define {linkage} i32 @{symbol}(ptr %buffers, ptr %offsets) {attributes}"
    return f"{head} {{\n{text.body()}\n}}\n"


class HostWriter:
    """Writes statements of host code: loops, branches, stores, local storage."""

    def __init__(self, text: FunctionText, scalars: Scalars, isa: Isa = SCALAR) -> None:
        self._text = text
        self._scalars = scalars
        self._isa = isa
        self._extents: dict[Var, int] = {}

    def statement(self, stmt: Stmt) -> None:
        match stmt:
            case Seq(stmts):
                for each in stmts:
                    self.statement(each)
            case For():
                self._for(stmt)
            case If():
                self._if(stmt)
            case Alloc(body=body):
                self.alloc(stmt)
                self.statement(body)
            case Block(body=body, init=None):
                self.statement(body)
            case Store():
                self._store(stmt)
            case _:
                self.device_statement(stmt)

    def device_statement(self, stmt: Stmt) -> None:
        """A statement that only the accelerator's host code may hold."""
        raise TypeError(f"no machine code for {type(stmt).__name__} here")

    def _for(self, stmt: For) -> None:
        self._extents[stmt.var] = stmt.extent
        if stmt.extent == 1:
            self._scalars.define(stmt.var, "0")
            self.statement(stmt.body)
            return
        if (call := tile_call(stmt)) is not None:
            write_tile_call(self._text, self._scalars, call, self._text.name)
            return
        if stmt.kind is LoopKind.VECTORIZED:
            product = matrix_product_by(self._isa, stmt)
            if product is not None:
                write_matrix_product(self._text, self._scalars, product)
                return
            vectors = Vectors(self._text, self._scalars, stmt, self._extents, self._isa)
            vectors.statement(stmt.body)
            return
        with self._text.loop(stmt.extent) as counter:
            self.iteration(stmt, counter)

    def iteration(self, loop: For, counter: str) -> None:
        """One iteration of a loop: the body with the variable's value."""
        self._extents[loop.var] = loop.extent
        self._scalars.enter()
        self._scalars.define(loop.var, counter)
        self.statement(loop.body)
        self._scalars.leave()

    def _if(self, stmt: If) -> None:
        self._scalars.enter()  # a branch may change what the condition has read
        condition = self._scalars.value(stmt.condition)
        self._scalars.leave()
        self._arm(condition, stmt.then)
        if stmt.otherwise is not None:
            self._arm(self._text.op(f"xor i1 {condition}, true"), stmt.otherwise)

    def _arm(self, condition: str, body: Stmt) -> None:
        with self._text.when(condition):
            self._scalars.enter()
            self.statement(body)
            self._scalars.leave()

    def alloc(self, stmt: Alloc) -> None:
        """Room for a local buffer, on the stack."""
        buffer = stmt.buffer
        (elements,) = buffer.shape
        kind = f"[{elements} x {MEMORY_TYPES[buffer.dtype]}]"
        self._scalars.bind(buffer, self._text.in_entry(f"alloca {kind}, align 64"))

    def _store(self, stmt: Store) -> None:
        self._scalars.enter()
        value = self._scalars.value(stmt.value)
        if stmt.buffer.dtype is DType.BOOL:
            value = self._text.op(f"zext i1 {value} to i8")
        address = self._scalars.address(stmt.buffer, stmt.index)
        self._text.do(f"store {MEMORY_TYPES[stmt.buffer.dtype]} {value}, ptr {address}")
        self._scalars.leave()
