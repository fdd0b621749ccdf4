"""The known kernel: a run whose answer, counters and (for built-in targets) cycles are known.

The kernel is one for all geometries (`device_server/vta/runtime/known/known_kernel.cc`); what
differs are its buffers, which are made here, with the answer, in plain Python: a board has no
numpy.
"""

from __future__ import annotations

import hashlib
import struct
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import mul
from pathlib import Path
from typing import Final

from tilefarm.digest import Digest
from tilefarm.measurement import BufferSpec, Counters, Role, RunJob
from tilefarm.target import TARGETS, Target

ENTRY: Final = "tilefarm_known_kernel"
KNOWN_CYCLES: Final[Mapping[str, int]] = {
    "sim": 1364,
    "sim-de10": 1336,
    "sim-pynq-z1": 2388,
    "sim-de10-nano": 1406,
    "sim-ultra96": 2028,
}
"""Cycles of one call by built-in target; others with the same geometry, memory, design and runtime
take as many."""

_TILES: Final = 4
_MOST_ROWS: Final = 16
_PRODUCTS_A_TILE: Final = 1 << 14
_SHIFT: Final = 6
_CLIP: Final = 127
_ALU_STEPS: Final = 3
_CALLS: Final = 2
_TIMEOUT_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownKernel:
    """What to run on one target and what must come out.

    Attributes:
        job: two checked calls; carries the digest of the right answer.
        blobs: what the job names, by digest.
        counters: what one call makes the accelerator do, time aside.
        cycles: what one call takes on a simulator; None where nobody has said it.
        keeps_pace: whether it takes as long for ever. A processor has no pace of its own: heat,
            and who else is busy, decide it.
    """

    job: RunJob
    blobs: Mapping[Digest, bytes]
    counters: Counters
    cycles: int | None
    keeps_pace: bool

    def keep_in(self, folder: Path) -> None:
        """Write the blobs, each under its digest, for a runner to map.

        Raises:
            OSError: the folder cannot be written.
        """
        folder.mkdir(parents=True, exist_ok=True)
        for digest, content in self.blobs.items():
            (folder / digest.hex).write_bytes(content)


def known_kernel(target: Target, artifact: bytes) -> KnownKernel:
    """The known kernel on a target.

    Args:
        target: the accelerator; any geometry.
        artifact: the kernel as a shared object, see `native.find_known_kernel`.
    """
    lanes, rows = target.lanes, _rows(target)
    vectors = _TILES * rows * lanes.batch
    x = array("b", _noise("x", vectors * lanes.block))
    w = array("b", _noise("w", _TILES * lanes.block * lanes.block))
    bias = array("i", array("h", _noise("bias", 2 * vectors * lanes.block)))
    contents = {
        "shape": struct.pack("<3i", _TILES, rows * (1 if target.vta else lanes.batch), lanes.block),
        "x": x.tobytes(),
        "w": w.tobytes(),
        "bias": bias.tobytes(),
    }
    answer = array("b", _answer(x, w, bias, lanes.block)).tobytes()
    code = Digest.of(artifact)
    buffers = [
        BufferSpec(name=name, role=Role.CONSTANT, nbytes=len(content), content=Digest.of(content))
        for name, content in contents.items()
    ]
    expected = Digest.of(answer * _CALLS)
    buffers.append(BufferSpec(name="y", role=Role.OUTPUT, nbytes=len(answer), expected=expected))
    return KnownKernel(
        job=RunJob(
            artifact=code,
            entry=ENTRY,
            buffers=tuple(buffers),
            samples=_CALLS,
            timeout_seconds=_TIMEOUT_SECONDS,
        ),
        blobs={code: artifact, **{Digest.of(content): content for content in contents.values()}},
        counters=Counters(
            gemm_uops=_TILES * rows,
            alu_uops=_TILES * rows * _ALU_STEPS,
            inp_load_nbytes=len(contents["x"]),
            wgt_load_nbytes=len(contents["w"]),
            acc_load_nbytes=len(contents["bias"]),
            out_store_nbytes=len(answer),
        ),
        cycles=_cycles(target),
        keeps_pace=target.has_accelerator,
    )


def _rows(target: Target) -> int:
    """Rows of a tile: few where one product is large, and no more than the buffers hold."""
    lanes, vta = target.lanes, target.vta
    affordable = _PRODUCTS_A_TILE // (lanes.batch * lanes.block * lanes.block)
    held = min(vta.inp_depth, vta.acc_depth) if vta is not None else _MOST_ROWS
    return max(1, min(_MOST_ROWS, affordable, held))


def _noise(label: str, nbytes: int) -> bytes:
    """Bytes without a pattern, the same everywhere."""
    return hashlib.shake_256(f"tilefarm known kernel {label}".encode()).digest(nbytes)


def _answer(x: array[int], w: array[int], bias: array[int], block: int) -> Iterator[int]:
    """`clip(bias + x . w transposed >> shift)`, vector by vector."""
    tile_length = len(x) // _TILES
    for begin in range(0, len(x), block):
        vector = x[begin : begin + block]
        tile = w[begin // tile_length * block * block :][: block * block]
        for lane in range(block):
            weights: Iterable[int] = tile[lane * block : (lane + 1) * block]
            total = bias[begin + lane] + sum(map(mul, vector, weights))
            yield max(-_CLIP, min(_CLIP, total >> _SHIFT))


def _cycles(target: Target) -> int | None:
    """The cycles of the built-in target with this geometry, memory, design and runtime."""
    for name, cycles in KNOWN_CYCLES.items():
        if _what_counts(TARGETS[name]) == _what_counts(target):
            return cycles
    return None


def _what_counts(target: Target) -> tuple[object, ...]:
    """What cycles depend on."""
    return target.vta, target.timing, target.board.design, target.board.runtime
