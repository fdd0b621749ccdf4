"""Which workloads are near to one another."""

from __future__ import annotations

import math
from dataclasses import replace

from kit.search.stand_ins import toy_workload
from tilefarm.dtype import DType
from tilefarm.workload import TensorSpec, Workload

from tuner.workload_distance import distance


def conv(channels: int, size: int, *, stride: int = 1, hi: int = 127) -> Workload:
    out = size // stride
    return Workload(
        "conv2d",
        (
            TensorSpec("data", (1, channels, size, size, 1, 16), DType.INT8),
            TensorSpec("weight", (channels, channels, 3, 3, 16, 16), DType.INT8),
        ),
        (TensorSpec("out", (1, channels, out, out, 1, 16), DType.INT8),),
        (("lo", -128), ("hi", hi), ("stride", (stride, stride)), ("pad", (1, 1, 1, 1))),
    )


def test_clips_are_no_difference_and_extents_are() -> None:
    one = conv(4, 28)
    assert distance(one, one) == 0
    assert distance(one, conv(4, 28, hi=63)) == 0
    assert distance(one, conv(4, 56)) == distance(conv(4, 56), one) == 4
    assert distance(one, conv(4, 28, stride=2)) == 3
    assert distance(one, conv(8, 28)) == 4


def test_other_operators_and_forms_share_nothing() -> None:
    one = conv(4, 28)
    assert distance(one, toy_workload()) == math.inf
    wide = replace(one.inputs[0], dtype=DType.UINT8)
    assert distance(one, replace(one, inputs=(wide, *one.inputs[1:]))) == math.inf
    flat = replace(one.inputs[0], shape=(1, 4))
    assert distance(one, replace(one, inputs=(flat, *one.inputs[1:]))) == math.inf
