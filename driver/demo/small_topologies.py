"""Networks of some ten megabytes and less: ResNet-18, MobileNet v1, SqueezeNet."""

from __future__ import annotations

from typing import Final

from driver.demo.sketch import CLASSES, Sketch


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
