"""Networks of some ten megabytes and less: ResNet-18, MobileNet v1 and v2, SqueezeNet."""

from __future__ import annotations

from typing import Final

from driver.network.examples.sketch import CLASSES, Sketch


def resnet18(net: Sketch) -> str:
    """ResNet-18 (He et al., 2016) as torchvision has it: two 3x3 convolutions a block, v1."""
    stem = net.relu(net.norm(net.conv("image", "conv1", 64, 7, stride=2, pad=3)))
    x = net.max_pool(stem, "pool1", pad=1)
    for stage, co in enumerate((64, 128, 256, 512), start=1):
        for block in range(2):
            x = _basic_block(net, x, f"layer{stage}.{block}", co, 1 + (stage > 1 and block == 0))
    return net.classified(x)


def _basic_block(net: Sketch, x: str, name: str, co: int, stride: int) -> str:
    """Two convolutions and the way around them; the gain keeps sums from growing."""
    first = net.conv(x, f"{name}.conv1", co, 3, stride=stride, pad=1)
    second = net.conv(net.relu(net.norm(first)), f"{name}.conv2", co, 3, pad=1)
    around = x
    if stride > 1:
        around = net.norm(net.conv(x, f"{name}.downsample", co, 1, stride=stride))
    return net.relu(net.add("Add", [net.norm(second, gain=0.5), around], f"{name}.sum"))


_MOBILENET: Final = (
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2),
    *[(512, 1)] * 5, (1024, 2), (1024, 1),
)  # fmt: skip
"""(output channels, stride) of MobileNet's separable convolutions."""


def mobilenet_v1(net: Sketch) -> str:
    """MobileNet v1 (Howard et al., 2017), width 1: 13 depthwise and pointwise convolutions."""
    x = net.relu(net.norm(net.conv("image", "conv1", 32, 3, stride=2, pad=1)), most=6.0)
    for number, (co, stride) in enumerate(_MOBILENET, start=2):
        ci = net.channels[x]
        deep = net.conv(x, f"conv{number}.dw", ci, 3, stride=stride, pad=1, groups=ci)
        wide = net.conv(net.relu(net.norm(deep), most=6.0), f"conv{number}.pw", co, 1)
        x = net.relu(net.norm(wide), most=6.0)
    return net.classified(x)


_RESIDUALS: Final = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
    (6, 320, 1, 1),
)  # fmt: skip
"""(expansion, output channels, repetitions, first stride) of MobileNet v2's inverted residuals."""


def mobilenet_v2(net: Sketch) -> str:
    """MobileNet v2 (Sandler et al., 2018), width 1: 17 inverted residuals, ReLU6 between."""
    x = net.relu(net.norm(net.conv("image", "conv1", 32, 3, stride=2, pad=1)), most=6.0)
    number = 0
    for expansion, co, times, first in _RESIDUALS:
        for at in range(times):
            number += 1
            x = _inverted(net, x, f"block{number}", expansion, co, first if at == 0 else 1)
    return net.classified(net.relu(net.norm(net.conv(x, "last", 1280, 1)), most=6.0))


def _inverted(net: Sketch, x: str, name: str, expansion: int, co: int, stride: int) -> str:
    """Expanded, filtered by channel and projected; added to where it began if that fits."""
    ci = net.channels[x]
    wide = x
    if expansion > 1:
        expanded = net.norm(net.conv(x, f"{name}.expand", expansion * ci, 1))
        wide = net.relu(expanded, most=6.0)
    channels = net.channels[wide]
    deep = net.conv(wide, f"{name}.dw", channels, 3, stride=stride, pad=1, groups=channels)
    deep = net.relu(net.norm(deep), most=6.0)
    made = net.norm(net.conv(deep, f"{name}.project", co, 1))
    return made if stride > 1 or ci != co else net.add("Add", [made, x], f"{name}.sum")


_FIRES: Final = (
    (16, 64),
    (16, 64),
    (32, 128),
    (32, 128),
    (48, 192),
    (48, 192),
    (64, 256),
    (64, 256),
)
"""(squeezed, expanded) channels of SqueezeNet's fire modules."""


def squeezenet(net: Sketch) -> str:
    """SqueezeNet 1.1 (Iandola et al., 2016): 1x1 convolutions squeeze, 1x1 and 3x3 ones expand."""
    x = net.relu(net.conv("image", "conv1", 64, 3, stride=2, bias=True))
    for number, (few, many) in enumerate(_FIRES, start=2):
        if number in (2, 4, 6):
            x = net.max_pool(x, f"pool{number}")
        squeezed = net.relu(net.conv(x, f"fire{number}.squeeze", few, 1, bias=True))
        small = net.relu(net.conv(squeezed, f"fire{number}.one", many, 1, bias=True))
        large = net.relu(net.conv(squeezed, f"fire{number}.three", many, 3, pad=1, bias=True))
        x = net.joined([small, large], f"fire{number}")
    scores = net.relu(net.conv(x, "classes", CLASSES, 1, bias=True))
    flat = net.add("Flatten", [net.add("GlobalAveragePool", [scores], "mean")], "flat")
    return net.add("Softmax", [flat], "probability", axis=-1)
