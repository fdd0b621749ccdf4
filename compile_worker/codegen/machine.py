"""LLVM text to object code by llvmlite, for any host that LLVM has.

llvmlite serialises all calls in a process: compile in parallel by processes. The object is position
independent and calls nothing but a runtime.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import llvmlite.binding as llvm
from tilefarm.errors import TargetError
from tilefarm.target import Host

from compile_worker.isa import isa_of

SPEED_LEVEL: Final = 2
"""Level 3 also unrolls loops around vectors: fifty times the compile time, and no faster code."""


@lru_cache(maxsize=8)
def machine(host: Host, level: int) -> Any:
    """LLVM's target machine for a host processor; `level` 0 to 3 is that of code selection.

    Raises:
        TargetError: this LLVM has no such target.
    """
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        target = llvm.Target.from_triple(host.triple)
    except RuntimeError as error:
        raise TargetError(
            f"no code generator for {host.triple}: {error}", "`llc --version` lists what there is"
        ) from None
    return target.create_target_machine(
        cpu=host.cpu, features=host.features, opt=level, reloc="pic", codemodel="default"
    )


def object_code(text: str, host: Host, *, fast_code: bool, vectors: bool = True) -> bytes:
    """The object file of a module: optimized for its own speed, or made as quickly as can be.

    Without `vectors` LLVM makes none of its own: what vectors are measured against. Nor does it
    where vectors take denormals for zero, because it compares floats with them.
    """
    target_machine = machine(host, 2 if fast_code else 0)
    module = llvm.parse_assembly(f'target triple = "{host.triple}"\n{text}')
    module.data_layout = str(target_machine.target_data)
    if fast_code:
        _optimize(module, target_machine, vectors=vectors and isa_of(host).exact_floats)
    return bytes(target_machine.emit_object(module))


def require_text(text: str) -> None:
    """Nothing if LLVM takes a module's text; no code is made of it.

    Raises:
        RuntimeError: it does not, and says why.
    """
    llvm.parse_assembly(text).verify()


def _optimize(module: Any, target_machine: Any, *, vectors: bool) -> None:
    options = llvm.create_pipeline_tuning_options(SPEED_LEVEL)
    options.loop_vectorization = vectors
    options.slp_vectorization = vectors
    builder = llvm.create_pass_builder(target_machine, options)
    builder.getModulePassManager().run(module, builder)
