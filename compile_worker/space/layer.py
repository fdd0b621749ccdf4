"""Convolution and dense seen alike: the extents that their spaces and schedules are made from."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilefarm.workload import Workload

SPATIAL = ("co", "oh", "ow")
REDUCED = ("ci", "kh", "kw")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A sum over (ci, kh, kw) for every output vector (n, co, oh, ow), counted in blocks.

    A dense layer has one pixel and a kernel of one. `stage` is the block that multiplies, `image`
    the buffer that its input is in on the chip.
    """

    stage: str
    image: str
    batches: int
    extents: dict[str, int]
    rows: int
    columns: int
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pad: tuple[int, int, int, int]

    @property
    def has_window(self) -> bool:
        """Whether the nest has pixel and kernel axes."""
        return self.stage == "conv"

    @property
    def output_vectors(self) -> int:
        return self.batches * math.prod(self.extents[axis] for axis in SPATIAL)

    @property
    def gemm_cycles(self) -> int:
        """Micro-ops that the multiplication needs, whatever the schedule: one a cycle."""
        return self.output_vectors * math.prod(self.extents[axis] for axis in REDUCED)

    @property
    def image_vectors(self) -> int:
        """Vectors of the input that are on the chip when all of it is, padding included."""
        rows = self.kept(self.padded(0), self.extents["oh"], self.extents["kh"])
        return self.batches * self.extents["ci"] * rows * self.padded(1)

    def covered(self, axis: int, tile: int, kernel: int) -> int:
        """Input rows (axis 0) or columns (axis 1) under `tile` outputs and `kernel` kernel rows."""
        span = (tile - 1) * self.stride[axis] + (kernel - 1) * self.dilation[axis] + 1
        return min(span, self.padded(axis))

    def window(self, axis: int, tile: int, kernel: int) -> int:
        """Input rows (axis 0) or columns (axis 1) that are on the chip for `covered` ones."""
        span = self.covered(axis, tile, kernel)
        return span if axis else self.kept(span, tile, kernel)

    def kept(self, rows: int, tile: int, kernel: int) -> int:
        """How many of `rows` input rows are loaded: without padding, only those that are used."""
        steps = [self.stride[0] * (tile > 1), self.dilation[0] * (kernel > 1)]
        every = 1 if any(self.pad) else max(1, math.gcd(*steps))
        return (rows - 1) // every + 1

    def padded(self, axis: int) -> int:
        """Input rows (axis 0) or columns (axis 1), padding included."""
        return (self.rows, self.columns)[axis] + self.pad[axis] + self.pad[axis + 2]


def layer_of(workload: Workload) -> Layer | None:
    """The layer that a workload is; None for operators that are not tiled for the accelerator."""
    data, weight = workload.inputs[0].shape, workload.inputs[1].shape if workload.inputs[1:] else ()
    out = workload.outputs[0].shape
    if workload.operator == "conv2d":
        top, left, bottom, right = workload.attr_ints("pad")
        stride, dilation = workload.attr_ints("stride"), workload.attr_ints("dilation")
        return Layer(
            stage="conv",
            image="padded" if any((top, left, bottom, right)) else "data_inp",
            batches=data[0],
            extents=dict(zip((*SPATIAL, *REDUCED), (out[1], *out[2:4], *weight[1:4]), strict=True)),
            rows=data[2],
            columns=data[3],
            stride=(stride[0], stride[1]),
            dilation=(dilation[0], dilation[1]),
            pad=(top, left, bottom, right),
        )
    if workload.operator == "dense":
        extents = {**dict.fromkeys((*SPATIAL, *REDUCED), 1), "co": out[1], "ci": data[1]}
        return Layer(
            stage="dot",
            image="data_inp",
            batches=data[0],
            extents=extents,
            rows=1,
            columns=1,
            stride=(1, 1),
            dilation=(1, 1),
            pad=(0, 0, 0, 0),
        )
    return None
