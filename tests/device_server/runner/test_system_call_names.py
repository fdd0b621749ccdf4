"""The names that a forbidden system call is told by are those of the processor's headers."""

from __future__ import annotations

import shutil

import pytest
from kit.objects.call_numbers import call_numbers

from device_server.runner.system_calls import system_call_name

LAST = 512

COMPILERS = {
    "x86_64": "x86_64-linux-gnu-gcc",
    "aarch64": "aarch64-linux-gnu-gcc",
    "armv7l": "arm-linux-gnueabihf-gcc",
}
OUTSIDE = {"socket", "connect", "execve", "execveat", "clone", "clone3", "kill", "tgkill", "openat"}
OTHERS = {"ptrace", "mount", "mprotect", "dup", "dup3", "prlimit64", "bpf", "memfd_create"}


@pytest.mark.parametrize("machine", COMPILERS)
def test_a_call_is_called_what_its_processor_calls_it(machine: str) -> None:
    if shutil.which(COMPILERS[machine]) is None:
        pytest.skip(f"no {COMPILERS[machine]} on this machine")
    numbers = call_numbers(COMPILERS[machine])
    told = {number: system_call_name(number, machine) for number in range(LAST)}
    named = {name: k for k, name in told.items() if name != f"number {k}"}
    assert named.items() <= numbers.items()
    assert named.keys() >= OUTSIDE | OTHERS


def test_a_call_without_a_name_is_told_by_its_number() -> None:
    assert system_call_name(LAST, "armv7l") == "number 512"
    assert system_call_name(1, "a machine of tomorrow") == "number 1"
