"""Whether there is code for a host: its triple, its processor's name and features, asked of LLVM.

LLVM ignores a name that it does not know, or ends the process; so it is asked for its lists, in a
process of its own, before anything is compiled.
"""

from __future__ import annotations

import platform
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Final

import llvmlite.binding as llvm
from tilefarm.errors import InfraError
from tilefarm.interpreter import python_command
from tilefarm.target import TARGETS, Host

from compile_worker.codegen.link import LINKERS

TRIPLES: Final = (
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "armv7-unknown-linux-gnueabihf",
)
"""The hosts that objects are made for; vendor and C library may differ."""

_NARROW: Final = ("x32", "ilp32")
"""How environments end whose pointers are narrower than the processor: no kernel reads those."""

_ASK: Final = """\
import sys, llvmlite.binding as llvm
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
llvm.Target.from_triple(sys.argv[1]).create_target_machine(cpu="help")
"""

_TRY: Final = """\
import sys
from tilefarm.target import Host
from compile_worker.codegen.machine import object_code
from compile_worker.codegen.peak import peak_text
host = Host(triple=sys.argv[1], cpu=sys.argv[2], features=sys.argv[3])
# The text has the best instruction, of which features may have taken what it needs.
object_code(peak_text(host) or "define i32 @f() { ret i32 0 }", host, fast_code=False)
"""

_NEAR: Final = 4


@dataclass(frozen=True, slots=True)
class Names:
    """What LLVM calls the processors of an architecture, and their features."""

    processors: tuple[str, ...]
    features: tuple[str, ...]


def this_host() -> Host:
    """The machine that runs this; its processor as LLVM names it."""
    processor = platform.machine()
    triple = next((each for each in TRIPLES if each.startswith(processor)), TRIPLES[0])
    return Host(triple=triple, cpu=llvm.get_host_cpu_name())


def check_host(host: Host) -> list[str]:
    """Every reason why no kernel can be compiled for a host; empty when all can.

    The hosts of built-in targets are known to be good.
    """
    if host in {target.host for target in TARGETS.values()}:
        return []
    processor, *rest = host.triple.split("-")
    if processor not in LINKERS or "linux" not in rest or host.triple.endswith(_NARROW):
        return [f"host.triple: no code for {host.triple!r}; {_near(host.triple, TRIPLES)}"]
    names = known_names(host.triple)
    reasons = []
    if host.cpu not in names.processors:
        near = _near(host.cpu, names.processors)
        reasons.append(f"host.cpu: no processor {host.cpu!r} of {processor}; {near}")
    for feature in filter(None, host.features.split(",")):
        if feature[0] not in "+-":
            reasons.append(f"host.features: {feature!r} begins with neither + nor -")
        elif feature[1:] not in names.features:
            near = _near(feature[1:], names.features)
            reasons.append(f"host.features: no feature {feature[1:]!r} of {processor}; {near}")
    return reasons or _refusal(host)


def _refusal(host: Host) -> list[str]:
    """What LLVM says against names that it knows: a 32-bit processor in a 64-bit triple."""
    done = _asked(_TRY, host.triple, host.cpu, host.features)
    if done.returncode == 0:
        return []
    said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    why = next((line for line in said if "LLVM ERROR" in line), said[-1] if said else "no code")
    return [f"host: {host.cpu} for {host.triple}: {why}"]


@lru_cache(maxsize=8)
def known_names(triple: str) -> Names:
    """The names that this LLVM knows for a triple of an architecture that it has.

    Raises:
        InfraError: it did not answer.
    """
    done = _asked(_ASK, triple)
    processors, _, features = done.stderr.partition("Available features")
    names = Names(_listed(processors), _listed(features))
    if done.returncode or not names.processors or not names.features:
        raise InfraError(f"LLVM does not list the processors of {triple}: {done.stderr[-200:]}")
    return names


def _asked(script: str, *words: str) -> subprocess.CompletedProcess[str]:
    """What a process of its own answers: LLVM may end it."""
    return subprocess.run(
        python_command("-c", script, *words), capture_output=True, text=True, check=False
    )


def _listed(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"^  (\S+) +- ", text, re.MULTILINE))


def _near(name: str, known: Sequence[str]) -> str:
    found = get_close_matches(name, known, n=_NEAR, cutoff=0.5) or sorted(known)[:_NEAR]
    return f"near: {', '.join(found)}"
