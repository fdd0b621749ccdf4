"""The small linker: what the gate, readelf and the system's linker say of its shared objects."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.nests import EXAMPLES, SIM, conv2d
from kit.schedules import Tiling, scheduled

from compile_worker.codegen.emit import Kernel, kernel_text
from compile_worker.codegen.link import find_linker, link, shared_object
from compile_worker.codegen.machine import object_code
from compile_worker.codegen.runtime_abi import declarations
from compile_worker.codegen.small_link import small_shared_object
from compile_worker.ir.func import Func
from compile_worker.passes import lower
from compile_worker.te import nest_of
from device_server.device.elf import Machine, rejection

CONV = lower(scheduled(conv2d(2, 2, 4, 8), Tiling(co=2, h=2, slots=2, acc_slots=2)), SIM)
FUNCTIONS = {
    "accelerator": CONV,
    **{name: lower(nest_of(EXAMPLES[name], SIM), SIM) for name in ("softmax", "max_pool2d")},
}


def object_of(func: Func) -> bytes:
    kernel = Kernel("entry", func)
    text = f"{declarations()}\n{kernel_text(kernel, SIM)}"
    return object_code(text, SIM.host, fast_code=not kernel.on_accelerator)


def small(code: bytes) -> bytes:
    made = small_shared_object(code)
    assert made is not None
    return made


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_gate_lets_them_in(name: str) -> None:
    assert rejection(small(object_of(FUNCTIONS[name])), Machine.X86_64) is None


@pytest.mark.parametrize("name", FUNCTIONS)
def test_readelf_has_nothing_to_say(name: str, tmp_path: Path) -> None:
    readelf = shutil.which("readelf")
    if readelf is None:
        pytest.skip("no readelf")
    file = tmp_path / "kernel.so"
    file.write_bytes(small(object_of(FUNCTIONS[name])))
    said = subprocess.run(
        [readelf, "--all", "--wide", "--lint", str(file)], capture_output=True, text=True
    )
    assert (said.returncode, said.stderr) == (0, "")
    assert not re.search("warning|error", said.stdout, re.IGNORECASE)
    assert "FUNC    GLOBAL DEFAULT" in said.stdout


def sections_of(code: bytes) -> dict[str, tuple[int, int, int]]:
    """Address, file offset and size of every section by name."""
    (start,) = struct.unpack_from("<Q", code, 40)
    count, names = struct.unpack_from("<HH", code, 60)
    rows = [struct.unpack_from("<IIQQQQIIQQ", code, start + 64 * at) for at in range(count)]
    texts = rows[names][4]
    return {
        code[texts + row[0] : code.index(b"\0", texts + row[0])].decode(): (row[3], row[4], row[5])
        for row in rows
    }


def stubs_of(code: bytes) -> dict[int, str]:
    """The function that every stub jumps to, by the stub's address."""
    at = sections_of(code)
    address, start, nbytes = at[".plt"]
    _, symbols, _ = at[".dynsym"]
    _, names, _ = at[".dynstr"]
    table = at.get(".rela.plt") or at[".rela.dyn"]
    slots = {}
    for slot, info, _ in struct.iter_unpack("<QQq", code[table[1] : table[1] + table[2]]):
        (name,) = struct.unpack_from("<I", code, symbols + 24 * (info >> 32))
        slots[slot] = code[names + name : code.index(b"\0", names + name)].decode()
    found = {}
    for offset in range(0, nbytes, 8):
        if code[start + offset : start + offset + 2] == b"\xff\x25":
            (distance,) = struct.unpack_from("<i", code, start + offset + 2)
            goal = address + offset + 6 + distance
            if goal in slots:
                found[address + offset] = slots[goal]
    return found


def goals(source: bytes, made: bytes) -> Iterator[tuple[int, str]]:
    """For every relocation of the code: where the shared object has it lead, in words."""
    before, after = sections_of(source), sections_of(made)
    stubs = stubs_of(made)
    text_address, text_start, _ = after[".text"]
    _, start, nbytes = before[".rela.text"]
    for offset, _, _ in struct.iter_unpack("<QQq", source[start : start + nbytes]):
        (distance,) = struct.unpack_from("<i", made, text_start + offset)
        goal = text_address + offset + 4 + distance
        if goal in stubs:
            yield offset, stubs[goal]
            continue
        near = [(goal - address, name) for name, (address, _, _) in after.items() if address]
        yield offset, "{1}+{0}".format(*min(each for each in near if each[0] >= 0))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_reference_leads_where_the_systems_linker_has_it_lead(name: str) -> None:
    source = object_of(FUNCTIONS[name])
    ours, theirs = small(source), shared_object(source, SIM.host)
    found = dict(goals(source, ours))
    assert len(found) >= 2
    assert found == dict(goals(source, theirs))


def test_what_is_the_same_stays_the_same() -> None:
    source = object_of(CONV)
    assert small(source) == small(source) == link(source, SIM.host)


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
def test_what_is_special_is_left_to_a_linker(name: str) -> None:
    text = f"{declarations()}\ndefine void @entry() nounwind {{\n  ret void\n}}\n{SPECIAL[name]}\n"
    source = object_code(text, SIM.host, fast_code=False)
    assert small_shared_object(source) is None
    assert find_linker(SIM.host)
    assert shared_object(source, SIM.host)[:4] == b"\x7fELF"


def test_what_is_no_x86_object_is_left_to_a_linker() -> None:
    source = object_of(CONV)
    assert small_shared_object(b"not an object") is None
    assert small_shared_object(shared_object(source, SIM.host)) is None
    assert small_shared_object(source[:18] + b"\xb7\x00" + source[20:]) is None
