"""Windows in channels: a convolution of kernel 1 over them is the convolution itself."""

import numpy as np
import pytest
from kit.kernels.nests import LANES, SIM, conv2d, inputs_of, workload
from tilefarm.dtype import DType
from tilefarm.workload import Workload

from compile_worker.ir.interpret import interpret
from compile_worker.te import nest_of

CHANNELS = 3


def quantize(operator: str, out: tuple[int, ...], **attrs: tuple[int, ...]) -> Workload:
    image = {"x": (DType.FLOAT32, (1, CHANNELS, 9, 11))}
    return workload(operator, image, (DType.INT8, out), inv_scale=17.0, **attrs)


@pytest.mark.parametrize(
    ("kernel", "stride", "pad"),
    [((7, 7), (2, 2), (3, 3, 3, 3)), ((3, 5), (1, 3), (0, 2, 1, 1))],
    ids=["7x7 stride 2", "lopsided"],
)
def test_packed_windows_convolve_as_the_image_does(
    kernel: tuple[int, int], stride: tuple[int, int], pad: tuple[int, int, int, int]
) -> None:
    direct = conv2d(1, 2, 9, 11, kernel=kernel, stride=stride, pad=pad)
    height, width = direct.outputs[0].shape[2:4]
    taps = kernel[0] * kernel[1]
    blocks = -(-taps * CHANNELS // LANES)
    packed = conv2d(blocks, 2, height, width, kernel=(1, 1), pad=(0, 0, 0, 0))
    arrays = inputs_of(direct)
    image = {"x": np.random.default_rng(1).normal(0, 6, (1, CHANNELS, 9, 11)).astype(np.float32)}
    plain = quantize("quantize", (1, 1, 9, 11, 1, LANES))
    windows = quantize(
        "quantize_windows",
        (1, blocks, height, width, 1, LANES),
        kernel=kernel,
        stride=stride,
        pad=pad,
        dilation=(1, 1),
    )
    arrays["data"] = interpret(nest_of(plain, SIM), image)["out"]
    wanted = interpret(nest_of(direct, SIM), arrays)["out"]
    tiles = arrays["weight"].reshape(2, taps, LANES, LANES)[..., :CHANNELS]
    lanes = np.zeros((2, LANES, blocks * LANES), np.int8)
    lanes[..., : taps * CHANNELS] = tiles.transpose(0, 2, 1, 3).reshape(2, LANES, -1)
    weight = lanes.reshape(2, LANES, blocks, 1, 1, LANES).transpose(0, 2, 3, 4, 1, 5)
    data = interpret(nest_of(windows, SIM), image)["out"]
    found = interpret(nest_of(packed, SIM), {**arrays, "data": data, "weight": weight})["out"]
    np.testing.assert_array_equal(found, wanted)
