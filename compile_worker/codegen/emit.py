"""Lowered functions to one shared object: a kernel by itself, or a network that calls kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilefarm.artifact import Call, ProgramJob
from tilefarm.names import symbol
from tilefarm.target import Target

from compile_worker.codegen.link import link
from compile_worker.codegen.llvm import PLAIN_CODE, cpu_kernel, entry_text, handle_and_offset
from compile_worker.codegen.machine import object_code
from compile_worker.codegen.queueing import accelerator_kernel
from compile_worker.codegen.runtime_abi import declarations
from compile_worker.codegen.text import FunctionText
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import Synchronize
from compile_worker.passes.nests import of_kind


@dataclass(frozen=True, slots=True)
class Kernel:
    """A lowered function and the name under which it is called."""

    symbol: str
    func: Func

    @property
    def on_accelerator(self) -> bool:
        return next(of_kind(self.func.body, Synchronize), None) is not None


def kernel_object(kernel: Kernel, target: Target) -> bytes:
    """The shared object that exports one kernel."""
    text = f"{declarations()}\n{kernel_text(kernel, target)}"
    code = object_code(text, target.host, fast_code=not kernel.on_accelerator)
    return link(code, target.host)


def program_object(job: ProgramJob, kernels: Sequence[Kernel]) -> bytes:
    """The shared object that exports a network's entry; its kernels are private."""
    private = {kernel.symbol: f"kernel.{symbol(kernel.symbol)}" for kernel in kernels}
    parts = [declarations()]
    for kernel in kernels:
        renamed = Kernel(private[kernel.symbol], kernel.func)
        parts.append(kernel_text(renamed, job.target, linkage="internal"))
    parts.append(_network(job, private))
    code = object_code("\n".join(parts), job.target.host, fast_code=True)
    return link(code, job.target.host)


def kernel_text(kernel: Kernel, target: Target, *, linkage: str = "") -> str:
    """LLVM text of one kernel and of what belongs to it alone."""
    if kernel.on_accelerator:
        return accelerator_kernel(kernel.func, kernel.symbol, target.vta, linkage)
    return cpu_kernel(kernel.func, kernel.symbol, linkage)


def _network(job: ProgramJob, private: dict[str, str]) -> str:
    """The entry: calls in order; the first answer that is not 0 ends it and is its own answer."""
    text = FunctionText(job.entry)
    most = max((len(call.arguments) for call in job.calls), default=1)
    handles = text.in_entry(f"alloca [{most} x ptr]")
    offsets = text.in_entry(f"alloca [{most} x i64]")
    buffers = [handle_and_offset(text, position) for position in range(job.buffers)]
    for call in job.calls:
        _pass_arguments(text, call, buffers, handles, offsets)
        answer = text.op(f"call i32 @{private[call.kernel]}(ptr {handles}, ptr {offsets}) noinline")
        with text.when(text.op(f"icmp ne i32 {answer}, 0")):
            text.do(f"ret i32 {answer}")
            text.begin(text.fresh_label())
    text.do("ret i32 0")
    return entry_text(job.entry, text, attributes=PLAIN_CODE)


def _pass_arguments(
    text: FunctionText, call: Call, buffers: Sequence[tuple[str, str]], handles: str, offsets: str
) -> None:
    for position, (buffer, nbytes) in enumerate(call.arguments):
        handle, start = buffers[buffer]
        slot = text.op(f"getelementptr ptr, ptr {handles}, i64 {position}")
        text.do(f"store ptr {handle}, ptr {slot}")
        place = text.op(f"getelementptr i64, ptr {offsets}, i64 {position}")
        text.do(f"store i64 {text.op(f'add i64 {start}, {nbytes}')}, ptr {place}")
