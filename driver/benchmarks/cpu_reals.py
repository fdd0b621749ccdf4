"""Operators on float32 for `tilefarm bench cpu`: those of a transformer, and a convolution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import numpy as np
from tilefarm.workload import Workload

from driver.network import (
    Add,
    Conv2d,
    MatMul,
    Normalize,
    Operator,
    Reduce,
    Shape,
    Softmax,
    Unary,
    Window,
    real_calls_of,
    real_workload,
)

_TOKENS: Final[Shape] = (1, 197, 768)


def _last_call(op: Operator, *shapes: Shape) -> Workload:
    return real_workload(real_calls_of(op, shapes)[-1])


def _conv2d() -> Workload:
    weight = np.zeros((64, 64, 3, 3), np.float32)
    window = Window(kernel=(3, 3), pad=(1, 1, 1, 1))
    op = Conv2d(weight=weight, bias=np.zeros(64, np.float32), window=window)
    return _last_call(op, (1, 64, 56, 56))


REALS: Final[Mapping[str, Callable[[], Workload]]] = {
    "real_add": partial(_last_call, Add(), _TOKENS, _TOKENS),
    "real_gelu": partial(_last_call, Unary(function="gelu"), _TOKENS),
    "real_mean": partial(_last_call, Reduce(kind="mean", axes=(2,)), _TOKENS),
    "real_normalize": partial(_last_call, Normalize(axes=(2,), epsilon=1e-5), _TOKENS),
    "real_softmax": partial(_last_call, Softmax(axis=3), (1, 12, 197, 197)),
    "real_matmul": partial(_last_call, MatMul(groups=12), (1, 768, 197), (1, 768, 197)),
    "real_conv2d": _conv2d,
}
"""Operator name -> its workload: of a ViT-B/16, and ResNet-18's second layer."""
