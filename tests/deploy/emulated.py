"""A board's processor, emulated: the distribution for it, and its runner under qemu's user mode.

The emulator has neither seccomp nor Landlock, so what runs is the library and the runner, not
their sandbox; the kernel below it is this machine's.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kit.objects.foreign import MACHINES
from kit.objects.hosts import ARM
from tilefarm.target import Host, Target

import device_server
from device_server.device import elf
from device_server.runner.runner import Runner, RunnerLimits

from .building import building
from .deployed import DEPLOY

_PREFIXES: Final[Mapping[str, str]] = {
    "aarch64": "aarch64-linux-gnu",
    "armv7l": "arm-linux-gnueabihf",
}
_HEADERS: Final = Path(device_server.__file__).parent / "vta" / "runtime" / "include"
_SHIM: Final = Path(__file__).with_name("clone_parent.c")
_PR_SET_CHILD_SUBREAPER: Final = 36


@dataclass(frozen=True, slots=True)
class Board:
    """What `deploy/device/cross.sh` made for a processor, and a runner that is emulated.

    Attributes:
        name: of the processor.
        host: what kernels are compiled for.
        folder: where the distribution is unpacked.
    """

    name: str
    host: Host
    folder: Path

    @property
    def library(self) -> Path:
        return self._built / "libtilefarm_vta.so"

    @property
    def known_kernel(self) -> Path:
        return self._built / "vta-known.so"

    @property
    def c_compiler(self) -> str:
        return f"{_PREFIXES[self.name]}-gcc"

    @property
    def cxx_compiler(self) -> str:
        return f"{_PREFIXES[self.name]}-g++"

    @property
    def emulator(self) -> tuple[str, ...]:
        """What to put before a command of its own."""
        return _emulator(self.name)

    @property
    def machine(self) -> elf.Machine:
        """What its kernels must be made for."""
        return elf.Machine.of_triple(self.host.triple)

    @contextmanager
    def runner(
        self, target: Target, limits: RunnerLimits | None = None, trace: Path | None = None
    ) -> Iterator[Runner]:
        """An accelerator in it; this process adopts orphans meanwhile, see `clone_parent.c`.

        All system calls are written to the file `trace`, whose length `limits` also bound.
        """
        executable = self._executable(trace)
        _adopt_orphans(True)
        try:
            with Runner(
                target=target, library=self.library, executable=executable, limits=limits
            ) as runner:
                yield runner
        finally:
            _adopt_orphans(False)

    @property
    def _built(self) -> Path:
        return self.folder / "device_server" / "lib"

    def _executable(self, trace: Path | None) -> Path:
        """What starts its runner."""
        emulator, *options = self.emulator
        tracing = ["-strace", "-D", str(trace)] if trace else []
        preload = f"LD_PRELOAD={self.folder / _SHIM.with_suffix('.so').name}"
        words = [emulator, *tracing, *options, "-E", preload, str(self._built / "vta-runner")]
        executable = self.folder / f"{'traced' if trace else 'emulated'}-runner"
        executable.write_text(f'#!/bin/sh\nexec {" ".join(words)} "$@"\n')
        executable.chmod(0o755)
        return executable


def missing_tool(name: str) -> str:
    """The first tool that this machine lacks to build for a processor and to emulate it."""
    needed = [f"{_PREFIXES[name]}-g++", f"{_PREFIXES[name]}-gcc", _emulator(name)[0]]
    return next((tool for tool in needed if shutil.which(tool) is None), "")


def board(name: str, folder: Path) -> Board:
    """Build the distribution for `aarch64` or `armv7l`, as a user would."""
    with building():
        subprocess.run(
            ["/bin/sh", DEPLOY / "device" / "cross.sh", name, folder],
            env={**os.environ, "PYTHON": sys.executable},
            check=True,
        )
    (wheel,) = folder.glob(f"tilefarm_device-*-linux_{name}.whl")
    zipfile.ZipFile(wheel).extractall(folder)
    (folder / "device_server" / "lib" / "vta-runner").chmod(0o755)
    made = Board(name=name, host=ARM[name.rstrip("l")], folder=folder)
    compile_shared(made, _SHIM, folder / _SHIM.with_suffix(".so").name)
    return made


def compile_shared(board: Board, source: Path, to: Path) -> None:
    """A shared object for it of a file in C."""
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{_HEADERS}"]
    subprocess.run([board.c_compiler, *flags, "-o", to, source], check=True)


def _emulator(name: str) -> tuple[str, ...]:
    return MACHINES[name.rstrip("l")].emulator


def _adopt_orphans(adopt: bool) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, int(adopt), 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no subreaper")
