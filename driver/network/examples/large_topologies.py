"""Networks of many layers or many weights: ResNet-50, DenseNet-121, Inception v1, VGG-19."""

from __future__ import annotations

from typing import Any, Final

from driver.network.examples.sketch import Sketch

_RESNET: Final = ((64, 3), (128, 4), (256, 6), (512, 3))
"""(channels of the 3x3 convolutions, blocks) of ResNet-50's stages."""
_WIDENED: Final = 4
"""Output channels of a bottleneck, by those of its 3x3 convolution."""


def resnet50(net: Sketch) -> str:
    """ResNet-50 (He et al., 2016) as torchvision has it: strides in the 3x3 convolutions."""
    stem = net.relu(net.norm(net.conv("image", "conv1", 64, 7, stride=2, pad=3)))
    x = net.max_pool(stem, "pool1", pad=1)
    for stage, (co, blocks) in enumerate(_RESNET, start=1):
        for block in range(blocks):
            stride = 1 + (stage > 1 and block == 0)
            x = _bottleneck(net, x, f"layer{stage}.{block}", co, stride)
    return net.classified(x)


def _bottleneck(net: Sketch, x: str, name: str, co: int, stride: int) -> str:
    """1x1, 3x3 and 1x1 convolutions and the way around them; the gain keeps sums from growing."""
    down = net.relu(net.norm(net.conv(x, f"{name}.conv1", co, 1)))
    middle = net.relu(net.norm(net.conv(down, f"{name}.conv2", co, 3, stride=stride, pad=1)))
    up = net.norm(net.conv(middle, f"{name}.conv3", _WIDENED * co, 1), gain=0.5)
    around = x
    if net.channels[x] != _WIDENED * co:
        around = net.norm(net.conv(x, f"{name}.downsample", _WIDENED * co, 1, stride=stride))
    return net.relu(net.add("Add", [up, around], f"{name}.sum"))


_DENSENET: Final = (6, 12, 24, 16)
"""Layers in each of DenseNet-121's blocks."""
_GROWTH: Final = 32
_BOTTLENECK: Final = 4
"""Channels between the two convolutions of a layer, by those that it adds."""


def densenet121(net: Sketch) -> str:
    """DenseNet-121 (Huang et al., 2017): each layer reads what all layers of its block made."""
    stem = net.relu(net.norm(net.conv("image", "conv0", 64, 7, stride=2, pad=3)))
    x = net.max_pool(stem, "pool0", pad=1)
    for number, layers in enumerate(_DENSENET, start=1):
        for layer in range(1, layers + 1):
            x = _dense_layer(net, x, f"block{number}.{layer}")
        if number < len(_DENSENET):
            x = _transition(net, x, f"transition{number}")
    return net.classified(net.relu(net.norm(x)))


def _dense_layer(net: Sketch, x: str, name: str) -> str:
    """`x` and, behind its channels, a few more that are made of them all."""
    narrow = net.conv(net.relu(net.norm(x)), f"{name}.conv1", _BOTTLENECK * _GROWTH, 1)
    added = net.conv(net.relu(net.norm(narrow)), f"{name}.conv2", _GROWTH, 3, pad=1)
    return net.joined([x, added], name)


def _transition(net: Sketch, x: str, name: str) -> str:
    """Half the channels, half the rows and columns."""
    half = net.conv(net.relu(net.norm(x)), f"{name}.conv", net.channels[x] // 2, 1)
    return net.add("AveragePool", [half], f"{name}.pool", kernel_shape=[2, 2], strides=[2, 2])


_INCEPTION: Final = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}
"""Channels of a module: 1x1; 3x3 and what is before it; 5x5 and before it; behind the pooling."""
_CEILED: Final = (0, 0, 1, 1)
"""One row and column more at the end: Caffe rounds the sizes of pooled images up."""
_NORMALIZED: Final[dict[str, Any]] = {"size": 5, "alpha": 1e-4, "beta": 0.75, "bias": 1.0}


def inception_v1(net: Sketch) -> str:
    """Inception v1, GoogLeNet (Szegedy et al., 2015), as Caffe has it, without its side exits."""
    x = net.max_pool(_layer(net, "image", "conv1", 64, 7, stride=2), "pool1", pad=_CEILED)
    x = net.add("LRN", [x], "norm1", **_NORMALIZED)
    x = _layer(net, _layer(net, x, "conv2.reduce", 64, 1), "conv2", 192, 3)
    x = net.max_pool(net.add("LRN", [x], "norm2", **_NORMALIZED), "pool2", pad=_CEILED)
    for name, channels in _INCEPTION.items():
        if name in ("4a", "5a"):
            x = net.max_pool(x, f"pool{name}", pad=_CEILED)
        x = _module(net, x, f"inception{name}", channels)
    mean = net.add("AveragePool", [x], "mean", kernel_shape=[7, 7])
    flat = net.add("Flatten", [net.add("Dropout", [mean], "dropout")], "flat")
    return net.scored(flat)


def _layer(net: Sketch, x: str, name: str, co: int, kernel: int, *, stride: int = 1) -> str:
    """A convolution that keeps the size, or divides it by its stride, and a ReLU."""
    pad = kernel // 2
    return net.relu(net.conv(x, name, co, kernel, stride=stride, pad=pad, bias=True))


def _module(net: Sketch, x: str, name: str, channels: tuple[int, ...]) -> str:
    """Four ways side by side, joined."""
    one, before_three, three, before_five, five, behind_pool = channels
    pooled = net.add("MaxPool", [x], f"{name}.pool", kernel_shape=[3, 3], pads=[1] * 4)
    narrow = _layer(net, x, f"{name}.three.reduce", before_three, 1)
    narrower = _layer(net, x, f"{name}.five.reduce", before_five, 1)
    parts = [
        _layer(net, x, f"{name}.one", one, 1),
        _layer(net, narrow, f"{name}.three", three, 3),
        _layer(net, narrower, f"{name}.five", five, 5),
        _layer(net, pooled, f"{name}.project", behind_pool, 1),
    ]
    return net.joined(parts, name)


_VGG: Final = ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4))
"""(channels, convolutions) between VGG-19's poolings."""
_VGG_DENSE: Final = 4096
_VGG_PIXELS: Final = 7 * 7


def vgg19(net: Sketch) -> str:
    """VGG-19 (Simonyan and Zisserman, 2015): 144 million weights, 103 million of them in fc6."""
    x = "image"
    for stage, (co, layers) in enumerate(_VGG, start=1):
        for layer in range(1, layers + 1):
            x = _layer(net, x, f"conv{stage}_{layer}", co, 3)
        x = net.add("MaxPool", [x], f"pool{stage}", kernel_shape=[2, 2], strides=[2, 2])
    x = net.add("Flatten", [x], "flat", channels=_VGG_PIXELS * net.channels[x])
    for name in ("fc6", "fc7"):
        x = net.add("Dropout", [net.relu(net.dense(x, name, _VGG_DENSE))], f"{name}.dropout")
    return net.scored(x)
