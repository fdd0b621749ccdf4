"""A network that is drawn node by node, as ONNX with seeded random weights.

Weights are drawn as He et al. (2015) do for ReLU, so that activations keep their size from layer to
layer and int8 scales mean something.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper

from driver.network.examples.onnx_file import write_model
from driver.network.graph.ir import FloatArray

CLASSES: Final = 1000
IMAGE: Final = (3, 224, 224)
_OPSET: Final = 17
_IR_VERSION: Final = 8
_DENSE_GAIN: Final = 0.25
"""Keeps the last softmax from saying one class alone."""


@dataclass(slots=True)
class Sketch:
    """A network that grows node by node. Methods take and give names of tensors."""

    rng: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: dict[str, FloatArray] = field(default_factory=dict)
    channels: dict[str, int] = field(default_factory=lambda: {"image": IMAGE[0]})

    def write(
        self,
        path: Path,
        name: str,
        inputs: Mapping[str, Sequence[int]],
        outputs: Mapping[str, Sequence[int]],
    ) -> None:
        """Write the network between tensors of these names and shapes as ONNX, in float32.

        Raises:
            OSError: the file cannot be written.
        """
        write_model(
            path,
            onnx.ModelProto(ir_version=_IR_VERSION, producer_name="tilefarm"),
            onnx.GraphProto(name=name, node=self.nodes),
            self.weights,
            onnx.GraphProto(input=_declared(inputs), output=_declared(outputs)),
            onnx.ModelProto(opset_import=self._opsets()),
        )

    def _opsets(self) -> list[onnx.OperatorSetIdProto]:
        """ONNX's own, and the first version of every other domain."""
        others = sorted({node.domain for node in self.nodes} - {""})
        return [
            helper.make_opsetid("", _OPSET),
            *(helper.make_opsetid(domain, 1) for domain in others),
        ]

    def add(
        self, operator: str, inputs: list[str], name: str, *, channels: int = 0, **attrs: Any
    ) -> str:
        """A node with one output of the node's name; its channels are those of its input if 0."""
        made = helper.make_node(operator, inputs, [name], name=name, **attrs)
        self.nodes.append(made)
        self.channels[name] = channels or self.channels[inputs[0]]
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
        dilation: int = 1,
        groups: int = 1,
        bias: bool = False,
    ) -> str:
        """A convolution with a square window."""
        shape = (co, self.channels[x] // groups, kernel, kernel)
        inputs = [x, self.drawn(f"{name}.weight", shape)]
        if bias:
            inputs.append(self._kept(f"{name}.bias", 0.1 * self.rng.standard_normal(co)))
        window: dict[str, Any] = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2}
        window |= {"pads": [pad] * 4, "group": groups}
        if dilation > 1:
            window["dilations"] = [dilation] * 2
        return self.add("Conv", inputs, name, channels=co, **window)

    def matmul(self, x: str, name: str, shape: tuple[int, int]) -> str:
        """By constant [inputs, outputs]."""
        weight = self.drawn(f"{name}.weight", shape[::-1])
        self.weights[weight] = np.ascontiguousarray(self.weights[weight].T)
        return self.add("MatMul", [x, weight], name)

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

    def joined(self, parts: list[str], name: str) -> str:
        """The channels of all parts, one after the other."""
        channels = sum(self.channels[part] for part in parts)
        return self.add("Concat", parts, name, channels=channels, axis=1)

    def max_pool(self, x: str, name: str, *, pad: int | tuple[int, ...] = 0) -> str:
        """The largest of 3x3, at every other pixel.

        `pad` is that of all sides, or (top, left, bottom, right).
        """
        pads = [pad] * 4 if isinstance(pad, int) else pad
        return self.add("MaxPool", [x], name, kernel_shape=[3, 3], strides=[2, 2], pads=pads)

    def dense(self, x: str, name: str, co: int, *, gain: float = 1.0) -> str:
        """A dense layer of flat values."""
        weight = self.drawn(f"{name}.weight", (co, self.channels[x]), gain=gain)
        bias = self._kept(f"{name}.bias", 0.1 * self.rng.standard_normal(co))
        return self.add("Gemm", [x, weight, bias], name, channels=co, transB=1)

    def classified(self, x: str) -> str:
        """Mean over pixels, a dense layer, softmax."""
        mean = self.add("GlobalAveragePool", [x], "mean")
        return self.scored(self.add("Flatten", [mean], "flat"))

    def scored(self, x: str) -> str:
        """A dense layer and softmax: the probabilities of the classes."""
        dense = self.dense(x, "dense", CLASSES, gain=_DENSE_GAIN)
        return self.add("Softmax", [dense], "probability", axis=-1)

    def drawn(self, name: str, shape: tuple[int, ...], *, gain: float = 1.0) -> str:
        """Weights [outputs, ...] in pieces: of a large layer there is no copy in float64."""
        spread = gain * np.sqrt(2.0 / np.prod(shape[1:]))
        weight = np.empty(shape, np.float32)
        for row in weight:
            row[...] = spread * self.rng.standard_normal(shape[1:])
        return self._kept(name, weight)

    def _kept(self, name: str, values: Any) -> str:
        self.weights[name] = np.asarray(values, np.float32)
        return name


def _declared(tensors: Mapping[str, Sequence[int]]) -> list[onnx.ValueInfoProto]:
    real = onnx.TensorProto.FLOAT
    return [helper.make_tensor_value_info(name, real, [*tensors[name]]) for name in tensors]
