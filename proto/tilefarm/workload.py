"""A workload: one operator on concrete shapes, the unit that is searched, compiled and measured.

Tensors of the accelerator are blocked: data is `[N/b, C/c, H, W, b, c]` int8 and weights are
`[Co/c, Ci/c, Kh, Kw, c, c]` int8 (output lane before input lane), with b = batch and c = block of
the target. Channels that a network does not have are zero. OPERATORS lists what each operator
means.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from tilefarm.digest import Digest, canonical_json
from tilefarm.documents import decoded
from tilefarm.dtype import DType

AttrValue: TypeAlias = "int | float | str | tuple[int, ...]"

OPERATORS: Final[Mapping[str, str]] = {
    # On the accelerator. acc is int32; `>>` is arithmetic; shift >= 0. `x·tile` multiplies lanes:
    # (x·tile)[o] = sum over i of x[i] * tile[o, i], one GEMM micro-op. round is 1 << (shift-1), or
    # 0 for shift 0.
    "conv2d": "(data, weight[, bias, unit][, factor][, shift]) -> out = int8(min(max(((conv(data,"
    " weight) + bias[co]) * factor[co]) >> shift[co], lo), hi)); what is absent does nothing;"
    " attrs stride=(h, w), pad=(top, left, bottom, right),"
    " dilation=(h, w), lo, hi, and groups (of blocks; 1 if absent): weight is [Co/c, Ci/c/groups,"
    " Kh, Kw, c, c] and output block co reads the input blocks of its group. Padding is zero. bias"
    " is int8 [Co/c, T, c, c] and adds, for each t, unit·bias[co, t] with unit int8 [b, c]. shift"
    " is int32 [Co/c, b, c] (equal over b), or [Co/c]: one for each block. factor is int32 [Co/c,"
    " b, c] (equal over b) and its products wrap; the target's ALU needs MUL. With attr planes=2"
    " (no factor) weights have 16 bits: weight is [Co/c, 2, Ci/c/groups, Kh, Kw, c, c] and"
    " bias [Co/c, 2, T, c, c], and the sums are 256 * (those of plane 0) + (those of plane 1). With"
    " attr data_planes=2 (no factor) so has data: [N/b, 2, C/c, H, W, b, c], and bias is as with"
    " planes=2; both may be given. With attr out_planes=2 lo and hi are within int16 and out is"
    " [N/b, 2, Co/c, OH, OW, b, c]: plane 1 has the low byte of min(max(sums, lo), hi), plane 0 has"
    " (that + 128) >> 8, so that it is 256 * plane 0 + plane 1. With attr border=(top, left,"
    " bottom, right) out has OH + top + bottom rows and OW + left + right columns: results are"
    " within that border, of which nothing is written.",
    "dense": "(data [N/b, Ci/c, b, c], weight [Co/c, Ci/c, c, c][, bias, unit][, factor][, shift])"
    " -> out [N/b, Co/c, b, c] as conv2d; attrs lo, hi, and planes where weight is [Co/c, 2, Ci/c,"
    " c, c], data_planes where data is [N/b, 2, Ci/c, b, c], out_planes where out is",
    "conv2d_transpose": "(data, weight[, bias, unit][, factor][, shift]) -> out; stride (h, w)"
    " phases p = 0..h-1, q = 0..w-1: weight is [Co/c, h, w, Ci/c, Kh, Kw, c, c], and out[h*y + p,"
    " w*x + q] is the convolution of stride 1 of data with weight[co, p, q], bias, factor, shift"
    " and clips as conv2d;"
    " attrs stride, pad (of that convolution), lo, hi",
    "matmul": "(data [B, Ki/c, M/b, b, c], weight [B, Ki/c, No/c, c, c][, bias, unit][, shift int32"
    " [1]]) -> out [B, No/c, M/b, b, c] = int8(min(max((data·weight summed over Ki/c + bias) >>"
    " shift, lo), hi)); both operands are activations: a weight tile is c vectors of c lanes,"
    " output lane first. bias is int8 [T, c, c], as conv2d's but for all blocks; attrs lo, hi, and"
    " first_shift where the sums are shifted by that before",
    "scaled_add": "(a, b, scale_a int8 [c, c], scale_b int8 [c, c]) -> clip((a·scale_a + b·scale_b"
    " + round) >> shift, lo, hi); attrs shift, lo, hi",
    "window_max2d": "(x, identity int8 [c, c]) -> max(0, max over the window of x·identity),"
    " padding counts as 0; attrs kernel, stride, pad",
    "window_sum2d": "(x, scale int8 [c, c]) -> clip((sum over the window of x·scale + round) >>"
    " shift, lo, hi), padding is 0; attrs kernel, stride, pad, shift, lo, hi",
    # On the CPU; int8 tensors are blocked as above.
    "quantize": "(x float32 [N, C, ...]) -> blocked int8: clip(round_half_even(x * inv_scale +"
    " offset), -128, 127), absent channels 0; attrs inv_scale, offset (0 if absent; float32)",
    "quantize_windows": "(x float32 [N, C, H, W]) -> blocked int8 [N/b, Kh*Kw*C/c, OH, OW, b, c]:"
    " channel (kh*Kw + kw)*C + ci is pixel (h*stride + kh*dilation - pad, ...) quantized as"
    " `quantize` does, fill outside; attrs inv_scale, offset, fill (0 if absent), kernel, stride,"
    " pad, dilation",
    "dequantize": "(x blocked int8) -> float32 [N, C, ...]: float32(x) * scale + offset;"
    " attrs scale, offset (0 if absent; float32)",
    "add": "(a, b) -> clip((a*mul_a + b*mul_b + round) >> shift, lo, hi), round = 1 << (shift-1) or"
    " 0 for shift 0; attrs mul_a, mul_b, shift, lo, hi",
    "affine": "(x, mul int32 [C/c, b, c], add int32 [C/c, b, c], shift int32 [C/c, b, c]) ->"
    " clip((x*mul[c] + add[c]) >> shift[c], lo, hi); attrs lo, hi",
    "max_pool2d": "(x int8 or uint8) -> max over the window, padding is the least of the type;"
    " attrs kernel, stride, pad",
    "avg_pool2d": "(x, mul int32 [OH, OW]) -> clip((sum*mul[oh, ow] + round) >> shift, lo, hi),"
    " padding is 0; attrs kernel, stride, pad, shift, lo, hi",
    "relayout": "(x blocked, of one logical shape) -> blocked, of another with the same elements in"
    " row-major logical order, absent ones 0; int8, uint8 or float32, and blocks may differ: with"
    " blocks of 1 a tensor is row-major; attrs logical_in, logical_out",
    "softmax": "(x blocked int8 [N/b, C/c, b, c], table float32 [256]) -> float32 [N, C]:"
    " table[max - x] / sum over channels, summed in channel order in float32; no attrs",
    "lookup": "(x int8 or uint8, table [256] of 8 bits or float32) -> table[x - the least of its"
    " type]; or table is [C/c, c, 256] and has a row for each channel; no attrs",
    "product": "(a, b, table int32 [256]) -> clip((a*table[b + 128] + round) >> shift, lo, hi):"
    " a times any function of b; |table| <= 2^23; attrs shift, lo, hi",
    "border": "() -> out int8 [..., H, W, b, c]: `fill` in the first `top` and last `bottom` of its"
    " rows and the first `left` and last `right` of its columns; nothing else of it is written;"
    " attrs border=(top, left, bottom, right), fill (-128 to 127)",
    "as_strided": "(x [N, M]) -> [N, K, ...] of the type of x: x[n, offset + the sum of k*stride"
    " over all axes but the first]; attrs strides, offset",
    "gather": "(x [N, M], index int32 [K]) -> [N, K] of the type of x: x[n, index[k]], or fill"
    " where index[k] is no place in x; attrs fill (0 if absent)",
    "concat": "(x0 [N, M0], x1 [N, M1], ...) -> [N, M0 + M1 + ...] of their type: side by side; no"
    " attrs",
    "script": "(float32 tensors, by the names of parameters) -> out float32: what the function in"
    " attr source says; attrs source (Python's words, parsed and never run: see"
    " `compile_worker.te.script`), and number_NAME for each of its numbers",
    # On the CPU, as ONNX defines its quantized operators; data and results are uint8 or int8. What
    # follows sums is the same for all: real = float32(sum + bias) * scale + addend, of which each
    # operation rounds, and what is absent does nothing. A float32 result is that; one of 8 bits is
    # q = clip(round_half_even(real), lo - zero, hi - zero) + zero, lo where real is no number; with
    # `other`, of the shape and maybe not the type of the result, it is what `qlinear_zip` makes of
    # q and other; attrs of that grid and those ends are to_scale, to_zero, to_lo and to_hi.
    "qlinear_conv2d": "(data [N, Ci/c, H, W, 1, c], weight [Co/l, Ci/c/groups, Kh, Kw, c/p, l, p],"
    " bias int32 [Co/l, l], scale float32 [Co/l, l][, addend float32 [Co/l, l]][, other]) ->"
    " out [N, Co/l, OH, OW, 1, l]: conv(data, weight), and what follows sums; the sums wrap; attrs"
    " stride, pad, dilation, groups as conv2d, fill (padding); zero, lo, hi unless out is float32;"
    " function, a_scale, a_zero, b_scale, b_zero, to_scale, to_zero, to_lo, to_hi with other. p"
    " is 8 or 4 with weights of int8, 2 with int8 or int16 (-255..255). With c = 1 neighbours are"
    " taps, not channels: [Co/l, Ci, Kh, Kw/p, 1, l, p]. Of a lone block the last"
    " channels may have no weights: fewer than c/p. Where c > 1 weights of int8 may have a zero"
    " point, weight_zero int8 [l, p] before other: they are less by that",
    "qlinear_depthwise2d": "(data [N, C/c, H, W, 1, c], weight [C/c, Kh, Kw/p, c, p], bias"
    " int32 [C/c, c], scale float32 [C/c, c][, addend][, other]) -> out [N, C/c, OH, OW, 1, c]: as"
    " qlinear_conv2d, each channel with taps of its own, Kw filled up with zeros; p is 4 with"
    " weights of int8, 2 with int16. Weights may be planes of int8 that add up to -255..255:"
    " [C/c, Kh, Kw/4, P, c, 4]",
    "qlinear_winograd2d": "(data, weight int16 [Co/l, 6, Ci/c, Kh, c/2, l, 2], bias, scale"
    "[, addend][, other]) -> out: as qlinear_conv2d, of at most 8224 products and no groups, for"
    " windows of three columns (g0, g1, g2) side by side; their weights are 6*g0, -4*(g0+g1+g2),"
    " -4*(g0-g1+g2), g0+2*g1+4*g2, g0-2*g1+4*g2, 24*g2",
    "qlinear_conv2d_transpose": "(data, weight int8 [Co/l, h, w, Ci/c, Kh, Kw, c/p, l, p], bias,"
    " scale[, addend][, other]) -> out: the phases of conv2d_transpose, each as qlinear_conv2d;"
    " attrs stride, pad (of a phase's convolution), fill, and those of what follows sums",
    "qlinear_matmul": "(a [Z, K, I], b [Z, K, J]) -> [Z, I, J]: sum over k of (a - a_zero) * (b -"
    " b_zero), which wraps, and what follows sums; row-major; attrs a_zero, b_zero, scale, depth"
    " (how many k are packed side by side, 4 if absent, or 8), and zero, lo, hi unless out is"
    " float32",
    "qlinear_avg_pool2d": "(x blocked, scale float32 [OH, OW]) -> blocked: sum over the window of x"
    " - x_zero, padding is x_zero, and what follows sums; attrs kernel, stride, pad, x_zero, and"
    " zero, lo, hi unless out is float32",
    "qlinear_zip": "(a, b) -> clip(round_half_even(function((a - a_zero) * a_scale, (b - b_zero) *"
    " b_scale) / scale) + zero, lo, hi) in float32, lo for what is no number; extents of 1 are"
    " repeated; attrs function (of `tilefarm.real.COMBINATIONS`), a_scale, a_zero, b_scale, b_zero,"
    " scale, zero, lo, hi",
    "quantize_linear": "(x float32 [N, C, ...]) -> blocked 8 bits: round_half_even(x / scale) +"
    " zero, saturated, the least for NaN, absent channels 0; attrs scale, zero",
    "dequantize_linear": "(x blocked 8 bits) -> float32 [N, C, ...]: float32(x - zero) * scale;"
    " attrs scale, zero",
    "dynamic_grid": "(x float32 [A, R]) -> float32 [A, 2]: scale and zero point of uint8 for each"
    " row, as DynamicQuantizeLinear has them: (high - low) / 255, or 1 where both are 0, and"
    " round_half_even(min(max(0 - low / scale, 0), 255)), 0 for NaN; low and high are the ends of"
    " the row with 0, NaN left out; no attrs",
    "dynamic_quantize_linear": "(x float32 [N, C, ...], grid float32 [N, 2]) -> blocked uint8:"
    " round_half_even(x / scale) + zero with the scale and the zero point of the sample, saturated,"
    " 0 for NaN, absent channels 0; attrs pad (top, left, bottom, right; of an image; none if"
    " absent), which has the zero point",
    "dynamic_bias": "(grid float32 [1, 2], taps int32 [C/l, l], bias int32 [C/l, l]) -> int32"
    " [C/l, l]: bias - zero * taps, which wraps: with taps the sum of a channel's weights, what a"
    " layer adds to products of data that are not less their zero point; no attrs",
    # On the CPU; everything is float32 in row-major order. Every operation rounds by itself, sums
    # begin with 0 and take their terms in the order of the axes named, but over R where B is 1 in
    # that of `tilefarm.real.sums_of_neighbours`, max(a, b) is a if a > b and otherwise b. Where
    # attrs lo or hi are given, the result is min(max(result, lo), hi).
    "real_map": "(x [N, M]) -> f(x), f as `tilefarm.real.FUNCTIONS` has it; attrs function, and its"
    " parameters a, b",
    "real_zip": "(a, b) -> f(a, b), f as `tilefarm.real.COMBINATIONS` has it; extents of 1 are"
    " repeated; attrs function",
    "real_reduce": "(x [A, R, B]) -> [A, B]: sum, prod, max or min over R, mean is the sum / R;"
    " NaN where a term is; attrs kind",
    "real_normalize": "(x [A, R, B]) -> d * (1 / sqrt(sum of d*d over R / R + epsilon)), d = x -"
    " (sum of x over R / R), or x unless centered; attrs epsilon, centered (0 or 1)",
    "real_softmax": "(x [A, R, B]) -> p * (1 / (sum of p over R)), p = exp(d), d = x - (max of x"
    " over R); d - log(sum of p over R) with attr log = 1",
    "real_matmul": "(a [Z, M, K], b [Z, K, N][, bias [N]]) -> [Z, M, N]: (sum over k of a*b) +"
    " bias; an operand [1, ...] is the same for all of Z; a is [Z, K, M] with attr trans_a = 1",
    "real_conv2d": "(x [N, G, Ci, H, W], weight [G, Ci, Kh, Kw, Co], bias [G, Co]) -> [N, G, Co,"
    " OH, OW]: (sum over ci, kh, kw of pixel*weight) + bias, padding is 0; attrs stride, pad,"
    " dilation",
    "real_take": "(places [N, K], x [Z, C, V]) -> [N, C, K]: x[n, c, p], p = max(q, 0), at most V -"
    " 1, q = place + V where that is negative, else place; x [1, ...] is the same for all of N",
    "real_pool2d": "(x [C, H, W]) -> [C, OH, OW]: sum or max over kh, kw of the window, padding"
    " is 0 or minus infinity; attrs kind, kernel, stride, pad, dilation",
}

NUMBER_PREFIX: Final = "number_"
"""Of attributes that are numbers of a script."""

PARAMETERS: Final = ("a", "b")
"""Attributes that are parameters of a function, in their order."""

NO_BORDER: Final = (0, 0, 0, 0)

PLANE: Final = 256
"""What one of the first plane of a tensor is worth in the second."""

ACCELERATED: Final = frozenset(
    {
        "conv2d",
        "dense",
        "conv2d_transpose",
        "matmul",
        "scaled_add",
        "window_max2d",
        "window_sum2d",
    }
)
"""Operators that run on the accelerator; the others run on the processor next to it."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Name, shape and element type of one tensor; row-major and dense."""

    name: str
    shape: tuple[int, ...]
    dtype: DType

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.nbytes

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class Workload:
    """An operator, its tensors and its attributes. Equal workloads are searched once.

    Attributes are sorted by name.
    """

    operator: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    attrs: tuple[tuple[str, AttrValue], ...] = ()

    def __post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise ValueError(f"unknown operator {self.operator!r}")
        object.__setattr__(self, "attrs", tuple(sorted(self.attrs)))

    def attr_int(self, name: str) -> int:
        value = dict(self.attrs)[name]
        if not isinstance(value, int):
            raise TypeError(f"{self.operator}.{name} is {value!r}, not an integer")
        return value

    def attr_float(self, name: str) -> float:
        value = dict(self.attrs)[name]
        if not isinstance(value, float | int):
            raise TypeError(f"{self.operator}.{name} is {value!r}, not a number")
        return float(value)

    @property
    def first_shift(self) -> int:
        """By how much the sums of a `matmul` are shifted before its `shift`; 0 where by nothing."""
        return self.attr_int("first_shift") if "first_shift" in dict(self.attrs) else 0

    @property
    def planes(self) -> int:
        """How many int8 tensors the weights of a layer are: 2 where they have 16 bits, else 1."""
        return self.attr_int("planes") if "planes" in dict(self.attrs) else 1

    @property
    def data_planes(self) -> int:
        """How many int8 tensors a layer's data are: 2 where they have 16 bits, else 1."""
        return self.attr_int("data_planes") if "data_planes" in dict(self.attrs) else 1

    @property
    def out_planes(self) -> int:
        """How many int8 tensors a layer's results are: 2 where they have 16 bits, else 1."""
        return self.attr_int("out_planes") if "out_planes" in dict(self.attrs) else 1

    @property
    def is_in_planes(self) -> bool:
        """Whether a layer's sums, and so its biases, are of planes: of weights, data, or both."""
        return self.planes > 1 or self.data_planes > 1

    @property
    def border(self) -> tuple[int, ...]:
        """Rows and columns (top, left, bottom, right) of the output around what is computed."""
        return self.attr_ints("border") if "border" in dict(self.attrs) else NO_BORDER

    @property
    def within(self) -> tuple[int, ...]:
        """The shape of what the output has within its border.

        Raises:
            ValueError: a border that is not four numbers from 0 on, or has nothing within.
        """
        shape, border = self.outputs[0].shape, self.border
        if len(border) != len(NO_BORDER) or min(border) < 0:
            raise ValueError(f"border is {border}: top, left, bottom, right, each from 0 on")
        if not any(border):
            return shape
        if len(shape) < len(NO_BORDER):
            raise ValueError(f"border is {border}, and {list(shape)} has no rows and columns")
        *outer, rows, columns, batch, lanes = shape
        top, left, bottom, right = border
        height, width = rows - top - bottom, columns - left - right
        if height < 1 or width < 1:
            raise ValueError(f"border is {border}: nothing is within, of {rows} x {columns}")
        return (*outer, height, width, batch, lanes)

    @property
    def unbordered(self) -> Workload:
        """The same computation whose output is only what is computed; itself without a border.

        Raises:
            ValueError: as `within`.
        """
        if "border" not in dict(self.attrs):
            return self
        attrs = tuple(each for each in self.attrs if each[0] != "border")
        return replace(self, outputs=(replace(self.outputs[0], shape=self.within),), attrs=attrs)

    @property
    def fill(self) -> float:
        """What a `gather` has where there is no element, and `quantize_windows` outside."""
        return self.attr_float("fill") if "fill" in dict(self.attrs) else 0.0

    @property
    def offset(self) -> float:
        """What `quantize` and `quantize_windows` add before they round, `dequantize` at last."""
        return self.attr_float("offset") if "offset" in dict(self.attrs) else 0.0

    def attr_str(self, name: str) -> str:
        value = dict(self.attrs)[name]
        if not isinstance(value, str):
            raise TypeError(f"{self.operator}.{name} is {value!r}, not a name")
        return value

    @property
    def parameters(self) -> tuple[float, ...]:
        """The parameters of the function of a `real_map`: its attributes a, b, as far as given."""
        return tuple(self.attr_float(name) for name, _ in self.attrs if name in PARAMETERS)

    def attr_ints(self, name: str) -> tuple[int, ...]:
        value = dict(self.attrs)[name]
        if not isinstance(value, tuple):
            raise TypeError(f"{self.operator}.{name} is {value!r}, not a tuple")
        return value

    def tensor(self, name: str) -> TensorSpec | None:
        """The tensor of that name, if the workload has it."""
        return next((each for each in self.tensors if each.name == name), None)

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        """Inputs, then outputs: the order of the parameters of every compiled function."""
        return self.inputs + self.outputs

    @property
    def digest(self) -> Digest:
        return Digest.of(self.to_json().encode())

    @property
    def name(self) -> str:
        """A short name for people, for example `conv2d_1x2x14x14_3x3_s1_ab12cd`."""
        first = self.tensors[0]
        parts = [self.operator, "x".join(map(str, first.shape[:-2]))]
        if self.operator == "conv2d":
            co, (kh, kw) = self.inputs[1].shape[0], self.inputs[1].shape[-4:-2]
            parts += [f"{co}co", f"{kh}x{kw}", f"s{self.attr_ints('stride')[0]}"]
        elif self.operator == "dense":
            parts += [f"{self.inputs[1].shape[0]}co"]
        if self.planes > 1:
            parts.append(f"{self.planes}p")
        if self.data_planes > 1 or self.out_planes > 1:
            parts.append(f"{self.data_planes}to{self.out_planes}p")
        if any(self.border):
            parts.append("b" + "".join(map(str, self.border)))
        return "_".join([*parts, self.digest.hex[:6]])

    def to_json(self) -> str:
        return canonical_json(
            {
                "operator": self.operator,
                "inputs": [[t.name, list(t.shape), t.dtype.value] for t in self.inputs],
                "outputs": [[t.name, list(t.shape), t.dtype.value] for t in self.outputs],
                "attrs": {k: list(v) if isinstance(v, tuple) else v for k, v in self.attrs},
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Workload:
        """The workload that `to_json` wrote.

        Raises:
            ValueError, KeyError, TypeError: the text is not a workload.
        """
        document = decoded(text)

        def tensors(rows: list[tuple[str, list[int], str]]) -> tuple[TensorSpec, ...]:
            return tuple(
                TensorSpec(name, tuple(shape), DType(dtype)) for name, shape, dtype in rows
            )

        return cls(
            operator=document["operator"],
            inputs=tensors(document["inputs"]),
            outputs=tensors(document["outputs"]),
            attrs=tuple(
                (k, tuple(v) if isinstance(v, list) else v) for k, v in document["attrs"].items()
            ),
        )
