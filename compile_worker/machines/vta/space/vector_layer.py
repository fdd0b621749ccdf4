"""Additions and pooling seen alike: chains of stages on accumulators that multiplications fill.

Everything here is read off the stages themselves: which engine does them, in whose place, how many
vectors more than the output a tile of them has, and what one vector costs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tilefarm.dtype import DType
from tilefarm.target import Target
from tilefarm.workload import Workload

from compile_worker.ir.expr import Buffer, Const, Load
from compile_worker.ir.visit import find
from compile_worker.machines.vta.space.vector_window import VectorWindow
from compile_worker.te.operators import expressions_of
from compile_worker.te.tensor import Tensor, placeholder

OPERATORS: Final = frozenset({"scaled_add", "window_max2d", "window_sum2d"})

_LANES: Final = frozenset({"b", "o"})


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorStage:
    """A stage on the accumulators.

    Attributes:
        engine: "gemm", "alu", or "reset" for a start with zeros.
        image: the parameter or padded image that it multiplies; "" if it does not.
        root: the first stage of those that share its accumulators.
        more: rows and columns that a tile of it has beyond those of the output's tile.
        summed: axes that it sums over, lanes apart.
        cycles: for each of its vectors, without resetting it and for one step of the sum.
        resets: whether its accumulators are set to zero first.
    """

    name: str
    engine: str
    image: str
    root: str
    more: tuple[int, int]
    summed: tuple[str, ...]
    cycles: int
    resets: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorLayer:
    """A chain of stages from images and tiles to the output, counted in blocks of channels.

    `axes` are those that are tiled. `images` are loaded for every tile of the output, `tiles` once;
    images that are `padded` are stages, the others are parameters.
    """

    batches: int
    extents: dict[str, int]
    axes: tuple[str, ...]
    windows: tuple[VectorWindow, VectorWindow]
    padded: bool
    images: tuple[str, ...]
    tiles: tuple[str, ...]
    stages: tuple[VectorStage, ...]

    @property
    def out(self) -> VectorStage:
        """The stage that is stored."""
        return self.stages[-1]

    @property
    def roots(self) -> tuple[VectorStage, ...]:
        """The first stages of all accumulators."""
        return tuple(stage for stage in self.stages if stage.root == stage.name)

    @property
    def resident(self) -> tuple[str, ...]:
        """The buffers on the chip that hold the images."""
        return tuple(name if self.padded else f"{name}_inp" for name in self.images)

    @property
    def summing(self) -> VectorStage | None:
        """The stage that sums over a window, if there is one."""
        return next((stage for stage in self.stages if stage.summed), None)

    @property
    def output_vectors(self) -> int:
        return self.batches * math.prod(self.extents[axis] for axis in ("co", "oh", "ow"))

    @property
    def starts_rounded(self) -> bool:
        """Whether sums start from the constant that rounds them, all but the first in each slot."""
        alu = [stage.name for stage in self.stages if stage.engine == "alu"]
        return alu[0] == "rounded"

    @property
    def input_vectors(self) -> int:
        """Vectors that have to be loaded at least once."""
        rows, columns = self.windows
        return self.batches * len(self.images) * self.extents["co"] * rows.read * columns.read

    def loading_cycles(self, target: Target) -> int:
        """Cycles that the bus needs at least for everything that is loaded."""
        return self.input_vectors * target.geometry.inp_nbytes // target.timing.bus_nbytes

    def vectors(self, stage: VectorStage) -> int:
        """Vectors of a stage when the whole layer is one tile."""
        rows, columns = (self.extents[a] + m for a, m in zip(("oh", "ow"), stage.more, strict=True))
        return self.batches * self.extents["co"] * rows * columns

    @property
    def gemm_cycles(self) -> int:
        """Micro-ops that multiplications need at least."""
        taps = self.extents["kh"] * self.extents["kw"]
        gemm = (stage for stage in self.stages if stage.engine == "gemm")
        return sum(self.vectors(stage) * (taps if stage.summed else 1) for stage in gemm)

    @property
    def other_cycles(self) -> int:
        """Cycles of resets and ALU operations that the layer needs at least."""
        alu = sum(self.vectors(s) * s.cycles for s in self.stages if s.engine == "alu")
        resets = sum(self.vectors(s) for s in self.stages if s.resets)
        return alu + resets - self.output_vectors * self.starts_rounded


def vector_layer_of(workload: Workload) -> VectorLayer | None:
    """The layer that a workload is; None for other operators."""
    if workload.operator not in OPERATORS:
        return None
    inputs = [placeholder(spec) for spec in workload.inputs]
    *inner, out = expressions_of(workload, inputs)
    padded = [tensor for tensor in inner if tensor.dtype is DType.INT8]
    data = [each for each in inputs if len(each.shape) > 2]
    windows = _windows(workload, data[0])
    spatial = dict(zip(_axes(out)[1:], out.shape[1:-2], strict=True))
    extents = {"co": spatial["co"], "oh": spatial.get("h", 1), "ow": spatial.get("w", 1)}
    return VectorLayer(
        batches=out.shape[0],
        extents={**extents, "kh": windows[0].kernel, "kw": windows[1].kernel},
        axes=tuple(spatial),
        windows=windows,
        padded=bool(padded),
        images=tuple(each.buffer.name for each in padded or data),
        tiles=tuple(each.buffer.name for each in inputs if len(each.shape) == 2),
        stages=_stages([tensor for tensor in inner if tensor not in padded], out),
    )


def _stages(chain: Sequence[Tensor], out: Tensor) -> tuple[VectorStage, ...]:
    roots: dict[Buffer, str] = {}
    found = []
    for tensor in chain:
        assert tensor.stage is not None
        reduction = tensor.stage.reduction
        start = tensor.stage.value if reduction is None else reduction.start
        first = next(iter(find(start, Load)), None)
        roots[tensor.buffer] = tensor.buffer.name if first is None else roots[first.buffer]
        constant = isinstance(start, Const)
        engine = "gemm" if reduction else "reset" if constant else "alu"
        operands = [load.buffer for load in find(tensor.stage.value, Load)]
        found.append(
            VectorStage(
                name=tensor.buffer.name,
                engine=engine,
                image=operands[0].name if reduction else "",
                root=roots[tensor.buffer],
                more=_more(tensor, out),
                summed=tuple(axis for axis in (reduction.over if reduction else ()) if axis != "i"),
                cycles={"gemm": 1, "reset": 0, "alu": len(operands)}[engine],
                resets=constant,
            )
        )
    return tuple(found)


def _more(tensor: Tensor, out: Tensor) -> tuple[int, int]:
    """Rows and columns of a stage beyond the output's; none if there are no such axes."""
    if len(tensor.shape) < 6:
        return (0, 0)
    return tensor.shape[2] - out.shape[2], tensor.shape[3] - out.shape[3]


def _axes(tensor: Tensor) -> tuple[str, ...]:
    """Names of a stage's axes without the stage's own name."""
    assert tensor.stage is not None
    stage = f"{tensor.buffer.name}_"
    names = (axis.var.name.removeprefix(stage) for axis in tensor.stage.axes)
    return tuple(name for name in names if name not in _LANES)


def _windows(workload: Workload, image: Tensor) -> tuple[VectorWindow, VectorWindow]:
    """The windows along rows and columns; of one position where the operator has none."""
    if workload.operator == "scaled_add":
        sizes = (1, 1, *image.shape[2:-2])[-2:]
        return VectorWindow(size=sizes[0], out=sizes[0]), VectorWindow(size=sizes[1], out=sizes[1])
    kernel, stride = workload.attr_ints("kernel"), workload.attr_ints("stride")
    pad, out = workload.attr_ints("pad"), workload.outputs[0].shape[2:4]
    rows, columns = (
        VectorWindow(
            size=image.shape[2 + axis],
            out=out[axis],
            kernel=kernel[axis],
            stride=stride[axis],
            before=pad[axis],
            after=pad[axis + 2],
            skips=axis == 0,
        )
        for axis in (0, 1)
    )
    return rows, columns
