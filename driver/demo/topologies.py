"""Well-known networks as ONNX with seeded random weights: true shapes, meaningless answers.

Weights are drawn as He et al. (2015) do for ReLU, so that activations keep their size from layer to
layer and int8 scales mean something. The same name and seed give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import onnx
from onnx import helper, numpy_helper

from driver.graph.ir import FloatArray

_OPSET: Final = 17
_IR_VERSION: Final = 8
_CLASSES: Final = 1000
_IMAGE: Final = (3, 224, 224)
_DENSE_GAIN: Final = 0.25
"""Keeps the last softmax from saying one class alone."""

_COARSE: Final = (7, 28, 112)
"""Sizes of the random patterns that a calibration image is made of, besides single pixels."""


@dataclass(slots=True)
class Sketch:
    """A network that grows node by node. Methods take and give names of tensors."""

    rng: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: dict[str, FloatArray] = field(default_factory=dict)
    channels: dict[str, int] = field(default_factory=lambda: {"image": _IMAGE[0]})

    def add(self, operator: str, inputs: list[str], name: str, **attrs: Any) -> str:
        """A node with one output of the node's name, which keeps the channels of its input."""
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attrs))
        self.channels[name] = self.channels[inputs[0]]
        return name

    def conv(
        self,
        x: str,
        name: str,
        co: int,
        kernel: int,
        *,
        stride: int = 1,
        pad: int = 0,
        groups: int = 1,
        bias: bool = False,
    ) -> str:
        """A convolution with a square window."""
        shape = (co, self.channels[x] // groups, kernel, kernel)
        inputs = [x, self._drawn(f"{name}.weight", shape)]
        if bias:
            inputs.append(self._kept(f"{name}.bias", 0.1 * self.rng.standard_normal(co)))
        window: dict[str, Any] = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2}
        made = self.add("Conv", inputs, name, **window, pads=[pad] * 4, group=groups)
        self.channels[made] = co
        return made

    def norm(self, x: str, *, gain: float = 1.0) -> str:
        """Batch normalization with statistics near those of a trained layer."""
        count, name = self.channels[x], f"{x}.norm"
        draw = self.rng.standard_normal
        parameters = {
            "scale": gain * (1 + 0.1 * draw(count)),
            "shift": 0.1 * draw(count),
            "mean": 0.1 * draw(count),
            "variance": np.exp(0.1 * draw(count)),
        }
        inputs = [self._kept(f"{name}.{key}", values) for key, values in parameters.items()]
        return self.add("BatchNormalization", [x, *inputs], name)

    def relu(self, x: str, *, most: float | None = None) -> str:
        """max(x, 0), and at most `most`."""
        if most is None:
            return self.add("Relu", [x], f"{x}.relu")
        limits = [self._kept(f"{x}.least", np.zeros(())), self._kept(f"{x}.most", np.array(most))]
        return self.add("Clip", [x, *limits], f"{x}.relu")

    def max_pool(self, x: str, name: str, *, pad: int = 0) -> str:
        """The largest of 3x3, at every other pixel."""
        return self.add("MaxPool", [x], name, kernel_shape=[3, 3], strides=[2, 2], pads=[pad] * 4)

    def classified(self, x: str) -> str:
        """Mean over pixels, a dense layer, softmax."""
        mean = self.add("GlobalAveragePool", [x], "mean")
        flat = self.add("Flatten", [mean], "flat")
        weight = self._drawn("dense.weight", (_CLASSES, self.channels[flat]), gain=_DENSE_GAIN)
        bias = self._kept("dense.bias", 0.1 * self.rng.standard_normal(_CLASSES))
        dense = self.add("Gemm", [flat, weight, bias], "dense", transB=1)
        return self.add("Softmax", [dense], "probability", axis=-1)

    def _drawn(self, name: str, shape: tuple[int, ...], *, gain: float = 1.0) -> str:
        spread = gain * np.sqrt(2.0 / np.prod(shape[1:]))
        return self._kept(name, spread * self.rng.standard_normal(shape))

    def _kept(self, name: str, values: Any) -> str:
        self.weights[name] = np.asarray(values, np.float32)
        return name


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
        x = net.add("Concat", [small, large], f"fire{number}", axis=1)
        net.channels[x] = 2 * many
    scores = net.relu(net.conv(x, "classes", _CLASSES, 1, bias=True))
    flat = net.add("Flatten", [net.add("GlobalAveragePool", [scores], "mean")], "flat")
    return net.add("Softmax", [flat], "probability", axis=-1)


Drawer: TypeAlias = Callable[[Sketch], str]

TOPOLOGIES: Final[Mapping[str, Drawer]] = {
    "resnet18": resnet18,
    "mobilenet_v1": mobilenet_v1,
    "squeezenet": squeezenet,
}
"""Name of the network: what draws it and gives its output."""


def topology(name: str, *, seed: int = 0) -> bytes:
    """The ONNX file of one of TOPOLOGIES: 1x3x224x224 images to 1000 probabilities."""
    net = Sketch(np.random.default_rng(seed))
    output = TOPOLOGIES[name](net)
    image = helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, [1, *_IMAGE])
    chance = helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, [1, _CLASSES])
    weights = [numpy_helper.from_array(values, key) for key, values in net.weights.items()]
    graph = helper.make_graph(net.nodes, name, [image], [chance], weights)
    opset = [helper.make_opsetid("", _OPSET)]
    model = helper.make_model(graph, opset_imports=opset, producer_name="tilefarm")
    model.ir_version = _IR_VERSION
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString(deterministic=True))


def images(samples: int, *, seed: int = 0) -> FloatArray:
    """Random pictures [samples, 3, 224, 224] of unit spread: coarse patterns and single pixels."""
    rng = np.random.default_rng([seed, 1])
    size = _IMAGE[1]
    total = rng.standard_normal((samples, *_IMAGE))
    for coarse in _COARSE:
        pattern = rng.standard_normal((samples, _IMAGE[0], coarse, coarse))
        total += np.kron(pattern, np.ones((size // coarse, size // coarse)))
    return np.asarray(total / total.std(), np.float32)
