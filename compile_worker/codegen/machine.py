"""LLVM text to object code by llvmlite, for any host that LLVM has.

llvmlite serialises all calls in a process: compile in parallel by processes. The object is position
independent and calls nothing but the VTA runtime.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import llvmlite.binding as llvm
from tilefarm.errors import TargetError
from tilefarm.target import Host

CPU_SPEED_LEVEL: Final = 3
QUEUEING_SPEED_LEVEL: Final = 1
"""Host code that only queues instructions gains nothing from more."""


@lru_cache(maxsize=8)
def machine(host: Host) -> Any:
    """LLVM's target machine for a host processor.

    Raises:
        TargetError: this LLVM has no such target.
    """
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        target = llvm.Target.from_triple(host.triple)
    except RuntimeError as error:
        raise TargetError(f"no code generator for {host.triple}: {error}") from None
    return target.create_target_machine(
        cpu=host.cpu, features=host.features, opt=2, reloc="pic", codemodel="default"
    )


def object_code(text: str, host: Host, *, speed_level: int) -> bytes:
    """The object file of a module, optimized."""
    target_machine = machine(host)
    module = llvm.parse_assembly(f'target triple = "{host.triple}"\n{text}')
    module.data_layout = str(target_machine.target_data)
    _optimize(module, target_machine, speed_level)
    return bytes(target_machine.emit_object(module))


def _optimize(module: Any, target_machine: Any, speed_level: int) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level)
    options.loop_vectorization = speed_level > 1
    options.slp_vectorization = speed_level > 1
    builder = llvm.create_pass_builder(target_machine, options)
    builder.getModulePassManager().run(module, builder)
