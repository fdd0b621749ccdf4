"""The system calls of emulated children, and what the filters' programs say of them.

The emulator has no seccomp, so a child makes every call that it would make on a board, and asks
before each stage whether there is a filter: those questions part its calls.
"""

from __future__ import annotations

import mmap
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .emulated import Board

_RUNTIME: Final = Path(__file__).parents[2] / "device_server" / "vta" / "runtime"
_RULES: Final = ("call_filter.cc", "call_rules.cc")
_CALL: Final = re.compile(r"(\d+) (?:Unknown syscall (\d+)|([a-z_]\w*)\(([^)\n]*))")
_ASKED: Final = "seccomp"
_JUDGED: Final[Mapping[str, int]] = {
    "mmap": 2,
    "mmap2": 2,
    "mprotect": 2,
    "openat": 2,
    "open": 1,
    "tgkill": 0,
}
"""The one argument that a rule looks at."""

_FLAGS: Final[Mapping[str, int]] = {
    **{name: getattr(os, name) for name in dir(os) if name.startswith("O_")},
    "PROT_NONE": 0,
    "PROT_READ": mmap.PROT_READ,
    "PROT_WRITE": mmap.PROT_WRITE,
    "PROT_EXEC": mmap.PROT_EXEC,
}


@dataclass(frozen=True, slots=True)
class Call:
    """A system call, with the argument that a rule may look at."""

    name: str
    number: int
    argument: int = 0

    def words(self) -> str:
        """As `judge_calls` reads it."""
        arguments = [0] * _JUDGED.get(self.name, 0) + [self.argument]
        return ",".join(map(str, [self.number, *arguments]))


@dataclass(frozen=True, slots=True)
class TracedChild:
    """What a child called while it loaded its artifact, and from then on."""

    process: int
    loading: frozenset[Call]
    computing: frozenset[Call]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a call where the filter of each stage is asked."""

    call: Call
    first: int
    second: int


def children(trace: Path, numbers: Mapping[str, int]) -> list[TracedChild]:
    """Those that got as far as the second stage."""
    stages: dict[int, list[set[Call]]] = {}
    for process, number, name, arguments in _CALL.findall(trace.read_text(errors="replace")):
        own = stages.setdefault(int(process), [set()])
        if name == _ASKED or number == str(numbers[_ASKED]):
            own.append(set())
        elif (call := _call(name, number, arguments.split(","), numbers)) is not None:
            own[-1].add(call)
    return [
        TracedChild(process, frozenset(own[1]), frozenset(own[2]))
        for process, own in stages.items()
        if len(own) == 3
    ]


def build(board: Board, source: str, folder: Path) -> list[str]:
    """A program of the runtime's tests that is about the rules, as a command."""
    to = folder / Path(source).stem
    includes = [f"-I{_RUNTIME / name}" for name in ("include", "runner", "src", "tests")]
    rules = [_RUNTIME / "runner" / name for name in _RULES]
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", *includes]
    command: list[str | Path] = [
        board.cxx_compiler,
        *flags,
        "-o",
        to,
        _RUNTIME / "tests" / source,
        *rules,
    ]
    subprocess.run(command, check=True)
    return [*board.emulator, str(to)]


def judged(judge: Sequence[str], process: int, calls: frozenset[Call]) -> list[Verdict]:
    """What `judge_calls`, built, says of a process's calls."""
    ordered = sorted(calls, key=lambda call: (call.number, call.argument))
    command = [*judge, str(process), *(call.words() for call in ordered)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")
    actions = [[int(word, 16) for word in line.split()] for line in lines if line]
    return [Verdict(call, *both) for call, both in zip(ordered, actions, strict=True)]


def _call(name: str, number: str, arguments: list[str], numbers: Mapping[str, int]) -> Call | None:
    """A call; None where another thread of the process has written into the middle of its line."""
    if number:
        return Call(f"number {number}", int(number))
    if name not in _JUDGED:
        return Call(name, numbers[name])
    at = _JUDGED[name]
    whole = len(arguments) > at and not any(" " in argument for argument in arguments[: at + 1])
    return Call(name, numbers[name], _value(arguments[at])) if whole else None


def _value(words: str) -> int:
    """A number, or flags by name."""
    return sum(_FLAGS[word] if word in _FLAGS else int(word, 0) for word in words.split("|"))
