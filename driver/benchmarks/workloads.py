"""Workloads of every kind that the accelerator takes, at sizes that tell layers apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from tilefarm.dtype import DType
from tilefarm.target import Target
from tilefarm.workload import AttrValue, TensorSpec, Workload

from driver.benchmarks.tvm_flow import OLD_FLOW
from driver.program.vta.layers import (
    BIASED,
    MOBILENET_DEPTHWISE,
    PLAIN,
    RESNET18,
    Convolution,
    LayerVariant,
)

Shape = tuple[int, ...]
Pads = tuple[int, int, int, int]

PER_CHANNEL: Final = LayerVariant(bias=True, per_channel=True)
WIDE: Final = LayerVariant(bias=True, wide=True)
WIDE_PER_CHANNEL: Final = LayerVariant(per_channel=True, wide=True)
WIDE_ACTIVATIONS: Final = LayerVariant(bias=True, wide_data=True, wide_results=True)
ALL_WIDE: Final = LayerVariant(bias=True, wide=True, wide_data=True, wide_results=True)
BORDERED: Final = LayerVariant(bias=True, border=True)
WIDE_BORDERED: Final = replace(WIDE_ACTIVATIONS, border=True)


def workloads(target: Target) -> dict[str, Workload]:
    """Layers by name: ResNet-18's and MobileNet's, and odd ones of every operator."""
    found = {
        name: RESNET18[name].workload(target, (PLAIN, BIASED, PER_CHANNEL)[at % 3])
        for at, name in enumerate(OLD_FLOW)
    }
    for name in ("D4", "D7", "D9"):
        found[name] = MOBILENET_DEPTHWISE[name].workload(target, BIASED)
    found |= {f"conv {name}": layer.workload(target, e) for name, (layer, e) in _ODD.items()}
    return found | dict(_others(_Blocks(target)))


_ODD: Final[Mapping[str, tuple[Convolution, LayerVariant]]] = {
    "1x1": (Convolution(147, 64, 28, 28, 1, 1, 0), BIASED),
    "5x5": (Convolution(16, 32, 27, 27, 5, 1, 2), PLAIN),
    "7x7 stride 2": (Convolution(16, 64, 32, 32, 7, 2, 3), PER_CHANNEL),
    "one pixel": (Convolution(16, 16, 3, 3, 3, 1, 0), PLAIN),
    "prime": (Convolution(16, 48, 13, 13, 3, 1, 1), BIASED),
    "wide": (Convolution(64, 96, 14, 14, 3, 2, 1), WIDE),
    "wide 1x1": (Convolution(128, 128, 14, 14, 1, 1, 0), WIDE_PER_CHANNEL),
    "wide activations": (Convolution(64, 96, 14, 14, 3, 2, 1), WIDE_ACTIVATIONS),
    "wide depthwise": (MOBILENET_DEPTHWISE["D7"], WIDE_ACTIVATIONS),
    "wide depthwise weights": (MOBILENET_DEPTHWISE["D7"], WIDE),
    "all wide depthwise": (MOBILENET_DEPTHWISE["D7"], ALL_WIDE),
    "bordered": (Convolution(64, 96, 14, 14, 3, 1, 1), BORDERED),
    "bordered 1x1": (Convolution(64, 64, 28, 28, 1, 2, 0), BORDERED),
    "bordered depthwise": (MOBILENET_DEPTHWISE["D7"], WIDE_BORDERED),
    "all wide": (Convolution(64, 64, 14, 14, 1, 1, 0), ALL_WIDE),
}


class _Blocks:
    """Tensors in the blocks of a target; sizes of channels count blocks."""

    def __init__(self, target: Target) -> None:
        self.batch, self.block = target.lanes.batch, target.lanes.block

    def image(self, name: str, *size: int) -> TensorSpec:
        return TensorSpec(name, (1, *size, self.batch, self.block), DType.INT8)

    def tiles(self, name: str, *size: int) -> TensorSpec:
        return TensorSpec(name, (*size, self.block, self.block), DType.INT8)

    def unit(self) -> TensorSpec:
        return TensorSpec("unit", (self.batch, self.block), DType.INT8)


_CLIPS: Final[Mapping[str, AttrValue]] = {"lo": -128, "hi": 127}


def _others(blocks: _Blocks) -> Iterator[tuple[str, Workload]]:
    """One or two of every operator but the plain convolution."""
    yield "dense classifier", _dense(blocks, 32, 63)
    yield "dense narrow", _dense(blocks, 13, 1)
    yield "dense wide", _dense(blocks, 13, 20, wide=True)
    yield "dense wide data", _dense(blocks, 13, 20, wide_data=True)
    yield "grouped", _grouped(blocks)
    yield "grouped wide", _grouped(blocks, ALL_WIDE)
    yield "transposed", _transposed(blocks, 4, 2, 14)
    yield "matmul", _matmul(blocks, 2, 49, 4, 6)
    yield "addition 28", _scaled_add(blocks, 8, 28)
    yield "addition 7", _scaled_add(blocks, 32, 7)
    yield "max pool", _window(blocks, "window_max2d", 4, 56, (3, 3), (2, 2), (1, 1, 1, 1))
    yield "mean of all", _window(blocks, "window_sum2d", 32, 7, (7, 7), (1, 1), (0, 0, 0, 0))
    yield "mean of 2x2", _window(blocks, "window_sum2d", 4, 28, (2, 2), (2, 2), (0, 0, 0, 0))


def _made(
    operator: str, inputs: tuple[TensorSpec, ...], out: TensorSpec, **attrs: AttrValue
) -> Workload:
    return Workload(operator, inputs, (out,), tuple(attrs.items()))


def _dense(
    blocks: _Blocks, ci: int, co: int, *, wide: bool = False, wide_data: bool = False
) -> Workload:
    epilogue = LayerVariant(bias=True, wide=wide, wide_data=wide_data)
    data = blocks.image("data", ci)
    n, *others = data.shape
    inputs = (
        replace(data, shape=(n, *(2,) * wide_data, *others)),
        blocks.tiles("weight", co, *(2,) * wide, ci),
        blocks.tiles("bias", co, *(2,) * epilogue.is_in_planes, 1),
        blocks.unit(),
        TensorSpec("shift", (co,), DType.INT32),
    )
    return _made("dense", inputs, blocks.image("out", co), **epilogue.attrs)


def _grouped(blocks: _Blocks, epilogue: LayerVariant = PLAIN) -> Workload:
    biases = (
        blocks.tiles("bias", 4, *(2,) * epilogue.is_in_planes, 1),
        blocks.unit(),
    )
    inputs = (
        blocks.image("data", *(2,) * epilogue.wide_data, 8, 14, 14),
        blocks.tiles("weight", 4, *(2,) * epilogue.wide, 4, 3, 3),
        *(biases if epilogue.bias else ()),
        TensorSpec("shift", (4,), DType.INT32),
    )
    window: dict[str, AttrValue] = {"stride": (1, 1), "pad": (1,) * 4, "dilation": (1, 1)}
    out = blocks.image("out", *(2,) * epilogue.wide_results, 4, 14, 14)
    return _made("conv2d", inputs, out, groups=2, **window, **epilogue.attrs)


def _transposed(blocks: _Blocks, ci: int, co: int, size: int) -> Workload:
    inputs = (
        blocks.image("data", ci, size, size),
        blocks.tiles("weight", co, 2, 2, ci, 2, 2),
        TensorSpec("shift", (co,), DType.INT32),
    )
    out = blocks.image("out", co, 2 * size, 2 * size)
    pad = (1, 1, 0, 0)
    return _made("conv2d_transpose", inputs, out, stride=(2, 2), pad=pad, **_CLIPS)


def _matmul(blocks: _Blocks, batches: int, rows: int, inner: int, columns: int) -> Workload:
    lanes = (blocks.batch, blocks.block)
    inputs = (
        TensorSpec("data", (batches, inner, rows, *lanes), DType.INT8),
        blocks.tiles("weight", batches, inner, columns),
        TensorSpec("shift", (1,), DType.INT32),
    )
    out = TensorSpec("out", (batches, columns, rows, *lanes), DType.INT8)
    return _made("matmul", inputs, out, **_CLIPS)


def _scaled_add(blocks: _Blocks, channels: int, size: int) -> Workload:
    inputs = (
        blocks.image("a", channels, size, size),
        blocks.image("b", channels, size, size),
        blocks.tiles("scale_a"),
        blocks.tiles("scale_b"),
    )
    out = blocks.image("out", channels, size, size)
    return _made("scaled_add", inputs, out, shift=6, lo=0, hi=127)


def _window(
    blocks: _Blocks,
    operator: str,
    channels: int,
    size: int,
    kernel: Shape,
    stride: Shape,
    pad: Pads,
) -> Workload:
    is_max = operator == "window_max2d"
    inputs = (
        blocks.image("x", channels, size, size),
        blocks.tiles("identity" if is_max else "scale"),
    )
    rows = (size + pad[0] + pad[2] - kernel[0]) // stride[0] + 1
    columns = (size + pad[1] + pad[3] - kernel[1]) // stride[1] + 1
    out = blocks.image("out", channels, rows, columns)
    attrs: dict[str, AttrValue] = {"kernel": kernel, "stride": stride, "pad": pad}
    more: dict[str, AttrValue] = {} if is_max else {"shift": 7, **_CLIPS}
    return _made(operator, inputs, out, **attrs, **more)
