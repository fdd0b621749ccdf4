"""The layers that are measured: ResNet-18's convolutions, and MobileNet's depthwise ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from tilefarm.dtype import DType

from driver.network import QLinearLayer, Window


def _convolution(inputs: int, outputs: int, size: int, kernel: int, stride: int) -> QLinearLayer:
    side = kernel // 2
    window = Window(kernel=(kernel, kernel), stride=(stride, stride), pad=(side, side, side, side))
    return QLinearLayer(data=(1, inputs, size, size), outputs=outputs, window=window)


def _depthwise(channels: int, size: int, stride: int) -> QLinearLayer:
    return replace(_convolution(channels, channels, size, 3, stride), depthwise=True)


RESNET18: Final[Mapping[str, QLinearLayer]] = {
    "C1": _convolution(3, 64, 224, 7, 2),
    "C2": _convolution(64, 64, 56, 3, 1),
    "C3": _convolution(64, 128, 56, 3, 2),
    "C4": _convolution(64, 128, 56, 1, 2),
    "C5": _convolution(128, 128, 28, 3, 1),
    "C6": _convolution(128, 256, 28, 3, 2),
    "C7": _convolution(128, 256, 28, 1, 2),
    "C8": _convolution(256, 256, 14, 3, 1),
    "C9": _convolution(256, 512, 14, 3, 2),
    "C10": _convolution(256, 512, 14, 1, 2),
    "C11": _convolution(512, 512, 7, 3, 1),
}
MOBILENET: Final[Mapping[str, QLinearLayer]] = {
    "D1": _depthwise(32, 112, 1),
    "D2": _depthwise(64, 112, 2),
    "D3": _depthwise(128, 56, 1),
    "D4": _depthwise(128, 56, 2),
    "D5": _depthwise(256, 28, 1),
    "D6": _depthwise(256, 28, 2),
    "D7": _depthwise(512, 14, 1),
    "D8": _depthwise(512, 14, 2),
    "D9": _depthwise(1024, 7, 1),
}
LAYERS: Final = {**RESNET18, **MOBILENET}


def of_type(layer: QLinearLayer, dtype: DType) -> QLinearLayer:
    """The layer on data of a type, as after a ReLU: 0 is zero, which oneDNN has it easiest with."""
    clip = (0, 255) if dtype is DType.UINT8 else (-128, 127)
    return replace(layer, dtype=dtype, clip=clip)


def as_in_networks(layer: QLinearLayer, dtype: DType | None) -> QLinearLayer:
    """The layer as networks have it where dot products take data of `dtype`: moved by 128.

    See `network/partition/data_signs.py`: no result changes, and neither do weights.
    """
    if dtype in (None, layer.dtype):
        return layer
    by = 128 if dtype is DType.UINT8 else -128
    clip = (layer.clip[0] + by, layer.clip[1] + by)
    return replace(layer, dtype=dtype, fill=layer.fill + by, zero=layer.zero + by, clip=clip)
