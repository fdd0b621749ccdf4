"""Object file to ELF shared object; the same bytes for the same object.

Objects that need nothing special are linked here (small_link): in a tenth of the time of a process,
and on machines that have no linker for the processor. The system's linkers do the others.

No build id, no C library, no start-up code: what stays undefined is looked up in the runtime
when the object is loaded.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final

from tilefarm.errors import InfraError, TargetError
from tilefarm.target import Host

from compile_worker.codegen.elf import undefined_symbols
from compile_worker.codegen.small_link import small_shared_object

LINKERS: Final[Mapping[str, tuple[str, ...]]] = {
    "x86_64": ("ld", "x86_64-linux-gnu-ld", "ld.lld"),
    "aarch64": ("aarch64-linux-gnu-ld", "ld.lld"),
    "armv7": ("arm-linux-gnueabihf-ld", "ld.lld"),
}
"""Linkers to look for, by the processor that a host's triple begins with."""

FLAGS: Final = (
    "-shared",
    "--build-id=none",
    "--hash-style=gnu",
    "-z",
    "noexecstack",
    "-z",
    "norelro",
    "-z",
    "noseparate-code",
    "--strip-all",
)


def link(code: bytes, host: Host, runtime: Collection[str]) -> bytes:
    """The shared object of one object file that needs nothing but the functions of a `runtime`.

    Raises:
        TargetError: it needs something special, and there is no linker for the host's processor.
        InfraError: the linker failed, or the object needs more than the runtime.
    """
    strangers = undefined_symbols(code) - frozenset(runtime)
    if strangers:
        names = ", ".join(sorted(strangers))
        raise InfraError(f"object code calls {names}, not of the runtime")
    return small_shared_object(code) or shared_object(code, host)


def shared_object(code: bytes, host: Host) -> bytes:
    """The shared object of one object file, whatever it needs; raises as `link` does."""
    linker = find_linker(host)
    with tempfile.TemporaryDirectory(prefix="tilefarm-link-") as folder:
        source, result = Path(folder, "kernel.o"), Path(folder, "kernel.so")
        source.write_bytes(code)
        command = [linker, *FLAGS, "-o", str(result), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise InfraError(f"{linker} failed with {done.returncode}: {done.stderr.strip()}")
        return result.read_bytes()


def find_linker(host: Host, which: Callable[[str], str | None] = shutil.which) -> str:
    """The path of a linker for the host's processor.

    Raises:
        TargetError: there is none on this machine.
    """
    processor = host.triple.split("-", 1)[0]
    names = LINKERS.get(processor, ("ld.lld",))
    for name in names:
        if (path := which(name)) is not None:
            return path
    raise TargetError(
        f"no linker for {processor} on this machine: looked for {', '.join(names)}",
        "install lld or the binutils of that processor",
    )
