"""The float network: nodes in topological order over named NCHW tensors.

Constants live inside the operators, so the only tensors with names are activations. Axis 0 of every
activation is the batch; operators never mix its entries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driver.network.graph.grid import Grid

Shape: TypeAlias = tuple[int, ...]
FloatArray: TypeAlias = NDArray[np.float32]
IndexArray: TypeAlias = NDArray[np.int32]


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
    """clip(conv(x, weight [Co, Ci/groups, Kh, Kw]) + bias [Co], lo, hi); padding is zero.

    The channels of a group are next to one another, of the input as of the output.
    """

    weight: FloatArray
    bias: FloatArray
    window: Window
    groups: int = 1
    lo: float = -math.inf
    hi: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConvTranspose2d:
    """A convolution for each phase of the output's pixels, weight [Co, Sh, Sw, Ci, Kh, Kw].

    out[Sh*y + p, Sw*x + q] = clip(conv(x, weight[:, p, q]) + bias [Co], lo, hi), where conv has
    stride 1 and the zeros of `pad` (top, left, bottom, right) around its input.
    """

    weight: FloatArray
    bias: FloatArray
    pad: tuple[int, int, int, int]
    lo: float = -math.inf
    hi: float = math.inf

    @property
    def stride(self) -> tuple[int, int]:
        """Output pixels for each place of the window."""
        return self.weight.shape[1], self.weight.shape[2]

    @property
    def window(self) -> Window:
        """The window of every phase."""
        return Window(kernel=(self.weight.shape[4], self.weight.shape[5]), pad=self.pad)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dense:
    """clip(x [N, Ci] @ weight [Co, Ci] transposed + bias [Co], lo, hi)."""

    weight: FloatArray
    bias: FloatArray
    lo: float = -math.inf
    hi: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class MatMul:
    """a [N, G*K, I] and b [N, G*K, J] multiplied along their channels, in G groups of these.

    out [N, G*I, J]: out[n, g*I + i, j] = scale * sum over k of a[n, g*K + k, i] * b[n, g*K + k, j]

    The accelerator sums over the lanes, which are channels; heads of attention are groups. The
    scale is positive: in integers it changes nothing but what 1 stands for.
    """

    groups: int = 1
    scale: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """clip(a + b, lo, hi) of two activations; a - b where it `subtracts`.

    Where one of them has extent 1 and the other more, the one is repeated; so it is for products.
    """

    subtracts: bool = False
    lo: float = -math.inf
    hi: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Affine:
    """clip(x * weight [C] + bias [C], lo, hi) per channel (axis 1)."""

    weight: FloatArray
    bias: FloatArray
    lo: float = -math.inf
    hi: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Clip:
    """min(max(x, lo), hi); ReLU is lo = 0."""

    lo: float
    hi: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtractZeroPoint:
    """x - middle: a tensor of the user's as layers get it, see `quantize.zero_points`."""

    middle: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Unary:
    """A function of every element, by its name in `graph.functions`, and its parameters."""

    function: str
    parameters: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Slopes:
    """x where it is positive, otherwise x * slope [C] of its channel (axis 1)."""

    slope: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """a * b of two activations; a / b where it `divides`."""

    divides: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gather:
    """Elements of each sample by their row-major places in it, as `index` [...] says; -1 is `fill`.

    Transposing, padding, slicing, repeating and resizing to the nearest pixel are this. It is the
    quantization that fills with anything else than zero, see `quantize.zero_points`.
    """

    index: IndexArray
    fill: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Take:
    """Columns of x [N, C, V] at `places` [N, K], whole numbers that the data decide: [N, C, K].

    The operands are places and x; with a `table` [C, V], which is the x of every sample, places
    alone. A negative place counts from the end, and one outside is the nearest that there is.
    """

    table: FloatArray | None = None


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
class Concat:
    """Activations next to one another along the channels (axis 1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Channels `start` up to, not including, `stop` (axis 1)."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reshape:
    """The same elements in row-major order; `shape` is without the batch axis."""

    shape: Shape


ReduceKind: TypeAlias = Literal["sum", "mean", "max", "min", "prod"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduce:
    """One value in place of all along `axes`, each 1 or more, which keep the extent 1."""

    kind: ReduceKind
    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalize:
    """(x - m) / sqrt(v + epsilon), m the mean over `axes` and v that of (x - m)^2.

    Unless it is `centered`, m is 0: a division by the root of the mean square.
    """

    axes: tuple[int, ...]
    epsilon: float
    centered: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Extreme:
    """The larger or the smaller of two activations, NaN where one is; repeated as in Add.

    `quantize.extremes` makes it for networks in float; integers have differences and bounds.
    """

    kind: Literal["max", "min"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Softmax:
    """exp(x) / sum of exp(x) along one axis, 1 or more; the logarithm of that if `log`."""

    axis: int = 1
    log: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Custom:
    """An operator of a user's: what a script computes, see `compile_worker.te.script`.

    Attributes:
        label: its domain and name.
        source: the text of the script; numbers: what its names outside of it stand for.
        operands: the names of its parameters that are activations, in order, with the shapes in
            which it sees them.
        constants: those that are constant.
        seen: the shape in which it makes its result; held: that of the graph.
        checked: how it was compared with its numpy, in words.
    """

    label: str
    source: str
    numbers: tuple[tuple[str, float], ...]
    operands: tuple[tuple[str, Shape], ...]
    constants: tuple[tuple[str, FloatArray], ...]
    seen: Shape
    held: Shape
    checked: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeQuantize:
    """The nearest real of a grid: what QuantizeLinear and DequantizeLinear make of x.

    Without a grid it is that of DynamicQuantizeLinear: uint8, over the range of each sample.
    """

    grid: Grid | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScaleSums:
    """(x / step + bias [C]) * scale [C] of what a layer with whole weights made of reals on a grid.

    `step` is the grid's scale, so x / step are sums of integers; None where the data decide it:
    then there is no bias, and the sums stay in its unit. Of a product of two activations C is 1.
    """

    bias: NDArray[np.int32]
    scale: FloatArray
    step: float | None


Operator: TypeAlias = (
    Conv2d
    | ConvTranspose2d
    | Dense
    | MatMul
    | Add
    | Affine
    | Clip
    | SubtractZeroPoint
    | Unary
    | Slopes
    | Product
    | Gather
    | Take
    | MaxPool2d
    | AvgPool2d
    | Concat
    | Slice
    | Reshape
    | Reduce
    | Normalize
    | Softmax
    | Extreme
    | Custom
    | FakeQuantize
    | ScaleSums
)
Layer: TypeAlias = Conv2d | ConvTranspose2d | Dense
"""The operators with weights [Co, ...] and a bias [Co]."""
Clipped: TypeAlias = Layer | Add | Affine | AvgPool2d
"""The operators that can take over the bounds of a Clip behind them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphNode:
    """One operator between named tensors."""

    name: str
    op: Operator
    inputs: tuple[str, ...]
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphInput:
    """A tensor that the user gives: float32 of `shape`.

    `axes` is the permutation that brings the user's layout to `shape`; for a model that takes NHWC
    images and transposes them first it is (0, 3, 1, 2). `grid` says of a model that takes integers
    which reals these stand for; the network works on the reals. `rounding` is the grid of a model
    that takes reals and brings them to it first.
    """

    name: str
    shape: Shape
    axes: tuple[int, ...]
    grid: Grid | None = None
    rounding: Grid | None = None

    @property
    def given_shape(self) -> Shape:
        """The shape in the layout of the model's file."""
        given = [0] * len(self.axes)
        for position, axis in enumerate(self.axes):
            given[axis] = self.shape[position]
        return tuple(given)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphOutput:
    """A result by the name that the user knows, and the tensor that holds it.

    `grid` says of a model that gives integers how they are made of the reals in the tensor.
    """

    name: str
    tensor: str
    grid: Grid | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Graph:
    """A float network; `shapes` has every activation, the inputs included.

    `ranges` are largest magnitudes that the model's file gives, for tensors it was quantized at.
    """

    name: str
    inputs: tuple[GraphInput, ...]
    outputs: tuple[GraphOutput, ...]
    nodes: tuple[GraphNode, ...]
    shapes: Mapping[str, Shape] = field(repr=False)
    ranges: Mapping[str, float] = field(default_factory=dict, repr=False)

    @property
    def batch(self) -> int:
        """Samples that one run of the network takes."""
        return self.inputs[0].shape[0]

    def users(self) -> dict[str, list[GraphNode]]:
        """The nodes that read each tensor."""
        users: dict[str, list[GraphNode]] = {name: [] for name in self.shapes}
        for node in self.nodes:
            for name in node.inputs:
                users[name].append(node)
        return users
