"""LLVM text as a shared object that needs nothing but a runtime."""

from __future__ import annotations

from tilefarm.target import Host

from compile_worker.codegen.elf import undefined_symbols
from compile_worker.codegen.link import link
from compile_worker.codegen.llvm import NO_BUILTINS, PLAIN_CODE
from compile_worker.codegen.machine import object_code
from compile_worker.codegen.runtime import Runtime


def shared_object_of(
    text: str, host: Host, runtime: Runtime, *, fast_code: bool, vectors: bool = True
) -> bytes:
    """The shared object of a text that lacks only the runtime's declarations."""
    whole = f"{runtime.declarations}\n{text}"
    code = standalone(whole, host, runtime, fast_code=fast_code, vectors=vectors)
    return link(code, host, runtime.functions)


def standalone(
    text: str, host: Host, runtime: Runtime, *, fast_code: bool, vectors: bool = True
) -> bytes:
    """Object code that calls the runtime alone.

    Plain code divides by calling a library where the processor cannot divide; optimized code
    multiplies instead, because divisors are constants.
    """
    code = object_code(text, host, fast_code=fast_code, vectors=vectors)
    if undefined_symbols(code) <= runtime.functions.keys():
        return code
    plain = text.replace(PLAIN_CODE, NO_BUILTINS)
    return object_code(plain, host, fast_code=True, vectors=vectors)
