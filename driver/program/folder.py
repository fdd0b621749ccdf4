"""The folder that a program is deployed as: what lies in it, and the manifest that says so.

`run.py` and `run.c` run the program with nothing of tilefarm: with a VTA library, or, where there
is no accelerator, with none. Then `network.h` declares the entry to C programs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final
from zlib import adler32

from tilefarm.digest import Digest
from tilefarm.plural import plural
from tilefarm.printable import printable
from tilefarm.processors import needed_words

from device_server.vta.library.native import hardware_words
from driver.network import Grid
from driver.program.model import NetworkProgram, Parameter
from driver.program.user_passes import passes_document

MANIFEST_SCHEMA: Final = 3
CODE_FILE: Final = "network.so"
CONSTANTS_FILE: Final = "weights.bin"
MANIFEST_FILE: Final = "manifest.json"
HEADER_FILE: Final = "network.h"

_SHIPPED: Final = Path(__file__).with_name("shipped")

_POOL: Final = """
/* Threads: open the pool for so many before a call and close it after it; meanwhile each of the
 * others calls tilefarm_help, which returns when the pool is closed. run.c does that. There is one
 * pool: of calls at the same time one is helped, and the others run on their own threads alone. */
void tilefarm_open_pool(int64_t threads);
void tilefarm_help(void);
void tilefarm_close_pool(void);
"""
"""What the header says of a program with kernels that threads can share."""

_ARCHITECTURES: Final = {
    "x86_64": "defined(__x86_64__)",
    "aarch64": "defined(__aarch64__)",
    "armv7": "defined(__arm__)",
}
"""What C compilers define, by what triples begin with."""

_README: Final = """\
{name}: a neural network, compiled for {machine} {target}
(target {target_digest}; host {host}).

{code}: the kernels and the entry `{entry}`. {constants}: weights. manifest.json: all
of this for machines, with the layout of every buffer, the target and versions.
The digests in it are SHA-256; `tilefarm run` and run.py check {code} and
{constants} before they load them, run.c by their sizes and a sum of its own.
{passes}
Inputs, float32, all samples of a run (a batch of {batch}) one after another:
{inputs}

Outputs, float32:
{outputs}

A scale is the value of one step of the integers inside. A model's own integers q
stand for (q - zero point) * scale; run.py takes and gives them.

{how}

  tilefarm run . --input X.npz --out Y.npz
  python run.py {library}X.npz Y.npz
  cc run.c -ldl -lpthread -o run && ./run {library}INPUT... OUTPUT...

X.npz has an array [samples, ...] for each input, by its name and in the layout
of the model's file. run.c reads and writes plain float32 values in the shapes
above, a file for each tensor, as many runs as the files hold.

The entry is `int32_t {entry}(void *const *buffers, const int64_t *offsets)`; 0 is
success. Buffers are {handles}, offsets are 0. In this order:
{buffers}

So are the entries in `calls` of manifest.json, which make one kernel call each:
called in order they do what `{entry}` does, for `tilefarm run . --profile`.
"""


_WITH_LIBRARY: Final = """\
To run it, give the VTA library of that accelerator, or tilefarm's simulator:"""
_ALONE: Final = """\
To run it, nothing else is needed; network.h declares its entry to C programs.
{threads} --threads N in front of what run.py and ./run take is for more or fewer:"""


def program_files(program: NetworkProgram, versions: Mapping[str, str]) -> dict[str, bytes]:
    """Contents of all files by name; the manifest, which has the others' digests, is the last."""
    files = {
        CODE_FILE: program.code,
        CONSTANTS_FILE: program.constants,
        "README.txt": _readme(program).encode(),
        "run.py": _filled("run.py.txt", program),
        "run.c": _filled("run.c", program),
    }
    if not program.target.has_accelerator:
        files[HEADER_FILE] = _filled("network.h", program)
    manifest = _manifest(program, versions, files)
    manifest["manifest_digest"] = Digest.of_json(manifest).hex
    return {**files, MANIFEST_FILE: (json.dumps(manifest, indent=2) + "\n").encode()}


def _manifest(
    program: NetworkProgram, versions: Mapping[str, str], files: Mapping[str, bytes]
) -> dict[str, Any]:
    return {
        "schema": MANIFEST_SCHEMA,
        "name": program.name,
        "digest": program.digest.hex,
        "entry": program.entry,
        "code": _file_row(CODE_FILE, program.code, program.code_digest),
        "constants": _file_row(CONSTANTS_FILE, program.constants, program.constants_digest),
        "files": {name: Digest.of(content).hex for name, content in files.items()},
        "arena_nbytes": program.arena_nbytes,
        "calls": [asdict(call) for call in program.calls],
        "buffers": list(_buffer_rows(program)),
        "inputs": [_parameter_row(p) for p in program.inputs],
        "outputs": [_parameter_row(p) for p in program.outputs],
        "target": json.loads(program.target.to_json()),
        "target_digest": program.target.digest.hex,
        "simulator": list(_simulator_words(program)),
        "processor": program.target.host.triple.partition("-")[0],
        "needed": _needed_words(program),
        "threads": program.target.model.threads,
        **passes_document(program.passes),
        "versions": dict(versions),
    }


def _file_row(name: str, content: bytes, digest: Digest) -> dict[str, object]:
    return {"file": name, "sha256": digest.hex, "nbytes": len(content)}


def _buffer_rows(program: NetworkProgram) -> Iterator[dict[str, Any]]:
    yield {"name": "arena", "role": "scratch", "nbytes": program.scratch_nbytes}
    yield {"name": "constants", "role": "constant", "nbytes": len(program.constants)}
    for role, parameters in (("input", program.inputs), ("output", program.outputs)):
        for p in parameters:
            yield {"name": p.name, "role": role, "nbytes": p.nbytes}


def _parameter_row(p: Parameter) -> dict[str, object]:
    return {
        "name": p.name,
        "dtype": "float32",
        "shape": list(p.shape),
        "axes": list(p.axes),
        "scale": p.scale,
        "grid": None if p.grid is None else _grid_row(p.grid),
    }


def _grid_row(grid: Grid) -> dict[str, object]:
    """What run.py needs to make reals of integers and integers of reals."""
    lowest, highest = grid.ends
    return {
        "dtype": grid.dtype,
        "scale": grid.scale,
        "zero": grid.zero,
        "lowest": lowest,
        "highest": highest,
        "numpy": grid.held,
    }


def _readme(program: NetworkProgram) -> str:
    alone = not program.target.has_accelerator
    return _README.format(
        name=printable(program.name),
        machine="the processor" if alone else "the accelerator",
        how=_ALONE.format(threads=_threads_line(program)) if alone else _WITH_LIBRARY,
        library="" if alone else "libvta.so ",
        handles="addresses of pages" if alone else "handles of VTABufferAlloc",
        target=program.target.name,
        target_digest=program.target.digest.short,
        host=program.target.host.triple,
        code=CODE_FILE,
        constants=CONSTANTS_FILE,
        entry=program.entry,
        batch=program.batch,
        passes="".join(
            f"\nIts kernels were lowered with {printable(str(p))}.\n" for p in program.passes
        ),
        inputs="\n".join(map(_parameter_line, program.inputs)),
        outputs="\n".join(map(_parameter_line, program.outputs)),
        buffers="\n".join(
            f"  {index}  {printable(row['name'])}  {row['nbytes']} bytes, {row['role']}"
            for index, row in enumerate(_buffer_rows(program))
        ),
    )


def _threads_line(program: NetworkProgram) -> str:
    threads = program.target.model.threads
    return f"It was tuned for {plural(threads, 'thread')} on as many cores;"


def _parameter_line(p: Parameter) -> str:
    moved = p.axes and p.axes != tuple(range(len(p.axes)))
    order = f", axes {list(p.axes)} of the model's file" if moved else ""
    scale = "" if p.scale is None else f", scale {p.scale:.6g}"
    grid = "" if p.grid is None else f"; of the model's {p.grid}"
    return f"  {printable(p.name)}  {list(p.shape)}{order}{scale}{grid}"


def _filled(name: str, program: NetworkProgram) -> bytes:
    """A file that is shipped, with this program's sizes and names."""
    text = (_SHIPPED / name).read_text(encoding="utf-8")
    simulator = _simulator_words(program)
    processor = program.target.host.triple.partition("-")[0]
    words = {
        "NAME": _commented(program.name),
        "INPUTS": str(len(program.inputs)),
        "OUTPUTS": str(len(program.outputs)),
        "NBYTES": ", ".join(str(row["nbytes"]) for row in _buffer_rows(program)),
        "BUFFERS": "\n".join(
            f" *   {index}  {_commented(row['name'])}, {row['nbytes']} bytes: {row['role']}"
            for index, row in enumerate(_buffer_rows(program))
        ),
        "SIMULATOR": ", ".join(map(str, simulator or (0,))),
        "LIBRARIES": str(int(bool(simulator))),
        "USAGE": "VTA_LIBRARY " if simulator else "[--threads N] ",
        "NEEDED": "".join(f"{word} " for word in _needed_words(program)),
        "THREADS": str(program.target.model.threads),
        "PROCESSOR": processor,
        "POOL": _POOL if b"tilefarm_open_pool" in program.code else "",
        "ARCHITECTURE": _ARCHITECTURES.get(processor, "1"),
        "CODE": CODE_FILE,
        "CODE_SIZE": str(len(program.code)),
        "CODE_SUM": f"{adler32(program.code)}u",
        "WEIGHTS": CONSTANTS_FILE,
        "WEIGHTS_SUM": f"{adler32(program.constants)}u",
        "ENTRY": program.entry,
    }
    return re.sub("@([A-Z_]+)@", lambda found: words[found[1]], text).encode()


def _commented(name: str) -> str:
    """A name of the model's in a comment of C, which it neither ends nor begins."""
    return printable(name).replace("*/", "* /").replace("/*", "/ *")


def _needed_words(program: NetworkProgram) -> list[str]:
    """What the processor has to have, in the words of /proc/cpuinfo."""
    return sorted(needed_words(program.target.host))


def _simulator_words(program: NetworkProgram) -> tuple[int, ...]:
    """What makes a simulator the accelerator; none where there is no accelerator."""
    return hardware_words(program.target) if program.target.has_accelerator else ()
