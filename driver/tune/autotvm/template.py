"""The choices of AutoTVM's template for VTA's convolutions, and the same ones in our space.

TVM 0.14's `conv2d_packed` of vta/top/vta_conv2d.py: tiles of the output's rows, columns and
channels and of the input's channels, and two virtual threads over rows or channels. What its
schedules may hold on the chip follows from that file and from TVM's lowering for VTA.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from tilefarm.space import ESTIMATE, Point
from tilefarm.target import VtaConfig
from tilefarm.workload import Workload

from compile_worker.space import Generated
from tuner.sampler import Sampler

SPATIAL: Final = ("co", "oh", "ow")
TEMPLATE_ORDER: Final = ("oh", "co", "ow")
"""The template's loops over output tiles, outermost first; it has no choice of them."""
SPLITS: Final = ("tile_h", "tile_w", "tile_ci", "tile_co")
THREADS: Final = ("oc_nthread", "h_nthread")
"""Its knobs; the first four are halves of a split."""
_MOST_THREADS: Final = 2
_LEAST_BETWEEN: Final = 3
"""Accumulators that are written one after the other before the first one may be again."""


@dataclass(frozen=True, slots=True)
class TemplateChoice:
    """One configuration of the template; tiles of channels count blocks.

    `oc_nthread` and `h_nthread` are virtual threads: two tiles in flight, in memory of their own.
    """

    tile_h: int
    tile_w: int
    tile_ci: int
    tile_co: int
    oc_nthread: int
    h_nthread: int

    @property
    def slots(self) -> int:
        """Tiles in flight."""
        return self.oc_nthread * self.h_nthread


@dataclass(frozen=True, slots=True)
class TemplateLayer:
    """A convolution as the template sees it; channels count blocks, images are (rows, columns)."""

    ci: int
    co: int
    image: tuple[int, int]
    output: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    is_padded: bool

    @classmethod
    def of(cls, workload: Workload) -> TemplateLayer | None:
        """That of a workload; None if the template has no word for it."""
        attrs = dict(workload.attrs)
        unlike = {"groups", "planes", "data_planes", "out_planes", "border"} & attrs.keys()
        dilation = attrs.get("dilation", (1, 1))
        if workload.operator != "conv2d" or unlike or dilation != (1, 1):
            return None
        data, weight, out = *workload.inputs[:2], workload.outputs[0]
        if data.shape[0] != 1:
            return None
        return cls(
            ci=data.shape[1],
            co=out.shape[1],
            image=(data.shape[2], data.shape[3]),
            output=(out.shape[2], out.shape[3]),
            kernel=(weight.shape[2], weight.shape[3]),
            stride=(workload.attr_ints("stride")[0], workload.attr_ints("stride")[1]),
            is_padded=any(workload.attr_ints("pad")),
        )

    @property
    def extents(self) -> dict[str, int]:
        """By the axes of our spaces."""
        kh, kw = self.kernel
        sizes = {"co": self.co, "oh": self.output[0], "ow": self.output[1]}
        return {**sizes, "ci": self.ci, "kh": kh, "kw": kw}


def breaks(choice: TemplateChoice, layer: TemplateLayer, vta: VtaConfig) -> str:
    """Why TVM cannot build or run a configuration, as the name of a rule; "" if it can."""
    rows, columns = choice.tile_h, choice.tile_w
    ih = (rows - 1) * layer.stride[0] + layer.kernel[0]
    iw = (columns - 1) * layer.stride[1] + layer.kernel[1]
    taps = layer.kernel[0] * layer.kernel[1]
    inp = (choice.tile_ci, ih, iw)
    out = (choice.tile_co, rows, columns)
    whole = None if layer.is_padded else (layer.ci, *layer.image)
    rules = {
        "tiles divide their axes": layer.ci % choice.tile_ci == 0
        and layer.output[1] % columns == 0
        and layer.co % (choice.tile_co * choice.oc_nthread) == 0
        and layer.output[0] % (rows * choice.h_nthread) == 0,
        "two threads at most": choice.slots <= _MOST_THREADS,
        "the input memory": choice.slots * math.prod(inp) <= vta.inp_depth,
        "the weight memory": choice.slots * choice.tile_co * choice.tile_ci * taps <= vta.wgt_depth,
        "the accumulators": choice.slots * math.prod(out) <= vta.acc_depth,
        "copies of two dimensions into the input memory": _dimensions(inp, whole) <= 2,
        "copies of two dimensions out": _dimensions(out, (layer.co, *layer.output)) <= 2,
        "accumulators that are written again too soon": _is_far_apart(choice, layer),
    }
    return next((rule for rule, holds in rules.items() if not holds), "")


def _dimensions(part: Sequence[int], whole: Sequence[int] | None) -> int:
    """Of a copy of a part, where TVM joins what lies together; where `whole` is None nothing is.

    The innermost one is of vectors that lie side by side, and is one even if it is a single vector.
    """
    joined: list[int] = []
    is_open = False
    for extent, limit in zip(reversed(part), reversed(whole or part), strict=True):
        if is_open and whole is not None:
            joined[-1] *= extent
        else:
            joined.append(extent)
        is_open = extent == limit
    return 1 + sum(extent > 1 for extent in joined[1:])


def _is_far_apart(choice: TemplateChoice, layer: TemplateLayer) -> bool:
    """Whether a kernel of micro-ops writes no accumulator twice within too few of them.

    Its two outermost loops are the instruction's own; what stays is unrolled.
    """
    loops = [
        ("reduced", choice.tile_ci),
        ("spatial", choice.tile_w),
        ("reduced", layer.kernel[1]),
        ("reduced", layer.kernel[0]),
        ("spatial", choice.tile_co),
        ("spatial", choice.tile_h),
    ]
    unrolled = [kind for kind, extent in loops if extent > 1][2:]
    return "reduced" not in unrolled or choice.tile_co * choice.tile_h >= _LEAST_BETWEEN


def choice_of(point: Point, made: Generated, layer: TemplateLayer) -> TemplateChoice | None:
    """The template's configuration that a point of ours is like; None if it has none.

    It loads operands for every step of the reduction and leaves windows whole; what is chosen
    beside tiles and their order is not its matter.
    """
    extents = layer.extents
    if any(point[f"tile_{axis}"] != extents[axis] for axis in ("kh", "kw")):
        return None
    many = [axis for axis in TEMPLATE_ORDER if point[f"tile_{axis}"] < extents[axis]]
    order = dict(_labels(made, "tile_order"))[point["tile_order"]].split()
    if [axis for axis in order if axis in many] != many:
        return None
    trips = {axis: extents[axis] // point[f"tile_{axis}"] for axis in ("co", "oh")}
    threads = (1, 1)
    if point["slots"] == _MOST_THREADS:
        threads = (2, 1) if trips["co"] % 2 == 0 else (1, 2)
        if trips["co"] % 2 and trips["oh"] % 2:
            return None
    if point["slots"] > _MOST_THREADS:
        return None
    return TemplateChoice(
        tile_h=point["tile_oh"],
        tile_w=point["tile_ow"],
        tile_ci=point["tile_ci"],
        tile_co=point["tile_co"],
        oc_nthread=threads[0],
        h_nthread=threads[1],
    )


def same_choices(
    template: TemplateChoice,
    made: Generated,
    extents: Mapping[str, int],
    sampler: Sampler | None = None,
) -> list[Point]:
    """Points of our space with the choices of a template's point, the likely fastest first.

    The tiles are the template's, its threads the slots of our operands, its loop order ours, and
    operands are loaded for every step of the reduction, as the template does. What the template has
    no word for differs among the points: the order of micro-ops, what is held while a tile ends,
    and accumulator slots, at most as many as there are threads.

    Args:
        extents: those of the layer's axes.
        sampler: of that space, for whoever asks often.
    """
    sampler = sampler or Sampler(made.space)
    fixed = _fixed(template, made, extents)
    allowed = {
        at: np.asarray([[value in fixed[v.name] for value in v.domain]])
        for at, v in enumerate(made.space.variables)
        if v.name in fixed
    }
    points = [point for rows in sampler.search.scan(allowed) for point in sampler.points(rows)]
    return sorted(points, key=lambda point: point[ESTIMATE])


def _fixed(
    template: TemplateChoice, made: Generated, extents: Mapping[str, int]
) -> dict[str, set[int]]:
    """Values of the tunables that the template speaks of."""
    tiles = {
        "tile_oh": template.tile_h,
        "tile_ow": template.tile_w,
        "tile_ci": template.tile_ci,
        "tile_co": template.tile_co,
        "tile_kh": extents["kh"],
        "tile_kw": extents["kw"],
    }
    fixed = {name: {value} for name, value in tiles.items()}
    fixed |= {"slots": {template.slots}, "acc_slots": set(range(1, template.slots + 1))}
    many = {axis for axis in SPATIAL if tiles[f"tile_{axis}"] < extents[axis]}
    orders = _labels(made, "tile_order")
    wanted = [axis for axis in TEMPLATE_ORDER if axis in many]
    fixed["tile_order"] = {
        value
        for value, label in orders
        if [axis for axis in label.split() if axis in many] == wanted
    }
    if template.tile_ci < extents["ci"]:
        for name in ("data_at", "weight_at"):
            fixed[name] = {value for value, label in _labels(made, name) if label == "step"}
    return fixed


def _labels(made: Generated, name: str) -> Iterator[tuple[int, str]]:
    """(value, label) of a choice that is left."""
    variable = next(v for v in made.space.variables if v.name == name)
    yield from ((value, variable.labels[value]) for value in variable.domain)
