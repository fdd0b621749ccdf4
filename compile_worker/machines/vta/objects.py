"""Objects of a VTA: a kernel by itself, or a network whose kernels run on both sides."""

from __future__ import annotations

from collections.abc import Mapping

from tilefarm.artifact import ProgramJob
from tilefarm.names import symbol
from tilefarm.target import Target

from compile_worker.codegen.objects import shared_object_of
from compile_worker.codegen.parallel import sharing_text
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import Synchronize
from compile_worker.machines.cpu.objects import host_text
from compile_worker.machines.vta.codegen.network import QueuedCall, call_texts, network_text
from compile_worker.machines.vta.codegen.queueing import accelerator_kernel
from compile_worker.machines.vta.codegen.runtime_abi import RUNTIME
from compile_worker.machines.vta.passes.check_instructions import stream_of
from compile_worker.passes.nests import of_kind


def vta_text(func: Func, name: str, target: Target) -> str:
    """LLVM text of a kernel: host code that queues its instructions and waits."""
    return accelerator_kernel(func, name, target.geometry)


def vta_object(func: Func, name: str, target: Target) -> bytes:
    """The shared object that exports one kernel."""
    return shared_object_of(vta_text(func, name, target), target.host, RUNTIME, fast_code=False)


def program_object(job: ProgramJob, kernels: Mapping[str, Func]) -> bytes:
    """The shared object that exports a network's entries; its kernels are private."""
    target, parts, calls = job.target, [sharing_text(kernels.values())], {}
    for at, (name, func) in enumerate(kernels.items()):
        private, stream = f"kernel{at}.{symbol(name)}", None
        if next(of_kind(func.body, Synchronize), None) is None:
            parts.append(host_text(RUNTIME, func, private, target, "internal"))
        else:
            stream = stream_of(func)
            text = accelerator_kernel(func, private, target.geometry, "internal", waits=False)
            parts.append(text)
        calls[name] = QueuedCall(private, stream)
    queued = [calls[call.kernel] for call in job.calls]
    text = "\n".join([*parts, network_text(job, queued), *call_texts(job, queued)])
    return shared_object_of(text, target.host, RUNTIME, fast_code=True)
