"""Convolutions by their shape, and the schedule of a layer that nothing was measured for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from tilefarm.dtype import DType
from tilefarm.errors import SettingsError
from tilefarm.space import ESTIMATE, Point
from tilefarm.target import Target
from tilefarm.workload import AttrValue, TensorSpec, Workload

from compile_worker.space import Generated
from driver.network import INT8_MAX, INT8_MIN, MAX_WIDE
from tuner.sampler import Sampler

_FIELDS: Final = "CI,CO,H,W,K,STRIDE,PAD"
_MOST: Final = 1 << 13
_SAMPLES: Final = 256
_KEPT: Final = 8
_NEIGHBOURS: Final = 8
_PATIENCE: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerVariant:
    """What follows a multiplication besides two clips: a bias or none, and whose shift it is.

    `wide` weights, of 16 bits, are two planes: one is shifted to the left before the other goes on.
    So are `wide_data`, and `wide_results`, whose upper one is made from a copy. With a `border`
    results are stored within one of a pixel.
    """

    bias: bool = False
    per_channel: bool = False
    wide: bool = False
    wide_data: bool = False
    wide_results: bool = False
    border: bool = False

    @property
    def planes(self) -> int:
        """How many int8 tensors the weights are."""
        return 2 if self.wide else 1

    @property
    def is_in_planes(self) -> bool:
        """Whether sums are of planes, and so are biases."""
        return self.wide or self.wide_data

    @property
    def is_narrow(self) -> bool:
        """Whether weights, data and results all have 8 bits."""
        return not (self.is_in_planes or self.wide_results)

    @property
    def attrs(self) -> dict[str, AttrValue]:
        """Those of a workload that say which of its tensors are planes, and where results are."""
        said = {"planes": self.wide, "data_planes": self.wide_data}
        said["out_planes"] = self.wide_results
        most = MAX_WIDE if self.wide_results else INT8_MAX
        least = -MAX_WIDE if self.wide_results else INT8_MIN
        border: dict[str, AttrValue] = {"border": (1, 1, 1, 1)} if self.border else {}
        planes = {name: 2 for name, there in said.items() if there}
        return {"lo": least, "hi": most, **planes, **border}

    @property
    def vector_cycles(self) -> int:
        """Cycles for one output vector: reset, bias, shift by immediate or register, two clips."""
        biases = (1 + self.is_in_planes) * int(self.bias)
        raised = (0, 1, 3)[self.wide + self.wide_data]
        copied = 5 * int(self.wide_results)
        return 1 + biases + raised + (2 if self.per_channel else 1) + 2 + copied


PLAIN: Final = LayerVariant()
BIASED: Final = LayerVariant(bias=True)


@dataclass(frozen=True, slots=True)
class Convolution:
    """A square-windowed convolution: channels in and out, height, width, window, stride, pad.

    A depthwise one multiplies each channel with a window of its own; `co` is `ci`.
    """

    ci: int
    co: int
    height: int
    width: int
    kernel: int
    stride: int
    pad: int
    depthwise: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """The one that `CI,CO,H,W,K,STRIDE,PAD` says.

        Raises:
            SettingsError: not seven numbers, or no output is left.
        """
        try:
            numbers = [int(part) for part in text.split(",")]
            ci, co, height, width, kernel, stride, pad = numbers
        except ValueError:
            raise SettingsError(f"--conv {text}: seven numbers are needed", _FIELDS) from None
        for name, value in zip(_FIELDS.split(","), numbers, strict=True):
            least = 0 if name == "PAD" else 1
            if not least <= value <= _MOST:
                raise SettingsError(
                    f"--conv {text}: {name} = {value} is not in {least}..{_MOST}", _FIELDS
                )
        made = cls(ci, co, height, width, kernel, stride, pad)
        if min(made.out_height, made.out_width) < 1:
            raise SettingsError(
                f"--conv {text}: the window is larger than the padded image",
                "a smaller K, or more PAD",
            )
        return made

    @property
    def out_height(self) -> int:
        return (self.height + 2 * self.pad - self.kernel) // self.stride + 1

    @property
    def out_width(self) -> int:
        return (self.width + 2 * self.pad - self.kernel) // self.stride + 1

    @property
    def output_vectors(self) -> int:
        """Vectors of 16 channels that come out, with the default blocks."""
        return -(-self.co // 16) * self.out_height * self.out_width

    @property
    def macs(self) -> int:
        """Useful multiply-accumulates."""
        window = self.kernel * self.kernel
        inputs = 1 if self.depthwise else self.ci
        return inputs * self.co * window * self.out_height * self.out_width

    def workload(self, target: Target, epilogue: LayerVariant = PLAIN) -> Workload:
        """The convolution on blocked tensors, clipped to int8, or int16 where results are wide.

        Args:
            epilogue: what follows the multiplication.
        """
        batch, block = target.lanes.batch, target.lanes.block
        ci, co = -(-self.ci // block), -(-self.co // block)
        window = (self.kernel, self.kernel)
        planes = (epilogue.planes,) if epilogue.wide else ()
        data, results = ((2,) * wide for wide in (epilogue.wide_data, epilogue.wide_results))
        tiles = (co, *planes, 1 if self.depthwise else ci, *window)
        inputs = (
            TensorSpec("data", (1, *data, ci, self.height, self.width, batch, block), DType.INT8),
            TensorSpec("weight", (*tiles, block, block), DType.INT8),
            *_requantization(co, target, epilogue),
        )
        around = 2 * epilogue.border
        pixels = (self.out_height + around, self.out_width + around)
        shape = (1, *results, co, *pixels, batch, block)
        attrs: dict[str, AttrValue] = {
            "stride": (self.stride, self.stride),
            "pad": (self.pad,) * 4,
            "dilation": (1, 1),
            **epilogue.attrs,
        }
        if self.depthwise and ci > 1:
            attrs["groups"] = ci
        out = TensorSpec("out", shape, DType.INT8)
        return Workload("conv2d", inputs, (out,), tuple(attrs.items()))


def _requantization(co: int, target: Target, epilogue: LayerVariant) -> tuple[TensorSpec, ...]:
    """The inputs behind data and weight; `co` counts output blocks."""
    batch, block = target.lanes.batch, target.lanes.block
    lanes = (co, batch, block)
    planes = (2,) * epilogue.is_in_planes
    tiles = (
        TensorSpec("bias", (co, *planes, 1, block, block), DType.INT8),
        TensorSpec("unit", (batch, block), DType.INT8),
    )
    shift = TensorSpec("shift", lanes if epilogue.per_channel else (co,), DType.INT32)
    return (*(tiles if epilogue.bias else ()), shift)


RESNET18: Final[Mapping[str, Convolution]] = {
    "C1": Convolution(3, 64, 224, 224, 7, 2, 3),
    "C2": Convolution(64, 64, 56, 56, 3, 1, 1),
    "C3": Convolution(64, 128, 56, 56, 3, 2, 1),
    "C4": Convolution(64, 128, 56, 56, 1, 2, 0),
    "C5": Convolution(128, 128, 28, 28, 3, 1, 1),
    "C6": Convolution(128, 256, 28, 28, 3, 2, 1),
    "C7": Convolution(128, 256, 28, 28, 1, 2, 0),
    "C8": Convolution(256, 256, 14, 14, 3, 1, 1),
    "C9": Convolution(256, 512, 14, 14, 3, 2, 1),
    "C10": Convolution(256, 512, 14, 14, 1, 2, 0),
    "C11": Convolution(512, 512, 7, 7, 3, 1, 1),
}
"""The distinct convolutions of ResNet-18 at 224x224: the first one, and the ten behind it."""

MOBILENET_DEPTHWISE: Final[Mapping[str, Convolution]] = {
    "D1": Convolution(32, 32, 112, 112, 3, 1, 1, depthwise=True),
    "D2": Convolution(64, 64, 112, 112, 3, 2, 1, depthwise=True),
    "D3": Convolution(128, 128, 56, 56, 3, 1, 1, depthwise=True),
    "D4": Convolution(128, 128, 56, 56, 3, 2, 1, depthwise=True),
    "D5": Convolution(256, 256, 28, 28, 3, 1, 1, depthwise=True),
    "D6": Convolution(256, 256, 28, 28, 3, 2, 1, depthwise=True),
    "D7": Convolution(512, 512, 14, 14, 3, 1, 1, depthwise=True),
    "D8": Convolution(512, 512, 14, 14, 3, 2, 1, depthwise=True),
    "D9": Convolution(1024, 1024, 7, 7, 3, 1, 1, depthwise=True),
}
"""The distinct depthwise convolutions of MobileNet v1 at 224x224."""

RESNET18_COUNTS: Final[Mapping[str, int]] = {
    **dict.fromkeys(RESNET18, 1), "C2": 4, "C5": 3, "C8": 3, "C11": 3,
}  # fmt: skip
"""How often the network has each."""


def predicted_best(generated: Generated, seed: int) -> dict[str, int]:
    """A point whose predicted cycles no neighbour beats: samples, of which the best improve.

    The same seed gives the same point.
    """
    rng = np.random.default_rng(seed)
    sampler = Sampler(generated.space)
    found = [generated.completed(dict(generated.space.default))]
    found += [dict(point) for point in sampler.sample(_SAMPLES, rng)]
    best, stuck = found[0], 0
    while stuck < _PATIENCE:
        distinct = {sampler.key(point): point for point in found}
        kept = sorted(distinct.values(), key=_predicted_cycles)[:_KEPT]
        stuck = 0 if _predicted_cycles(kept[0]) < _predicted_cycles(best) else stuck + 1
        best = kept[0]
        found = [*kept, *map(dict, sampler.neighbours(kept, rng, _NEIGHBOURS))]
    return best


def _predicted_cycles(point: Point) -> float:
    return point[ESTIMATE] / 4
