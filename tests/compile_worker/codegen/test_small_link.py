"""The small linker: what the gate, readelf and the system's linkers say of its shared objects."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from unittest import mock

import pytest
from kit.kernels.nests import EXAMPLES, SIM, conv2d
from kit.kernels.schedules import Tiling
from kit.objects.foreign import no_other_linker
from kit.objects.hosts import ARM
from tilefarm.artifact import Artifact, Call, CompileJob, ProgramJob
from tilefarm.errors import TargetError
from tilefarm.target import Host
from tilefarm.trace import Step, Trace

from compile_worker.codegen import link, objects
from compile_worker.codegen.machine import object_code
from compile_worker.codegen.small_link import small_shared_object
from compile_worker.compiler import compile_kernel, compile_program
from compile_worker.machines.vta.codegen.runtime_abi import FUNCTIONS, RUNTIME
from device_server.device.elf import Machine, rejection

from .references import ElfFile, goals

HOSTS = {"x86_64": SIM.host, **ARM}
CONV = conv2d(2, 2, 4, 8)
TILED = Tiling(co=2, h=2, slots=2, acc_slots=2).trace()
PARALLEL = Trace((Step("reorder", ("out_h", "out_co")), Step("parallel", ("out_h",))))
NAMES = ("accelerator", "softmax", "max_pool2d", "parallel", "program")

every_host = pytest.mark.parametrize("host", HOSTS)
every_object = pytest.mark.parametrize("name", NAMES)


def kernel_job(name: str, host: str) -> CompileJob:
    target = replace(SIM, host=HOSTS[host])
    if name == "accelerator":
        return CompileJob(workload=CONV, trace=TILED, target=target, symbol=name)
    if name == "parallel":
        return CompileJob(workload=EXAMPLES["add"], trace=PARALLEL, target=target, symbol=name)
    return CompileJob(workload=EXAMPLES[name], trace=Trace(), target=target, symbol=name)


def program_job(host: str) -> ProgramJob:
    kernels = (kernel_job("accelerator", host), kernel_job("parallel", host))
    calls = tuple(
        Call(kernel=kernel.symbol, arguments=tuple((0, 64 * at) for at in range(operands)))
        for kernel, operands in zip(kernels, (len(CONV.inputs) + 1, 3), strict=True)
    )
    return ProgramJob(kernels=kernels, calls=calls, buffers=1, target=kernels[0].target)


def compiled(name: str, host: str) -> Artifact:
    if name == "program":
        made = compile_program(program_job(host))
    else:
        made = compile_kernel(kernel_job(name, host))
    assert isinstance(made, Artifact), made
    return made


@cache
def object_of(name: str, host: str) -> bytes:
    """The object file that the linker is given."""
    with mock.patch.object(objects, "link", wraps=lambda code, *_: code):
        return compiled(name, host).code


def small(code: bytes) -> bytes:
    made = small_shared_object(code)
    assert made is not None
    return made


def by_the_systems_linker(code: bytes, host: Host) -> bytes:
    try:
        return link.shared_object(code, host)
    except TargetError as error:
        pytest.skip(str(error))


def machine_of(host: str) -> Machine:
    return Machine.of_triple(HOSTS[host].triple)


@every_host
def test_the_gate_lets_in_what_no_other_linker_has_seen(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    are_let_in(NAMES, host, monkeypatch)


@pytest.mark.slow
def test_the_gate_lets_in_every_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of other processors it lets in before an emulator runs them, see test_foreign.py."""
    are_let_in(EXAMPLES, "x86_64", monkeypatch)


def are_let_in(names: Iterable[str], host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "shared_object", no_other_linker)
    for name in names:
        assert rejection(compiled(name, host).code, machine_of(host)) is None, name


@every_object
@every_host
def test_readelf_has_nothing_to_say(host: str, name: str, tmp_path: Path) -> None:
    readelf = shutil.which("readelf")
    if readelf is None:
        pytest.skip("no readelf")
    file = tmp_path / "kernel.so"
    file.write_bytes(small(object_of(name, host)))
    said = subprocess.run(
        [readelf, "--all", "--wide", "--lint", str(file)], capture_output=True, text=True
    )
    assert (said.returncode, said.stderr) == (0, "")
    assert not re.search("warning|error", said.stdout, re.IGNORECASE)
    assert "FUNC    GLOBAL DEFAULT" in said.stdout


@every_object
@every_host
def test_every_reference_leads_where_the_systems_linker_has_it_lead(host: str, name: str) -> None:
    source = object_of(name, host)
    found = goals(source, small(source))
    assert len(found) >= 2
    assert found == goals(source, by_the_systems_linker(source, HOSTS[host]))


@every_object
@every_host
def test_symbols_are_those_of_the_systems_linker(host: str, name: str) -> None:
    source = object_of(name, host)
    found = set(ElfFile(small(source)).symbols())
    assert {name for name, defined, _ in found if name and not defined} <= FUNCTIONS.keys()
    assert found == set(ElfFile(by_the_systems_linker(source, HOSTS[host])).symbols())


@every_host
def test_what_is_the_same_stays_the_same(host: str) -> None:
    source = object_of("accelerator", host)
    assert small(source) == small(source) == link.link(source, HOSTS[host], FUNCTIONS)


SPECIAL = {
    "an address in data": "@f = global ptr @entry",
    "an exported variable": "@v = global i32 7",
    "a variable of a thread": "@t = internal thread_local global i32 7\n"
    "define ptr @get() {\n  ret ptr @t\n}",
    "a weak function": "define weak void @w() {\n  ret void\n}",
    "code at load": "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }]"
    " [{ i32, ptr, ptr } { i32 1, ptr @entry, ptr null }]",
    "the address of a function elsewhere": "define ptr @far() {\n  ret ptr @VTASynchronize\n}",
    "unwinding": "define void @u() uwtable {\n  call void @VTAUopLoopEnd()\n  ret void\n}",
}


@pytest.mark.parametrize("name", SPECIAL)
@every_host
def test_what_is_special_is_left_to_a_linker(host: str, name: str) -> None:
    entry = "define void @entry() nounwind {\n  ret void\n}"
    text = f"{RUNTIME.declarations}\n{entry}\n{SPECIAL[name]}\n"
    source = object_code(text, HOSTS[host], fast_code=False)
    assert small_shared_object(source) is None
    if host == "x86_64":
        assert by_the_systems_linker(source, HOSTS[host])[:4] == b"\x7fELF"


def test_what_is_too_far_is_left_to_a_linker() -> None:
    source = object_of("softmax", "armv7")
    farthest = source.replace(struct.pack("<I", 0xEBFFFFFE), struct.pack("<I", 0xEB800000))
    assert farthest != source
    assert small_shared_object(farthest) is None


@every_host
def test_what_is_no_object_of_a_known_processor_is_left_to_a_linker(host: str) -> None:
    source = object_of("accelerator", host)
    assert small_shared_object(b"not an object") is None
    assert small_shared_object(small(source)) is None
    assert small_shared_object(source[:18] + b"\xf3\x00" + source[20:]) is None
    assert small_shared_object(source[:4] + bytes([3 - source[4]]) + source[5:]) is None
