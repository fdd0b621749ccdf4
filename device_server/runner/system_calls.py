"""Names of the system calls that a kernel may be caught at, for a reason in words."""

from __future__ import annotations

import platform
from typing import Final

_NAMES: Final = {
    "x86_64": {
        2: "open",
        10: "mprotect",
        9: "mmap",
        32: "dup",
        33: "dup2",
        41: "socket",
        42: "connect",
        56: "clone",
        57: "fork",
        58: "vfork",
        59: "execve",
        62: "kill",
        87: "unlink",
        101: "ptrace",
        165: "mount",
        234: "tgkill",
        257: "openat",
        292: "dup3",
        302: "prlimit64",
        319: "memfd_create",
        321: "bpf",
        322: "execveat",
        425: "io_uring_setup",
        435: "clone3",
        437: "openat2",
    },
    "aarch64": {
        23: "dup",
        24: "dup3",
        35: "unlinkat",
        40: "mount",
        56: "openat",
        117: "ptrace",
        129: "kill",
        131: "tgkill",
        198: "socket",
        203: "connect",
        220: "clone",
        221: "execve",
        222: "mmap",
        226: "mprotect",
        261: "prlimit64",
        279: "memfd_create",
        280: "bpf",
        281: "execveat",
        425: "io_uring_setup",
        435: "clone3",
        437: "openat2",
    },
}


def system_call_name(number: int, machine: str | None = None) -> str:
    """The name of a system call of this machine, or its number where no name is listed."""
    return _NAMES.get(machine or platform.machine(), {}).get(number, f"number {number}")
