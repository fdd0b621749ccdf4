"""Layers seen alike, whatever they multiply: what their spaces and schedules are made from."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from tilefarm.workload import Workload

from compile_worker.te.operators.groups import groups_of, is_depthwise

SPATIAL = ("co", "oh", "ow")
REDUCED = ("ci", "kh", "kw")
LOOPS = {"co": "co", "oh": "h", "ow": "w", "ci": "ci", "kh": "kh", "kw": "kw"}
"""The names of their loops in a nest, after the stage's."""

PLANES_OF_RESULTS: Final = ("high", "rounded", "copied", "zero")
"""Stages that make the upper plane of results, the last one first."""

COPY_CYCLES: Final = 3
"""Of a vector: it is reset, and the other is added to it."""


@dataclass(frozen=True, slots=True)
class Epilogue:
    """What follows the sums before they are clipped and stored.

    A bias is `bias_tiles` tiles of weights for each block of channels that a constant vector is
    multiplied by, or for all of them where it is `one_bias`; 0 without one. Of two `planes` of
    weights, or `data_planes`, each has biases of its own; the first one's sums are shifted to the
    left, and the second one's go on from them, or are added where the reduction is cut into steps.
    Where both are two, those of data are joined so, and then those of weights are added. A `factor`
    is a register operand. `shift` is "" without one, "block" for an immediate, "lanes" for a
    register operand; another immediate one by `first_shift` is before it, 0 for none. Of two
    `out_planes`, the upper one is made from a copy of the results.
    """

    bias_tiles: int = 0
    one_bias: bool = False
    factor: bool = False
    shift: str = ""
    first_shift: int = 0
    planes: int = 1
    data_planes: int = 1
    out_planes: int = 1

    @property
    def plane_axes(self) -> tuple[str, ...]:
        """Axes of the sums that count planes, those of data first."""
        if self.planes > 1 and self.data_planes > 1:
            return ("data_plane", "plane")
        return ("plane",) if self.planes > 1 or self.data_planes > 1 else ()

    @property
    def stages(self) -> tuple[str, ...]:
        """Stages between the multiplication and the output, the last one first."""
        parts = {
            "shifted": self.shift,
            "shifted_first": self.first_shift,
            "multiplied": self.factor,
            "joined": self.plane_axes,
            "raised": self.plane_axes,
            "biased": self.bias_tiles,
        }
        planes = PLANES_OF_RESULTS if self.out_planes > 1 else ()
        named = (stage for stage, there in parts.items() if there)
        return (*planes, "upper", "lower", *named, *self.before_biases)

    @property
    def before_biases(self) -> tuple[str, ...]:
        """Those of them that biases are not added in front of."""
        return ("joined_data", "raised_data") if len(self.plane_axes) > 1 else ()

    @property
    def elementwise(self) -> tuple[str, ...]:
        """Those of them that the ALU does."""
        return tuple(stage for stage in self.stages if stage not in ("biased", "zero"))

    @property
    def by_lane(self) -> tuple[str, ...]:
        """Tensors in the accumulator memory, each one vector for each block of channels."""
        by_lane = {"factor": self.factor, "shift": self.shift == "lanes"}
        return tuple(name for name, there in by_lane.items() if there)

    @property
    def loads(self) -> bool:
        """Whether anything is loaded for it again and again."""
        return self.bias_tiles > 0 or bool(self.by_lane)

    @property
    def vector_cycles(self) -> int:
        """Cycles for an output vector: reset, bias, immediate shifts, 2 for a register, 2 clips.

        And what makes a copy of it where its bytes are planes.
        """
        copied = COPY_CYCLES * (self.out_planes - 1)
        return 1 + self.bias_tiles + self.immediates + 2 * len(self.by_lane) + copied

    @property
    def immediates(self) -> int:
        """ALU operations whose second operand is part of the instruction: shifts and two clips."""
        raised = (0, 1, 3)[len(self.plane_axes)]
        rounded = 2 * (self.out_planes - 1)
        return (self.shift == "block") + (self.first_shift > 0) + raised + rounded + 2


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmLayer:
    """A sum over (ci, kh, kw) for every output vector (n, co, oh, ow), counted in blocks.

    A dense layer has one pixel and a kernel of one, a matrix product one row of pixels. `stage` is
    the block that multiplies, `image` the buffer that its input is in on the chip, `axes` those of
    SPATIAL and REDUCED that are loops of the nest.

    `around` are the nest's outermost loops, `batches` how often they run together; weights are the
    same for all of them unless `own_weights`. Transposed convolutions have `phases`, loops that run
    inside those over tiles of co, as if each were a block of outputs: co counts all of them. Their
    outputs are `scattered` if neighbours in a row are of different phases. In a `depthwise` layer
    an output block reads the input block at its own place, and ci is 1. Rows of outputs are `apart`
    if the columns of a border are between them in memory.
    """

    stage: str
    image: str
    axes: tuple[str, ...] = (*SPATIAL, *REDUCED)
    around: tuple[str, ...] = ("n",)
    phases: tuple[str, ...] = ()
    phase_count: int = 1
    scattered: bool = False
    apart: bool = False
    batches: int
    own_weights: bool = False
    depthwise: bool = False
    extents: dict[str, int]
    rows: int
    columns: int
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    pad: tuple[int, int, int, int] = (0, 0, 0, 0)
    epilogue: Epilogue
    spatial: tuple[str, ...] = field(init=False)
    """The axes of tiles of the output that the nest has."""
    reduced: tuple[str, ...] = field(init=False)
    """The reduction axes that the nest has, outermost first."""

    def __post_init__(self) -> None:
        for name, axes in (("spatial", SPATIAL), ("reduced", REDUCED)):
            has = tuple(axis for axis in axes if axis in self.axes)
            object.__setattr__(self, name, has)

    @property
    def output_loops(self) -> tuple[str, ...]:
        """Names of the loops over outputs in every stage from the multiplication on."""
        return (*self.around, *self.phases, *(LOOPS[axis] for axis in self.spatial))

    def tile_loops(self, axis: str) -> tuple[str, ...]:
        """The loops over tiles of an axis, outermost first."""
        phases = self.phases if axis == "co" else ()
        return (f"out_{LOOPS[axis]}_0", *(f"out_{phase}" for phase in phases))

    def tiled(self, axis: str) -> int:
        """What tiles of an axis divide: its extent, apart from phases, which are never together."""
        return self.extents[axis] // (self.phase_count if axis == "co" else 1)

    @property
    def has_pixels(self) -> bool:
        """Whether there are loops over an output's pixels, or only those around."""
        return any(axis in self.spatial for axis in ("oh", "ow"))

    @property
    def flat(self) -> bool:
        """Whether operands and outputs are matrices of vectors: one copy moves any part."""
        return self.stage == "dot"

    @property
    def weight_sets(self) -> int:
        """How many of the batches have weights of their own."""
        return self.batches if self.own_weights else 1

    @property
    def channel_blocks(self) -> int:
        """Blocks of output channels: each has its own bias and shift, the same in every phase."""
        return self.tiled("co") * self.weight_sets

    @property
    def shifts_by_block(self) -> bool:
        """Whether each block of output channels is shifted by an instruction of its own."""
        return self.epilogue.shift == "block" and not (self.flat and self.own_weights)

    @property
    def bias_blocks(self) -> int:
        """Blocks of output channels that have biases, factors or shifts of their own."""
        return 1 if self.epilogue.one_bias else self.channel_blocks

    @property
    def image_blocks(self) -> int:
        """Input blocks that one batch reads, those of both planes."""
        return self.extents["co" if self.depthwise else "ci"] * self.epilogue.data_planes

    @property
    def output_vectors(self) -> int:
        return self.batches * math.prod(self.extents[axis] for axis in SPATIAL)

    @property
    def planes(self) -> int:
        """How many tiles of weights an input block is multiplied by for each output block."""
        return self.epilogue.planes

    @property
    def products(self) -> int:
        """How many products of planes, one of data and one of weights, the sums are made of."""
        return self.epilogue.planes * self.epilogue.data_planes

    @property
    def gemm_cycles(self) -> int:
        """Micro-ops that the multiplication needs, whatever the schedule: one a cycle."""
        products = self.output_vectors * math.prod(self.extents[axis] for axis in REDUCED)
        return products * self.products

    @property
    def image_vectors(self) -> int:
        """Vectors of the input that are on the chip when all of it is, padding included."""
        every = self.every(0, self.extents["oh"], self.extents["kh"])
        rows = (self.padded(0) - 1) // every + 1
        return self.batches * self.image_blocks * rows * self.padded(1)

    @property
    def read_vectors(self) -> int:
        """Vectors of the input that some output needs."""
        return self.batches * self.image_blocks * self._read(0) * self._read(1)

    def _read(self, axis: int) -> int:
        """Input rows (axis 0) or columns (axis 1) that are under some output, without padding."""
        size, before = (self.rows, self.columns)[axis], self.pad[axis]
        outputs = range(self.extents[("oh", "ow")[axis]])
        taps = range(self.extents[("kh", "kw")[axis]])
        at = {
            o * self.stride[axis] + k * self.dilation[axis] - before for o in outputs for k in taps
        }
        return sum(0 <= each < size for each in at)

    def covered(self, axis: int, tile: int, kernel: int) -> int:
        """Input rows (axis 0) or columns (axis 1) under `tile` outputs and `kernel` kernel rows."""
        span = (tile - 1) * self.stride[axis] + (kernel - 1) * self.dilation[axis] + 1
        return min(span, self.padded(axis))

    def window(self, axis: int, tile: int, kernel: int) -> int:
        """Input rows (axis 0) or columns (axis 1) that are on the chip for `covered` ones."""
        return (self.covered(axis, tile, kernel) - 1) // self.every(axis, tile, kernel) + 1

    def every(self, axis: int, tile: int, kernel: int) -> int:
        """Which of the rows under them are loaded: every n-th, if only those are used."""
        if axis:
            return 1
        steps = [self.stride[0] * (tile > 1), self.dilation[0] * (kernel > 1)]
        return max(1, math.gcd(*steps))

    def padded(self, axis: int) -> int:
        """Input rows (axis 0) or columns (axis 1), padding included."""
        return (self.rows, self.columns)[axis] + self.pad[axis] + self.pad[axis + 2]


def layer_of(workload: Workload) -> GemmLayer | None:
    """The layer that a workload is; None for operators that are not tiled for the accelerator."""
    made = _LAYERS.get(workload.operator)
    if made is None:
        return None
    _, left, _, right = workload.border
    return replace(made(workload.unbordered), apart=left + right > 0)


def _convolution(workload: Workload) -> GemmLayer:
    stride, dilation = workload.attr_ints("stride"), workload.attr_ints("dilation")
    groups, depthwise = groups_of(workload), is_depthwise(workload)
    co, window = workload.inputs[1].shape[0], workload.inputs[1].shape[-5:-2]
    layer = _windowed(workload, (co, *window))
    grouped = groups > 1 and not depthwise
    extents = {**layer.extents, "co": layer.extents["co"] // (groups if grouped else 1)}
    return replace(
        layer,
        around=("n", "g") if grouped else ("n",),
        batches=layer.batches * (groups if grouped else 1),
        own_weights=grouped,
        depthwise=depthwise,
        extents=extents,
        stride=(stride[0], stride[1]),
        dilation=(dilation[0], dilation[1]),
    )


def _transposed(workload: Workload) -> GemmLayer:
    co, down, across, *window = workload.inputs[1].shape[:-2]
    layer = _windowed(workload, (co, *window))
    extents = {**layer.extents, "co": co * down * across}
    extents |= {"oh": extents["oh"] // down, "ow": extents["ow"] // across}
    return replace(
        layer, phases=("p", "q"), phase_count=down * across, scattered=across > 1, extents=extents
    )


def _windowed(workload: Workload, weight: tuple[int, ...]) -> GemmLayer:
    """A convolution of stride 1 by weights [Co, Ci, Kh, Kw]."""
    data, out = workload.inputs[0].shape, workload.outputs[0].shape
    top, left, bottom, right = workload.attr_ints("pad")
    co, *window = weight
    sizes = (co, *out[-4:-2], *window)
    return GemmLayer(
        stage="conv",
        image="padded" if any((top, left, bottom, right)) else "data_inp",
        batches=data[0],
        extents=dict(zip((*SPATIAL, *REDUCED), sizes, strict=True)),
        rows=data[-4],
        columns=data[-3],
        pad=(top, left, bottom, right),
        epilogue=epilogue_of(workload),
    )


def _dense(workload: Workload) -> GemmLayer:
    data, out = workload.inputs[0].shape, workload.outputs[0].shape
    return GemmLayer(
        stage="dot",
        image="data_inp",
        axes=("co", "ci"),
        batches=data[0],
        extents={**dict.fromkeys((*SPATIAL, *REDUCED), 1), "co": out[-3], "ci": data[-3]},
        rows=1,
        columns=1,
        epilogue=epilogue_of(workload),
    )


def _matmul(workload: Workload) -> GemmLayer:
    batches, ci, columns = workload.inputs[0].shape[:3]
    sizes = {"co": workload.outputs[0].shape[1], "ow": columns, "ci": ci}
    return GemmLayer(
        stage="dot",
        image="data_inp",
        axes=("co", "ow", "ci"),
        batches=batches,
        own_weights=True,
        extents={**dict.fromkeys((*SPATIAL, *REDUCED), 1), **sizes},
        rows=1,
        columns=columns,
        epilogue=epilogue_of(workload),
    )


_LAYERS: Final[Mapping[str, Callable[[Workload], GemmLayer]]] = {
    "conv2d": _convolution,
    "conv2d_transpose": _transposed,
    "dense": _dense,
    "matmul": _matmul,
}


def epilogue_of(workload: Workload) -> Epilogue:
    """What a workload's bias, factor and shift, if it has them, make of its epilogue."""
    bias, shift = workload.tensor("bias"), workload.tensor("shift")
    return Epilogue(
        bias_tiles=0 if bias is None else bias.shape[-3] * (1 + workload.is_in_planes),
        one_bias=bias is not None and len(bias.shape) == 3,
        factor=workload.tensor("factor") is not None,
        shift="" if shift is None else "block" if len(shift.shape) == 1 else "lanes",
        first_shift=workload.first_shift,
        planes=workload.planes,
        data_planes=workload.data_planes,
        out_planes=workload.out_planes,
    )
