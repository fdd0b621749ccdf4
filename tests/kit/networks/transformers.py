"""Transformer blocks as ONNX models, in the forms in which exporters write them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
from kit.networks.onnx_models import model, node
from numpy.typing import NDArray


class _Writer:
    """Collects the nodes and weights of a model; each method returns the new tensor's name."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, NDArray[Any]] = {}

    def call(self, operator: str, *inputs: str, **attrs: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(node(operator, inputs, name, **attrs))
        return name

    def constant(self, values: Any, dtype: type = np.float32) -> str:
        name = f"c{len(self.weights)}"
        self.weights[name] = np.asarray(values, dtype)
        return name

    def random(self, *shape: int, size: float = 1.0) -> str:
        return self.constant(self.rng.standard_normal(shape) * size)

    def shaped(self, name: str, *shape: int) -> str:
        return self.call("Reshape", name, self.constant(shape, np.int64))

    def linear(self, name: str, ins: int, outs: int) -> str:
        product = self.call("MatMul", name, self.random(ins, outs, size=ins**-0.5))
        return self.call("Add", product, self.random(outs, size=0.1))


def vision_transformer(
    size: int = 8, patch: int = 4, width: int = 32, heads: int = 2, *, decomposed: bool = False
) -> onnx.ModelProto:
    """Patches, a class token, positions, one block and a classifier, as PyTorch exports them.

    `decomposed` is how opsets before 17 have it: normalizations and GELU of elementary operators,
    queries and keys that are scaled before they are multiplied.
    """
    w = _Writer(0)
    tokens, count, inner = (size // patch) ** 2, (size // patch) ** 2 + 1, width // heads
    cut = w.call("Conv", "x", w.random(width, 3, patch, patch, size=0.1), strides=[patch, patch])
    flat = w.call("Transpose", w.shaped(cut, 1, width, tokens), perm=[0, 2, 1])
    whole = w.call("Concat", w.random(1, 1, width), flat, axis=1)
    x = w.call("Add", whole, w.random(1, count, width, size=0.1))

    def normalized(name: str) -> str:
        scale, offset = w.random(width), w.random(width)
        if not decomposed:
            return w.call("LayerNormalization", name, scale, offset, axis=-1)
        mean = w.call("ReduceMean", name, axes=[-1])
        away = w.call("Sub", name, mean)
        squares = w.call("Pow", away, w.constant(2.0))
        spread = w.call("Add", w.call("ReduceMean", squares, axes=[-1]), w.constant(1e-5))
        unit = w.call("Div", away, w.call("Sqrt", spread))
        return w.call("Add", w.call("Mul", unit, scale), offset)

    def gelu(name: str) -> str:
        inside = w.call("Erf", w.call("Div", name, w.constant(math.sqrt(2))))
        doubled = w.call("Mul", name, w.call("Add", inside, w.constant(1.0)))
        return w.call("Mul", doubled, w.constant(0.5))

    packed = w.shaped(w.linear(normalized(x), width, 3 * width), 1, count, 3, heads, inner)
    by_kind = w.call("Transpose", packed, perm=[2, 0, 3, 1, 4])
    query, key, value = (
        w.call("Gather", by_kind, w.constant(kind, np.int64), axis=0) for kind in range(3)
    )
    across = w.call("Transpose", key, perm=[0, 1, 3, 2])
    if decomposed:
        root = w.constant(inner**-0.25)
        scores = w.call("MatMul", w.call("Mul", query, root), w.call("Mul", across, root))
    else:
        scores = w.call("Mul", w.call("MatMul", query, across), w.constant(inner**-0.5))
    together = w.call("MatMul", w.call("Softmax", scores, axis=-1), value)
    joined = w.shaped(w.call("Transpose", together, perm=[0, 2, 1, 3]), 1, count, width)
    x = w.call("Add", x, w.linear(joined, width, width))
    x = w.call("Add", x, w.linear(gelu(w.linear(normalized(x), width, 64)), 64, width))
    first = w.call("Gather", normalized(x), w.constant(0, np.int64), axis=1)
    classes = w.call("Gemm", first, w.random(5, width), w.random(5), transB=1)
    return model(
        w.nodes, w.weights, x=(1, 3, size, size), out=classes, opset=16 if decomposed else 17
    )
