"""Functions of small stages that read one another: chains, windows, sums, transposes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from tilefarm.dtype import DType
from tilefarm.workload import TensorSpec

from compile_worker.ir.expr import And, Cast, Const, Expr, Le, Lt, Max, Min, Select, Var, index
from compile_worker.ir.func import Func
from compile_worker.te.joint import Joint, joint
from compile_worker.te.nest import nest
from compile_worker.te.scan import scan
from compile_worker.te.tensor import Reduction, Tensor, compute, largest, placeholder, total
from compile_worker.te.work import Work

INT: Final = DType.INT32
MOST_STAGES: Final = 4

Maker = Callable[[st.DrawFn, str, Sequence[Tensor]], Tensor | Work | None]


@dataclass(frozen=True, slots=True)
class Program:
    """A function and the seed of its inputs."""

    func: Func
    inputs: tuple[TensorSpec, ...]

    def arrays(self, seed: int = 0) -> dict[str, npt.NDArray[Any]]:
        rng = np.random.default_rng(seed)
        return {
            spec.name: rng.integers(-9, 9, spec.shape).astype(spec.dtype.value)
            for spec in self.inputs
        }


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Two inputs, one to four stages on what came before, and an output that reads two of them."""
    rows, columns = draw(st.integers(1, 6)), draw(st.integers(2, 6))
    specs = (
        TensorSpec("x", (rows, columns), DType.INT8),
        TensorSpec("y", (rows, columns), DType.INT32),
    )
    inputs = [placeholder(spec) for spec in specs]
    tensors = [*inputs]
    stages: list[Tensor | Work] = []
    for at in range(draw(st.integers(1, MOST_STAGES))):
        made = draw(st.sampled_from(MAKERS))(draw, f"s{at}", tensors)
        if made is not None:
            stages.append(made)
            tensors += made if isinstance(made, Work) else [made]
    return Program(nest("program", inputs, [*stages, _output(tensors)]), specs)


def _some(draw: st.DrawFn, tensors: Sequence[Tensor]) -> Tensor:
    """One of the tensors, late ones more often."""
    return draw(st.sampled_from([*tensors, *tensors[-2:], tensors[-1]]))


def _int(value: Expr) -> Expr:
    return value if value.dtype is INT else Cast(INT, value)


def _elementwise(draw: st.DrawFn, name: str, tensors: Sequence[Tensor]) -> Tensor | None:
    one = _some(draw, tensors)
    alike = [each for each in tensors if each.shape == one.shape]
    other = draw(st.sampled_from(alike))
    kind = draw(st.sampled_from(["add", "max", "min", "scale", "clip"]))

    def value(*at: Var) -> Expr:
        a, b = _int(one[at]), _int(other[at])
        match kind:
            case "add":
                return a + b
            case "max":
                return Max(a, b)
            case "min":
                return Min(a, b)
            case "scale":
                return a * 3 - 1
            case _:
                return Max(a, Const(0, INT))

    return compute(name, _axes(one.shape), value)


def _window(draw: st.DrawFn, name: str, tensors: Sequence[Tensor]) -> Tensor | None:
    image = _some(draw, tensors)
    if len(image.shape) != 2 or min(image.shape) < 2:
        return None
    kernel, stride = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    shape = tuple((size - kernel) // stride + 1 for size in image.shape)
    reduce = draw(st.sampled_from([total, largest]))

    def element(i: Var, j: Var) -> Reduction:
        return reduce(
            INT,
            {"u": kernel, "v": kernel},
            lambda u, v: _int(image[i * stride + u, j * stride + v]),
        )

    return compute(name, _axes(shape), element)


def _row_sum(draw: st.DrawFn, name: str, tensors: Sequence[Tensor]) -> Tensor | None:
    matrix = _some(draw, tensors)
    if len(matrix.shape) != 2:
        return None
    columns = matrix.shape[1]

    def element(i: Var) -> Reduction:
        return total(INT, {"k": columns}, lambda k: _int(matrix[i, k]))

    return compute(name, {"i": matrix.shape[0]}, element)


def _transposed(draw: st.DrawFn, name: str, tensors: Sequence[Tensor]) -> Tensor | None:
    matrix = _some(draw, tensors)
    if len(matrix.shape) != 2:
        return None
    return compute(name, _axes(matrix.shape[::-1]), lambda i, j: _int(matrix[j, i]))


def _padded(draw: st.DrawFn, name: str, tensors: Sequence[Tensor]) -> Tensor | None:
    line = _some(draw, tensors)
    size = line.shape[0]

    def value(i: Var, *rest: Var) -> Expr:
        inside = And(Le(index(1), i), Lt(i, index(size + 1)))
        return Select(inside, _int(line[(i - 1, *rest)]), Const(0, INT))

    return compute(name, _axes((size + 2, *line.shape[1:])), value)


def _running(draw: st.DrawFn, name: str, tensors: Sequence[Tensor]) -> Work | None:
    """A sum that goes on along the rows, of the element or of its neighbour."""
    matrix = _some(draw, tensors)
    if len(matrix.shape) != 2:
        return None
    steps, columns = matrix.shape
    shift = draw(st.integers(0, 1))
    return scan(
        name,
        steps,
        {"j": columns},
        init=lambda j: _int(matrix[0, j]),
        update=lambda before, t, j: (
            before((j + shift) % columns if shift else j) + _int(matrix[t, j])
        ),
    )


def _best(draw: st.DrawFn, name: str, tensors: Sequence[Tensor]) -> Work | None:
    """The largest element of each row, and where it is first."""
    matrix = _some(draw, tensors)
    if len(matrix.shape) != 2:
        return None
    rows, columns = matrix.shape

    def element(i: Var) -> Joint:
        return Joint(
            over={"k": columns},
            start=(Const(-1000, INT), Const(-1, INT)),
            combine=lambda old, new: (
                Max(old[0], new[0]),
                Select(Lt(old[0], new[0]), new[1], old[1]),
            ),
            elements=lambda k: (_int(matrix[i, k]), Cast(INT, k)),
        )

    return joint([name, f"{name}_at"], {"i": rows}, element)


MAKERS: Final[Sequence[Maker]] = (
    _elementwise,
    _elementwise,
    _window,
    _row_sum,
    _transposed,
    _padded,
    _running,
    _best,
)


def _output(tensors: Sequence[Tensor]) -> Tensor:
    """Reads the last stage element by element, and the inputs at a corner, so that all are used."""
    last = tensors[-1]
    x, y = tensors[:2]

    def value(*at: Var) -> Expr:
        corner = (index(0), index(0))
        return _int(last[at]) * 2 + _int(x[corner]) - y[corner]

    return compute("out", _axes(last.shape), value, scope="dram")


def _axes(shape: tuple[int, ...]) -> dict[str, int]:
    return dict(zip("ij", shape, strict=False))
