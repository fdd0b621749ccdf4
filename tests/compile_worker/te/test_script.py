"""Scripts: the same nests as tensor expressions give, and errors that point at the source."""

from __future__ import annotations

import platform
import runpy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from kit.golden import Golden
from tilefarm.dtype import DType
from tilefarm.workload import TensorSpec

from compile_worker.ir.expr import Buffer, Const, Max
from compile_worker.ir.func import Func
from compile_worker.ir.interpret import interpret
from compile_worker.ir.parser import parse
from compile_worker.ir.printer import show
from compile_worker.ir.verify import Stage, verify
from compile_worker.te.nest import nest
from compile_worker.te.scan import scan
from compile_worker.te.script import script
from compile_worker.te.script_words import (
    Cells,
    buffer,
    float32,
    int8,
    int32,
    int64,
    parallel,
    round_even,
    select,
    unrolled,
    vectorized,
)
from compile_worker.te.tensor import Tensor, compute, placeholder, total
from compile_worker.te.work import Work

from .machine import run_compiled

INT = DType.INT32
X = placeholder(TensorSpec("x", (4, 6), INT))
Y = placeholder(TensorSpec("y", (6, 5), INT))
F = placeholder(TensorSpec("f", (4, 6), DType.FLOAT32))
OUT = Buffer("out", (4, 6), INT)
Array = npt.NDArray[Any]

STEP = 2


def arrays(*tensors: Tensor) -> dict[str, Array]:
    rng = np.random.default_rng(3)
    return {
        each.buffer.name: rng.integers(-9, 9, each.shape).astype(each.dtype.value)
        for each in tensors
    }


def func_of(inputs: Sequence[Tensor], *stages: Tensor | Work) -> Func:
    return nest("f", inputs, stages)


@script
def matmul(x: Cells, y: Cells, out: Cells) -> None:
    """Rows of x by columns of y."""
    for i in range(x.shape[0]):
        for j in range(y.shape[1]):
            out[i, j] = 0
            for k in range(x.shape[1]):
                out[i, j] += x[i, k] * y[k, j]


@script
def doubled(x: Cells, out: Cells, *, low: int) -> None:
    for i in range(4):
        for j in range(6):
            out[i, j] = max(x[i, j] * STEP, low)


@script
def summed(x: Cells, sums: Cells) -> None:
    for n in range(4):
        sums[0, n] = x[n, 0]
    for t in range(5):
        for n in range(4):
            sums[t + 1, n] = sums[t, n] + x[n, t + 1]


@script
def two_stages(x: Cells, out: Cells) -> None:
    high = buffer(int32, 4)
    for i in range(4):
        high[i] = int32(-100)
        for k in range(6):
            high[i] = max(high[i], x[i, k])
    for i in range(4):
        for j in range(6):
            out[i, j] = high[i] - x[i, j]


def _matmul() -> Tensor:
    return compute(
        "out",
        {"i": 4, "j": 5},
        lambda i, j: total(INT, {"k": 6}, lambda k: X[i, k] * Y[k, j]),
        scope="dram",
    )


def test_a_reduction_is_the_one_of_tensor_expressions() -> None:
    made = matmul([X, Y], [Buffer("out", (4, 5), INT)])
    assert func_of([X, Y], made) is func_of([X, Y], _matmul())


def test_elements_are_those_of_tensor_expressions() -> None:
    made = compute(
        "out",
        {"i": 4, "j": 6},
        lambda i, j: Max(X[i, j] * 2, Const(3, INT)),
        scope="dram",
    )
    assert func_of([X], doubled([X], [OUT], low=3)) is func_of([X], made)


def test_a_recurrence_is_the_one_of_tensor_expressions() -> None:
    made = scan(
        "sums",
        6,
        {"n": 4},
        init=lambda n: X[n, 0],
        update=lambda before, t, n: before(n) + X[n, t],
        scope="dram",
    )
    assert func_of([X], summed([X], [Buffer("sums", (6, 4), INT)])) is func_of([X], made)


@script
def statistics(x: Cells, mean: Cells, where: Cells) -> None:
    """Everything that a script can do."""
    for i in parallel(4):
        best = int32(-100)
        place = int32(0)
        whole = 0.0
        for k in unrolled(6):
            value = x[i, k]
            if value > best and not (value == 8 or value == 9):
                best = value
                place = int32(k)
            elif value < -7:
                whole -= 0.5
            else:
                whole += float32(value) / 2
        row = i * 1
        where[row] = select(place > 2, place, -place) % 5 // STEP
        mean[i] = round_even(whole) if 0 <= best <= 100 else -1.5


def _statistics(x: Array) -> tuple[Array, Array]:
    means, places = [], []
    for row in x.tolist():
        best, place, whole = -100, 0, np.float32(0)
        for k, value in enumerate(row):
            if value > best and value not in (8, 9):
                best, place = value, k
            elif value < -7:
                whole -= np.float32(0.5)
            else:
                whole += np.float32(value) / np.float32(2)
        places.append((place if place > 2 else -place) % 5 // 2)
        means.append(np.rint(whole) if 0 <= best <= 100 else -1.5)
    return np.array(means, np.float32), np.array(places, np.int32)


@script
def histogram(x: Cells, counts: Cells) -> None:
    for c in range(counts.shape[0]):
        counts[c] = 0
    for i in range(4):
        for j in range(6):
            at = int64(x[i, j] % 4)
            counts[at] += 1


@script
def blurred(x: Cells, out: Cells) -> None:
    for i in range(4):
        line = buffer(int32, 6)
        for j in vectorized(6):
            line[j] = x[i, j] >> 1
        for j in range(1, 5):
            out[i, j] = line[j - 1] + line[j + 1]
        out[i, 0] = line[0]
        out[i, 5] = line[5]


def _blurred(x: Array) -> Array:
    line = x >> 1
    out = line.copy()
    out[:, 1:5] = line[:, 0:4] + line[:, 2:6]
    return out


@script
def narrowed(x: Cells, out: Cells) -> None:
    for i in range(4):
        for j in range(6):
            if STEP > 1:
                out[i, j] = int8(min(x[i, j], 100, 5) + 3)
            else:
                out[i, j] = 0


CASES: dict[str, tuple[Callable[[], Work], Callable[[Array], Sequence[Array]]]] = {
    "two_stages": (
        lambda: two_stages([X], [OUT]),
        lambda x: (x.max(1, keepdims=True) - x,),
    ),
    "statistics": (
        lambda: statistics([X], [Buffer("mean", (4,), DType.FLOAT32), Buffer("where", (4,), INT)]),
        _statistics,
    ),
    "histogram": (
        lambda: histogram([X], [Buffer("counts", (4,), INT)]),
        lambda x: (np.bincount(x.reshape(-1) % 4, minlength=4),),
    ),
    "blurred": (lambda: blurred([X], [OUT]), lambda x: (_blurred(x),)),
    "narrowed": (
        lambda: narrowed([X], [Buffer("out", (4, 6), DType.INT8)]),
        lambda x: (np.minimum(x, 5) + 3,),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_what_python_says(case: str, golden: Golden, tmp_path: Path) -> None:
    make, wanted = CASES[case]
    func = func_of([X], make())
    verify(func, Stage.NEST)
    assert parse(show(func)) is func
    golden(show(func))
    inputs = arrays(X)
    results = [interpret(func, inputs)]
    if platform.machine() == "x86_64":
        results.append(run_compiled(tmp_path, func, inputs))
    for result in results:
        for found, array in zip(result.values(), wanted(inputs["x"]), strict=True):
            np.testing.assert_array_equal(found, array)


README = Path(__file__).parents[3] / "compile_worker" / "README.md"


@script
def extremes(f: Cells, g: Cells, out: Cells, whole: Cells) -> None:
    """Of NaN one is NaN, but where an integer is made."""
    for i in range(4):
        for j in range(6):
            out[i, j] = min(max(f[i, j], -1.0), g[i, j])
            whole[i, j] = int8(round_even(min(max(f[i, j] * 2.0, -127.0), 127.0)))
            bounded = min(max(g[i, j], -3.0), 3.0)
            whole[i, j] += int8(max(min(3.0, g[i, j]), -3.0)) + int8(round_even(bounded)) // 64


def test_extremes_of_floats_are_nan_where_one_is_but_no_integers(tmp_path: Path) -> None:
    g = placeholder(TensorSpec("g", (4, 6), DType.FLOAT32))
    outs = [Buffer("out", (4, 6), DType.FLOAT32), Buffer("whole", (4, 6), DType.INT8)]
    func = func_of([F, g], extremes([F, g], outs))
    assert parse(show(func)) is func
    special = np.array([np.nan, 1, -np.inf, np.inf], np.float32)
    inputs = {"f": np.repeat(special, 6).reshape(4, 6), "g": np.resize(special, (4, 6))}
    wanted = np.minimum(np.maximum(inputs["f"], np.float32(-1)), inputs["g"])
    f, high = (
        np.where(np.isnan(values), bound, values)
        for values, bound in ((inputs["f"], -127), (inputs["g"], 3))
    )
    low = np.where(np.isnan(inputs["g"]), -128, np.clip(inputs["g"], -3, 3)) // 64
    whole = np.clip(f * 2.0, -127, 127) + np.clip(high, -3, 3) + low
    results = [interpret(func, inputs)]
    if platform.machine() == "x86_64":
        results.append(run_compiled(tmp_path, func, inputs))
    for result in results:
        np.testing.assert_array_equal(result["out"], wanted)
        np.testing.assert_array_equal(result["whole"], whole.astype(np.int8))


def test_the_example_of_the_readme(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = README.read_text().split("```python\n")[1:]
    example = next(block.split("```")[0] for block in blocks if "@script" in block)
    file = tmp_path / "example.py"
    file.write_text(example)
    runpy.run_path(str(file))
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines[3:6] == ["for out_i in 4", "for out_k in 8", "block out over out_k"]
