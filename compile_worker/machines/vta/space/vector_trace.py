"""The schedule of an addition or of pooling: tiles of the output, all that leads to them inside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tilefarm.space import Point
from tilefarm.trace import Step

from compile_worker.ir.annotations import ALU, DMA, HOST
from compile_worker.machines.vta.space.loop_orders import TILE_ORDERS
from compile_worker.machines.vta.space.vector_layer import VectorLayer, VectorStage
from compile_worker.schedule.marks import annotate_step

SUM_ORDERS: Final = (
    ("kh", "kw", "co", "h", "w"),
    ("co", "h", "kh", "kw", "w"),
    ("h", "w", "kh", "kw", "co"),
    ("co", "kh", "kw", "h", "w"),
    ("kh", "kw", "h", "w", "co"),
)
"""Orders of a summing GEMM's loops: the two outermost that are longer than one fold into it."""

APART: Final = 4
"""The order whose taps are instructions of their own: accumulators may be few then."""

_PLAIN_ORDER: Final = ("h", "w", "co")
_TILES: Final = {"co": "tile_co", "h": "tile_oh", "w": "tile_ow"}
_TILED: Final = {"co": "co", "oh": "h", "ow": "w"}


def vector_steps(layer: VectorLayer, point: Point) -> Iterator[Step]:
    """Memories, tiles, loads, engines."""
    yield from _memories(layer)
    yield from _tiles(layer, point)
    yield from _loads(layer, point)
    for stage in layer.stages:
        yield from _engine(stage, layer)
    yield Step("double_buffer", (layer.out.name, point["acc_slots"]))
    yield annotate_step(DMA, "out", "store")


def tile_order(layer: VectorLayer, point: Point) -> tuple[str, ...]:
    """The output's loops over tiles, outermost first."""
    order = (_TILED[axis] for axis in TILE_ORDERS[point["tile_order"]])
    return tuple(axis for axis in order if axis in layer.axes)


def _memories(layer: VectorLayer) -> Iterator[Step]:
    for name in layer.images:
        yield Step("set_scope" if layer.padded else "cache_read", (name, "inp"))
    for name in layer.tiles:
        yield Step("cache_read", (name, "wgt"))
    for stage in layer.stages:
        yield Step("set_scope", (stage.name, "acc"))


def _tiles(layer: VectorLayer, point: Point) -> Iterator[Step]:
    """Cut the output; move what leads to it into a tile, the last stage first.

    An image moves when its first reader is there and those before are not: so it ends up in front
    of all multiplications.
    """
    for axis in layer.axes:
        yield Step("split", (f"out_{axis}", point[_TILES[axis]]))
    outer = [f"out_{axis}_0" for axis in tile_order(layer, point)]
    yield Step("reorder", ("out_n", *outer, *(f"out_{axis}_1" for axis in layer.axes)))
    readers = {stage.image: stage for stage in reversed(layer.stages) if stage.image}
    for stage in reversed(layer.stages):
        yield Step("compute_at", (stage.name, outer[-1]))
        loop = outer[-1]
        if stage.summed:
            yield from _steps_of_sum(stage, layer, point)
            loop = f"{stage.name}_{stage.summed[-1]}_0" if is_cut(layer, point) else loop
        for image, buffer in zip(layer.images, layer.resident, strict=True):
            if readers[image] is stage:
                yield Step("compute_at", (buffer, loop))


def _steps_of_sum(stage: VectorStage, layer: VectorLayer, point: Point) -> Iterator[Step]:
    """Cut the sum into steps, outermost, and put one instruction's loops in order."""
    for axis in stage.summed:
        yield Step("split", (f"{stage.name}_{axis}", point[f"tile_{axis}"]))
    yield _reordered(stage, layer, SUM_ORDERS[point["sum_order"]])
    if point["sum_order"] == APART:
        for axis in stage.summed:
            yield annotate_step(HOST, f"{stage.name}_{axis}_1", 1)


def is_cut(layer: VectorLayer, point: Point) -> bool:
    """Whether a window is summed in several steps, each with a load of its own."""
    return any(point[f"tile_{axis}"] < layer.extents[axis] for axis in ("kh", "kw"))


def _loads(layer: VectorLayer, point: Point) -> Iterator[Step]:
    for buffer in layer.resident:
        yield Step("double_buffer", (buffer, point["slots"]))
        yield annotate_step(DMA, buffer, "load")
    for name in layer.tiles:
        yield annotate_step(DMA, f"{name}_wgt", "load")


def _engine(stage: VectorStage, layer: VectorLayer) -> Iterator[Step]:
    match stage.engine:
        case "alu":
            yield annotate_step(ALU, stage.name, 1)
        case "reset":
            yield Step("tensorize", (stage.name, "reset"))
        case _ if stage.summed:
            yield Step("tensorize", (stage.name, "gemm"))
        case _:
            yield _reordered(stage, layer, _PLAIN_ORDER)
            yield Step("tensorize", (stage.name, "gemm"))
            yield Step("decompose_reduction", (stage.name, f"{stage.name}_n"))


def _reordered(stage: VectorStage, layer: VectorLayer, order: tuple[str, ...]) -> Step:
    """Steps of a sum outermost, then one instruction's loops, lanes innermost."""
    loops = [*(f"{axis}_0" for axis in stage.summed), "n"]
    loops += [
        f"{axis}_1" if axis in stage.summed else axis
        for axis in order
        if axis in (*layer.axes, *stage.summed)
    ]
    return Step("reorder", tuple(f"{stage.name}_{axis}" for axis in (*loops, "b", "o", "i")))
