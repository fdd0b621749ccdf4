"""Shared objects for other processors, run: cross compiler, emulator and a small loader."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt
from tilefarm.target import Host

Array = npt.NDArray[Any]

SOURCE: Final = Path(__file__).with_name("loader.c")


@dataclass(frozen=True, slots=True)
class Machine:
    """What runs an architecture here; the emulator is empty for this machine's own."""

    compiler: str
    emulator: tuple[str, ...] = ()

    @property
    def missing(self) -> str:
        """The first tool that this machine lacks."""
        needed = [self.compiler, *self.emulator[:1]]
        return next((tool for tool in needed if shutil.which(tool) is None), "")


MACHINES: Final[Mapping[str, Machine]] = {
    "x86_64": Machine("cc"),
    "aarch64": Machine("aarch64-linux-gnu-gcc", ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")),
    "armv7": Machine("arm-linux-gnueabihf-gcc", ("qemu-arm", "-L", "/usr/arm-linux-gnueabihf")),
}


LINKING: Final = (
    "-nostdlib",
    "-Wl,-z,noexecstack",
    "-Wl,-z,norelro",
    "-Wl,-z,noseparate-code",
    "-Wl,--build-id=none",
)
"""How a compiler makes what a device takes: as `compile_worker.codegen.link` does."""

KERNEL: Final = """
    #include <stdint.h>
    void* VTATLSCommandHandle(void);
    void VTASynchronize(void*, uint32_t);
    int32_t kernel(void* const* buffers, const int64_t* offsets) {
      VTASynchronize(VTATLSCommandHandle(), buffers && offsets);
      return 0;
    }
"""


def linked(machine: Machine, folder: Path) -> bytes:
    """A small kernel for a machine whose compiler is here, as a shared object."""
    source, made = folder / "kernel.c", folder / "kernel.so"
    source.write_text(KERNEL)
    subprocess.run(
        [machine.compiler, "-shared", "-fPIC", *LINKING, "-o", str(made), str(source)], check=True
    )
    return made.read_bytes()


@dataclass(frozen=True, slots=True)
class Loader:
    """The loader of one architecture, compiled."""

    machine: Machine
    program: Path

    def call(
        self, code: bytes, entry: str, arrays: Sequence[Array], processor: str = ""
    ) -> tuple[list[Array], str]:
        """The arrays after the call of an entry, and what the runtime was asked.

        `processor` is the emulator's name of the one to imitate.
        """
        folder = self.program.parent
        kernel, log = folder / "kernel.so", folder / "log.txt"
        kernel.write_bytes(code)
        files = [folder / f"buffer{i}" for i in range(len(arrays))]
        for file, array in zip(files, arrays, strict=True):
            file.write_bytes(array.tobytes())
        emulator = [*self.machine.emulator, *(["-cpu", processor] if processor else [])]
        command = [*emulator, str(self.program), str(kernel), entry, str(log), *map(str, files)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, (done.returncode, done.stderr)
        after = [
            np.frombuffer(file.read_bytes(), array.dtype).reshape(array.shape)
            for file, array in zip(files, arrays, strict=True)
        ]
        return after, log.read_text()


def loader(name: str, folder: Path) -> Loader:
    """The loader for an architecture, compiled into a folder."""
    machine = MACHINES[name]
    program = folder / f"loader-{name}"
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-rdynamic"]
    command = [machine.compiler, *flags, "-o", str(program), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True)
    return Loader(machine, program)


def no_other_linker(code: bytes, host: Host) -> NoReturn:
    """Put where the system's linker would be started: our own has to do."""
    raise AssertionError(f"a linker is started for {host}")
