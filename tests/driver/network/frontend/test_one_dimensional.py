"""Windows over one axis, and transposed convolutions of any extent, against ONNX's evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from kit.networks.onnx_models import model, node
from numpy.typing import NDArray

from .importing import agrees_with_onnx

RNG = np.random.default_rng(5)


def f32(*shape: int) -> NDArray[np.float32]:
    return RNG.standard_normal(shape).astype(np.float32)


CASES: dict[str, tuple[onnx.NodeProto, dict[str, NDArray[Any]]]] = {
    "conv": (
        node("Conv", ["x", "w", "b"], "y", strides=[2], pads=[2, 1], dilations=[2]),
        {"w": f32(5, 4, 3), "b": f32(5)},
    ),
    "conv_of_groups": (
        node("Conv", ["x", "w"], "y", group=4, auto_pad="SAME_UPPER", kernel_shape=[3]),
        {"w": f32(8, 1, 3)},
    ),
    "conv_transpose": (
        node("ConvTranspose", ["x", "w"], "y", strides=[3], output_padding=[1]),
        {"w": f32(4, 2, 4)},
    ),
    "max_pool": (node("MaxPool", ["x"], "y", kernel_shape=[3], strides=[2], ceil_mode=1), {}),
    "average_pool": (node("AveragePool", ["x"], "y", kernel_shape=[2], pads=[1, 0]), {}),
    "global_pool": (node("GlobalAveragePool", ["x"], "y"), {}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_window_over_one_axis(case: str, tmp_path: Path) -> None:
    made, weights = CASES[case]
    agrees_with_onnx(model([made], weights, x=(2, 4, 9)), tmp_path)


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_a_transposed_convolution_whose_last_stride_is_cut_off(stride: int, tmp_path: Path) -> None:
    made = node("ConvTranspose", ["x", "w"], "y", strides=[stride, 2], pads=[1, 0, 0, 1])
    agrees_with_onnx(model([made], {"w": f32(3, 2, 3, 3)}, x=(1, 3, 4, 5)), tmp_path)
