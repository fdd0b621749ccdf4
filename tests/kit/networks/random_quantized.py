"""Random small ONNX models that were quantized before, for property tests: awkward extents, joins.

Layers are operators on integers (whole), or float ones between pairs, or of floats on grids that
data decide (dynamic); all else is between pairs, or in float.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import onnx
from kit.networks.onnx_models import node
from numpy.typing import NDArray
from onnx import helper, numpy_helper

TYPES: Final = (np.uint8, np.int8)
CHANNELS: Final = (1, 3, 4, 5, 8, 16, 17, 32, 33)
OPSETS: Final = (13, 14, 15, 16, 17, 18, 19, 20, 21)
_LARGEST: Final = 4000
"""Elements of a value, about: what is larger is not made larger."""


@dataclass(frozen=True, slots=True)
class Value:
    """Integers in the file: their shape, and the names of their scale and zero point."""

    name: str
    shape: tuple[int, ...]
    grid: tuple[str, str]
    scale: float
    dtype: type[np.generic]

    @property
    def channels(self) -> int:
        return self.shape[1]


class _Nodes:
    """The nodes of a model and their constants."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, NDArray[Any]] = {}
        self.opset = int(self._any(OPSETS))
        self.shape: tuple[int, ...] = ()

    def _put(self, operator: str, inputs: list[str], name: str = "", **attrs: Any) -> str:
        name = name or self._fresh("t")
        self._nodes.append(node(operator, inputs, name, **attrs))
        return name

    def _constant(self, name: str, values: NDArray[Any]) -> str:
        name = self._fresh(name)
        self._constants[name] = values
        return name

    def _fresh(self, name: str) -> str:
        return f"{name}{len(self._nodes)}_{len(self._constants)}"

    def _extent(self) -> int:
        return int(self._any((1, 2, 3, 5, 7, 8, 9, 12)))

    def _chance(self, share: float) -> bool:
        return bool(self._rng.random() < share)

    def _any(self, choices: Any) -> Any:
        return choices[int(self._rng.integers(len(choices)))]

    def _model(self, outputs: list[str]) -> onnx.ModelProto:
        def described(name: str, shape: tuple[int, ...] | None) -> onnx.ValueInfoProto:
            return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)

        graph = helper.make_graph(
            self._nodes,
            "random",
            [described("x", self.shape)],
            [described(name, None) for name in outputs],
            [numpy_helper.from_array(value, name) for name, value in self._constants.items()],
        )
        opsets = [("", self.opset), ("com.microsoft", 1)]
        made = helper.make_model(
            graph, opset_imports=[helper.make_opsetid(*each) for each in opsets]
        )
        made.ir_version = 8 if self.opset < 21 else 10
        return made


class RandomModel(_Nodes):
    """Grows from its input by steps that a generator of random numbers chooses.

    Args:
        is_whole: layers are operators on integers; ONNX Runtime sums those as ONNX defines it.
    """

    def __init__(self, seed: int, *, is_whole: bool) -> None:
        super().__init__(seed)
        self._is_whole = is_whole
        batch, channels = self._any((1, 1, 1, 2, 3)), self._any(CHANNELS)
        self.shape = (batch, channels, self._extent(), self._extent())

    def build(self) -> onnx.ModelProto:
        """A model of a few steps, with one output or two."""
        value = self._quantized("x", self.shape, 0.02)
        last = value
        for _ in range(self._rng.integers(1, 6)):
            last, value = value, self._step(value)
        outputs = [self._real(value)]
        if last is not value and self._chance(0.2):
            outputs.append(self._real(last))
        return self._model(list(dict.fromkeys(outputs)))

    def _step(self, x: Value) -> Value:
        kinds: list[Callable[[Value], Value]] = [self._dense]
        if len(x.shape) == 4:
            kinds += [self._conv, self._conv, self._grouped, self._residual, self._concat]
            kinds += [self._max_pool, self._mean, self._affine, self._moved, self._slice]
            kinds += [self._transposed, self._padded, self._again]
        else:
            kinds += [self._function, self._heads]
        kinds += [self._function, self._softmax]
        chosen: Callable[[Value], Value] = self._any(kinds)
        return chosen(x)

    # layers

    def _conv(self, x: Value) -> Value:
        return self._layer(x, int(self._any(CHANNELS)), 1)

    def _grouped(self, x: Value) -> Value:
        groups = int(
            self._any([g for g in range(1, x.channels + 1) if x.channels % g == 0][1:] or [1])
        )
        return self._layer(x, groups * int(self._any((1, 1, 2, 3))), groups)

    def _layer(self, x: Value, outputs: int, groups: int, **given: Any) -> Value:
        height, width = x.shape[2:]
        kernel = [int(self._any((1, 1, 2, 3, 3, 5, 7))) for _ in range(2)]
        if self._chance(0.5):
            kernel[1] = kernel[0]
        dilation = [int(self._any((1, 1, 1, 2, 3))) for _ in range(2)]
        pads = [int(self._any((0, 0, 1, 1, 2, 3))) for _ in range(4)]
        for axis, extent in enumerate((height, width)):
            room = extent + pads[axis] + pads[axis + 2]
            kernel[axis] = max(1, min(kernel[axis], room))
            if (kernel[axis] - 1) * dilation[axis] + 1 > room:
                dilation[axis] = 1
        strides = [int(self._any((1, 1, 1, 2, 3, 4))) for _ in range(2)]
        attrs: dict[str, Any] = {
            "kernel_shape": kernel,
            "dilations": dilation,
            "pads": pads,
            "strides": strides,
            "group": groups,
        } | given
        shape = (outputs, x.channels // groups, *map(int, attrs["kernel_shape"]))
        return self._sums("Conv", x, shape, attrs)

    def _transposed(self, x: Value) -> Value:
        if self._is_whole or math.prod(x.shape) > _LARGEST:
            return self._conv(x)
        strides = [int(self._any((1, 2, 2, 3))) for _ in range(2)]
        kernel = [int(self._any((1, 2, 3, 4))) for _ in range(2)]
        pads = [min(int(self._any((0, 0, 1))), k - 1) for k in (*kernel, *kernel)]
        if any(e < 3 for e in x.shape[2:]):
            pads = [0] * 4
        attrs = {"strides": strides, "kernel_shape": kernel, "pads": pads}
        if self._chance(0.3):
            attrs["output_padding"] = [s - 1 for s in strides]
        outputs = int(self._any((1, 3, 5, 16, 18)))
        return self._sums("ConvTranspose", x, (x.channels, outputs, *kernel), attrs)

    def _dense(self, x: Value) -> Value:
        if len(x.shape) == 4:
            x = self._reshaped(x, (x.shape[0], math.prod(x.shape[1:])))
        if len(x.shape) == 3:
            shape = (x.shape[2], int(self._any(CHANNELS)))
            return self._sums("MatMul", x, shape, {})
        if self._chance(0.5):
            return self._sums("MatMul", x, (x.channels, int(self._any(CHANNELS))), {})
        return self._sums("Gemm", x, (int(self._any(CHANNELS)), x.channels), {"transB": 1})

    def _sums(
        self, operator: str, x: Value, shape: tuple[int, ...], attrs: dict[str, Any]
    ) -> Value:
        rng = self._rng
        axis = {"Conv": 0, "ConvTranspose": 1, "MatMul": 1, "Gemm": 0}[operator]
        is_each = self._chance(0.6) and operator != "ConvTranspose"
        channels = shape[axis]
        dtype = self._any((np.int8,) if self._is_whole and x.dtype is np.int8 else TYPES)
        ends = np.iinfo(dtype)
        weight = rng.integers(ends.min, ends.max + 1, shape).astype(dtype)
        if self._chance(0.2):
            weight = self._any((ends.min, ends.max)) * np.ones(shape, dtype)
        scale = (rng.uniform(0.001, 0.01, channels if is_each else ())).astype(np.float32)
        middle = 128 if dtype is np.uint8 else 0
        zeros = np.full(scale.shape, middle, dtype)
        if self._chance(0.3) and (dtype is np.uint8 or not is_each):
            zeros = np.asarray(
                rng.integers(ends.min, ends.max + 1, ()) * np.ones(scale.shape), dtype
            )
        w = [self._constant("w", weight), self._constant("w.scale", scale)]
        w.append(self._constant("w.zero", zeros))
        bias = None
        if self._chance(0.7) and operator != "MatMul":
            many = shape[1] if operator == "ConvTranspose" else channels
            steps = rng.integers(-9000, 9000, many).astype(np.int32)
            bias = self._constant("b", steps), np.float32(x.scale) * scale
        summed = math.prod(shape) / channels
        result = float(x.scale * scale.mean() * 40 * math.sqrt(summed) * self._any((0.3, 1, 1, 3)))
        if self._chance(0.05):
            result *= float(self._any((1e-4, 1e4)))
        made = self._result(operator, x, shape, attrs)
        name, grid = self._fresh("q"), self._grid(result, x.dtype if self._is_whole else None)
        if self._is_whole and operator == "Conv":
            inputs = [x.name, *x.grid, *w, *grid, *([bias[0]] if bias else [])]
            self._put("QLinearConv", inputs, name, **attrs)
        elif self._is_whole and operator == "MatMul":
            self._put("QLinearMatMul", [x.name, *x.grid, *w, *grid], name)
        elif self._is_whole and operator == "Gemm":
            inputs = [x.name, *x.grid, *w, bias[0] if bias else "", *grid]
            self._put("QGemm", inputs, name, domain="com.microsoft", **attrs)
        else:
            reals = [self._real(x), self._put("DequantizeLinear", w, axis=axis)]
            if bias:
                of = self._constant("b.scale", np.asarray(bias[1], np.float32))
                reals.append(self._put("DequantizeLinear", [bias[0], of], axis=0))
            real = self._put(operator, reals, **attrs)
            if self._chance(0.3):
                real = self._put("Relu", [real])
            self._put("QuantizeLinear", [real, *grid], name)
        return self._value(name, made, grid)

    def _result(
        self, operator: str, x: Value, shape: tuple[int, ...], attrs: dict[str, Any]
    ) -> tuple[int, ...]:
        if operator == "MatMul":
            return (*x.shape[:-1], shape[1])
        if operator == "Gemm":
            return (x.shape[0], shape[0])
        extents = []
        for axis, extent in enumerate(x.shape[2:]):
            pads, stride = attrs["pads"][axis] + attrs["pads"][axis + 2], attrs["strides"][axis]
            kernel = attrs["kernel_shape"][axis]
            if operator == "Conv":
                reach = (kernel - 1) * attrs["dilations"][axis] + 1
                extents.append((extent + pads - reach) // stride + 1)
            else:
                more = attrs.get("output_padding", [0, 0])[axis]
                extents.append((extent - 1) * stride + kernel - pads + more)
        return (x.shape[0], shape[0] if operator == "Conv" else shape[1], *extents)

    # joins

    def _residual(self, x: Value) -> Value:
        branch = self._layer(
            x, x.channels, 1, kernel_shape=[3, 3], dilations=[1, 1], pads=[1] * 4, strides=[1, 1]
        )
        if self._chance(0.3):
            branch = self._function(branch)
        operator = self._any(("Add", "Add", "Sub", "Mul"))
        operands = [self._real(branch), self._real(x)]
        if self._chance(0.5):
            operands.reverse()
        real = self._put(operator, operands)
        if self._chance(0.5):
            real = self._put("Relu", [real])
        scale = branch.scale * x.scale * 60 if operator == "Mul" else max(branch.scale, x.scale)
        return self._quantized(real, x.shape, scale)

    def _concat(self, x: Value) -> Value:
        parts = [x]
        for _ in range(self._rng.integers(1, 3)):
            parts.append(
                self._layer(
                    x,
                    int(self._any(CHANNELS[:7])),
                    1,
                    kernel_shape=[1, 1],
                    dilations=[1, 1],
                    pads=[0] * 4,
                    strides=[1, 1],
                )
            )
        if self._chance(0.3):
            parts.append(parts[-1])
        parts = [parts[each] for each in self._rng.permutation(len(parts))]
        real = self._put("Concat", [self._real(each) for each in parts], axis=1)
        shape = (x.shape[0], sum(each.channels for each in parts), *x.shape[2:])
        return self._quantized(real, shape, max(each.scale for each in parts))

    def _again(self, x: Value) -> Value:
        """A join of joins."""
        if x.channels > 64:
            return self._slice(x)
        return self._concat(self._concat(x))

    def _heads(self, x: Value) -> Value:
        """A product of two activations."""
        if len(x.shape) != 3:
            return self._function(x)
        turned = self._put("Transpose", [self._real(x)], perm=[0, 2, 1])
        second = self._quantized(turned, (x.shape[0], x.shape[2], x.shape[1]), x.scale, x.grid)
        shape, scale = (x.shape[0], x.shape[1], x.shape[1]), x.scale**2 * 60 * math.sqrt(x.shape[2])
        if self._is_whole:
            name, grid = self._fresh("q"), self._grid(scale, x.dtype)
            inputs = [x.name, *x.grid, second.name, *second.grid, *grid]
            self._put("QLinearMatMul", inputs, name)
            return self._value(name, shape, grid)
        real = self._put("MatMul", [self._real(x), self._real(second)])
        return self._quantized(real, shape, scale)

    # the others

    def _function(self, x: Value) -> Value:
        exact, inexact = ("Relu", "LeakyRelu", "Neg", "Abs"), ("Sigmoid", "HardSigmoid", "Tanh")
        name = self._any(exact if self._is_whole else exact + inexact)
        attrs: dict[str, Any] = {"alpha": 0.25} if name == "LeakyRelu" else {}
        real = self._put(name, [self._real(x)], **attrs)
        return self._quantized(real, x.shape, 0.008 if name in ("Sigmoid", "Tanh") else x.scale)

    def _softmax(self, x: Value) -> Value:
        if self._is_whole:
            return self._function(x)
        real = self._put("Softmax", [self._real(x)], axis=int(self._any((1, -1))))
        return self._quantized(real, x.shape, 1 / 256)

    def _affine(self, x: Value) -> Value:
        many = (1, x.channels, 1, 1)
        w = self._constant("mul", self._rng.uniform(-2, 2, many).astype(np.float32))
        b = self._constant("add", self._rng.uniform(-1, 1, many).astype(np.float32))
        real = self._put("Add", [self._put("Mul", [self._real(x), w]), b])
        return self._quantized(real, x.shape, x.scale * 1.5)

    def _max_pool(self, x: Value) -> Value:
        if min(x.shape[2:]) < 2:
            return self._conv(x)
        kernel = [int(self._any((1, 2, 2, 3))) for _ in range(2)]
        kernel = [min(k, extent) for k, extent in zip(kernel, x.shape[2:], strict=True)]
        strides = [int(self._any((1, 2, 3))) for _ in range(2)]
        pads = [min(int(self._any((0, 0, 1))), k - 1) for k in (*kernel, *kernel)]
        attrs: dict[str, Any] = {"kernel_shape": kernel, "strides": strides, "pads": pads}
        real = self._put("MaxPool", [self._real(x)], **attrs)
        shape = self._result("Conv", x, (x.channels,), attrs | {"dilations": [1, 1]})
        if self._chance(0.5):
            return self._quantized(real, shape, x.scale, x.grid)
        return self._quantized(real, shape, x.scale)

    def _mean(self, x: Value) -> Value:
        if self._is_whole or self._chance(0.5):
            name, grid = self._fresh("q"), self._grid(x.scale * self._any((0.3, 1)), x.dtype)
            inputs = [x.name, *x.grid, *grid]
            domain = "com.microsoft"
            self._put("QLinearGlobalAveragePool", inputs, name, domain=domain, channels_last=0)
            return self._value(name, (*x.shape[:2], 1, 1), grid)
        real = self._put("GlobalAveragePool", [self._real(x)])
        return self._quantized(real, (*x.shape[:2], 1, 1), x.scale)

    def _padded(self, x: Value) -> Value:
        pads = [0, 0, *self._rng.integers(0, 3, 2), 0, 0, *self._rng.integers(0, 3, 2)]
        given = self._constant("pads", np.array(pads, np.int64))
        real = self._put("Pad", [self._real(x), given])
        shape = (*x.shape[:2], *(x.shape[a] + pads[a] + pads[a + 4] for a in (2, 3)))
        return self._quantized(real, tuple(map(int, shape)), x.scale, x.grid)

    def _moved(self, x: Value) -> Value:
        """Other axes, or tokens."""
        n, c, height, width = x.shape
        if self._chance(0.5):
            real = self._put("Transpose", [self._real(x)], perm=[0, 1, 3, 2])
            return self._quantized(real, (n, c, width, height), x.scale, x.grid)
        flat = self._reshaped(x, (n, c, height * width))
        real = self._put("Transpose", [self._real(flat)], perm=[0, 2, 1])
        return self._quantized(real, (n, height * width, c), x.scale, x.grid)

    def _slice(self, x: Value) -> Value:
        if x.channels < 2:
            return self._affine(x)
        start = int(self._any((0, 0, min(16, x.channels - 1), self._rng.integers(0, x.channels))))
        stop = int(self._rng.integers(start + 1, x.channels + 1))
        ends = [self._constant("at", np.array([each], np.int64)) for each in (start, stop, 1)]
        real = self._put("Slice", [self._real(x), *ends])
        return self._quantized(real, (x.shape[0], stop - start, *x.shape[2:]), x.scale, x.grid)

    def _reshaped(self, x: Value, shape: tuple[int, ...]) -> Value:
        given = self._constant("shape", np.array(shape, np.int64))
        real = self._put("Reshape", [self._real(x), given])
        return self._quantized(real, shape, x.scale, x.grid)

    # what all are made of

    def _quantized(
        self, real: str, shape: tuple[int, ...], scale: float, grid: tuple[str, str] | None = None
    ) -> Value:
        grid = grid or self._grid(scale)
        return self._value(self._put("QuantizeLinear", [real, *grid]), shape, grid)

    def _value(self, name: str, shape: tuple[int, ...], grid: tuple[str, str]) -> Value:
        scale, zero = (self._constants[each] for each in grid)
        return Value(name, shape, grid, float(scale), zero.dtype.type)

    def _real(self, x: Value) -> str:
        return self._put("DequantizeLinear", [x.name, *x.grid])

    def _grid(self, scale: float, dtype: type[np.generic] | None = None) -> tuple[str, str]:
        dtype = dtype or self._any(TYPES)
        ends = np.iinfo(dtype)
        middle = (int(ends.min) + int(ends.max) + 1) // 2
        anywhere = int(self._rng.integers(ends.min, ends.max + 1))
        zero = self._any((ends.min, middle, middle, ends.max, anywhere))
        return (
            self._constant("scale", np.array(scale, np.float32)),
            self._constant("zero", np.array(zero, dtype)),
        )


class RandomDynamicModel(_Nodes):
    """Layers of floats, on grids that each sample decides, and floats between them: one sample.

    Args:
        is_exact: nothing else but what ONNX defines to the bit.
    """

    def __init__(self, seed: int, *, is_exact: bool) -> None:
        super().__init__(seed)
        self._is_exact = is_exact
        self.shape = (1, int(self._any(CHANNELS)), self._extent(), self._extent())

    def build(self) -> onnx.ModelProto:
        """A model of a few layers with one output."""
        name = "x"
        shape: tuple[int, ...] = self.shape
        if self._chance(0.5):
            name, shape = self._tokens(name, shape)
        for _ in range(self._rng.integers(1, 4)):
            name, shape = self._layer(name, shape)
            for _ in range(self._rng.integers(0, 3)):
                name, shape = self._between(name, shape)
        return self._model([name])

    def _layer(self, x: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        """As quantizers write it."""
        rng, is_image = self._rng, len(shape) == 4
        outputs = int(self._any(CHANNELS))
        kernel = min(3, *shape[2:]) if is_image and self._chance(0.5) else 1
        sizes = (outputs, shape[1], kernel, kernel) if is_image else (shape[-1], outputs)
        dtype = self._any(TYPES)
        ends = np.iinfo(dtype)
        weight = self._constant("w", rng.integers(ends.min, ends.max + 1, sizes).astype(dtype))
        zero = self._constant("w.zero", np.array(self._any((ends.max // 2 + 1, 3)), dtype))
        many = (outputs, 1, 1) if is_image else (outputs,)
        scale = rng.uniform(0.001, 0.01, many if self._chance(0.5) else ()).astype(np.float32)
        q, s, z = (self._fresh(each) for each in "qsz")
        self._nodes.append(node("DynamicQuantizeLinear", [x], q, s, z))
        pads: dict[str, Any] = {"pads": [kernel // 2] * 4} if is_image and self._chance(0.5) else {}
        operator = "ConvInteger" if is_image else "MatMulInteger"
        sums = self._put("Cast", [self._put(operator, [q, weight, z, zero], **pads)], to=1)
        both = self._put("Mul", [s, self._constant("scale", scale)])
        made = self._put("Mul", [sums, both])
        if self._chance(0.5):
            bias = rng.normal(0, 1, many).astype(np.float32)
            made = self._put("Add", [made, self._constant("bias", bias)])
        if not is_image:
            return made, (*shape[:-1], outputs)
        around = 2 * (kernel // 2) if pads else 0
        return made, (1, outputs, *(each + around - kernel + 1 for each in shape[2:]))

    def _between(self, x: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        kinds = ["Relu", "LeakyRelu", "Neg", "tokens", "slice", "twice", "scaled", "joined"]
        if not self._is_exact:
            kinds += ["Gelu" if self.opset >= 20 else "Sigmoid", "Softmax", "normalized", "Tanh"]
        match self._any(kinds):
            case "tokens" if len(shape) == 4:
                return self._tokens(x, shape)
            case "tokens":
                perm = [0, 2, 1]
                return self._put("Transpose", [x], perm=perm), (1, shape[2], shape[1])
            case "slice":
                axis = int(self._rng.integers(1, len(shape)))
                start = int(self._rng.integers(0, shape[axis]))
                stop = int(self._rng.integers(start + 1, shape[axis] + 1))
                ends = [self._constant("at", np.array([each])) for each in (start, stop, axis)]
                shape = (*shape[:axis], stop - start, *shape[axis + 1 :])
                return self._put("Slice", [x, *ends]), shape
            case "twice":
                other = self._put("Neg", [self._put("Relu", [x])])
                return self._put(self._any(("Add", "Mul", "Sub")), [x, other]), shape
            case "scaled":
                by = self._rng.uniform(-2, 2, shape[-1]).astype(np.float32)
                return self._put("Mul", [x, self._constant("by", by)]), shape
            case "joined":
                axis = int(self._rng.integers(1, len(shape)))
                parts = [x, self._put("Abs", [x])]
                shape = (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :])
                return self._put("Concat", parts, axis=axis), shape
            case "Softmax":
                return self._put("Softmax", [x], axis=int(self._any((1, -1)))), shape
            case "normalized" if self.opset >= 17:
                ones = self._constant("ones", np.ones(shape[-1], np.float32))
                return self._put("LayerNormalization", [x, ones], axis=-1), shape
            case "normalized":
                return x, shape
            case operator:
                return self._put(operator, [x]), shape

    def _tokens(self, x: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        _, channels, height, width = shape
        given = self._constant("shape", np.array([1, channels, height * width]))
        flat = self._put("Reshape", [x, given])
        return self._put("Transpose", [flat], perm=[0, 2, 1]), (1, height * width, channels)
