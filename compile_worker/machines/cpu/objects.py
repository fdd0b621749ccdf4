"""Objects of kernels that the processor computes."""

from __future__ import annotations

from collections.abc import Mapping

from tilefarm.artifact import ProgramJob
from tilefarm.names import symbol
from tilefarm.target import Target

from compile_worker.codegen.llvm import cpu_kernel
from compile_worker.codegen.network import alone, plain_network
from compile_worker.codegen.objects import shared_object_of
from compile_worker.codegen.parallel import sharing_text
from compile_worker.codegen.pool import pool_text
from compile_worker.codegen.runtime import PLAIN, Runtime
from compile_worker.ir.func import Func
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import For, LoopKind
from compile_worker.ir.visit import rewrite
from compile_worker.isa import isa_of


def host_text(runtime: Runtime, func: Func, name: str, target: Target, linkage: str = "") -> str:
    """LLVM text of a kernel and of what belongs to it alone."""
    return cpu_kernel(func, name, isa_of(target.host), runtime, linkage)


def host_object(
    runtime: Runtime, func: Func, name: str, target: Target, *, vectors: bool = True
) -> bytes:
    """The shared object that exports one kernel."""
    text = f"{sharing_text([func])}{host_text(runtime, func, name, target)}"
    return shared_object_of(text, target.host, runtime, fast_code=True, vectors=vectors)


def program_object(job: ProgramJob, kernels: Mapping[str, Func]) -> bytes:
    """The shared object of a network that a processor runs alone; its kernels are private."""
    names = {name: f"kernel{at}.{symbol(name)}" for at, name in enumerate(kernels)}
    parts = [sharing_text(kernels.values()), pool_text(kernels.values(), job.target.host)]
    for name, func in kernels.items():
        parts.append(host_text(PLAIN, func, names[name], job.target, "internal"))
    parts += [plain_network(each, names) for each in (job, *alone(job))]
    return shared_object_of("\n".join(parts), job.target.host, PLAIN, fast_code=True)


def scalar_object(runtime: Runtime, func: Func, name: str, target: Target) -> bytes:
    """As `host_object`, computed one value at a time: what vectors are measured against."""

    def rule(node: Node) -> Node | None:
        match node:
            case For(var, extent, body, LoopKind.VECTORIZED, marks):
                return For(var, extent, body, LoopKind.SERIAL, marks)
            case _:
                return None

    plain = Func(func.name, func.params, rewrite(func.body, rule), func.attrs)
    return host_object(runtime, plain, name, target, vectors=False)
