"""Which shared objects may be loaded, and why the others are refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kit.elves import Elf
from kit.foreign import KERNEL, MACHINES, linked
from kit.mutations import damaged_bytes

from device_server.device.elf import RUNTIME_SYMBOLS, Machine, rejection

GOOD = Elf()
CODE = GOOD.build()


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
        (replace(GOOD, dynamic=((0x7FFFFFFD, 0),)), "0x7ffffffd"),
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


@settings(max_examples=300)
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
    many = Elf(undefined=("VTASynchronize",) * 40_000).build()
    assert "40000 relocations; 32768 are allowed" in str(rejection(many, Machine.X86_64))


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
    seed = int(os.environ.get("FUZZ_SEED", time.time_ns() % 1_000_000))
    rng, taken, slowest = np.random.default_rng(seed), 0, 0.0
    until, mutants = time.monotonic() + 20, 0
    while time.monotonic() < until:
        mutants += 1
        mutant = damaged_words(damaged_bytes(sound, rng) if mutants % 2 else sound, rng)
        begin = time.monotonic()
        verdict = rejection(mutant, machine)
        slowest = max(slowest, time.monotonic() - begin)
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
        command = ["cc", "-shared", "-fPIC", "-o", str(made), str(source), *options]
        subprocess.run(command, check=True)
        return rejection(made.read_bytes(), Machine.X86_64)

    machine = subprocess.run(["cc", "-dumpmachine"], capture_output=True, text=True).stdout
    if not machine.startswith("x86_64"):
        pytest.skip("the compiler makes code for another machine")
    assert linked("-nostdlib") is None
    assert linked("-nostdlib", "-Wl,--hash-style=sysv", "-Wl,-z,now") is None
    assert linked("-nostdlib", "-Wl,-z,execstack") is not None
    assert linked() is not None
