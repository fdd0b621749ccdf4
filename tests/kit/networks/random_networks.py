"""Random small float networks for property tests: every operator, awkward extents."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from driver.network.graph.ir import (
    Add,
    Affine,
    AvgPool2d,
    Clip,
    Concat,
    Conv2d,
    ConvTranspose2d,
    Dense,
    Gather,
    Graph,
    GraphInput,
    GraphNode,
    GraphOutput,
    MaxPool2d,
    Normalize,
    Operator,
    Product,
    Reduce,
    Reshape,
    Shape,
    Slice,
    Slopes,
    Softmax,
    Unary,
    Window,
)
from driver.network.graph.shapes import graph_of, result_shape


class Builder:
    """Makes a graph node by node; each method returns the new tensor's name."""

    def __init__(self, shape: Shape, name: str = "net") -> None:
        self.name = name
        self.inputs = [GraphInput(name="x", shape=shape, axes=tuple(range(len(shape))))]
        self.nodes: list[GraphNode] = []
        self.shapes: dict[str, Shape] = {"x": shape}

    def put(self, op: Operator, *inputs: str) -> str:
        output = f"t{len(self.nodes)}"
        self.shapes[output] = result_shape(op, [self.shapes[i] for i in inputs])
        self.nodes.append(
            GraphNode(name=f"n{len(self.nodes)}", op=op, inputs=inputs, output=output)
        )
        return output

    def graph(self, *outputs: str) -> Graph:
        named = [GraphOutput(name=f"out{i}", tensor=t) for i, t in enumerate(outputs)]
        return graph_of(self.name, self.inputs, named, self.nodes)


def window(kernel: int = 3, stride: int = 1, pad: int = 0, dilation: int = 1) -> Window:
    """A square window."""
    return Window(
        kernel=(kernel, kernel), stride=(stride, stride), pad=(pad,) * 4, dilation=(dilation,) * 2
    )


def conv(rng: np.random.Generator, ci: int, co: int, w: Window, groups: int = 1) -> Conv2d:
    """A convolution with random weights of a trained network's size."""
    spread = 1 / math.sqrt(ci // groups * w.kernel[0] * w.kernel[1])
    return Conv2d(
        weight=(rng.standard_normal((co, ci // groups, *w.kernel)) * spread).astype(np.float32),
        bias=(rng.standard_normal(co) * 0.2).astype(np.float32),
        window=w,
        groups=groups,
    )


def transposed(
    rng: np.random.Generator, ci: int, co: int, stride: tuple[int, int], kernel: tuple[int, int]
) -> ConvTranspose2d:
    """A transposed convolution with random weights, zeros on all sides but the first."""
    spread = 1 / math.sqrt(ci * kernel[0] * kernel[1])
    weight = rng.standard_normal((co, *stride, ci, *kernel)) * spread
    return ConvTranspose2d(
        weight=weight.astype(np.float32),
        bias=(rng.standard_normal(co) * 0.2).astype(np.float32),
        pad=(0, 1, kernel[0] - 1, kernel[1] - 1),
    )


def dense(rng: np.random.Generator, ci: int, co: int) -> Dense:
    """A dense layer with random weights."""
    return Dense(
        weight=(rng.standard_normal((co, ci)) / math.sqrt(ci)).astype(np.float32),
        bias=(rng.standard_normal(co) * 0.2).astype(np.float32),
    )


@st.composite
def networks(draw: st.DrawFn) -> tuple[Graph, int]:
    """A graph of a few random operators that ends in a dense layer or not, and a seed."""
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    channels = draw(st.sampled_from([1, 3, 16, 17]))
    height, width = draw(st.integers(4, 9)), draw(st.integers(4, 9))
    batch = draw(st.integers(1, 3))
    b = Builder((batch, channels, height, width))
    name = "x"
    for _ in range(draw(st.integers(1, 4))):
        name = _random_step(draw, rng, b, name, list(KINDS))
    ending = draw(st.sampled_from(["image", "flat", "dense", "softmax"]))
    if ending == "image":
        return b.graph(name), seed
    features = math.prod(b.shapes[name][1:])
    name = b.put(Reshape(shape=(features,)), name)
    if ending != "flat":
        name = b.put(dense(rng, features, draw(st.sampled_from([3, 20]))), name)
    if ending == "softmax":
        name = b.put(Softmax(), name)
    return b.graph(name), seed


@st.composite
def layer_chains(draw: st.DrawFn) -> tuple[Graph, int]:
    """Convolutions, in groups or not, that read one another, then dense layers; and a seed."""
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    channels, extent = draw(st.sampled_from([1, 3, 16, 17])), draw(st.integers(3, 7))
    b = Builder((draw(st.integers(1, 3)), channels, extent, extent))
    name = "x"
    for _ in range(draw(st.integers(1, 4))):
        kernel, ci = draw(st.sampled_from([1, 3])), b.shapes[name][1]
        w = window(kernel, stride=draw(st.integers(1, 2)), pad=kernel // 2)
        groups = draw(st.sampled_from([g for g in (1, 1, 4, ci) if ci % g == 0]))
        co = groups * draw(st.integers(1, 3)) if groups > 1 else draw(st.sampled_from([5, 16, 20]))
        op = conv(rng, ci, co, w, groups)
        name = b.put(replace(op, lo=0.0) if draw(st.booleans()) else op, name)
    name = b.put(Reshape(shape=(math.prod(b.shapes[name][1:]),)), name)
    for _ in range(draw(st.integers(1, 2))):
        name = b.put(dense(rng, b.shapes[name][1], draw(st.sampled_from([3, 20]))), name)
    return b.graph(name), seed


KINDS = (
    *("conv", "grouped", "transposed", "affine", "clip", "residual", "max", "avg"),
    *("concat", "shuffle", "slice"),
    *("function", "slopes", "product", "difference", "gather", "along"),
)


def _random_step(
    draw: st.DrawFn, rng: np.random.Generator, b: Builder, name: str, kinds: list[str]
) -> str:
    shape = b.shapes[name]
    channels, smallest = shape[1], min(shape[2:])
    if smallest < 2:
        kinds = [kind for kind in kinds if kind not in ("max", "avg")]
    match draw(st.sampled_from(kinds)):
        case "grouped":
            groups = draw(st.sampled_from([g for g in (2, 3, 8, channels) if channels % g == 0]))
            co = groups * draw(st.integers(1, 3))
            return b.put(conv(rng, channels, co, _any_window(draw, smallest), groups), name)
        case "transposed":
            sizes = st.tuples(st.integers(1, 2), st.integers(1, 2))
            return b.put(transposed(rng, channels, 5, draw(sizes), draw(sizes)), name)
        case "concat":
            co = draw(st.sampled_from([3, 16]))
            branch = b.put(conv(rng, channels, co, window(3, pad=1)), name)
            order = draw(st.permutations([name, branch, branch]))
            return b.put(Concat(), *order[: draw(st.integers(2, 3))])
        case "shuffle":
            cut = draw(st.integers(1, max(1, channels - 1)))
            if cut == channels:
                return name
            halves = Slice(start=cut, stop=channels), Slice(start=0, stop=cut)
            return b.put(Concat(), *(b.put(half, name) for half in halves))
        case "slice":
            start = draw(st.sampled_from([0, min(16, channels - 1)]))
            return b.put(Slice(start=start, stop=draw(st.integers(start + 1, channels))), name)
        case "conv":
            co, w = draw(st.sampled_from([2, 16, 18])), _any_window(draw, smallest)
            return b.put(conv(rng, channels, co, w), name)
        case "affine":
            mul, add = (rng.standard_normal(channels).astype(np.float32) for _ in range(2))
            return b.put(Affine(weight=mul, bias=add), name)
        case "clip":
            return b.put(Clip(lo=draw(st.sampled_from([0.0, -0.5])), hi=1.5), name)
        case "residual":
            branch = b.put(conv(rng, channels, channels, window(3, pad=1)), name)
            return b.put(Add(lo=0.0), branch, name)
        case "function":
            return b.put(Unary(function=draw(st.sampled_from(["sigmoid", "cos", "gelu"]))), name)
        case "slopes":
            return b.put(Slopes(slope=rng.standard_normal(channels).astype(np.float32)), name)
        case "product" | "difference" as kind:
            branch = b.put(Clip(lo=0.5, hi=1.5), name)
            if kind == "difference":
                return b.put(Add(subtracts=True), name, branch)
            return b.put(Product(divides=draw(st.booleans())), name, branch)
        case "gather":
            extents = draw(st.sampled_from([(3, 2, 4), (17, 2, 2), (16, 5, 3)]))
            index = rng.integers(-1, math.prod(shape[1:]), extents, np.int32)
            return b.put(Gather(index=index), name)
        case "along":
            axes = draw(st.sampled_from([(1,), (3,), (2, 3)]))
            largest = b.put(Reduce(kind="max", axes=axes), name)
            beside = b.put(Add(subtracts=True), name, largest)
            is_softmax = draw(st.booleans())
            softmax, normalize = Softmax(axis=axes[0]), Normalize(axes=axes, epsilon=0.01)
            return b.put(softmax if is_softmax else normalize, beside)
        case "max":
            return b.put(MaxPool2d(window=window(2, stride=draw(st.integers(1, 2)))), name)
    w = window(2, stride=draw(st.integers(1, 2)), pad=draw(st.integers(0, 1)))
    places = w.positions(shape[2], shape[3])
    return b.put(AvgPool2d(window=w, divisor=np.full(places, 4, np.float32)), name)


def _any_window(draw: st.DrawFn, smallest: int) -> Window:
    """A window that fits an image whose shorter side is `smallest`."""
    kernel = draw(st.integers(1, min(3, smallest)))
    pad = draw(st.tuples(*[st.integers(0, 2)] * 4))
    return Window(
        kernel=(kernel, kernel),
        stride=draw(st.tuples(st.integers(1, 2), st.integers(1, 2))),
        pad=pad,
    )


def samples_for(graph: Graph, seed: int, count: int = 6) -> dict[str, np.ndarray]:
    """Random float32 inputs for so many samples."""
    rng = np.random.default_rng(seed)
    return {
        i.name: rng.standard_normal((count, *i.shape[1:])).astype(np.float32) for i in graph.inputs
    }
