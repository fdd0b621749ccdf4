"""Several samples on the threads of a processor: one on each of them, or all threads on one.

Ends of calls are noted as they come, and the fastest stretch of a few calls counts: on a machine
that has more to do, only there all threads have a core each.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.plural import plural
from tilefarm.threads import start_thread

from driver.benchmarks.processor.whole_programs import WholeProgram
from driver.memory import Buffer, Engine, Memory, Op, Problem
from driver.program.arena import ARENA
from driver.program.evaluate import differing_samples
from driver.program.model import NetworkProgram, alignment
from driver.program.pipeline import Pipeline, pipeline, unrolled
from driver.report.cost import microseconds

SAMPLES: Final = 24
TURNS: Final = 8
_TURN_SECONDS: Final = 0.4
_STRETCH_SECONDS: Final = 4e-4
"""Of calls that are looked at together, one at least: others leave us alone for about so long."""
_LEAST_CALLS: Final = 4
"""Of a thread in a turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplesOnThreads:
    """Throughputs of one program, each of the fastest stretch: others disturb, nobody helps.

    Attributes:
        made: the pipeline of a sample on each thread.
        alone_seconds: of a sample on one thread, with nothing beside it.
        each_seconds: from one answer to the next, with a sample on each thread.
        split_seconds: of a sample that all threads share; None where the program cannot.
        off: how much longer many samples took than was planned, relatively.
        differing: of `samples`, that came out otherwise than one at a time.
    """

    made: Pipeline
    threads: int
    alone_seconds: float
    each_seconds: float
    split_seconds: float | None
    off: float
    samples: int
    differing: int

    @property
    def seconds_a_sample(self) -> float:
        """The better way's."""
        return min(self.each_seconds, self.split_seconds or self.each_seconds)

    @property
    def latency_seconds(self) -> float:
        """The better way's."""
        is_split = self.seconds_a_sample == self.split_seconds
        return self.seconds_a_sample * (1 if is_split else self.threads)

    @property
    def gap(self) -> float:
        """Seconds a sample by the bound: each thread with as much work as one has alone."""
        return self.seconds_a_sample * self.threads / self.alone_seconds

    def document(self) -> dict[str, Any]:
        """What JSON can say."""
        return {
            "threads": self.threads,
            "seconds_a_sample": self.seconds_a_sample,
            "sample_a_thread_seconds": self.each_seconds,
            "split_seconds": self.split_seconds,
            "alone_seconds": self.alone_seconds,
            "latency_seconds": self.latency_seconds,
            "gap": self.gap,
            "makespan_off": self.off,
            "samples": self.samples,
            "differing": self.differing,
            "arena_nbytes": self.made.nbytes,
        }


def samples_on_threads(
    program: NetworkProgram,
    inputs: Mapping[str, NDArray[Any]],
    folder: Path,
    *,
    turns: int = TURNS,
) -> SamplesOnThreads:
    """Run a program's samples in both ways, on its target's threads of this processor.

    Args:
        inputs: float32 samples, used again and again.
        folder: for its code; nothing of it may have been loaded before.
        turns: that each way has.

    Raises:
        InfraError: the program ends with an error.
    """
    threads = program.target.model.threads
    several = {
        name: np.resize(np.asarray(x, np.float32), (SAMPLES * program.batch, *x.shape[1:]))
        for name, x in inputs.items()
    }
    with ExitStack() as stack:

        def loaded(name: str, count: int, arena: NDArray[np.uint8] | None = None) -> WholeProgram:
            made = WholeProgram(program, several, folder / name, threads=count, arena=arena)
            stack.callback(made.close)
            return made

        alone = loaded("alone.so", 1)
        made = pipeline(_problem(program, 1.0), threads)
        block = np.zeros(made.nbytes + alignment(program.target), np.uint8)
        each = [
            loaded(f"thread{at}.so", 1, _part(block, offsets[_BLOCK], program))
            for at, offsets in enumerate(made.offsets)
        ]
        split = loaded("split.so", threads)
        ways = [[alone], each] + ([[split]] if split.has_helpers else [])
        found = [[fastest(_ends(way)) for way in ways] for _ in range(turns)]
        least = [min(turn[at] for turn in found) for at in range(len(ways))]
        answers = _answers(each, several, program.batch)
        wanted = _answers([alone], several, program.batch)
    _, plan = unrolled(pipeline(_problem(program, least[0]), threads), SAMPLES)
    took = least[1] * SAMPLES
    return SamplesOnThreads(
        made=made,
        threads=threads,
        alone_seconds=least[0],
        each_seconds=least[1],
        split_seconds=least[2] if split.has_helpers else None,
        off=took / (1e-9 * plan.makespan_ticks) - 1,
        samples=SAMPLES * program.batch,
        differing=differing_samples(answers, wanted),
    )


def lines_of_threads(found: SamplesOnThreads) -> Iterator[str]:
    """What several samples on threads give."""
    is_split = found.seconds_a_sample == found.split_seconds
    split = found.split_seconds
    yield (
        f"{plural(found.threads, 'thread')}: {microseconds(found.seconds_a_sample)} a sample with"
        f" {'all threads on one' if is_split else 'one on each'}, {found.gap:.3f} times the bound"
        f" of {microseconds(found.alone_seconds / found.threads)}; latency"
        f" {microseconds(found.latency_seconds)}"
    )
    yield (
        f"one on each {microseconds(found.each_seconds)} a sample, all threads on one"
        f" {'not possible' if split is None else microseconds(split)}, one thread alone"
        f" {microseconds(found.alone_seconds)}"
    )
    yield (
        f"{plural(found.samples, 'sample')} took {1 + found.off:.3f} times the planned time; arena"
        f" {found.made.nbytes} bytes; {found.differing} differ from one at a time"
    )


_BLOCK: Final = "arena of a sample"


def _problem(program: NetworkProgram, seconds: float) -> Problem:
    """A sample is one operation on one of the threads, with an arena of its own meanwhile."""
    step = alignment(program.target)
    nbytes = -(-program.scratch_nbytes // step) * step
    return Problem(
        buffers=(Buffer(name=_BLOCK, nbytes=nbytes),),
        ops=(
            Op(name=program.entry, writes=(_BLOCK,), duration_ticks=max(1, round(1e9 * seconds))),
        ),
        memories=(Memory(name=ARENA, alignment=step),),
        engines=(Engine(name="processor", instances=program.target.model.threads, in_order=False),),
    )


def _part(block: NDArray[np.uint8], offset: int, program: NetworkProgram) -> NDArray[np.uint8]:
    begin = -block.ctypes.data % alignment(program.target) + offset
    return block[begin : begin + program.scratch_nbytes]


def _ends(programs: Sequence[WholeProgram]) -> list[list[float]]:
    """When calls ended, by thread, while each thread runs its own program for a turn."""
    ends: list[list[float]] = [[] for _ in programs]
    start = threading.Barrier(len(programs))

    def work(at: int) -> None:
        call, mine = programs[at].call, ends[at]
        start.wait()
        until = time.perf_counter() + _TURN_SECONDS
        while len(mine) < _LEAST_CALLS or mine[-1] < until:
            call()
            mine.append(time.perf_counter())

    _on_threads(work, len(programs))
    return ends


def fastest(ends: Sequence[Sequence[float]]) -> float:
    """Seconds from one answer to the next in the fastest stretch, all threads together."""
    first, *others = ends
    call = median(last - begin for begin, last in pairwise(first))
    calls = max(1, ceil(_STRETCH_SECONDS / call))
    return min(
        (last - begin) / (calls + sum(_within(each, begin, last) for each in others))
        for begin, last in zip(first, first[calls:], strict=False)
    )


def _within(ends: Sequence[float], begin: float, last: float) -> float:
    """How many calls a thread made from begin to last, parts of calls included."""
    return _made_until(ends, last) - _made_until(ends, begin)


def _made_until(ends: Sequence[float], moment: float) -> float:
    """Calls since the first one ended."""
    at = bisect_right(ends, moment)
    if not 0 < at < len(ends):
        return float(max(0, at - 1))
    return at - 1 + (moment - ends[at - 1]) / (ends[at] - ends[at - 1])


def _on_threads(work: Callable[[int], None], count: int) -> None:
    """Do it with 0, 1 ... on a thread each."""
    broken: list[Exception] = []
    threads = [
        start_thread(partial(work, at), name="tilefarm samples", broken=broken.append)
        for at in range(count)
    ]
    for thread in threads:
        thread.join()
    if broken:
        raise broken[0]


def _answers(
    programs: list[WholeProgram], inputs: Mapping[str, NDArray[np.float32]], batch: int
) -> dict[str, NDArray[np.float32]]:
    """Outputs of all samples, which the programs take in turn, beside one another."""
    passes = len(next(iter(inputs.values()))) // batch
    found: dict[int, Mapping[str, NDArray[np.float32]]] = {}

    def work(first: int) -> None:
        for sample in range(first, passes, len(programs)):
            part = {name: x[sample * batch : (sample + 1) * batch] for name, x in inputs.items()}
            programs[first].fill(part)
            programs[first].call()
            found[sample] = programs[first].outputs()

    _on_threads(work, len(programs))
    return {
        name: np.concatenate([found[sample][name] for sample in range(passes)]) for name in found[0]
    }
