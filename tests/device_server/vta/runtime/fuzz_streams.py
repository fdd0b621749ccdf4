"""Feeds the simulator streams that nobody would write: `python -m …fuzz_streams --seconds 60`.

Random bits, random fields, and mutations of valid programs, under random configurations. Every
outcome must be a result or a VtaError: no crash, no hang. Results must keep what always holds:
cycles are accounted for, a second run and another vector path answer the same.

The cases run in a child process. When it dies, the parent prints the seed and the case, and
`--seed S --first N --cases 1` runs that one alone.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from tilefarm.target import BusTiming, Target, VtaConfig

from device_server.vta.library.library import (
    StreamResult,
    Strictness,
    TimingModel,
    VtaError,
    VtaLibrary,
)
from device_server.vta.programs.instructions import (
    Alu,
    Finish,
    Gemm,
    Instruction,
    Tokens,
    Transfer,
    Uop,
)

from .streams import (
    ADD,
    MAX,
    SHR,
    alu,
    gemm,
    in_turn,
    load,
    load_acc,
    load_tiles,
    load_uops,
    memory,
    store,
    words_of,
)
from .vta_functions import limit_uops

Words = npt.NDArray[np.uint64]
Image = npt.NDArray[np.uint8]

HANG_SECONDS: Final = 30
MOST_UOPS: Final = 1 << 15
IMAGE_NBYTES: Final = 1 << 16
SMALL: Final = VtaConfig(
    log_block=3,
    log_uop_buff_size=12,
    log_inp_buff_size=13,
    log_wgt_buff_size=13,
    log_acc_buff_size=14,
)
TARGETS: Final = (
    Target(name="sim"),
    Target(name="bursts", timing=BusTiming(log_burst_beats=4, dram_delay_cycles=0)),
    Target(name="queues", timing=BusTiming(queue_entries=2, outstanding_bursts=1)),
    Target(name="rows", vta=VtaConfig(log_batch=1)),
    Target(name="small", vta=SMALL, timing=BusTiming(bus_nbytes=64)),
)


@dataclass(frozen=True, slots=True)
class Case:
    """A stream with its memory."""

    words: Words
    image: Image


def random_bits(rng: np.random.Generator, _: VtaConfig) -> Case:
    """Any bits at all; most often with an opcode that exists and FINISH at the end."""
    count = int(rng.integers(0, 40))
    words = rng.integers(0, 1 << 64, (count, 2), dtype=np.uint64)
    if rng.random() < 0.9 and count:
        opcodes = rng.choice(np.array([0, 1, 2, 4], np.uint64), count)
        words[:, 0] = words[:, 0] & ~np.uint64(7) | opcodes
        words[-1] = 3, 0
    if rng.random() < 0.7:
        words[:, 0] &= ~np.uint64(0b1111000)
    return Case(words, rng.integers(0, 256, IMAGE_NBYTES, dtype=np.uint8))


def random_fields(rng: np.random.Generator, vta: VtaConfig) -> Case:
    """Instructions with fields of a plausible size, and tokens here and there."""
    body = [_random_instruction(rng) for _ in range(int(rng.integers(1, 30)))]
    uops = [Uop(*(int(k) for k in rng.integers(0, 40, 3))) for _ in range(8)]
    stream: list[Instruction] = [load_uops(8), *body]
    stream = in_turn(stream) if rng.random() < 0.7 else [*stream, Finish()]
    image = memory(uops, vta, IMAGE_NBYTES)
    image[:4096] = rng.integers(0, 256, 4096, dtype=np.uint8)
    return Case(words_of(stream, vta), image)


def _random_instruction(rng: np.random.Generator) -> Instruction:
    def below(limit: int) -> int:
        return int(rng.integers(0, limit))

    names = ("pop_prev", "pop_next", "push_prev", "push_next")
    tokens = Tokens(**{name: int(rng.random() < 0.05) for name in names})
    kind = below(5)
    loops = {"uop_begin": below(4), "uop_end": below(9), "iter_out": below(6), "iter_in": below(6)}
    factors = {name: below(20) for name in ("dst_out", "dst_in", "src_out", "src_in")}
    if kind == 0:
        return Gemm(tokens=tokens, reset=below(2), wgt_out=below(5), wgt_in=3, **loops, **factors)
    if kind == 1:
        chosen = {"alu_opcode": below(6), "use_imm": below(2), "imm": below(80) - 40}
        return Alu(tokens=tokens, **loops, **factors, **chosen)
    pads = {name: below(16) * (below(3) == 0) for name in ("y_pad_0", "y_pad_1", "x_pad_0")}
    return Transfer(
        store=kind == 2,
        tokens=tokens,
        memory=4 if kind == 2 and below(10) else below(7),
        sram_base=below(300),
        dram_base=below(1 << 11),
        y_size=below(6),
        x_size=below(30),
        x_stride=below(40),
        **({} if kind == 2 and below(10) else pads),
    )


def mutated(rng: np.random.Generator, vta: VtaConfig) -> Case:
    """A valid program with a few bits flipped, instructions moved, doubled or lost."""
    body = [
        *load_tiles(),
        gemm(4, iter_out=3, dst_out=4, reset=1),
        gemm(4, iter_out=3, dst_out=4),
        load_acc(12, sram_base=20),
        alu(ADD, 4, imm=3, iter_in=3, dst_in=4, src_in=4),
        alu(SHR, 4, imm=2),
        store(12),
        load(2, 9, sram_base=4, y_size=3, y_pad_0=1, x_pad_1=2),
        gemm(3, src_out=1, iter_out=2, dst_out=3),
        alu(MAX, 4),
        store(4, sram_base=2),
    ]
    words = words_of(in_turn([load_uops(4), *body]), vta)
    image = memory([Uop(k, k % 3, 0) for k in range(4)], vta, IMAGE_NBYTES)
    image[:2048] = rng.integers(0, 256, 2048, dtype=np.uint8)
    for _ in range(int(rng.integers(1, 5))):
        words = _mutation(rng, words)
    if rng.random() < 0.3:
        image[4096 + int(rng.integers(0, 16))] ^= 1 << int(rng.integers(0, 8))
    return Case(words, image)


def _mutation(rng: np.random.Generator, words: Words) -> Words:
    at, other = (int(k) for k in rng.integers(0, len(words), 2))
    match int(rng.integers(0, 5)):
        case 0:
            return np.delete(words, at, axis=0) if len(words) > 1 else words
        case 1:
            return np.insert(words, at, words[other], axis=0)
        case 2:
            words = words.copy()
            words[[at, other]] = words[[other, at]]
            return words
        case _:
            words = words.copy()
            words[at, int(rng.integers(0, 2))] ^= np.uint64(1) << np.uint64(rng.integers(0, 64))
            return words


MAKERS: Final[Sequence[Callable[[np.random.Generator, VtaConfig], Case]]] = (
    random_bits,
    random_fields,
    mutated,
    mutated,
)


def run_case(library: VtaLibrary, seed: int, number: int) -> str:
    """Run one case; what came of it in a word.

    Raises:
        AssertionError: something that always holds does not.
    """
    rng = np.random.default_rng([seed, number])
    target = TARGETS[int(rng.integers(0, len(TARGETS)))]
    case = MAKERS[int(rng.integers(0, len(MAKERS)))](rng, target.geometry)
    paths = library.vector_paths()
    library.configure(
        target,
        functional_only=bool(rng.random() < 0.1),
        strictness=list(Strictness)[int(rng.integers(0, 3))],
        model=list(TimingModel)[int(rng.integers(0, 2))],
    )
    library.use_vector_path(paths[0])
    first = outcome(library, case)
    library.use_vector_path(paths[int(rng.integers(0, len(paths)))])
    require_same(first, outcome(library, case))
    return f"error {first.status}" if isinstance(first, VtaError) else "result"


def outcome(library: VtaLibrary, case: Case) -> StreamResult | VtaError:
    try:
        result = library.run_stream(case.words, case.image, timeline=True)
    except VtaError as error:
        return error
    require_accounted_for(result)
    return result


def require_same(a: StreamResult | VtaError, b: StreamResult | VtaError) -> None:
    if isinstance(a, VtaError) or isinstance(b, VtaError):
        assert str(a) == str(b)
        return
    assert a.counters == b.counters
    assert a.findings == b.findings
    assert np.array_equal(a.dram, b.dram)


def require_accounted_for(result: StreamResult) -> None:
    counters, spans = result.counters, result.spans
    for module in ("load", "compute", "store"):
        kinds = ("busy", "token_stall", "queue_stall", "memory_stall")
        assert sum(counters[f"{module}_{kind}_cycles"] for kind in kinds) <= (counters.cycles)
    assert spans is not None
    assert (spans[:, 0] <= spans[:, 1]).all()


def fuzz(library: VtaLibrary, args: argparse.Namespace, place: Path) -> Counter[str]:
    """Run cases until the time or their number is up; counts what came of them."""
    outcomes: Counter[str] = Counter()
    end = time.monotonic() + args.seconds
    number = args.first
    with place.open("w") as last:
        while time.monotonic() < end and number - args.first < args.cases:
            os.pwrite(last.fileno(), b"%12d" % number, 0)
            faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
            outcomes[run_case(library, args.seed, number)] += 1
            number += 1
    faulthandler.cancel_dump_traceback_later()
    return outcomes


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when every case ended well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cases", type=int, default=1 << 40)
    parser.add_argument("--library", type=Path)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.child is None:
        return watch(args)
    library = VtaLibrary(args.library)
    limit_uops(library, MOST_UOPS)
    outcomes = fuzz(library, args, args.child)
    print(f"{outcomes.total()} cases:", *(f"{v} {k}," for k, v in sorted(outcomes.items())))
    return 0


def watch(args: argparse.Namespace) -> int:
    """Run the cases in a child, and name the one that it dies of."""
    print(f"seed {args.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "last"
        command = [sys.executable, "-m", __spec__.name, "--child", str(place)]
        for name in ("seconds", "seed", "first", "cases", "library"):
            value = getattr(args, name)
            command += [f"--{name}", str(value)] if value is not None else []
        status = subprocess.run(command).returncode
        if status != 0:
            case = int(place.read_text()) if place.exists() else args.first
            print(f"status {status} at --seed {args.seed} --first {case} --cases 1")
    return 0 if status == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
