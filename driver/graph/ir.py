"""The float network: nodes in topological order over named NCHW tensors.

Constants live inside the operators, so the only tensors with names are activations. Axis 0 of every
activation is the batch; operators never mix its entries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Shape: TypeAlias = tuple[int, ...]
FloatArray: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A window that slides over height and width; `pad` is (top, left, bottom, right)."""

    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    pad: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)

    def positions(self, height: int, width: int) -> tuple[int, int]:
        """How many places the window has over an image; 0 or less where it does not fit."""
        top, left, bottom, right = self.pad
        reach_h = self.dilation[0] * (self.kernel[0] - 1) + 1
        reach_w = self.dilation[1] * (self.kernel[1] - 1) + 1
        return (
            (height + top + bottom - reach_h) // self.stride[0] + 1,
            (width + left + right - reach_w) // self.stride[1] + 1,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Conv2d:
    """clip(conv(x, weight [Co, Ci, Kh, Kw]) + bias [Co], lo, hi); padding is zero."""

    weight: FloatArray
    bias: FloatArray
    window: Window
    lo: float = -math.inf
    hi: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dense:
    """clip(x [N, Ci] @ weight [Co, Ci] transposed + bias [Co], lo, hi)."""

    weight: FloatArray
    bias: FloatArray
    lo: float = -math.inf
    hi: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """clip(a + b, lo, hi) of two activations of one shape."""

    lo: float = -math.inf
    hi: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Affine:
    """clip(x * mul [C] + add [C], lo, hi) per channel (axis 1)."""

    mul: FloatArray
    add: FloatArray
    lo: float = -math.inf
    hi: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Clip:
    """min(max(x, lo), hi); ReLU is lo = 0."""

    lo: float
    hi: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxPool2d:
    """The largest element under the window; padding never wins."""

    window: Window


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AvgPool2d:
    """clip(sum under the window / divisor [OH, OW], lo, hi); padding is zero.

    The divisor says what a window over the border counts, so all padding rules are one operator.
    """

    window: Window
    divisor: FloatArray
    lo: float = -math.inf
    hi: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Reshape:
    """The same elements in row-major order; `shape` is without the batch axis."""

    shape: Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Softmax:
    """exp(x) / sum of exp(x) over axis 1 of [N, C] or [N, C, 1, 1]."""


Operator: TypeAlias = (
    Conv2d | Dense | Add | Affine | Clip | MaxPool2d | AvgPool2d | Reshape | Softmax
)
Clipped: TypeAlias = Conv2d | Dense | Add | Affine | AvgPool2d
"""The operators that can take over the bounds of a Clip behind them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Node:
    """One operator between named tensors."""

    name: str
    op: Operator
    inputs: tuple[str, ...]
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphInput:
    """A tensor that the user gives: float32 of `shape`.

    `axes` is the permutation that brings the user's layout to `shape`; for a model that takes NHWC
    images and transposes them first it is (0, 3, 1, 2).
    """

    name: str
    shape: Shape
    axes: tuple[int, ...]

    @property
    def given_shape(self) -> Shape:
        """The shape in the layout of the model's file."""
        given = [0] * len(self.axes)
        for position, axis in enumerate(self.axes):
            given[axis] = self.shape[position]
        return tuple(given)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphOutput:
    """A result by the name that the user knows, and the tensor that holds it."""

    name: str
    tensor: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Graph:
    """A float network; `shapes` has every activation, the inputs included."""

    name: str
    inputs: tuple[GraphInput, ...]
    outputs: tuple[GraphOutput, ...]
    nodes: tuple[Node, ...]
    shapes: Mapping[str, Shape] = field(repr=False)

    @property
    def batch(self) -> int:
        """Samples that one run of the network takes."""
        return self.inputs[0].shape[0]

    def users(self) -> dict[str, list[Node]]:
        """The nodes that read each tensor."""
        users: dict[str, list[Node]] = {name: [] for name in self.shapes}
        for node in self.nodes:
            for name in node.inputs:
                users[name].append(node)
        return users
