"""Lowered functions to one shared object: a kernel by itself, or a network that calls kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tilefarm.artifact import ProgramJob
from tilefarm.names import symbol
from tilefarm.target import Host, Target

from compile_worker.codegen.elf import undefined_symbols
from compile_worker.codegen.link import link
from compile_worker.codegen.llvm import NO_BUILTINS, PLAIN_CODE, cpu_kernel
from compile_worker.codegen.machine import object_code
from compile_worker.codegen.parallel import sharing_text
from compile_worker.ir.func import Func
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import For, LoopKind, Synchronize
from compile_worker.ir.visit import rewrite
from compile_worker.isa import isa_of
from compile_worker.machines.vta.codegen.network import QueuedCall, call_texts, network_text
from compile_worker.machines.vta.codegen.queueing import accelerator_kernel
from compile_worker.machines.vta.codegen.runtime_abi import FUNCTIONS, declarations
from compile_worker.machines.vta.passes.check_instructions import stream_of
from compile_worker.passes.nests import of_kind

_NO_RUNTIME: Final = """\
define internal ptr @VTATLSCommandHandle() alwaysinline nounwind {
  ret ptr null
}
define internal ptr @VTABufferCPUPtr(ptr %command, ptr %buffer) alwaysinline nounwind {
  ret ptr %buffer
}"""


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
    text = f"{_runtime(target)}\n{sharing_text([kernel.func])}{kernel_text(kernel, target)}"
    code = _standalone(text, target.host, fast_code=not kernel.on_accelerator)
    return link(code, target.host, FUNCTIONS)


def scalar_object(kernel: Kernel, target: Target) -> bytes:
    """As `kernel_object`, computed one value at a time: what vectors are measured against."""

    def rule(node: Node) -> Node | None:
        match node:
            case For(var, extent, body, LoopKind.VECTORIZED, marks):
                return For(var, extent, body, LoopKind.SERIAL, marks)
            case _:
                return None

    func = kernel.func
    plain = Func(func.name, func.params, rewrite(func.body, rule), func.attrs)
    text = f"{_runtime(target)}\n{sharing_text([plain])}"
    text += kernel_text(Kernel(kernel.symbol, plain), target)
    code = object_code(text, target.host, fast_code=True, vectors=False)
    return link(code, target.host, FUNCTIONS)


def program_object(job: ProgramJob, kernels: Sequence[Kernel]) -> bytes:
    """The shared object that exports a network's entries; its kernels are private."""
    private = {
        kernel.symbol: Kernel(f"kernel{at}.{symbol(kernel.symbol)}", kernel.func)
        for at, kernel in enumerate(kernels)
    }
    parts = [_runtime(job.target), sharing_text(kernel.func for kernel in kernels)]
    for kernel in private.values():
        parts.append(kernel_text(kernel, job.target, linkage="internal", waits=False))
    queued = [_queued_call(private[call.kernel]) for call in job.calls]
    parts += [network_text(job, queued), *call_texts(job, queued)]
    code = _standalone("\n".join(parts), job.target.host, fast_code=True)
    return link(code, job.target.host, FUNCTIONS)


def _runtime(target: Target) -> str:
    """LLVM text of the functions that every kernel may call.

    Where there is no accelerator, a buffer is memory of the caller, and its handle is its address:
    such an object needs no library.
    """
    return declarations() if target.has_accelerator else _NO_RUNTIME


def _standalone(text: str, host: Host, *, fast_code: bool) -> bytes:
    """Object code that calls the runtime alone.

    Plain code divides by calling a library where the processor cannot divide; optimized code
    multiplies instead, because divisors are constants.
    """
    code = object_code(text, host, fast_code=fast_code)
    if undefined_symbols(code) <= FUNCTIONS.keys():
        return code
    return object_code(text.replace(PLAIN_CODE, NO_BUILTINS), host, fast_code=True)


def kernel_text(kernel: Kernel, target: Target, *, linkage: str = "", waits: bool = True) -> str:
    """LLVM text of one kernel and of what belongs to it alone."""
    if kernel.on_accelerator:
        return accelerator_kernel(kernel.func, kernel.symbol, target.geometry, linkage, waits=waits)
    return cpu_kernel(kernel.func, kernel.symbol, isa_of(target.host), linkage)


def _queued_call(kernel: Kernel) -> QueuedCall:
    stream = stream_of(kernel.func) if kernel.on_accelerator else None
    return QueuedCall(kernel.symbol, stream)
