"""Float operators of the integer network, each with parameters and operands of small shapes."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from kit.networks.random_networks import conv, dense, transposed
from numpy.typing import NDArray

from driver.network.graph.ir import (
    Add,
    Affine,
    AvgPool2d,
    Clip,
    Concat,
    Extreme,
    Gather,
    MatMul,
    MaxPool2d,
    Normalize,
    Operator,
    Product,
    Reduce,
    Shape,
    Slice,
    Slopes,
    Softmax,
    Take,
    Unary,
    Window,
)

_IMAGE: Shape = (2, 6, 5, 4)
_FUNCTIONS = [
    Unary(function="gelu"),
    Unary(function="log"),
    Unary(function="mish"),
    Unary(function="power", parameters=(-0.5,)),
    Unary(function="elu", parameters=(1.2,)),
    Unary(function="round"),
]
_WINDOW = Window(kernel=(2, 3), stride=(2, 1), pad=(1, 0, 1, 2))
KINDS = (
    *("conv", "transposed", "dense", "matmul", "binary", "affine", "clip", "function", "slopes"),
    *("gather", "take", "slice", "concat", "max pool", "avg pool", "along axes"),
)


@st.composite
def reals(draw: st.DrawFn, rng: np.random.Generator) -> tuple[Operator, tuple[Shape, ...]]:
    """A float operator and the shapes of its operands."""
    match draw(st.sampled_from(KINDS)):
        case "conv":
            groups, kernel = draw(st.sampled_from([(1, 1), (2, 3), (6, 2)]))
            window = Window(kernel=(kernel, kernel), pad=(kernel // 2,) * 4)
            return conv(rng, 6, 12, window, groups), (_IMAGE,)
        case "transposed":
            return transposed(rng, 6, 5, (2, 3), (2, 1)), (_IMAGE,)
        case "dense":
            return dense(rng, 20, draw(st.sampled_from([1, 17]))), ((2, 20),)
        case "matmul":
            return MatMul(groups=2, scale=draw(st.sampled_from([1.0, 0.3]))), ((2, 6, 5), (2, 6, 4))
        case "binary":
            binary: list[Operator] = [
                Add(lo=0.0),
                Add(subtracts=True),
                Product(divides=True),
                Extreme(kind="max"),
                Extreme(kind="min"),
            ]
            op = draw(st.sampled_from(binary))
            other = draw(st.sampled_from([_IMAGE, (2, 6, 1, 1), (2, 1, 5, 1), (2, 1, 1, 1)]))
            return op, draw(st.permutations([_IMAGE, other]).map(tuple))
        case "affine":
            return Affine(weight=_six(rng), bias=_six(rng), hi=1.0), (_IMAGE,)
        case "clip":
            return Clip(lo=draw(st.sampled_from([-np.inf, -0.5])), hi=0.5), (_IMAGE,)
        case "function":
            return draw(st.sampled_from(_FUNCTIONS)), (_IMAGE,)
        case "slopes":
            return Slopes(slope=_six(rng)), (_IMAGE,)
        case "gather":
            return Gather(index=rng.integers(-1, 120, (3, 7), np.int32)), (_IMAGE,)
        case "take":
            table = rng.standard_normal((5, 9)).astype(np.float32)
            own: tuple[Operator, tuple[Shape, ...]] = Take(), ((2, 7), (2, 3, 4))
            return draw(st.sampled_from([own, (Take(table=table), ((2, 7),))]))
        case "slice":
            return Slice(start=2, stop=5), (_IMAGE,)
        case "concat":
            return Concat(), (_IMAGE, (2, 1, 5, 4), _IMAGE)
        case "max pool":
            return MaxPool2d(window=_WINDOW), (_IMAGE,)
        case "avg pool":
            divisor = rng.uniform(1, 6, _WINDOW.positions(*_IMAGE[2:])).astype(np.float32)
            return AvgPool2d(window=_WINDOW, divisor=divisor), (_IMAGE,)
    axes = draw(st.sampled_from([(1,), (3,), (2, 3), (1, 3), (1, 2, 3)]))
    along: list[Operator] = [
        *(Reduce(kind=kind, axes=axes) for kind in ("sum", "mean", "max", "min", "prod")),
        *(Normalize(axes=axes, epsilon=1e-5, centered=centered) for centered in (True, False)),
        Softmax(axis=axes[0]),
        Softmax(axis=axes[0], log=True),
    ]
    return draw(st.sampled_from(along)), (_IMAGE,)


def _six(rng: np.random.Generator) -> NDArray[np.float32]:
    return rng.standard_normal(6).astype(np.float32)
