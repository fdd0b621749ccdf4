"""Hosts that there is code for, and what is said of others: LLVM is asked, in a child."""

from __future__ import annotations

import pytest
from tilefarm.errors import InfraError
from tilefarm.target import TARGETS, Host

from compile_worker.codegen.hosts import check_host, known_names

ARM = "aarch64-unknown-linux-gnu"
ARM32 = "armv7-unknown-linux-gnueabihf"


def test_hosts_of_built_in_targets_are_names_that_llvm_knows() -> None:
    for host in {target.host for target in TARGETS.values()}:
        assert host.cpu in known_names(host.triple).processors


@pytest.mark.parametrize(
    "host",
    [
        Host(cpu="x86-64-v4", features="+avx512vnni"),
        Host(triple=ARM, cpu="neoverse-n1"),
        Host(triple=ARM32, cpu="cortex-a9", features="+neon,-thumb-mode"),
    ],
    ids=["x86-64", "aarch64", "armv7"],
)
def test_good_hosts(host: Host) -> None:
    assert check_host(host) == []


@pytest.mark.parametrize(
    ("host", "reasons"),
    [
        (Host(triple="pdp11-none"), ["host.triple: no code for 'pdp11-none'; near: "]),
        (Host(triple="x86_64-unknown-linux-gnux32"), ["host.triple: no code for 'x86_64-unknown"]),
        (Host(triple="aarch64-unknown-linux-gnu_ilp32"), ["host.triple: no code for 'aarch64-"]),
        (Host(triple="x86_64-pc-windows-msvc"), ["host.triple: no code for 'x86_64-pc-win"]),
        (Host(cpu="x86-64-v5"), ["host.cpu: no processor 'x86-64-v5' of x86_64; near: x86-64-v4"]),
        (
            Host(triple=ARM, cpu="cortex-a5", features="+dotprods,neon"),
            [
                "host.cpu: no processor 'cortex-a5' of aarch64; near: cortex-a75",
                "host.features: no feature 'dotprods' of aarch64; near: dotprod",
                "host.features: 'neon' begins with neither + nor -",
            ],
        ),
        (
            Host(cpu="x86-64-v3", features="-sse4.1"),
            ["host: x86-64-v3 for x86_64-unknown-linux-gnu: LLVM ERROR: "],
        ),
        (Host(cpu="pentium4"), ["host: pentium4 for x86_64-unknown-linux-gnu: LLVM ERROR: 64-bit"]),
    ],
    ids=["triple", "x32", "ilp32", "system", "processor", "several", "taken", "together"],
)
def test_every_reason_is_given_with_names_that_are_near(host: Host, reasons: list[str]) -> None:
    found = check_host(host)
    assert len(found) == len(reasons)
    assert all(said.startswith(wanted) for said, wanted in zip(found, reasons, strict=True))


def test_an_architecture_that_llvm_does_not_have_is_a_fault() -> None:
    with pytest.raises(InfraError, match="does not list the processors of pdp11"):
        known_names("pdp11-unknown-linux")
