"""Hosts to generate code for: those that this machine can run, and others."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tilefarm.target import Host

X86: Final[Mapping[str, tuple[Host, tuple[str, ...]]]] = {
    "sse": (Host(), ("sse4_2",)),
    "avx2": (Host(cpu="x86-64-v3"), ("avx2",)),
    "avxvnni": (Host(cpu="x86-64-v3", features="+avxvnni"), ("avx2", "avx_vnni")),
    "avx512": (Host(cpu="x86-64-v4"), ("avx512bw", "avx512vl")),
    "avx512vnni": (
        Host(cpu="x86-64-v4", features="+avx512vnni"),
        ("avx512bw", "avx512vl", "avx512_vnni"),
    ),
}
"""x86-64 hosts by name, with the flags of /proc/cpuinfo that a machine needs to run their code."""

ARM: Final[Mapping[str, Host]] = {
    "aarch64": Host(triple="aarch64-unknown-linux-gnu", cpu="cortex-a53"),
    "aarch64dot": Host(triple="aarch64-unknown-linux-gnu", cpu="cortex-a76"),
    "aarch64i8mm": Host(triple="aarch64-unknown-linux-gnu", cpu="neoverse-n2"),
    "armv7": Host(triple="armv7-unknown-linux-gnueabihf", cpu="cortex-a9"),
}


def runs_here(name: str) -> bool:
    """Whether this machine runs the code of an x86-64 host."""
    if platform.machine() != "x86_64":
        return False
    flags = Path("/proc/cpuinfo").read_text().partition("flags")[2].partition("\n")[0].split()
    return set(X86[name][1]) <= set(flags)
