"""What refactoring must leave as it is: fixed kernels and networks, each as a row of digests.

A row holds the digests of what is compiled (workload, search space, trace) and of what comes out
(LLVM text, machine code, features). Machine code is the work of LLVM as well, so a table says which
version made it; with another one only the rest is compared. Nothing depends on the processor that
runs the test: every target names its host, and all numbers are integers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from kit.kernels.nests import (
    EACH_OPERATOR,
    EXAMPLES,
    REAL_VARIANTS,
    conv2d,
    conv2d_transpose,
    dense,
    matmul,
    scaled_add,
    window,
    with_epilogue,
)
from kit.networks.integer_case import IntegerGraph
from kit.networks.random_networks import window as square
from numpy.typing import NDArray
from tilefarm.artifact import Artifact, CompileJob
from tilefarm.digest import Digest
from tilefarm.space import Point
from tilefarm.target import TARGETS, Host, Target
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.compiler import compile_kernel, compile_program
from compile_worker.emit import kernel_text
from compile_worker.ir.func import Func
from compile_worker.space import generate, has_space
from driver.network.integer.qir import (
    Dequantize,
    QAdd,
    QAvgPool2d,
    QConcat,
    QConv2d,
    QConvTranspose2d,
    QDense,
    QLookup,
    QMaxPool2d,
    QReshape,
    QSoftmax,
    QuantGraph,
    Quantize,
)
from driver.network.partition.partitioner import partition_network
from driver.program.arena import plan_arena
from driver.program.model import program_job
from tuner.sampler import Sampler

from . import kinds

Row = dict[str, Any]

SAMPLED: Final = 2
"""Points of each space beside its default one."""

_FEW: Final = 41
"""One in so many variants is compared each time, no factor of the number of layers of a target;
all of them in the long suites."""


@dataclass(frozen=True, slots=True)
class Case:
    """A workload on a target; `always` are compared in every run of the tests."""

    name: str
    work: Workload
    target: Target
    always: bool


@cache
def kernel_cases() -> list[Case]:
    """Every operator, every kind of layer, and every design, host and vector in the tree."""
    cases = [
        Case(name, work, TARGETS["sim"], name in EACH_OPERATOR) for name, work in EXAMPLES.items()
    ]
    others = [(name, work, TARGETS["sim"]) for name, work in REAL_VARIANTS.items()]
    for target in TARGETS.values():
        others += [(f"{name} on {target.name}", work, target) for name, work in _layers().items()]
    for element, target in kinds.TARGETS.items():
        blocked = _blocked(element)
        others += [(f"{name} on {target.name}", work, target) for name, work in blocked.items()]
    for host in _HOSTS:
        target = replace(TARGETS["sim"], host=host)
        others += [
            (f"{name} for {host.cpu}", work, target)
            for name, work in EXAMPLES.items()
            if not has_space(work, target)
        ]
    few = [Case(*other, at % _FEW == 0) for at, other in enumerate(others)]
    return cases + few


_HOSTS: Final = (
    Host(cpu="x86-64-v3"),
    Host(cpu="cascadelake"),
    Host(triple="aarch64-unknown-linux-gnu", cpu="cortex-a76"),
    Host(triple="armv7-unknown-linux-gnueabihf", cpu="cortex-a9"),
)


def _layers() -> dict[str, Workload]:
    """Layers of every kind that are large enough for tiles and slots."""
    return {
        "3x3": conv2d(2, 4, 14, 14),
        "3x3 stride 2": with_epilogue(conv2d(2, 4, 12, 12, stride=(2, 2)), bias=2, shift="lanes"),
        "1x1": with_epilogue(conv2d(4, 8, 8, 8, kernel=(1, 1), pad=(0, 0, 0, 0)), bias=0),
        "depthwise": conv2d(4, 4, 8, 8, groups=4, border=(1, 1, 1, 1)),
        "planes": conv2d(2, 4, 12, 12, planes=2, data_planes=2, out_planes=2),
        "dense": dense(16, 6),
        "scaled_add": scaled_add((1, 4, 14, 14, 1, 16)),
        "window_max2d": window("window_max2d", 4, (14, 14)),
        "window_sum2d": window("window_sum2d", 4, (7, 7), (7, 7), (1, 1), (0, 0, 0, 0)),
    }


def _blocked(element: tuple[int, int]) -> dict[str, Workload]:
    """Layers on vectors of other shapes, with the factors that need MUL."""
    return {
        "3x3": with_epilogue(conv2d(2, 2, 6, 6, element=element), factor=True),
        "transposed": with_epilogue(conv2d_transpose(2, 2, element=element), shift="lanes"),
        "matmul": matmul(2, 4, 2, 2, bias=1, element=element),
        "scaled_add": scaled_add((1, 2, 5, 5, *element)),
        "window_max2d": window("window_max2d", unit=(1, *element)),
    }


def kernel_rows(case: Case, known: Mapping[str, Row], *, anew: bool) -> Iterator[tuple[str, Row]]:
    """The rows of a case by name, one for each point; the points are those of the `known` rows.

    With `anew` they are sampled.
    """
    if not has_space(case.work, case.target):
        yield case.name, _kernel_row(case, Trace(), {})
        return
    generated = generate(case.work, case.target)
    points: list[Point] = [dict(generated.space.default)]
    if anew:
        rng = np.random.default_rng(len(case.name))
        points += Sampler(generated.space).sample(SAMPLED, rng)
    else:
        names = (f"{case.name} #{at}" for at in range(1, SAMPLED + 1))
        points += [known[name]["point"] for name in names if name in known]
    tunables = [variable.name for variable in generated.space.tunables]
    for at, point in enumerate(points):
        chosen = {name: point[name] for name in tunables}
        row = _kernel_row(case, generated.trace(chosen), {"space": generated.space.digest.short})
        yield f"{case.name} #{at}", {"point": chosen, **row}


def _kernel_row(case: Case, trace: Trace, more: Row) -> Row:
    job = CompileJob(workload=case.work, trace=trace, target=case.target)
    seen: list[Func] = []
    made = compile_kernel(job, watch=lambda _, func: seen.append(func))
    text = kernel_text(seen[-1], job.symbol, job.target)
    row = {
        "workload": case.work.digest.short,
        "target": case.target.digest.short,
        **more,
        "trace": trace.digest.short,
        "llvm": Digest.of(text.encode()).short,
    }
    assert isinstance(made, Artifact), f"{case.name}: {made}"
    features = Digest.of_json([[name, value] for name, value in made.features])
    return {**row, "features": features.short, "code": made.digest.short}


def networks() -> dict[str, tuple[QuantGraph, Target]]:
    """Two small networks, each for two targets."""
    return {
        f"{graph.name} on {target}": (graph, TARGETS[target])
        for graph in (_residual(), _branches())
        for target in ("sim", "pynq-z1")
    }


def network_row(graph: QuantGraph, target: Target) -> Row:
    """Digests of what is compiled for a network with its default schedules, and of its object."""
    network = partition_network(graph, target)
    spaces = {work: generate(work, target) for work, _ in network.workloads()}
    traces = {work: made.trace(dict(made.space.default)) for work, made in spaces.items()}
    arena = plan_arena(network, {})
    job, constants = program_job(arena.network, traces, arena.offsets)
    made = compile_program(job)
    assert isinstance(made, Artifact), made
    return {
        "workloads": Digest.of_json([kernel.workload.digest.hex for kernel in job.kernels]).short,
        "traces": Digest.of_json([kernel.trace.digest.hex for kernel in job.kernels]).short,
        "job": job.digest.short,
        "constants": Digest.of(constants).short,
        "code": made.digest.short,
    }


def _numbers(dtype: type[np.generic], *shape: int) -> NDArray[Any]:
    """Whole numbers from -50 to 50 that no generator makes."""
    return (np.arange(int(np.prod(shape))).reshape(shape) * 37 % 101 - 50).astype(dtype)


def _conv(ci: int, co: int, *, stride: int = 1, groups: int = 1, wide: bool = False) -> QConv2d:
    weight = _numbers(np.int16 if wide else np.int8, co, ci // groups, 3, 3)
    return QConv2d(
        weight=weight * 300 if wide else weight,
        bias=_numbers(np.int32, co) * 20,
        shift=np.full(co, 15 if wide else 9, np.int32),
        window=square(stride=stride, pad=1),
        groups=groups,
        lo=0,
    )


def _dense(ci: int, co: int) -> QDense:
    return QDense(
        weight=_numbers(np.int8, co, ci),
        bias=_numbers(np.int32, co),
        shift=np.arange(co, dtype=np.int32) % 3 + 8,
    )


def _residual() -> QuantGraph:
    """Convolutions, a shortcut around one, both pools and a dense layer."""
    made = IntegerGraph("residual")
    made.give("x", (1, 3, 12, 12))
    image = made.put("q", Quantize(inv_scale=12.5), "x")
    first = made.put("first", _conv(3, 32, stride=2), image)
    second = made.put("second", _conv(32, 32), first)
    both = made.put("both", QAdd(mul_a=64, mul_b=48, shift=6, lo=0), first, second)
    small = made.put("small", QMaxPool2d(window=square(kernel=2, stride=2)), both)
    wide = made.put("wide", _conv(32, 32, wide=True), small)
    mean = QAvgPool2d(window=square(kernel=3), mul=np.full((1, 1), 57, np.int32), shift=9)
    pooled = made.put("pooled", mean, wide)
    row = made.put("row", QReshape(shape=(32,)), pooled)
    last = made.put("last", _dense(32, 10), row)
    return made.graph(made.put("y", Dequantize(scale=0.125), last))


def _branches() -> QuantGraph:
    """A depthwise layer, a transposed one, tables, a concatenation and a softmax."""
    made = IntegerGraph("branches")
    made.give("x", (1, 16, 4, 4))
    image = made.put("q", Quantize(inv_scale=8.0, offset=-3.0), "x")
    deep = made.put("deep", _conv(16, 16, groups=16), image)
    bent = made.put("bent", QLookup(table=_numbers(np.int8, 256)), image)
    side = made.put("side", QConcat(), deep, bent)
    larger = QConvTranspose2d(
        weight=_numbers(np.int8, 16, 2, 2, 32, 1, 1),
        bias=_numbers(np.int32, 16),
        shift=np.full(16, 8, np.int32),
        pad=(0, 0, 0, 0),
    )
    up = made.put("up", larger, side)
    row = made.put("row", QReshape(shape=(16 * 8 * 8,)), up)
    last = made.put("last", _dense(16 * 8 * 8, 10), row)
    table = (2.0 ** -(np.arange(256) / 16).round()).astype(np.float32)
    return made.graph(made.put("y", QSoftmax(table=table), last))


@dataclass(slots=True)
class Table:
    """The rows of a file, one for each line, compared or written anew."""

    file: Path
    update: bool

    def read(self) -> dict[str, Row]:
        """The rows by name, as they were written."""
        return json.loads(self.file.read_text())["rows"] if self.file.exists() else {}

    def compare(self, rows: Mapping[str, Row], command: str) -> None:
        """Assert that rows are as they were; `command` writes others."""
        if self.update:
            self._write({**self.read(), **rows})
            return
        assert self.file.exists(), f"no {self.file.name}; {command}"
        before = self.read()
        same_llvm = json.loads(self.file.read_text())["llvmlite"] == version("llvmlite")
        changed = []
        for name, row in rows.items():
            old = before.get(name, {})
            keys = [key for key in row if old.get(key) != row[key]]
            changed += [f"{name}: {key}" for key in keys if same_llvm or key != "code"]
        if changed:
            lines = "\n".join(changed)
            pytest.fail(f"other than before, if that is right, {command}:\n{lines}", pytrace=False)

    def _write(self, rows: Mapping[str, Row]) -> None:
        lines = [f"{json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(rows.items())]
        text = ",\n".join(lines)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(f'{{"llvmlite": "{version("llvmlite")}", "rows": {{\n{text}\n}}}}\n')
