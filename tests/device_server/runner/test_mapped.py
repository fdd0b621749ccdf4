"""What is accepted is mapped as it was verified: by this machine's loader, and by a model of it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from kit.children.blobs import Blobs
from kit.kernels.nests import EXAMPLES, SIM
from kit.objects.elf_mutants import Edited, mutant, with_decoy
from kit.objects.elves import Elf
from kit.objects.foreign import LINKING, MACHINES
from kit.objects.foreign import Machine as Tools
from kit.objects.hosts import ARM
from tilefarm.artifact import Artifact, CompileJob
from tilefarm.measurement import RunFailure, RunJob, Status
from tilefarm.target import Host
from tilefarm.trace import Trace

from compile_worker.compiler import compile_kernel
from device_server.device.elf import RUNTIME_SYMBOLS, Machine, rejection
from device_server.device.elf_image import PAGE_NBYTES, Image, image_of
from device_server.device.elf_tables import tables_of
from device_server.runner.runner import Runner
from device_server.vta.library.native import find_library

HERE = Path(__file__).parent
SOURCES = Path(__file__).parents[3] / "device_server" / "vta" / "runtime" / "runner"
PARTS = ("artifact", "call_filter", "call_rules", "landlock", "sandbox", "seccomp")
FEW, MANY = 100, 1000
TRAP = """
    __attribute__((constructor)) static void on_load(void) { __builtin_trap(); }
    int entry(void) { return 0; }
"""
KERNEL = """
    void VTASynchronize(void*, unsigned);
    static int calls, *where = &calls;
    const int table[600] = {1, 2, 3};
    int entry(void** buffers, const long* at) { VTASynchronize(*buffers, *at); return ++*where; }
"""
TAGS = frozenset({12, 25, 27})
"""DT_INIT, and functions to call as the object is loaded."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """What a loader made of an object: bytes and rights by address, relative to where it lies."""

    content: dict[int, bytes]
    rights: dict[int, str]
    page_nbytes: int

    def read(self, address: int, nbytes: int) -> bytes:
        """Memory that may be read."""
        page, made = self.page_nbytes, b""
        for start in range(address - address % page, address + nbytes, page):
            made += self.content.get(start, b"")
        return made[address % page :][:nbytes]


def linked(source: str, folder: Path, tools: Tools = MACHINES["x86_64"], *options: str) -> bytes:
    if tools.missing:
        pytest.skip(f"no {tools.missing}")
    (folder / "k.c").write_text(source)
    command = [tools.compiler, "-O1", "-shared", "-fPIC", *LINKING, *options]
    subprocess.run([*command, "-o", "k.so", "k.c"], cwd=folder, check=True)
    return (folder / "k.so").read_bytes()


@cache
def compiled(host: Host) -> bytes:
    """What the compiler makes for a host, linked by itself."""
    target = replace(SIM, host=host)
    job = CompileJob(workload=EXAMPLES["softmax"], trace=Trace(), target=target, symbol="softmax")
    made = compile_kernel(job)
    assert isinstance(made, Artifact), made
    return made.code


def differences(code: bytes, machine: Machine, mapped: Mapped) -> list[str]:
    """Where a loader's map is not what was verified; relocations and the list of tables aside."""
    image = image_of(code, machine)
    places = tables_of(image, machine, RUNTIME_SYMBOLS).places
    found = [*wrong_rights(image, mapped)]
    for segment in image.loads:
        said = bytearray(code[segment.offset : segment.offset + segment.nbytes])
        said += bytes(segment.memory_nbytes - segment.nbytes)
        real = bytearray(mapped.read(segment.address, segment.memory_nbytes))
        relocated = [(place, 8 if image.wide else 4) for place in places]
        for place, nbytes in [*relocated, (image.dynamic.address, image.dynamic.nbytes)]:
            at = place - segment.address
            if 0 <= at < len(said):
                said[at : at + nbytes] = real[at : at + nbytes] = bytes(nbytes)
        if said != real:
            found.append(f"bytes of the segment at {segment.address:#x}")
    return found


def wrong_rights(image: Image, mapped: Mapped) -> Iterator[str]:
    page = mapped.page_nbytes
    for at in range(0, image.loads[-1].end, page):
        owners = [s for s in image.loads if s.address - s.address % page <= at < s.end]
        said = [
            "".join(c if s.flags & bit else "-" for c, bit in (("r", 4), ("w", 2), ("x", 1)))
            for s in owners
        ] or ["---"]
        if said != [mapped.rights.get(at, "---")]:
            yield f"rights at {at:#x}: {said}, not {mapped.rights.get(at)}"


def modelled(code: bytes, page: int) -> Mapped | None:
    """The map that a loader makes, one segment over the other; None where it gives up.

    As glibc does it (elf/dl-load.c, dl-map-segments.h), without asking whether it makes sense.
    """
    content: dict[int, bytes] = {}
    rights: dict[int, str] = {}
    for segment in Edited(code).segments:
        kind, flags, offset, address, _, nbytes, memory, align = segment
        if kind != 1:
            continue
        if align % page or (address - offset) & (align - 1):
            return None
        said = "".join(c if flags & bit else "-" for c, bit in (("r", 4), ("w", 2), ("x", 1)))
        start, end, file_end = address - address % page, address + memory, address + nbytes
        zero_from = -(-file_end // page) * page
        for at in range(start, max(zero_from, -(-end // page) * page), page):
            inside = at < zero_from
            there = code[offset + at - address :][:page] if inside else b""
            there = there.ljust(page, b"\0")
            zeros = min(max(file_end - at, 0), page), min(max(end - at, 0), page)
            if end > file_end:
                there = there[: zeros[0]] + bytes(max(0, zeros[1] - zeros[0])) + there[zeros[1] :]
            content[at], rights[at] = there[:page], said
    return Mapped(content, rights, page)


@pytest.fixture(scope="module")
def loader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`mapped.cc`, compiled with the runner's own sandbox."""
    program = tmp_path_factory.mktemp("loader") / "mapped"
    sources = [HERE / "mapped.cc", *(SOURCES / f"{part}.cc" for part in PARTS)]
    flags = ["-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", f"-I{SOURCES}", "-ldl"]
    subprocess.run(["c++", *flags, "-o", str(program), *map(str, sources)], check=True)
    return program


def loaded(objects: Sequence[bytes], folder: Path, loader: Path) -> list[Mapped | str]:
    """What this machine's loader makes of objects, each in a sandboxed child; or why nothing."""
    files = [folder / f"{number}.so" for number in range(len(objects))]
    for file, code in zip(files, objects, strict=True):
        file.write_bytes(code)
    command = [str(loader), str(find_library()), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not done.stdout, f"loading them kills: {done.stdout}"
    return [told(Path(f"{file}.mapped").read_bytes()) for file in files]


def told(report: bytes) -> Mapped | str:
    why, _, rest = report.partition(b"\n")
    if why:
        return why.decode()
    base_text, _, rest = rest.partition(b"\n")
    maps, _, memory = rest.partition(b"\n\n")
    base, content, rights, at = int(base_text), {}, {}, 0
    for line in maps.decode().splitlines():
        place, allowed, *_ = line.split()
        start, end = (int(word, 16) for word in place.split("-"))
        if start < base or at >= len(memory):
            continue
        for page in range(start - base, end - base, 0x1000):
            rights[page] = allowed[:3]
            if allowed[0] == "r":
                content[page] = memory[at : at + 0x1000]
                at += 0x1000
    return Mapped(content, rights, 0x1000)


def accepted_mutants(
    sound: Sequence[bytes], machine: Machine, seed: int, count: int
) -> list[bytes]:
    """Those that are accepted of a number of mutants of sound objects."""
    rng = np.random.default_rng(seed)
    made = (mutant(sound[number % len(sound)], rng) for number in range(count))
    return [code for code in made if rejection(code, machine) is None]


numbers = pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])


@numbers
def test_what_is_accepted_of_mutants_is_mapped_as_it_was_verified(
    count: int, tmp_path: Path, loader: Path
) -> None:
    sound = [
        linked(KERNEL, tmp_path),
        linked(KERNEL, tmp_path, MACHINES["x86_64"], "-Wl,-z,separate-code", "-Wl,--build-id"),
        Elf(segments=((4, 4),)).build(),
        compiled(SIM.host),
    ]
    assert [rejection(code, Machine.X86_64) for code in sound] == [None] * len(sound)
    accepted = accepted_mutants(sound, Machine.X86_64, 1, count)
    assert 0 < len(accepted) < count // 2
    came = loaded(accepted, tmp_path, loader)
    for code, mapped in zip(accepted, came, strict=True):
        assert isinstance(mapped, Mapped), mapped
        assert not differences(code, Machine.X86_64, mapped)


@numbers
@pytest.mark.parametrize("name", ["aarch64", "armv7"])
def test_mutants_for_boards_are_mapped_as_verified_whatever_the_pages(
    name: str, count: int, tmp_path: Path
) -> None:
    machine = {"aarch64": Machine.AARCH64, "armv7": Machine.ARM}[name]
    sound = [linked(KERNEL, tmp_path, MACHINES[name]), compiled(ARM[name])]
    assert [rejection(code, machine) for code in sound] == [None] * len(sound)
    accepted = accepted_mutants(sound, machine, 2, count)
    assert 0 < len(accepted) < count // 2
    for code in accepted:
        for page in PAGE_NBYTES[machine]:
            mapped = modelled(code, page)
            assert mapped is not None
            assert not differences(code, machine, mapped)


def test_the_model_maps_as_this_machine_does(tmp_path: Path, loader: Path) -> None:
    sound = linked(KERNEL, tmp_path)
    objects = [sound, *accepted_mutants([sound], Machine.X86_64, 4, 40)]
    for code, real in zip(objects, loaded(objects, tmp_path, loader), strict=True):
        model = modelled(code, 0x1000)
        assert isinstance(real, Mapped)
        assert model is not None
        assert not differences(code, Machine.X86_64, model)
        assert model.rights.items() <= real.rights.items()


def test_code_behind_a_decoy_would_run_as_it_is_loaded_and_is_refused(
    tmp_path: Path, blobs: Blobs, runner: Runner
) -> None:
    hidden = linked(TRAP, tmp_path, MACHINES["x86_64"], "-Wl,--build-id")
    assert "DT_INIT_ARRAY" in str(rejection(hidden, Machine.X86_64))
    decoyed = with_decoy(hidden, TAGS)
    assert "does not follow the one before" in str(rejection(decoyed, Machine.X86_64))
    job = RunJob(artifact=blobs.put(decoyed), entry="entry", buffers=())
    outcome = runner.run(job, blobs.path)
    assert isinstance(outcome, RunFailure)
    assert outcome.status is Status.RUN_CRASH
    assert "SIGILL" in outcome.why
