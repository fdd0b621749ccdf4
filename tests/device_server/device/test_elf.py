"""Which shared objects may be loaded, and why the others are refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.messages.mutations import damaged_bytes
from kit.objects.elf_mutants import ADDRESS, ALIGN, FLAGS, KIND, MEMORY, NBYTES, OFFSET, Edited
from kit.objects.elves import Elf
from kit.objects.foreign import KERNEL, LINKING, MACHINES, linked

from compile_worker.codegen.elf_tables import class_of, section_rows
from compile_worker.codegen.small_link import small_shared_object
from device_server.device.elf import RUNTIME_SYMBOLS, Machine, rejection

GOOD = Elf()
CODE = GOOD.build()
NOTED = Elf(segments=((4, 4),)).build()


def test_a_plain_object_may_be_loaded() -> None:
    assert rejection(CODE, Machine.X86_64) is None
    assert rejection(Elf(undefined=tuple(sorted(RUNTIME_SYMBOLS))).build(), Machine.X86_64) is None
    assert rejection(Elf(undefined=()).build(), Machine.X86_64) is None


@pytest.mark.parametrize(
    ("elf", "reason"),
    [
        (replace(GOOD, kind=1), "not a shared object"),
        (replace(GOOD, kind=2), "not a shared object"),
        (replace(GOOD, machine=183), "made for machine 183"),
        (replace(GOOD, stack_flags=7), "executable stack"),
        (replace(GOOD, stack_flags=None), "executable stack"),
        (replace(GOOD, load_flags=7), "writable and executable"),
        (replace(GOOD, segments=((3, 4),)), "PT_INTERP"),
        (replace(GOOD, segments=((7, 4),)), "PT_TLS"),
        (replace(GOOD, segments=((0x12345, 4),)), "0x12345"),
        (replace(GOOD, segments=((2, 4),)), "2 dynamic sections"),
        (replace(GOOD, dynamic=((1, 1),)), "DT_NEEDED"),
        (replace(GOOD, dynamic=((15, 1),)), "DT_RPATH"),
        (replace(GOOD, dynamic=((29, 1),)), "DT_RUNPATH"),
        (replace(GOOD, dynamic=((12, 1),)), "DT_INIT"),
        (replace(GOOD, dynamic=((25, 1),)), "DT_INIT_ARRAY"),
        (replace(GOOD, dynamic=((26, 1),)), "DT_FINI_ARRAY"),
        (replace(GOOD, dynamic=((32, 1),)), "DT_PREINIT_ARRAY"),
        (replace(GOOD, dynamic=((22, 0),)), "DT_TEXTREL"),
        (replace(GOOD, dynamic=((30, 4),)), "DF_TEXTREL"),
        (replace(GOOD, dynamic=((0x7FFFFFFD, 0),)), "DT_AUXILIARY"),
        (replace(GOOD, dynamic=((0x6FFFFDF5, 0),)), "0x6ffffdf5"),
        (replace(GOOD, dynamic=((5, 0),)), "twice"),
        (replace(GOOD, relocation=37), "indirect function"),
        (replace(GOOD, symbol_type=10), "indirect function"),
        (replace(GOOD, undefined=("VTASynchronize", "system")), "'system'"),
        (replace(GOOD, undefined=("",)), "''"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_whatever_asks_for_more_is_refused_with_its_reason(elf: Elf, reason: str) -> None:
    assert reason in (rejection(elf.build(), Machine.X86_64) or "accepted")


def test_other_processors_are_refused() -> None:
    assert "32-bit" in str(rejection(CODE, Machine.ARM))
    assert "AARCH64" in str(rejection(CODE, Machine.AARCH64))


@pytest.mark.parametrize(
    ("triple", "machine"),
    [
        ("x86_64-unknown-linux-gnu", Machine.X86_64),
        ("aarch64-linux-gnu", Machine.AARCH64),
        ("armv7a-linux-gnueabihf", Machine.ARM),
    ],
)
def test_triples_name_machines(triple: str, machine: Machine) -> None:
    assert Machine.of_triple(triple) is machine


def test_an_unknown_triple_is_told() -> None:
    with pytest.raises(ValueError, match="sparc-sun-solaris"):
        Machine.of_triple("sparc-sun-solaris")


@given(st.integers(0, len(CODE) - 1))
def test_a_truncated_object_is_refused(nbytes: int) -> None:
    assert rejection(CODE[:nbytes], Machine.X86_64) is not None


@settings(max_examples=examples(300))
@given(
    st.lists(
        st.tuples(st.integers(0, len(CODE) - 8), st.binary(min_size=1, max_size=8)),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(Machine),
)
@example([(32, b"\xff" * 8)], Machine.X86_64)
@example([(80, b"\xff" * 8)], Machine.X86_64)
def test_mutations_are_judged_and_never_raise(
    edits: list[tuple[int, bytes]], machine: Machine
) -> None:
    code = bytearray(CODE)
    for at, data in edits:
        code[at : at + len(data)] = data
    assert rejection(bytes(code), machine) != ""


@given(st.binary(max_size=200))
def test_noise_is_refused(noise: bytes) -> None:
    for machine in Machine:
        assert rejection(noise, machine)
        head = b"\x7fELF" + bytes([2 if machine.value[1] else 1, 1])
        assert rejection(head + noise, machine)


def test_a_server_is_not_held_up_by_relocations() -> None:
    many = Elf(repeats=40_000).build()
    assert "40000 relocations; 32768 are allowed" in str(rejection(many, Machine.X86_64))
    many = Elf(undefined=("VTASynchronize",) * 40_000).build()
    assert "40001 symbols" in str(rejection(many, Machine.X86_64))


@pytest.mark.slow
@pytest.mark.parametrize("machine", Machine)
def test_mutants_of_what_a_compiler_links_are_judged_soon(
    machine: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tools = MACHINES[{Machine.ARM: "armv7"}.get(machine, machine.name.lower())]
    if shutil.which(tools.compiler) is None:
        pytest.skip(f"no {tools.compiler}")
    sound = linked(tools, tmp_path)
    assert rejection(sound, machine) is None
    seed = int(os.environ.get("FUZZ_SEED", "1"))
    rng, taken, slowest = np.random.default_rng(seed), 0, 0.0
    until, mutants = time.monotonic() + 20, 0
    while time.monotonic() < until:
        mutants += 1
        mutant = damaged_words(damaged_bytes(sound, rng) if mutants % 2 else sound, rng)
        begin = time.thread_time()
        verdict = rejection(mutant, machine)
        slowest = max(slowest, time.thread_time() - begin)
        assert verdict != ""
        taken += verdict is None
    with capsys.disabled():
        print(f"\nFUZZ_SEED={seed}: {mutants} mutants, {taken} taken, {slowest:.3f} s the slowest")
    assert 0 < taken < mutants
    assert slowest < 5


def damaged_words(code: bytes, rng: np.random.Generator) -> bytes:
    """One to three words, half of them in the headers, made huge, small or another's."""
    damaged = bytearray(code)
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(min(512, len(code)) if rng.integers(2) else len(code)))
        nbytes = int(rng.choice([2, 4, 8]))
        words = [0, 1, 0x7FFF, 0xFFFF, len(code), 1 << 31, (1 << 64) - 1, (1 << 63) - 1]
        word = int(words[int(rng.integers(len(words)))]) & ((1 << 8 * nbytes) - 1)
        damaged[place : place + nbytes] = word.to_bytes(nbytes, "little")
    return bytes(damaged)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_what_a_compiler_links_is_judged_alike(tmp_path: Path) -> None:
    source = tmp_path / "kernel.c"
    source.write_text(KERNEL)

    def linked(*options: str) -> str | None:
        made = tmp_path / "kernel.so"
        command = ["cc", "-shared", "-fPIC", *LINKING, "-o", str(made), str(source), *options]
        subprocess.run(command, check=True)
        return rejection(made.read_bytes(), Machine.X86_64)

    machine = subprocess.run(["cc", "-dumpmachine"], capture_output=True, text=True).stdout
    if not machine.startswith("x86_64"):
        pytest.skip("the compiler makes code for another machine")
    assert linked() is None
    assert linked("-Wl,--hash-style=sysv", "-Wl,-z,now") is None
    assert linked("-Wl,--hash-style=both") is None
    assert "stack" in str(linked("-Wl,-z,execstack"))
    assert "-z norelro" in str(linked("-Wl,-z,relro"))
    assert "DT_INIT" in str(linked("-Wl,-init=kernel"))
    assert "DT_SONAME" in str(linked("-Wl,-soname=kernel"))


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="objects of another machine")
def test_our_linker_may_end_a_segment_anywhere_in_a_page() -> None:
    """Also where a word begins on the next page, which leaves a page between the segments."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    machine = llvm.Target.from_default_triple().create_target_machine(
        reloc="pic", codemodel="default"
    )
    ends = set()
    for nbytes in range(0x1000, 0x2000, 5):
        text = f"""
            define i32 @kernel(i32 %i) nounwind {{
              call void asm sideeffect ".skip {nbytes}, 0x90", ""()
              ret i32 %i
            }}"""
        made = small_shared_object(machine.emit_object(llvm.parse_assembly(text)))
        assert made is not None
        assert rejection(made, Machine.X86_64) is None
        ends.add(Edited(made).of(1)[ADDRESS] % 0x1000)
    assert {0, 0xFF8} <= ends


OFF, AT, HERE, THERE = OFFSET, ADDRESS, NBYTES, MEMORY
BEHIND = "does not follow the one before in the file"
"""Fields of a program header: where in the file, where in memory, and how much there and there."""


@pytest.mark.parametrize(
    ("number", "changes", "reason"),
    [
        (0, {AT: 0x1000}, "first segment does not begin at address 0"),
        (0, {OFF: 0x1000}, "first segment does not begin at address 0"),
        (0, {ALIGN: 0x800}, "pages may have 0x1000"),
        (0, {ALIGN: 0x3000}, "pages may have 0x1000"),
        (0, {ALIGN: 0}, "pages may have 0x1000"),
        (0, {ALIGN: 0x400000}, "pages may have 0x1000"),
        (0, {FLAGS: 1}, "segment 0 (PT_LOAD) has flags 0x1"),
        (0, {FLAGS: 0}, "segment 0 (PT_LOAD) has flags 0x0"),
        (0, {FLAGS: 0x15}, "segment 0 (PT_LOAD) has flags 0x15"),
        (0, {FLAGS: 6}, "to be read only"),
        (0, {THERE: 0x1000}, "but is only read"),
        (0, {HERE: 64, THERE: 64}, "program headers are not mapped with the first"),
        (0, {HERE: 0x800, THERE: 0x800}, "reaches beyond its end"),
        (1, {ALIGN: 0x2000}, "segment 1 (PT_LOAD) is not aligned as the first"),
        (1, {AT: 8}, "segment 1 (PT_LOAD) is not aligned as the first"),
        (1, {THERE: 8}, "bytes for 8 of memory"),
        (1, {HERE: 0, THERE: 0}, "has 0 bytes for 0 of memory"),
        (1, {THERE: 1 << 31}, "0x80000000 is the most"),
        (1, {THERE: 1 << 63}, "0x80000000 is the most"),
        (1, {OFF: 0, AT: 0x1000}, BEHIND),
        (2, {OFF: 8}, "elsewhere in the file than where it is mapped"),
        (2, {HERE: 32}, "another size in memory than in the file"),
        (2, {AT: 0, OFF: 0}, "dynamic section has to lie in memory that is written"),
        (2, {AT: 0x9000}, "address 0x9000 is in no segment"),
        (2, {HERE: 48, THERE: 48}, "the dynamic section has no end"),
        (2, {HERE: 40, THERE: 40}, "no row of entries"),
        (3, {FLAGS: 7}, "executable stack"),
        (4, {KIND: 6}, "PT_PHDR is somewhere else"),
        (4, {KIND: 0x6474E552}, "PT_GNU_RELRO (link with -z norelro)"),
        (4, {KIND: 0x6474E551}, "executable stack"),
    ],
    ids=str,
)
def test_a_layout_that_no_linker_makes_is_refused(
    number: int, changes: dict[int, int], reason: str
) -> None:
    made = Edited(NOTED)
    for field, value in changes.items():
        made.segments[number][field] = value
    assert reason in (rejection(made.written(), Machine.X86_64) or "accepted")


@pytest.mark.parametrize("page", [-1, 0, 2])
def test_pages_of_one_segment_are_no_other_ones(page: int) -> None:
    """Neither the same, nor after a hole, nor before it."""
    made = Edited(NOTED)
    data, dynamic = made.segments[1], made.segments[2]
    assert data[AT] // 0x1000 == 1
    data[AT], dynamic[AT] = (each[AT] + (page - 1) * 0x1000 for each in (data, dynamic))
    reason = "0x80000000 is the most" if page < 0 else "on the pages after"
    assert reason in str(rejection(made.written(), Machine.X86_64))


def test_segments_in_another_order_are_refused() -> None:
    made = Edited(NOTED)
    made.segments[0], made.segments[1] = made.segments[1], made.segments[0]
    assert "does not begin at address 0" in str(rejection(made.written(), Machine.X86_64))


def test_what_no_segment_has_is_little_in_the_file() -> None:
    made = Edited(NOTED)
    data, dynamic = made.segments[1], made.segments[2]
    start = made.appended(NOTED[data[OFF] :], data[OFF])
    data[OFF], dynamic[OFF] = start, start
    assert BEHIND in str(rejection(made.written(), Machine.X86_64))


@pytest.mark.parametrize(
    ("machine", "align", "reason"),
    [
        (Machine.AARCH64, 0x1000, "pages may have 0x10000 bytes"),
        (Machine.AARCH64, 0x4000, "pages may have 0x10000 bytes"),
        (Machine.AARCH64, 0x10000, "accepted"),
        (Machine.AARCH64, 0x200000, "accepted"),
        (Machine.X86_64, 0x1000, "accepted"),
        (Machine.X86_64, 0x200000, "accepted"),
    ],
)
def test_segments_are_apart_whatever_pages_a_system_has(
    machine: Machine, align: int, reason: str
) -> None:
    relocation = 1026 if machine is Machine.AARCH64 else 7
    elf = Elf(machine=machine.value[0], relocation=relocation, page_nbytes=align)
    assert reason in (rejection(elf.build(), machine) or "accepted")


@pytest.mark.parametrize(
    ("tag", "by", "reason"),
    [
        (10, -1, "the table of names does not end"),
        (8, -8, "no row of entries"),
        (9, 8, "relocations of 32 bytes"),
        (6, 24, "does not begin with an empty row"),
    ],
)
def test_tables_that_are_not_whole_are_refused(tag: int, by: int, reason: str) -> None:
    made = Edited(NOTED)
    at, value = made.table(tag)
    made.code[at : at + 16] = made.elf.dynamic.pack(tag, value + by)
    assert reason in str(rejection(made.written(), Machine.X86_64))


@pytest.mark.parametrize(
    ("tag", "table"),
    [
        (4, "the hash table"),
        (5, "the table of names"),
        (6, "the symbol table"),
        (7, "the table of relocations"),
    ],
)
def test_tables_are_where_nothing_changes_them(tag: int, table: str) -> None:
    made = Edited(NOTED)
    at, _ = made.table(tag)
    made.code[at : at + 16] = made.elf.dynamic.pack(tag, made.of(2)[AT])
    reason = f"{table} lies where the loader may write before it reads it"
    assert reason in str(rejection(made.written(), Machine.X86_64))


@pytest.mark.parametrize(
    ("dynamic", "reason"),
    [
        (((17, 0),), "not said where"),
        (((23, 0), (2, 24), (20, 17)), "another form"),
        (((17, 0), (18, 0), (19, 16)), "another form"),
        (((23, 0), (2, 24)), "not said where"),
        (((3, 0),), "DT_PLTGOT"),
        (((11, 24),), "twice"),
        (((0x6FFFFFF9, 1),), "more relative relocations"),
        (((0x6FFFFFFB, 2),), "DT_FLAGS_1 0x2"),
        (((30, 16),), "DT_FLAGS 0x10"),
        (((0x6FFFFEF5, 0),), "a hash table of"),
    ],
)
def test_tables_in_contradiction_are_refused(
    dynamic: tuple[tuple[int, int], ...], reason: str
) -> None:
    assert reason in str(rejection(Elf(dynamic=dynamic).build(), Machine.X86_64))


def test_a_relocation_writes_to_data_only() -> None:
    at, _ = Edited(NOTED).table(7)
    place, start = Edited(NOTED).table(7)[1], Edited(NOTED).of(2)[AT]
    assert at
    for target in (0, 0x200, start, start + 8, start + 0x900, (1 << 64) - 8):
        code = NOTED[:place] + target.to_bytes(8, "little") + NOTED[place + 8 :]
        assert f"a relocation writes to {target:#x}" in str(rejection(code, Machine.X86_64))


def test_a_hash_table_that_leads_in_circles_is_refused() -> None:
    _, at = Edited(NOTED).table(4)
    for bucket, chain in ((1, 1), (2, 0), (0xFFFFFFFF, 0)):
        words = b"".join(word.to_bytes(4, "little") for word in (1, 2, bucket, 0, chain))
        code = NOTED[:at] + words + NOTED[at + len(words) :]
        assert "its hash table leads" in str(rejection(code, Machine.X86_64))


def test_a_long_name_is_not_repeated_at_length() -> None:
    assert len(str(rejection(Elf(undefined=("x" * 999,)).build(), Machine.X86_64))) < 200
    longer = Elf(undefined=("x" * 1024,)).build()
    assert "name has more than 1024 bytes" in str(rejection(longer, Machine.X86_64))


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_sections_have_to_say_what_is_mapped(tmp_path: Path) -> None:
    sound = linked(MACHINES["x86_64"], tmp_path)
    shape = class_of(sound)
    start = shape.header.unpack(sound, 16)[5]
    rows, _ = section_rows(sound)
    kind, flags, address, offset, nbytes = 1, 2, 3, 4, 5
    dynamic = next(n for n, row in enumerate(rows) if row.kind == 6)
    symbols = next(n for n, row in enumerate(rows) if row.kind == 11)
    text = next(n for n, row in enumerate(rows) if row.flags == 6)
    for number, field, value, reason in (
        (dynamic, offset, 0x40, "lies elsewhere in the file"),
        (dynamic, nbytes, 16, "another dynamic section"),
        (symbols, nbytes, 24, "another symbol table"),
        (symbols, kind, 1, "another symbol table"),
        (text, address, 0x5000, "is said to be mapped, but is not"),
        (text, flags, 7, "rights that its segment has not"),
        (text, kind, 14, "of a kind that is not allowed"),
        (text, kind, 8, "lies elsewhere in the file"),
    ):
        at = start + number * shape.section.nbytes
        row = list(shape.section.unpack(sound, at))
        row[field] = value
        code = sound[:at] + shape.section.pack(*row) + sound[at + shape.section.nbytes :]
        assert reason in str(rejection(code, Machine.X86_64)), reason
