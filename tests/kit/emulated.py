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

from kit.deployed import DEPLOY
from kit.foreign import MACHINES
from kit.hosts import ARM
from tilefarm.target import Host, Target

from device_server.device import elf
from device_server.runner.runner import Runner

_PREFIXES: Final[Mapping[str, str]] = {
    "aarch64": "aarch64-linux-gnu",
    "armv7l": "arm-linux-gnueabihf",
}
_SHIM: Final = Path(__file__).with_name("clone_parent.c")
_PR_SET_CHILD_SUBREAPER: Final = 36


@dataclass(frozen=True, slots=True)
class Board:
    """What `deploy/device/cross.sh` made for a processor, and a runner that is emulated.

    Attributes:
        host: what kernels are compiled for.
        library, known_kernel: of the distribution.
        executable: starts its runner.
    """

    host: Host
    library: Path
    known_kernel: Path
    executable: Path

    @property
    def machine(self) -> elf.Machine:
        """What its kernels must be made for."""
        return elf.Machine.of_triple(self.host.triple)

    @contextmanager
    def runner(self, target: Target) -> Iterator[Runner]:
        """An accelerator in it; this process adopts orphans meanwhile, see `clone_parent.c`."""
        _adopt_orphans(True)
        try:
            with Runner(target=target, library=self.library, executable=self.executable) as runner:
                yield runner
        finally:
            _adopt_orphans(False)


def missing_tool(name: str) -> str:
    """The first tool that this machine lacks to build for a processor and to emulate it."""
    needed = [f"{_PREFIXES[name]}-g++", f"{_PREFIXES[name]}-gcc", _emulator(name)[0]]
    return next((tool for tool in needed if shutil.which(tool) is None), "")


def board(name: str, folder: Path) -> Board:
    """Build the distribution for `aarch64` or `armv7l`, as a user would."""
    subprocess.run(
        ["/bin/sh", DEPLOY / "device" / "cross.sh", name, folder],
        env={**os.environ, "PYTHON": sys.executable},
        check=True,
    )
    (wheel,) = folder.glob(f"tilefarm_device-*-linux_{name}.whl")
    zipfile.ZipFile(wheel).extractall(folder)
    built = folder / "device_server" / "lib"
    (built / "vta-runner").chmod(0o755)
    shim = folder / "clone_parent.so"
    compile_shim = [f"{_PREFIXES[name]}-gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-shared"]
    subprocess.run([*compile_shim, "-fPIC", "-o", shim, _SHIM], check=True)
    executable = folder / "emulated-runner"
    words = [*_emulator(name), "-E", f"LD_PRELOAD={shim}", str(built / "vta-runner")]
    executable.write_text(f'#!/bin/sh\nexec {" ".join(words)} "$@"\n')
    executable.chmod(0o755)
    return Board(
        host=ARM[name.rstrip("l")],
        library=built / "libtilefarm_vta.so",
        known_kernel=built / "vta-known.so",
        executable=executable,
    )


def _emulator(name: str) -> tuple[str, ...]:
    return MACHINES[name.rstrip("l")].emulator


def _adopt_orphans(adopt: bool) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, int(adopt), 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no subreaper")
