"""Small networks written as exporters write well-known ones: names of operators, not of weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import onnx
from kit.networks.onnx_models import model
from numpy.typing import NDArray
from onnx import helper

SHAPE: Final = (1, 3, 16, 16)


class Export:
    """Nodes and weights of one network, each tensor with a name of its own."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, NDArray[Any]] = {}
        self._rng = np.random.default_rng(3)

    def __call__(self, operator: str, *inputs: str, **attrs: Any) -> str:
        """The first output of a new node."""
        return self.several(operator, 1, *inputs, **attrs)[0]

    def several(self, operator: str, outputs: int, *inputs: str, **attrs: Any) -> list[str]:
        """All outputs of a new node."""
        names = [f"/{operator}_{len(self.nodes)}_out{at}" for at in range(outputs)]
        made = helper.make_node(operator, list(inputs), names, name=f"n{len(self.nodes)}", **attrs)
        self.nodes.append(made)
        return names

    def integers(self, *values: int) -> str:
        """A constant of int64."""
        return self._weight(np.array(values, np.int64))

    def scalar(self, value: float) -> str:
        """A constant number."""
        return self._weight(np.array(value, np.float32))

    def random(self, *shape: int) -> str:
        """A constant of random numbers, smaller the more are summed over."""
        spread = max(1, math.prod(shape[1:])) ** -0.5
        return self._weight((self._rng.standard_normal(shape) * spread).astype(np.float32))

    def positive(self, *shape: int) -> str:
        """A constant of random numbers from 0.5 to 1.5."""
        return self._weight(self._rng.uniform(0.5, 1.5, shape).astype(np.float32))

    def conv(
        self, x: str, ci: int, co: int, kernel: int | tuple[int, int] = 3, **attrs: Any
    ) -> str:
        """A convolution that keeps the image, unless it has strides."""
        kh, kw = (kernel, kernel) if isinstance(kernel, int) else kernel
        group = attrs.get("group", 1)
        attrs.setdefault("pads", [kh // 2, kw // 2, kh // 2, kw // 2])
        weight = self.random(co, ci // group, kh, kw)
        return self("Conv", x, weight, self.random(co), kernel_shape=[kh, kw], **attrs)

    def norm(self, x: str, channels: int) -> str:
        """A batch normalization."""
        scale, offset = self.positive(channels), self.random(channels)
        return self("BatchNormalization", x, scale, offset, offset, self.positive(channels))

    def relu6(self, x: str) -> str:
        """A clip from 0 to 6, the bounds as inputs."""
        return self("Clip", x, self.scalar(0), self.scalar(6))

    def classes(self, x: str, channels: int) -> str:
        """Global pooling, the flattening that exporters write, and a dense layer."""
        pooled = self("GlobalAveragePool", x)
        batch = self("Gather", self("Shape", pooled), self._zero(), axis=0)
        shape = self(
            "Concat", self("Unsqueeze", batch, self.integers(0)), self.integers(-1), axis=0
        )
        flat = self("Reshape", pooled, shape)
        return self("Gemm", flat, self.random(5, channels), self.random(5), transB=1)

    def model(self, out: str, opset: int = 17) -> onnx.ModelProto:
        """The model from `x` to that tensor."""
        return model(self.nodes, self.weights, x=SHAPE, out=out, opset=opset)

    def _zero(self) -> str:
        return self._weight(np.array(0, np.int64))

    def _weight(self, values: NDArray[Any]) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = values
        return name


def mobilenet_v2() -> onnx.ModelProto:
    """Inverted residuals with ReLU6."""
    g = Export()
    x = g.relu6(g.norm(g.conv("x", 3, 8, strides=[2, 2]), 8))
    wide = g.relu6(g.norm(g.conv(x, 8, 24, 1), 24))
    deep = g.relu6(g.norm(g.conv(wide, 24, 24, group=24), 24))
    return g.model(g.classes(g("Add", x, g.norm(g.conv(deep, 24, 8, 1), 8)), 8))


def mobilenet_v3() -> onnx.ModelProto:
    """Hard swishes written out, and squeeze-and-excite by a mean over the image."""
    g = Export()
    x = g.conv("x", 3, 16, strides=[2, 2])
    x = g("Mul", x, g("Div", g.relu6(g("Add", x, g.scalar(3))), g.scalar(6)))
    deep = g.conv(x, 16, 16, 5, group=16)
    squeezed = g("ReduceMean", deep, axes=[2, 3], keepdims=1)
    gate = g("HardSigmoid", g.conv(g("Relu", g.conv(squeezed, 16, 4, 1)), 4, 16, 1), alpha=1 / 6)
    return g.model(g.classes(g("HardSwish", g.conv(g("Mul", gate, deep), 16, 12, 1)), 12))


def efficientnet() -> onnx.ModelProto:
    """Swishes as a sigmoid and a product, squeeze-and-excite by global pooling."""
    g = Export()
    x = g.norm(g.conv("x", 3, 16, strides=[2, 2]), 16)
    x = g("Mul", x, g("Sigmoid", x))
    deep = g.norm(g.conv(x, 16, 16, group=16), 16)
    deep = g("Mul", deep, g("Sigmoid", deep))
    squeezed = g.conv(g("GlobalAveragePool", deep), 16, 4, 1)
    gate = g("Sigmoid", g.conv(g("Mul", squeezed, g("Sigmoid", squeezed)), 4, 16, 1))
    return g.model(g.classes(g("Add", x, g.conv(g("Mul", deep, gate), 16, 16, 1)), 16))


def shufflenet() -> onnx.ModelProto:
    """Channels split in halves and shuffled by a reshape, a transpose and a reshape."""
    g = Export()
    x = g(
        "MaxPool",
        g("Relu", g.conv("x", 3, 16)),
        kernel_shape=[3, 3],
        strides=[2, 2],
        pads=[1, 1, 1, 1],
    )
    left, right = g.several("Split", 2, x, g.integers(8, 8), axis=1)
    right = g("Relu", g.conv(g.conv(right, 8, 8, group=8), 8, 8, 1))
    both = g("Concat", left, right, axis=1)
    apart = g("Reshape", both, g.integers(1, 2, 8, 8, 8))
    turned = g("Transpose", apart, perm=[0, 2, 1, 3, 4])
    return g.model(g.classes(g("Reshape", turned, g.integers(1, -1, 8, 8)), 16))


def densenet() -> onnx.ModelProto:
    """Everything so far is joined and normalized before each layer."""
    g = Export()
    parts = [g.conv("x", 3, 8)]
    for at in range(3):
        joined = g("Concat", *parts, axis=1) if at else parts[0]
        channels = 8 + 4 * at
        parts.append(g.conv(g("Relu", g.norm(joined, channels)), channels, 4))
    pooled = g("AveragePool", g("Concat", *parts, axis=1), kernel_shape=[2, 2], strides=[2, 2])
    return g.model(g.classes(g("Relu", g.norm(pooled, 20)), 20))


def inception() -> onnx.ModelProto:
    """Kernels of one row or column, and pooling whose border counts."""
    g = Export()
    x = g("Relu", g.conv("x", 3, 8))
    long = g("Relu", g.conv(g("Relu", g.conv(x, 8, 8, (1, 7))), 8, 8, (7, 1)))
    pool = g("AveragePool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
    small = g("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    return g.model(g.classes(g("Concat", long, g.conv(pool, 8, 4, 1), small, axis=1), 20))


def u_net() -> onnx.ModelProto:
    """Down and up again, by a transposed convolution and by doubled pixels, with what was there."""
    g = Export()
    top = g("Relu", g.conv("x", 3, 8))
    middle = g("Relu", g.conv(g("MaxPool", top, kernel_shape=[2, 2], strides=[2, 2]), 8, 16))
    deep = g("Relu", g.conv(g("MaxPool", middle, kernel_shape=[2, 2], strides=[2, 2]), 16, 16))
    up = g("ConvTranspose", deep, g.random(16, 8, 2, 2), g.random(8), strides=[2, 2])
    x = g("Relu", g.conv(g("Concat", up, middle, axis=1), 24, 8))
    scales = g("Constant", value=helper.make_tensor("s", 1, [4], [1.0, 1.0, 2.0, 2.0]))
    wide = g(
        "Resize",
        x,
        "",
        scales,
        mode="nearest",
        nearest_mode="floor",
        coordinate_transformation_mode="asymmetric",
    )
    return g.model(g("Sigmoid", g.conv(g("Concat", wide, top, axis=1), 16, 1, 1)))


def yolo() -> onnx.ModelProto:
    """Two scales of boxes: grids added, anchors multiplied, all boxes in one list."""
    g = Export()
    x = g.conv("x", 3, 16, strides=[2, 2])
    near = g("Mul", x, g("Sigmoid", x))
    far = g("LeakyRelu", g.conv(near, 16, 16, strides=[2, 2]), alpha=0.1)
    lists = []
    for feature, extent in ((near, 8), (far, 4)):
        heads = g.conv(feature, 16, 2 * 7, 1)
        apart = g("Reshape", heads, g.integers(1, 2, 7, extent, extent))
        last = g("Sigmoid", g("Transpose", apart, perm=[0, 1, 3, 4, 2]))
        xy, wh, rest = g.several("Split", 3, last, g.integers(2, 2, 3), axis=4)
        xy = g(
            "Mul",
            g("Add", g("Mul", xy, g.scalar(2)), g.random(1, 1, extent, extent, 2)),
            g.scalar(4),
        )
        wh = g("Mul", g("Pow", g("Mul", wh, g.scalar(2)), g.scalar(2)), g.positive(1, 2, 1, 1, 2))
        boxes = g("Concat", xy, wh, rest, axis=-1)
        lists.append(g("Reshape", boxes, g.integers(1, -1, 7)))
    return g.model(g("Concat", *lists, axis=1))


EXPORTS: Final[Mapping[str, Callable[[], onnx.ModelProto]]] = {
    made.__name__: made
    for made in (
        mobilenet_v2,
        mobilenet_v3,
        efficientnet,
        shufflenet,
        densenet,
        inception,
        u_net,
        yolo,
    )
}
"""Name -> what makes the model."""
