"""Processors as targets of their own: the one of this machine, and well-known ones.

Levels are those of the x86-64 psABI, features and other processors have LLVM's names. This machine
is described by what Linux says of it, so that every part of a farm finds the same.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

from tilefarm.errors import TargetError
from tilefarm.machine import Host, Limits, Target
from tilefarm.model import CPU, Engine, MachineModel, Memory
from tilefarm.plural import plural

X86_64: Final = "x86_64-unknown-linux-gnu"
THREADS: Final = "@"
"""Between a processor's name and how many of its cores compute: cpu@2."""

AARCH64: Final = "aarch64-unknown-linux-gnu"
ARMV7: Final = "armv7-unknown-linux-gnueabihf"

_LEVELS: Final[Mapping[str, str]] = {
    "x86-64-v2": "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3",
    "x86-64-v3": "abm avx avx2 bmi1 bmi2 f16c fma movbe xsave",
    "x86-64-v4": "avx512bw avx512cd avx512dq avx512f avx512vl",
}
"""What each level adds, in the words of /proc/cpuinfo: pni is SSE3, abm has LZCNT."""

_X86_FEATURES: Final[Mapping[str, str]] = {
    "amx_int8": "amx-int8",
    "amx_tile": "amx-tile",
    "avx512_bf16": "avx512bf16",
    "avx512_vbmi2": "avx512vbmi2",
    "avx512_vnni": "avx512vnni",
    "avx512vbmi": "avx512vbmi",
    "avx_vnni": "avxvnni",
    "avx_vnni_int8": "avxvnniint8",
}
_ARM_FEATURES: Final[Mapping[str, str]] = {
    "asimddp": "dotprod",
    "asimdhp": "fullfp16",
    "bf16": "bf16",
    "i8mm": "i8mm",
    "sve": "sve",
    "sve2": "sve2",
}
"""What matters to arithmetic beyond the levels: /proc/cpuinfo's word, LLVM's."""

_LINE_NBYTES: Final = 64
"""Of a cache; so on every processor that is listed here."""


def processor(
    name: str, host: Host, *, cores: int = 1, caches: Mapping[str, int] | None = None
) -> Target:
    """A target that has no accelerator.

    Args:
        name: of the target.
        host: what objects are made for.
        cores: that there are.
        caches: bytes of each, by `l1`, `l2` and `l3`, as far as they are known: what one core has,
            or several share.
    """
    core = ("core",)
    memories = (
        Memory(name=level, nbytes=nbytes, alignment=_LINE_NBYTES, readers=core, writers=core)
        for level, nbytes in sorted((caches or {}).items())
    )
    return Target(
        name=name,
        host=host,
        limits=Limits(alu_mul=True),
        machine=MachineModel(
            kind=CPU, engines=(Engine(name="core", instances=cores),), memories=tuple(memories)
        ),
    )


def with_threads(target: Target, threads: int) -> Target:
    """The target with so many of its cores at work, and a name that says so.

    A processor of which nothing is known, neither cores nor caches, has as many as are wanted.

    Raises:
        TargetError: it is no processor, or has fewer cores.
    """
    machine = target.machine
    if machine is None or machine.kind != CPU:
        raise TargetError(
            f"{threads} threads on {target.name}: threads are for processors",
            "--target cpu; on boards `tilefarm device --threads` says how many share the host's"
            " work",
        )
    if not machine.memories and machine.cores < threads:
        machine = replace(machine, engines=(Engine(name="core", instances=threads),))
    if not 1 <= threads <= machine.cores:
        raise TargetError(
            f"{threads} threads on {target.name}: it has {plural(machine.cores, 'core')}",
            f"--target cpu{THREADS}N, of 1 to {machine.cores}",
        )
    name = target.name if threads == 1 else f"{target.name}{THREADS}{threads}"
    return replace(target, name=name, machine=replace(machine, threads=threads))


def require_processor(target: Target) -> None:
    """Refuse a processor that this one is not.

    Raises:
        TargetError: it can do something that this one cannot, or has more threads than cores.
    """
    require_cores(target)
    lacking = lacking_here(target.host)
    if lacking:
        raise TargetError(
            f"{target.name}: its programs need {', '.join(lacking)}, which this machine lacks",
            "--target cpu, or a machine that has it",
        )


def require_cores(target: Target) -> None:
    """Refuse a target with more threads than this process may use cores.

    Raises:
        TargetError: it has.
    """
    threads, cores = target.model.threads, len(os.sched_getaffinity(0))
    if threads > cores:
        raise TargetError(
            f"{target.name}: {threads} threads, and this process may use {plural(cores, 'core')}",
            f"--threads {cores}, or a machine with more cores",
        )


PROCESSORS: Final = (
    processor("cpu:x86-64-v4", Host(triple=X86_64, cpu="x86-64-v4")),
    processor("cpu:x86-64-v3", Host(triple=X86_64, cpu="x86-64-v3")),
    processor("cpu:neoverse-n1", Host(triple=AARCH64, cpu="neoverse-n1")),
)
"""Nothing is said of their cores and caches: those differ among machines of a level."""


@cache
def this_processor() -> Target:
    """The machine that runs this, as the target `cpu`."""
    return processor(
        "cpu",
        host_of(platform.machine(), flags_here()),
        cores=os.cpu_count() or 1,  # whatever this process is bound to: the target stays the same
        caches=caches_of(Path("/sys/devices/system/cpu/cpu0/cache")),
    )


def host_of(architecture: str, words: Iterable[str]) -> Host:
    """The processor of an architecture whose flags are these words of /proc/cpuinfo.

    Every level contains the ones before. What is no x86-64 is known by its features alone.
    """
    flags = set(words)
    if architecture == "x86_64":
        cpu = "x86-64"
        for level, wanted in _LEVELS.items():
            if not flags.issuperset(wanted.split()):
                break
            cpu = level
        return Host(triple=X86_64, cpu=cpu, features=_features(_X86_FEATURES, flags))
    if architecture.startswith("armv7"):
        return Host(triple=ARMV7, cpu="generic", features="+neon" if "neon" in flags else "")
    triple = f"{architecture}-unknown-linux-gnu"
    return Host(triple=triple, cpu="generic", features=_features(_ARM_FEATURES, flags))


def lacking_here(host: Host) -> list[str]:
    """What programs for a host may use and this machine has not, in the words of /proc/cpuinfo."""
    return sorted(needed_words(host).difference(flags_here()))


def needed_words(host: Host) -> set[str]:
    """What programs for a host may use, in the words of /proc/cpuinfo.

    Nothing is known of processors that are no level: they are believed.
    """
    levels = list(_LEVELS)
    known = levels[: levels.index(host.cpu) + 1] if host.cpu in levels else []
    wanted = {word for level in known for word in _LEVELS[level].split()}
    named = {name: word for word, name in (*_X86_FEATURES.items(), *_ARM_FEATURES.items())}
    features = (each[1:] for each in host.features.split(",") if each.startswith("+"))
    wanted.update(named[name] for name in features if name in named)
    return wanted


def flags_here() -> list[str]:
    """What this machine's first core can do, in the words of /proc/cpuinfo."""
    for line in _text_of(Path("/proc/cpuinfo")).splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            return value.split()
    return []


def caches_of(folder: Path) -> dict[str, int]:
    """Bytes of the caches for data, by level, as sysfs lists them; those that it does not, not."""
    found = {}
    for entry in sorted(folder.glob("index*")):
        kind, level, size = (_text_of(entry / name) for name in ("type", "level", "size"))
        if kind in ("Data", "Unified") and size.endswith("K") and size[:-1].isdigit():
            found[f"l{level}"] = int(size[:-1]) << 10
    return found


def _features(names: Mapping[str, str], flags: set[str]) -> str:
    return ",".join(f"+{name}" for word, name in names.items() if word in flags)


def _text_of(file: Path) -> str:
    """Nothing where it cannot be read: sysfs and procfs need not be there."""
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
