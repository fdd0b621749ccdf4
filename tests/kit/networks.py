"""Random small float networks for property tests: every operator, awkward extents."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st

from driver.graph.ir import (
    Add,
    Affine,
    AvgPool2d,
    Clip,
    Conv2d,
    Dense,
    Graph,
    GraphInput,
    GraphOutput,
    MaxPool2d,
    Node,
    Operator,
    Reshape,
    Shape,
    Softmax,
    Window,
)
from driver.graph.shapes import graph_of, result_shape


class Builder:
    """Makes a graph node by node; each method returns the new tensor's name."""

    def __init__(self, shape: Shape, name: str = "net") -> None:
        self.name = name
        self.inputs = [GraphInput(name="x", shape=shape, axes=tuple(range(len(shape))))]
        self.nodes: list[Node] = []
        self.shapes: dict[str, Shape] = {"x": shape}

    def put(self, op: Operator, *inputs: str) -> str:
        output = f"t{len(self.nodes)}"
        self.shapes[output] = result_shape(op, [self.shapes[i] for i in inputs])
        self.nodes.append(Node(name=f"n{len(self.nodes)}", op=op, inputs=inputs, output=output))
        return output

    def graph(self, *outputs: str) -> Graph:
        named = [GraphOutput(name=f"out{i}", tensor=t) for i, t in enumerate(outputs)]
        return graph_of(self.name, self.inputs, named, self.nodes)


def window(kernel: int = 3, stride: int = 1, pad: int = 0, dilation: int = 1) -> Window:
    """A square window."""
    return Window(
        kernel=(kernel, kernel), stride=(stride, stride), pad=(pad,) * 4, dilation=(dilation,) * 2
    )


def conv(rng: np.random.Generator, ci: int, co: int, w: Window) -> Conv2d:
    """A convolution with random weights of a trained network's size."""
    spread = 1 / math.sqrt(ci * w.kernel[0] * w.kernel[1])
    return Conv2d(
        weight=(rng.standard_normal((co, ci, *w.kernel)) * spread).astype(np.float32),
        bias=(rng.standard_normal(co) * 0.2).astype(np.float32),
        window=w,
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
    b = Builder((draw(st.integers(1, 3)), channels, height, width))
    name = "x"
    for _ in range(draw(st.integers(1, 4))):
        name = _random_step(draw, rng, b, name)
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


def _random_step(draw: st.DrawFn, rng: np.random.Generator, b: Builder, name: str) -> str:
    shape = b.shapes[name]
    channels, smallest = shape[1], min(shape[2:])
    kinds = ["conv", "affine", "clip", "residual"] + (["max", "avg"] if smallest >= 2 else [])
    match draw(st.sampled_from(kinds)):
        case "conv":
            co, w = draw(st.sampled_from([2, 16, 18])), _any_window(draw, smallest)
            return b.put(conv(rng, channels, co, w), name)
        case "affine":
            mul, add = (rng.standard_normal(channels).astype(np.float32) for _ in range(2))
            return b.put(Affine(mul=mul, add=add), name)
        case "clip":
            return b.put(Clip(lo=draw(st.sampled_from([0.0, -0.5])), hi=1.5), name)
        case "residual":
            branch = b.put(conv(rng, channels, channels, window(3, pad=1)), name)
            return b.put(Add(lo=0.0), branch, name)
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
