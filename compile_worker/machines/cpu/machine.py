"""The processor as one value: what the compiler does for it, alone or next to another machine."""

from __future__ import annotations

from collections.abc import Mapping

from tilefarm.target import Target

from compile_worker.codegen.runtime import PLAIN, Runtime
from compile_worker.ir.func import Func
from compile_worker.machine import HOST, Machine
from compile_worker.machines.cpu.features import features_of
from compile_worker.machines.cpu.objects import host_object, host_text, program_object
from compile_worker.machines.cpu.pipeline import CPU_PASSES
from compile_worker.machines.cpu.space import cpu_space


def processor(runtimes: Mapping[str, Runtime]) -> Machine:
    """The processor; next to machines of these kinds its kernels are above their runtimes."""

    def runtime(target: Target) -> Runtime:
        return runtimes.get(target.model.kind, PLAIN)

    def text(func: Func, name: str, target: Target) -> str:
        return host_text(runtime(target), func, name, target)

    def build(func: Func, name: str, target: Target) -> bytes:
        return host_object(runtime(target), func, name, target)

    return Machine(
        kind=HOST,
        passes=CPU_PASSES,
        text=text,
        build=build,
        program=program_object,
        features=features_of,
        space=cpu_space,
    )
