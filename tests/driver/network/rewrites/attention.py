"""A transformer block as exporters write it: channels last, heads on an axis of their own."""

from __future__ import annotations

import math

import numpy as np
from kit.networks.random_networks import Builder, conv, window

from driver.network.graph.ir import (
    Add,
    Affine,
    Gather,
    Graph,
    MatMul,
    Normalize,
    Reshape,
    Shape,
    Softmax,
    Unary,
)


class Tokens(Builder):
    """Makes a graph on tensors [N, S, C], each operator with the moves that an importer adds."""

    def __init__(self, shape: Shape, seed: int = 0) -> None:
        super().__init__(shape, "tokens")
        self.rng = np.random.default_rng(seed)

    def shaped(self, name: str, *shape: int) -> str:
        """A reshape, without the batch axis."""
        return self.put(Reshape(shape=shape), name)

    def turned(self, name: str, *perm: int) -> str:
        """A transpose that leaves the batch axis in front: `perm` begins with 0."""
        shape = self.shapes[name][1:]
        places = np.arange(math.prod(shape), dtype=np.int32).reshape(1, *shape)
        return self.put(Gather(index=np.ascontiguousarray(places.transpose(perm)[0])), name)

    def linear(self, name: str, width: int) -> str:
        """A product with a constant matrix along the last axis."""
        _, tokens, channels = self.shapes[name]
        image = self.shaped(self.turned(name, 0, 2, 1), channels, tokens, 1)
        made = self.put(conv(self.rng, channels, width, window(1)), image)
        return self.turned(self.shaped(made, width, tokens), 0, 2, 1)

    def normalized(self, name: str) -> str:
        """A layer normalization over the last axis, its constants as those of tokens * channels."""
        _, tokens, channels = self.shapes[name]
        flat = self.shaped(self.put(Normalize(axes=(2,), epsilon=1e-5), name), tokens * channels)
        mul, add = (
            np.tile(self.rng.uniform(low, 1.5, channels).astype(np.float32), tokens)
            for low in (0.5, -1.5)
        )
        return self.shaped(self.put(Affine(weight=mul, bias=add), flat), tokens, channels)

    def heads(self, name: str, count: int) -> str:
        """[N, S, C] as [N, H, S, C/H]."""
        _, tokens, channels = self.shapes[name]
        return self.turned(self.shaped(name, tokens, count, channels // count), 0, 2, 1, 3)

    def product(self, a: str, b: str) -> str:
        """[N, H, M, K] times [N, H, K, J]."""
        (_, heads, rows, inner), (*_, columns) = self.shapes[a], self.shapes[b]
        first = self.shaped(self.turned(a, 0, 1, 3, 2), heads * inner, rows)
        second = self.shaped(b, heads * inner, columns)
        made = self.put(MatMul(groups=heads), first, second)
        return self.shaped(made, heads, rows, columns)

    def attended(self, name: str, context: str, heads: int) -> str:
        """Attention of every token to those of the context."""
        _, tokens, width = self.shapes[name]
        query, key, value = (
            self.heads(self.linear(each, width), heads) for each in (name, context, context)
        )
        scores = self.product(query, self.turned(key, 0, 1, 3, 2))
        root = np.full(heads, math.sqrt(heads / width), np.float32)
        scaled = self.put(Affine(weight=root, bias=np.zeros_like(root)), scores)
        together = self.product(self.put(Softmax(axis=3), scaled), value)
        joined = self.shaped(self.turned(together, 0, 2, 1, 3), tokens, width)
        return self.linear(joined, width)


def block(size: int = 4, channels: int = 32, heads: int = 2, seed: int = 0) -> Graph:
    """A block on the pixels of an image between two convolutions: attention, then two layers."""
    b = Tokens((1, channels, size, size), seed)
    before = b.put(conv(b.rng, channels, channels, window(1)), "x")
    tokens = b.turned(b.shaped(before, channels, size * size), 0, 2, 1)
    inside = b.normalized(tokens)
    tokens = b.put(Add(), tokens, b.attended(inside, inside, heads))
    wide = b.put(Unary(function="tanh"), b.linear(b.normalized(tokens), 2 * channels))
    tokens = b.put(Add(), b.linear(wide, channels), tokens)
    image = b.shaped(b.turned(tokens, 0, 2, 1), channels, size, size)
    return b.graph(b.put(Add(), b.put(conv(b.rng, channels, channels, window(1)), image), "x"))
