"""Single operators as ONNX nodes with random weights: how each is drawn from its sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from driver.network.examples.sketch import Sketch

Sizes: TypeAlias = Mapping[str, int]
Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OperatorGraph:
    """An operator of certain sizes.

    Attributes:
        inputs: shapes of its activations, samples first.
        output: of its result.
        draw: adds it to a network: the names of its inputs and its own in, its output's name out.
    """

    inputs: tuple[Shape, ...]
    output: Shape
    draw: Callable[[Sketch, Sequence[str], str], str]


@dataclass(frozen=True, slots=True)
class OperatorKind:
    """What can be said of an operator.

    Attributes:
        caption: what it computes.
        needed: sizes that have no default.
        defaults: of the others.
        graph: of certain sizes.
    """

    caption: str
    needed: tuple[str, ...]
    defaults: Sizes
    graph: Callable[[Sizes], OperatorGraph]


def _gemm(sizes: Sizes) -> OperatorGraph:
    m, n, k = sizes["m"], sizes["n"], sizes["k"]

    def draw(net: Sketch, inputs: Sequence[str], name: str) -> str:
        product = net.matmul(inputs[0], name, (k, n))
        return net.relu(product) if sizes["relu"] else product

    return OperatorGraph(((sizes["batch"], m, k),), (sizes["batch"], m, n), draw)


def _matmul(sizes: Sizes) -> OperatorGraph:
    batch, heads, m, n, k = (sizes[key] for key in ("batch", "heads", "m", "n", "k"))

    def draw(net: Sketch, inputs: Sequence[str], name: str) -> str:
        return net.add("MatMul", [*inputs], name)

    shapes = ((batch, heads, m, k), (batch, heads, k, n))
    return OperatorGraph(shapes, (batch, heads, m, n), draw)


def _conv2d(sizes: Sizes) -> OperatorGraph:
    def draw(net: Sketch, inputs: Sequence[str], name: str) -> str:
        made = net.conv(
            inputs[0],
            name,
            sizes["co"],
            sizes["kernel"],
            stride=sizes["stride"],
            pad=sizes["pad"],
            dilation=sizes["dilation"],
            groups=sizes["groups"],
            bias=True,
        )
        return net.relu(made) if sizes["relu"] else made

    return OperatorGraph((_image(sizes, "ci"),), _windows(sizes, "co"), draw)


def _depthwise(sizes: Sizes) -> OperatorGraph:
    channels = sizes["c"]
    return _conv2d({**sizes, "ci": channels, "co": channels, "groups": channels})


def _transposed(sizes: Sizes) -> OperatorGraph:
    def draw(net: Sketch, inputs: Sequence[str], name: str) -> str:
        window: dict[str, Any] = {"kernel_shape": [sizes["kernel"]] * 2}
        window |= {"strides": [sizes["stride"]] * 2, "pads": [sizes["pad"]] * 4}
        shape = (sizes["ci"], sizes["co"], sizes["kernel"], sizes["kernel"])
        weight = net.drawn(f"{name}.weight", shape)
        return net.add("ConvTranspose", [inputs[0], weight], name, channels=sizes["co"], **window)

    extents = (
        sizes["stride"] * (sizes[side] - 1) + sizes["kernel"] - 2 * sizes["pad"] for side in "hw"
    )
    return OperatorGraph((_image(sizes, "ci"),), (sizes["batch"], sizes["co"], *extents), draw)


def _add(sizes: Sizes) -> OperatorGraph:
    def draw(net: Sketch, inputs: Sequence[str], name: str) -> str:
        return net.add("Add", [*inputs], name)

    image = _image(sizes, "c")
    return OperatorGraph((image, image), image, draw)


def _pool(operator: str) -> Callable[[Sizes], OperatorGraph]:
    def graph(sizes: Sizes) -> OperatorGraph:
        def draw(net: Sketch, inputs: Sequence[str], name: str) -> str:
            window: dict[str, Any] = {"kernel_shape": [sizes["kernel"]] * 2}
            window |= {"strides": [sizes["stride"]] * 2, "pads": [sizes["pad"]] * 4}
            return net.add(operator, [*inputs], name, **window)

        return OperatorGraph((_image(sizes, "c"),), _windows({**sizes, "dilation": 1}, "c"), draw)

    return graph


def _softmax(sizes: Sizes) -> OperatorGraph:
    def draw(net: Sketch, inputs: Sequence[str], name: str) -> str:
        return net.add("Softmax", [*inputs], name, axis=-1)

    shape = (sizes["batch"], sizes["n"])
    return OperatorGraph((shape,), shape, draw)


def _image(sizes: Sizes, channels: str) -> Shape:
    return (sizes["batch"], sizes[channels], sizes["h"], sizes["w"])


def _windows(sizes: Sizes, channels: str) -> Shape:
    reach = sizes["dilation"] * (sizes["kernel"] - 1) + 1
    extents = ((sizes[e] + 2 * sizes["pad"] - reach) // sizes["stride"] + 1 for e in "hw")
    return (sizes["batch"], sizes[channels], *extents)


_WINDOW: Final = {"kernel": 3, "stride": 1, "pad": 0}

OPERATOR_KINDS: Final[Mapping[str, OperatorKind]] = {
    "gemm": OperatorKind(
        "[m, k] by constant [k, n]", ("m", "n", "k"), {"batch": 1, "relu": 0}, _gemm
    ),
    "matmul": OperatorKind(
        "[m, k] by [k, n], two activations", ("m", "n", "k"), {"batch": 1, "heads": 1}, _matmul
    ),
    "conv2d": OperatorKind(
        "convolution with a square window",
        ("ci", "co", "h", "w"),
        {"batch": 1, **_WINDOW, "dilation": 1, "groups": 1, "relu": 0},
        _conv2d,
    ),
    "depthwise2d": OperatorKind(
        "each channel by a window of its own",
        ("c", "h", "w"),
        {"batch": 1, **_WINDOW, "dilation": 1, "relu": 0},
        _depthwise,
    ),
    "conv2d_transpose": OperatorKind(
        "transposed convolution", ("ci", "co", "h", "w"), {"batch": 1, **_WINDOW}, _transposed
    ),
    "add": OperatorKind("of two tensors", ("c", "h", "w"), {"batch": 1}, _add),
    "max_pool2d": OperatorKind(
        "largest of a window", ("c", "h", "w"), {"batch": 1, **_WINDOW}, _pool("MaxPool")
    ),
    "avg_pool2d": OperatorKind(
        "mean of a window", ("c", "h", "w"), {"batch": 1, **_WINDOW}, _pool("AveragePool")
    ),
    "softmax": OperatorKind("over n values", ("n",), {"batch": 1}, _softmax),
}
"""By the word that stands first."""
